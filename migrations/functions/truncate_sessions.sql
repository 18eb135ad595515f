-- Truncates sessions of a sweep: the decision and the end of their runs in one transaction, without a queue or a plan, where
-- the policy wants no more than that the oldest groups go until the view is small enough. ended are the runs, of the
-- sessions that it has decided; the others take a run of their own, and so do those that something locks. What both do is
-- the same: a test compares them.
--   p_rules   [{policy, version, tenant, model, …}]: the rules of the kinds of sessions that there are, as Truncation in Go
--             has them. A kind without a metric takes runs. unknown are kinds without a rule: with any, nothing is done.
--
-- It decides what only takes counts: the session is over its start, the view is leading system messages and then
-- everything from one message on, as the application wrote it, without open calls, reasoning to take out, pins and
-- suspicions; the last message of the user stays, and the target is met. No guard, cooldown or former decision holds.
CREATE OR REPLACE FUNCTION @schema@.truncate_sessions(p_sweep bigint, p_sids bigint[], p_rules json, p_worker text, OUT ended bigint[], OUT unknown json)
LANGUAGE plpgsql AS $$
DECLARE
    v_changes @schema@.view_change[];
    v_kinds   json;
BEGIN
    ended := '{}';
    PERFORM FROM @schema@.policy_refresh FOR KEY SHARE;   -- no policy changes between the statements
    SELECT json_agg(k) FILTER (WHERE k.metric IS NOT NULL), json_agg(DISTINCT jsonb_build_object('policy', k.policy, 'version', k.version, 'tenant', k.tenant, 'model', k.model)) FILTER (WHERE NOT k.known)
    INTO v_kinds, unknown FROM (
        SELECT s.tenant AS of, s.policy AS names, s.model, coalesce(h.name, 'default') AS policy, coalesce(h.version, 0) AS version, coalesce(h.tenant, '') AS tenant,
            r.policy IS NOT NULL AS known, r.metric
        FROM (SELECT DISTINCT tenant, policy, model FROM @schema@.sessions WHERE sid = ANY (p_sids)) s
        LEFT JOIN LATERAL (SELECT * FROM @schema@.policy_heads p
            WHERE p.name IN (s.policy, 'default') AND coalesce(p.tenant, s.tenant) = s.tenant ORDER BY p.name = s.policy DESC LIMIT 1) h ON true
        LEFT JOIN (SELECT DISTINCT ON (policy, version, model) * FROM json_to_recordset(p_rules) AS r(policy text, version int, model text, metric text)) r
            ON (r.policy, r.version, r.model) = (coalesce(h.name, 'default'), coalesce(h.version, 0), s.model)) k;
    IF unknown IS NOT NULL OR v_kinds IS NULL THEN
        RETURN;
    END IF;
    -- Locked by a statement of its own, so that the next one sees all that was committed before: messages, and runs of events.
    p_sids := ARRAY(SELECT s.sid FROM @schema@.sessions s
        WHERE s.sid = ANY (p_sids) AND s.due AND s.state = 'active' AND s.last_source_seq > s.hold_seq AND s.suspect_seq IS NULL
            AND isempty(s.pinned) AND isempty(s.reasoning_out) AND cardinality(s.open_calls) = 0 AND NOT s.open_answered
            AND s.live_messages <= 5000 AND (s.cooldown_until > now()) IS NOT true AND s.labels->>'service_managed' IS DISTINCT FROM 'true'
            AND EXISTS (SELECT FROM json_to_recordset(v_kinds) AS k(of text, names text, model text) WHERE (k.of, k.names, k.model) = (s.tenant, s.policy, s.model))
        FOR NO KEY UPDATE SKIP LOCKED);
    PERFORM @schema@.follow_policies(p_sids);
    WITH kinds AS MATERIALIZED (
        SELECT k.of, k.names, r.*, c.overhead, c.scale, coalesce(nullif(c.scale, 0), 1) AS each, CASE WHEN c.scale > 0 THEN 0 ELSE r.margin END AS added
        FROM json_to_recordset(v_kinds) AS k(of text, names text, policy text, version int, model text)
        JOIN (SELECT DISTINCT ON (policy, version, model) * FROM json_to_recordset(p_rules) AS r(policy text, version int, model text, metric text, most bigint, leave bigint, window_tokens bigint, start bigint, target bigint, due_tokens bigint,
            min_gain bigint, min_gain_share double precision, margin double precision, free_reasoning boolean, hash text, fleet_hash text)) r USING (policy, version, model)
        LEFT JOIN @schema@.calibrations c ON c.tenant = k.of AND c.model = @schema@.model_key(k.model)
    ), page AS MATERIALIZED (
        SELECT s.sid, s.live, s.last_seq, s.last_source_seq, s.revision, s.head_run, s.tail_start_seq, s.live_messages, s.live_tokens, s.live_estimated_tokens,
            s.reported_prompt_tokens, s.tokens_since_report, s.low_gain_runs, s.new_signals, s.timed, k.*
        FROM @schema@.sessions s JOIN kinds k ON (k.of, k.names, k.model) = (s.tenant, s.policy, s.model)
        WHERE s.sid = ANY (p_sids) AND s.due AND (k.free_reasoning OR s.reasoning_since IS NOT NULL OR s.revision = 0)
            AND (s.decision_fingerprint IS DISTINCT FROM s.last_source_seq || '/' || s.revision || '/{}/' || k.hash OR s.new_signals <> 0 OR s.timed)
            -- An event that waits has a run soon, which the sweep's own run waits for; no event comes before this commits.
            AND NOT EXISTS (SELECT FROM @schema@.outbox o WHERE o.sid = s.sid) AND NOT EXISTS (SELECT FROM @schema@.throttled t WHERE t.sid = s.sid)
            AND NOT EXISTS (SELECT FROM @schema@.runs r WHERE r.sid = s.sid AND r.status IN ('queued', 'running') AND r.options->'dry_run' IS DISTINCT FROM 'true')
    ), decided AS MATERIALIZED (
        SELECT p.*, v.messages, v.groups, v.calls, v.tokens, v.first, x.context, c.cut, c.gone_tokens, c.freed, d.gain, g.*
        FROM page p
        CROSS JOIN LATERAL (   -- the view
            SELECT count(*) AS messages, count(*) FILTER (WHERE m.role_code <> 't') AS groups, sum(m.calls) AS calls,
                sum(m.token_count + CASE WHEN m.flags & 16 > 0 THEN ceil(m.token_count * p.added - 1e-9)::int ELSE 0 END) AS tokens,
                min(m.seq) FILTER (WHERE m.role_code <> 's') AS first, min(m.cumulative_tokens - m.token_count) FILTER (WHERE m.role_code <> 's') AS before,
                max(m.seq) FILTER (WHERE m.role_code = 's') AS systems, max(m.seq) FILTER (WHERE m.role_code = 'u') AS asked,
                sum(m.calls) = count(*) FILTER (WHERE m.role_code = 't') AND bool_and(m.kind = 'm' AND m.position = m.seq AND m.flags & 256 = 0 AND m.role_code <> 'o' AND (m.role_code <> 't' OR m.flags & 8 > 0)
                    AND NOT @schema@.reasoning_only(m.role_code, m.calls, m.flags) AND (p.free_reasoning OR NOT @schema@.signed_reasoning(m.flags))) AS plain
            FROM unnest(p.live) r CROSS JOIN LATERAL (SELECT l.seq, l.position, l.cumulative_tokens, l.token_count, l.calls, l.flags, l.role_code, l.kind FROM @schema@.message_log l
                WHERE l.sid = p.sid AND l.seq >= lower(r) AND l.seq < coalesce(upper(r), 9223372036854775807) OFFSET 0) m) v
        CROSS JOIN LATERAL (   -- what counts against the window, and what of it is in no message
            SELECT y.context, y.context - trunc(p.each * y.counted) AS over
            FROM (SELECT z.counted, CASE WHEN p.reported_prompt_tokens IS NOT NULL THEN greatest(0, p.reported_prompt_tokens + p.tokens_since_report)
                    WHEN p.scale > 0 THEN p.overhead + ceil(p.scale * p.live_tokens) ELSE z.counted END AS context
                FROM (SELECT p.live_tokens + ceil(p.live_estimated_tokens * p.added - 1e-9) AS counted) z) y OFFSET 0) x
        CROSS JOIN LATERAL (   -- what the messages may take, as Limits.ForMessages in Go has it
            SELECT least(greatest(1, trunc((p.target - x.over) / p.each)),
                least(greatest(2, trunc((p.start - x.over) / p.each)), greatest(2, trunc((p.window_tokens - x.over) / p.each))) - 1) AS room OFFSET 0) o
        CROSS JOIN LATERAL (   -- the first group that stays
            SELECT f.cut, f.gone_tokens, f.gone_tokens + f.margin AS freed FROM (
                SELECT m.seq AS cut, m.role_code, m.cumulative_tokens - m.token_count - v.before AS gone_tokens,
                    sum(e.margin) OVER (ORDER BY m.seq ROWS UNBOUNDED PRECEDING) - e.margin AS margin
                FROM @schema@.message_log m CROSS JOIN LATERAL (SELECT CASE WHEN m.flags & 16 > 0 THEN ceil(m.token_count * p.added - 1e-9)::int ELSE 0 END AS margin) e
                WHERE m.sid = p.sid AND m.seq >= v.first) f
            WHERE f.role_code <> 't' AND CASE p.metric WHEN 'tokens' THEN v.tokens - f.gone_tokens - f.margin ELSE v.messages - (f.cut - v.first) END <= coalesce(p.leave, o.room)
            ORDER BY f.cut LIMIT 1) c
        CROSS JOIN LATERAL (   -- what that saves and leaves of the context
            SELECT trunc(p.each * c.freed) AS gain, CASE WHEN p.reported_prompt_tokens IS NOT NULL THEN x.context - c.gone_tokens
                WHEN p.scale > 0 THEN p.overhead + ceil(p.scale * (p.live_tokens - c.gone_tokens)) ELSE x.context - c.freed END AS leaves OFFSET 0) d
        CROSS JOIN LATERAL (   -- what goes
            SELECT count(*) AS gone, count(*) FILTER (WHERE m.role_code <> 't') AS gone_groups, sum(m.calls) AS gone_calls, coalesce(sum(m.token_count) FILTER (WHERE m.flags & 16 > 0), 0) AS gone_estimated
            FROM @schema@.message_log m WHERE m.sid = p.sid AND m.seq >= v.first AND m.seq < c.cut) g
        WHERE v.plain AND v.first >= p.tail_start_seq AND coalesce(v.systems, 0) < v.first AND c.cut BETWEEN v.first + 1 AND v.asked
            AND x.context > p.start AND v.tokens > o.room AND CASE p.metric WHEN 'tokens' THEN v.tokens ELSE v.messages END > coalesce(p.most, o.room)
            AND v.tokens - c.freed <= o.room AND d.leaves <= p.target AND d.gain >= p.min_gain
            AND (p.low_gain_runs = 0 OR d.gain >= p.min_gain_share * x.context)
    ), ended AS (
        INSERT INTO @schema@.runs (sid, trigger, sweep, delivery, status, outcome, policy_hash, policy, policy_version, attempts, worker, started_at, ended_at,
            plan_us, total_us, messages_before, messages_after, tokens_before, tokens_after, utilization, snapshot_seq, snapshot_revision, in_force, revision, base_run,
            applied_seq, live_before, live_after, included, appended, reasoning_before, reasoning_taken, steps)
        SELECT sid, 'nightly', p_sweep, 1, 'applied', 'applied', hash, policy, version, 1, p_worker, now(), clock_timestamp(),
            extract(epoch FROM clock_timestamp() - now()) * 1e6, extract(epoch FROM clock_timestamp() - now()) * 1e6,
            live_messages, live_messages - gone, live_tokens, live_tokens - gone_tokens, context / greatest(1, window_tokens), last_seq, revision, true, revision + 1, head_run,
            last_seq, live, live - int8multirange(int8range(first, cut)), '{}', '{}', '{}', '{}',
            jsonb_build_array(jsonb_strip_nulls(jsonb_build_object('strategy', 'truncation', 'changed', true,
                'before', jsonb_build_object('groups', groups, 'messages', messages, 'tool_calls', nullif(calls, 0), 'tokens', tokens),
                'after', jsonb_build_object('groups', groups, 'messages', messages, 'tool_calls', nullif(calls, 0), 'tokens', tokens, 'included_groups', groups - gone_groups,
                    'included_messages', messages - gone, 'included_tool_calls', CASE WHEN gone_calls > 0 THEN calls - gone_calls END,
                    'included_tokens', CASE WHEN freed > 0 THEN tokens - freed END))))
        FROM decided RETURNING id, sid)
    SELECT coalesce(array_agg(e.id), '{}'), array_agg(ROW(e.id, e.sid, int8multirange(int8range(d.first, d.cut)), '{truncation}', ARRAY[int8multirange(int8range(d.first, d.cut))],
        -d.gone, -d.gone_tokens, -d.gone_estimated, d.free_reasoning, d.gain < d.min_gain_share * d.context, d.fleet_hash,
        d.last_source_seq || '/' || d.revision + 1 || '/{}/' || d.hash, d.margin, d.due_tokens, d.new_signals, d.timed, NULL, NULL, NULL, NULL, NULL, NULL)::@schema@.view_change)
    INTO ended, v_changes FROM ended e JOIN decided d USING (sid);
    IF v_changes IS NOT NULL THEN
        PERFORM @schema@.change_views(v_changes);
    END IF;
END $$;
