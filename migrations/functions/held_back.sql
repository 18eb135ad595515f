-- What holds due sessions back: each reason with how many sessions of a tenant, or of all with an empty one, it holds, since
-- when, until when at the latest, and what ends it: a command, or what happens by itself. decided says that an operator, an
-- application or a policy wants it so. id is the number of the pause or sweep. A session may be counted under several reasons.
-- With p_session, what holds that one, whether it is due or not.
--
-- The reasons are listed in store/held.go, with what each means. Whatever else keeps a due session from the relay, the
-- reconciler or a worker needs one here: TestNothingWaitsInSilence draws what may keep them.
CREATE OR REPLACE FUNCTION @schema@.held_back(p_tenant text DEFAULT '', p_session text DEFAULT NULL)
RETURNS TABLE (reason text, sessions bigint, since timestamptz, until timestamptz, ends_by text, detail text, decided boolean, id bigint)
LANGUAGE plpgsql STABLE SET plan_cache_mode = 'force_custom_plan' SET jit = off AS $$
DECLARE
    v_tenant  text := CASE WHEN p_session IS NULL THEN @schema@.scope_of(p_tenant) ELSE @schema@.tenant_of(p_tenant) END;
    v_sid     bigint;
    v_compact text := 'compactor compact ' || coalesce(@schema@.shell_word(p_session), 'SESSION') || CASE WHEN p_session IS NOT NULL AND v_tenant <> 'default' THEN ' --tenant ' || @schema@.shell_word(v_tenant) ELSE '' END;
    v_leader  @schema@.leader;
    v_models  text;
BEGIN
    IF p_session IS NOT NULL THEN
        SELECT s.sid INTO v_sid FROM @schema@.sessions s WHERE s.tenant = v_tenant AND s.id = p_session;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'session % does not exist', p_session USING ERRCODE = 'no_data_found';
        END IF;
    END IF;
    SELECT * INTO v_leader FROM @schema@.leader l WHERE l.role = 'scheduler';
    SELECT string_agg(c.model || ' (' || c.code || ', until ' || to_char(c.until AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"') || ')', ', ' ORDER BY c.model) INTO v_models
    FROM @schema@.model_cooldowns c WHERE @schema@.cools(c.set_at, c.until, now());
    RETURN QUERY
    WITH due AS MATERIALIZED (
        SELECT s.sid, s.tenant, s.model, s.policy, s.due, s.due_since, s.hold_code, s.last_source_seq, s.cooldown_until,
            CASE WHEN s.cooldown_until > now() THEN s.cooldown_until END AS cools,
            o.first_at AS written, h.since AS throttled, q.sid IS NOT NULL AS queued
        FROM @schema@.sessions s
        LEFT JOIN @schema@.outbox o ON o.sid = s.sid
        LEFT JOIN (SELECT t.sid, min(t.since) AS since FROM @schema@.throttled t WHERE v_sid IS NULL OR t.sid = v_sid GROUP BY 1) h ON h.sid = s.sid
        LEFT JOIN (SELECT DISTINCT r.sid FROM @schema@.runs r WHERE r.status = 'queued' AND (v_sid IS NULL OR r.sid = v_sid)) q ON q.sid = s.sid
        WHERE (v_sid IS NULL AND s.due AND (v_tenant = '' OR s.tenant = v_tenant) OR s.sid = v_sid)
            AND NOT EXISTS (SELECT FROM @schema@.runs r WHERE r.sid = s.sid AND r.status = 'running')
    ), last AS MATERIALIZED (   -- those that no run waits for, and those that a run told to wait, with their last run and the one that began the cooldown
        SELECT d.*, l.*, w.steps AS why_steps, w.ended_at AS cools_since
        FROM due d LEFT JOIN LATERAL (SELECT r.kind, r.trigger, r.status, r.outcome, r.error_code, r.snapshot_seq, r.ended_at, r.steps FROM @schema@.runs r
            WHERE r.sid = d.sid AND r.status NOT IN ('queued', 'running') AND r.options->'dry_run' IS DISTINCT FROM 'true' ORDER BY r.id DESC LIMIT 1) l ON true
            -- That need not be the last one: others leave the cooldown as it is.
            LEFT JOIN LATERAL (SELECT r.steps, r.ended_at FROM @schema@.runs r WHERE d.cools IS NOT NULL AND r.sid = d.sid
                AND r.trigger IN ('nightly', 'event') AND r.outcome IN ('no_summary', 'ineffective', 'would_grow') ORDER BY r.id DESC LIMIT 1) w ON true
        WHERE d.cools IS NOT NULL OR d.due AND d.written IS NULL AND d.throttled IS NULL AND NOT d.queued
    ), limited AS MATERIALIZED (
        SELECT t.tenant FROM (SELECT DISTINCT l.tenant FROM last l WHERE @schema@.beyond_limit(CASE WHEN l.cools IS NULL THEN l.steps ELSE l.why_steps END)) t
        WHERE @schema@.spending_limited(t.tenant)
    ), seen AS MATERIALIZED (
        SELECT l.*, coalesce(@schema@.decides(l.kind, l.trigger, l.outcome, l.snapshot_seq, l.last_source_seq,
            l.cooldown_until IS NOT NULL AND NOT (x.tenant IS NOT NULL AND @schema@.beyond_limit(l.steps))), false) AS decided, x.tenant IS NOT NULL AS limited
        FROM last l LEFT JOIN limited x ON x.tenant = l.tenant
    ), cooling AS MATERIALIZED (   -- those in a cooldown, and those that are left alone after it, as the limit is still reached
        SELECT c.*, CASE WHEN c.cools IS NULL THEN 'spending_limit' WHEN c.hold_code IS NOT NULL THEN c.hold_code
            WHEN @schema@.beyond_limit(c.why_steps) AND c.limited THEN 'spending_limit'
            WHEN c.why_steps @? '$[*].no_summary ? (@ != "")' AND v_models IS NOT NULL THEN 'model_down'
            ELSE 'cooldown' END AS why
        FROM seen c WHERE c.cools IS NOT NULL OR c.due AND c.decided AND c.outcome = 'no_summary' AND c.limited AND @schema@.beyond_limit(c.steps)
    ), waiting AS MATERIALIZED (   -- not due, as something waits
        SELECT s.*, CASE WHEN s.state <> 'active' THEN s.state
            WHEN s.last_source_seq > 0 AND s.last_source_seq <= s.hold_seq THEN 'waiting_after_undo'
            WHEN s.loop_seq IS NULL OR s.due THEN NULL
            WHEN s.awaits_answer THEN 'mid_turn'
            WHEN cardinality(s.open_calls) > 0 OR s.open_answered THEN 'open_tool_loop' END AS why
        FROM @schema@.sessions s
        WHERE (s.state <> 'active' OR s.hold_seq > 0 OR s.loop_seq IS NOT NULL) AND (v_sid IS NULL AND (v_tenant = '' OR s.tenant = v_tenant) OR s.sid = v_sid)
    ), held AS (
        SELECT 'no_leader' AS reason, count(*) AS n, least(coalesce(v_leader.expires_at, min(d.due_since)), now()) AS since, NULL::timestamptz AS until,
            'start compactor serve, or compactor scheduler' AS ends_by, NULL AS detail, false AS decided, NULL::bigint AS id
        FROM due d WHERE d.due AND NOT @schema@.leads(v_leader)
        UNION ALL SELECT 'redis_away', count(*), v_leader.queue_away_since, NULL, 'Redis, when it answers: compactor doctor', NULL, false, NULL
        FROM due d WHERE d.due AND @schema@.leads(v_leader) AND v_leader.queue_away_since IS NOT NULL
        UNION ALL SELECT 'no_worker', count(*), v_leader.workers_away_since, NULL, 'start compactor serve, or compactor worker', NULL, false, NULL
        FROM due d WHERE d.due AND @schema@.leads(v_leader) AND v_leader.queue_away_since IS NULL AND v_leader.workers_away_since IS NOT NULL
        UNION ALL SELECT 'worker_gone', count(*), least(min(r.lease_until), now()), NULL, 'the scheduler, within scheduler.reconcile_interval', NULL, false, NULL
        FROM @schema@.runs r JOIN @schema@.sessions s ON s.sid = r.sid
        WHERE r.status = 'running' AND @schema@.lease_is_over(r.lease_until) AND (v_sid IS NULL AND (v_tenant = '' OR s.tenant = v_tenant) OR s.sid = v_sid)
        UNION ALL SELECT 'paused', sum(k.n), p.paused_at, NULL,
            'compactor resume' || CASE WHEN p.tenant || p.model || p.policy = '' THEN ' --all' ELSE
                concat(' --tenant ' || @schema@.shell_word(nullif(p.tenant, '')), ' --model ' || @schema@.shell_word(nullif(p.model, '')), ' --policy ' || @schema@.shell_word(nullif(p.policy, ''))) END,
            concat_ws(': ', 'by ' || nullif(p.requested_by, ''), nullif(p.note, '')), true, p.id
        FROM @schema@.pauses p JOIN (SELECT d.tenant, d.model, d.policy, count(*) AS n FROM due d GROUP BY 1, 2, 3) k
            ON p.tenant IN ('', k.tenant) AND p.policy IN ('', k.policy) AND (p.model = '' OR EXISTS (SELECT FROM unnest(@schema@.model_names(k.model)) m WHERE starts_with(m, p.model)))
        WHERE p.resumed_at IS NULL GROUP BY p.id
        UNION ALL SELECT CASE w.status WHEN 'open' THEN 'open_sweep' WHEN 'paused' THEN 'paused_sweep' ELSE 'stopped_sweep' END, count(*), coalesce(w.ended_at, w.started_at), max(x.held_until),
            CASE w.status WHEN 'open' THEN 'sweep ' || w.id || ', which comes to them' WHEN 'paused' THEN 'compactor sweep resume ' || w.id ELSE 'compactor sweep release ' || w.id END,
            concat('sweep ', w.id, ' is ', w.status, ' by ' || nullif(w.changed_by, ''), ': ' || nullif(w.reason, '')), w.reason NOT IN ('canary', 'failures'), w.id
        FROM seen h JOIN @schema@.holding_sweeps() x ON x.tenant IN ('', h.tenant) AND x.until_since >= coalesce(h.due_since, '-infinity') AND (NOT x.begun OR EXISTS
            (SELECT FROM @schema@.sweep_tenants t WHERE t.sweep = x.sweep AND t.tenant = h.tenant AND NOT t.passed AND t.cursor_sid < h.sid)) JOIN @schema@.sweeps w ON w.id = x.sweep
        WHERE h.due AND NOT h.decided AND h.written IS NULL AND h.throttled IS NULL AND NOT h.queued
        GROUP BY w.id
        UNION ALL SELECT 'run_limit', count(*), min(d.throttled), NULL, 'compactor limit clear --tenant ' || @schema@.shell_word(d.tenant), (SELECT l.runs_per_second || CASE l.runs_per_second WHEN 1 THEN ' run' ELSE ' runs' END FROM @schema@.spending_limits l WHERE l.tenant = d.tenant) || ' of tenant ' || d.tenant || ' may start in a second', true, NULL
        FROM due d WHERE d.throttled IS NOT NULL GROUP BY d.tenant
        UNION ALL SELECT 'run_limit', count(*), min(d.written), NULL, 'compactor limit clear --all', (SELECT l.runs_per_second || CASE l.runs_per_second WHEN 1 THEN ' run' ELSE ' runs' END FROM @schema@.spending_limits l WHERE l.tenant = '') || ' of all tenants may start in a second', true, NULL
        FROM due d WHERE d.due AND d.written < now() AND d.cools IS NULL AND EXISTS (SELECT FROM @schema@.startable_runs() a WHERE a.tenant = '' AND a.most < 1)
        UNION ALL SELECT 'spending_limit', count(*), min(coalesce(c.cools_since, c.ended_at)), NULL,
            'compactor limit clear' || CASE WHEN NOT EXISTS (SELECT FROM @schema@.spending_limits l WHERE l.tenant = c.tenant) THEN ' --all' ELSE ' --tenant ' || @schema@.shell_word(c.tenant) END,
            'no model is asked for tenant ' || c.tenant || ': see compactor limit list', true, NULL
        FROM cooling c WHERE c.why = 'spending_limit' GROUP BY c.tenant
        UNION ALL SELECT 'model_down', count(*), min(c.cools_since), max(c.cools), 'the model, when it answers, or ' || v_compact, v_models, false, NULL
        FROM cooling c WHERE c.why = 'model_down'
        UNION ALL SELECT c.why, count(*), min(coalesce(c.cools_since, c.ended_at, c.due_since)), max(c.cools), v_compact, NULL, true, NULL
        FROM cooling c WHERE c.why NOT IN ('spending_limit', 'model_down') GROUP BY c.why
        UNION ALL SELECT CASE WHEN x.why = 'mid_turn' AND l.outcome = 'not_triggered' THEN l.outcome ELSE x.why END AS why, count(*), min(coalesce(CASE x.why WHEN 'waiting_after_undo' THEN x.view_changed_at END, l.ended_at)), NULL,
            CASE min(x.why) WHEN 'quarantined' THEN 'the next message, another policy, or ' WHEN 'service_managed' THEN 'another policy or label, or ' WHEN 'waiting_after_undo' THEN 'the next message, or '
                WHEN 'mid_turn' THEN 'the agent''s answer, or ' ELSE 'the end of the loop, or ' END || v_compact,
            CASE WHEN min(x.quarantine_reason) <> max(x.quarantine_reason)
                THEN format('for example session %2$s of tenant %1$s: %3$s', VARIADIC min(ARRAY[x.tenant, x.id, x.quarantine_reason]) FILTER (WHERE x.quarantine_reason <> ''))
                ELSE min(x.quarantine_reason) END, true, NULL
        FROM waiting x LEFT JOIN LATERAL (SELECT r.outcome, r.ended_at FROM @schema@.runs r WHERE r.sid = x.sid AND r.status NOT IN ('queued', 'running') AND NOT @schema@.says_nothing(r.outcome, r.options) ORDER BY r.id DESC LIMIT 1) l ON true
        WHERE x.why IS NOT NULL AND (x.why <> 'service_managed' OR v_sid IS NOT NULL OR @schema@.would_be_due(x.sid)) GROUP BY 1
        UNION ALL SELECT CASE r.error_code WHEN 'read_budget' THEN 'read_budget' ELSE 'postponed' END, count(DISTINCT r.sid), min(r.queued_at), max(r.deliver_at),
            CASE r.error_code WHEN 'read_budget' THEN 'the end of other runs, a higher worker.read_budget or more workers' ELSE 'another attempt' END,
            nullif(r.error_code, 'read_budget'), false, NULL
        FROM @schema@.runs r JOIN due d ON d.sid = r.sid
        WHERE r.status = 'queued' AND (v_sid IS NULL OR r.sid = v_sid) AND r.deliver_at > now() AND r.deliver_at <= r.waiting_since
            AND r.error_code IS NOT NULL AND r.error_code NOT IN ('paused', 'run_limit') GROUP BY r.error_code
        UNION ALL SELECT CASE v.status WHEN 'failed' THEN 'failed' ELSE 'unchanged' END, count(*), min(v.ended_at), NULL, 'the next message, or ' || v_compact, 'the last run ended as ' || v.outcome, v.status <> 'failed', NULL
        FROM seen v WHERE v.due AND v.decided AND v.cools IS NULL AND NOT (v.outcome = 'no_summary' AND v.limited AND @schema@.beyond_limit(v.steps)) GROUP BY v.status = 'failed', v.status, v.outcome
    )
    SELECT h.reason, h.n::bigint, h.since, h.until, h.ends_by, coalesce(h.detail, ''), h.decided, h.id FROM held h WHERE h.n > 0 ORDER BY h.decided, h.n DESC, h.reason, h.id;
END $$;

CREATE OR REPLACE VIEW @schema@.held_back AS SELECT * FROM @schema@.held_back('');

-- Whether a run, which is the last of its session, decided on all messages up to a source: a due session is then left alone until
-- the next one. What an application or an operator does to the view decides nothing, and neither does a run that only came too
-- soon: what it was for is still to be looked at. One that got no summary decides nothing where a later one may get it (p_retry).
CREATE OR REPLACE FUNCTION @schema@.decides(p_kind text, p_trigger text, p_outcome text, p_snapshot bigint, p_source bigint, p_retry boolean)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT (p_kind = 'compact' OR p_kind = 'repair' AND p_trigger <> 'application')
        AND p_outcome <> ALL ('{cooldown,paused,stale,min_interval,max_per_hour,max_per_day}') AND NOT (p_outcome = 'no_summary' AND p_retry)
        AND p_snapshot >= p_source
$$;

-- Whether a step of a run got no summary as a limit of spending was reached.
CREATE OR REPLACE FUNCTION @schema@.beyond_limit(p_steps jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(p_steps @? '$[*].no_summary ? (@ == "spending_limit")', false)
$$;

-- Whether a run that ended says nothing about its session: it only planned, or ended before it looked at it.
CREATE OR REPLACE FUNCTION @schema@.says_nothing(p_outcome text, p_options jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(p_options->'dry_run' = 'true', false) OR p_outcome = ANY ('{cooldown,paused,stale,busy,superseded,cancelled}')
$$;

-- Whether a session would be due if another service did not manage its history.
CREATE OR REPLACE FUNCTION @schema@.would_be_due(p_sid bigint) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
    s @schema@.sessions;
BEGIN
    SELECT * INTO s FROM @schema@.sessions WHERE sid = p_sid;
    s.state := 'active';
    RETURN @schema@.is_due(s);
END $$;

-- A word as a shell takes it.
CREATE OR REPLACE FUNCTION @schema@.shell_word(p text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN p ~ '^[A-Za-z0-9_./:@%+=,-]+$' THEN p ELSE '''' || replace(p, '''', '''\''''') || '''' END
$$;
