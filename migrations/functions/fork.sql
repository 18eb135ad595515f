-- A new session, the child of p_session, that goes on from one of its messages: p_at is the id of the message, or else its seq;
-- null is the last one. Its log is what was said up to there, and its view the one that the session had then, with the
-- summaries and replacements in it; those that were replaced themselves are not copied. What came later in the session,
-- pins apart, changes nothing about it. Returns the number of messages that were said.
--
-- Where the session had been compacted, the fork is the first run of the new one, and its undo gives the whole log. The
-- messages that came after that compaction come after the run. Signed reasoning from before it stays if nothing before it
-- differs from the log. The next run checks the view.
CREATE OR REPLACE FUNCTION @schema@.fork(p_tenant text, p_session text, p_new_session text, p_at text DEFAULT NULL, p_requested_by text DEFAULT '')
RETURNS bigint LANGUAGE plpgsql SET jit = off AS $$
DECLARE
    v_tenant  text := @schema@.tenant_of(p_tenant);
    s         @schema@.sessions;
    n         @schema@.sessions;
    w         @schema@.sessions;
    r         @schema@.runs;   -- the one that made the view, none for the whole log
    v_at      bigint;
    v_next    bigint;
    v_first   bigint[];        -- the messages up to that run, and those after it
    v_then    bigint[];
    v_roots   bigint[];        -- what stands for messages in the view, without it first; its seqs are behind v_first, …
    v_covers  int8multirange[];   -- … what it stands for, by its new seqs, and why that is out
    v_reasons text[];
    m         bigint;
    k         bigint;
    v_run     bigint;
    v_known   boolean;
    v_out     int8multirange := '{}';
    v_last    record;
BEGIN
    SELECT * INTO s FROM @schema@.sessions WHERE tenant = v_tenant AND id = p_session;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'session % of tenant % does not exist', p_session, v_tenant USING ERRCODE = 'no_data_found';
    ELSIF coalesce(p_new_session, '') = '' THEN
        RAISE EXCEPTION 'fork: an empty id is not allowed' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF coalesce(p_at, '') = '' THEN
        v_at := nullif(s.last_source_seq, 0);
    ELSE
        SELECT l.seq INTO v_at FROM @schema@.message_log l WHERE l.sid = s.sid AND l.id = p_at AND l.kind = 'm';
        IF NOT FOUND AND p_at ~ '^[0-9]{1,18}$' THEN
            SELECT l.seq INTO v_at FROM @schema@.message_log l WHERE l.sid = s.sid AND l.seq = p_at::bigint AND l.kind = 'm';
        END IF;
    END IF;
    IF v_at IS NULL THEN
        RAISE EXCEPTION 'session % has no source message %', s.id, coalesce(p_at, '') USING ERRCODE = 'no_data_found';
    ELSIF (SELECT count(*) FROM @schema@.ancestors(s.sid)) >= 100 THEN
        RAISE EXCEPTION 'session % cannot be forked: a line of parents has at most 100 sessions', s.id USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- The last run that has seen nothing after the message. What a replacement has seen includes what it appended.
    v_next := (SELECT l.seq FROM @schema@.message_log l WHERE l.sid = s.sid AND l.seq > v_at AND l.kind = 'm' ORDER BY l.seq LIMIT 1);
    SELECT * INTO r FROM @schema@.runs t WHERE t.sid = s.sid AND t.status = 'applied'
        AND (v_next IS NULL OR CASE t.kind WHEN 'replace' THEN t.applied_seq < v_at ELSE t.snapshot_seq < v_next END)
    ORDER BY t.revision DESC LIMIT 1;
    IF NOT FOUND AND EXISTS (SELECT FROM @schema@.runs t WHERE t.sid = s.sid AND t.kind = 'fork') THEN
        RAISE EXCEPTION 'session % is a fork that begins behind message %: fork the session that it is from', s.id, p_at
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    v_first := ARRAY(SELECT l.seq FROM @schema@.message_log l WHERE l.sid = s.sid AND l.kind = 'm' AND l.seq <= least(v_at, r.applied_seq) ORDER BY l.seq);
    v_then := ARRAY(SELECT l.seq FROM @schema@.message_log l WHERE l.sid = s.sid AND l.kind = 'm' AND l.seq > r.applied_seq AND l.seq <= v_at ORDER BY l.seq);
    m := cardinality(v_first);
    INSERT INTO @schema@.sessions (tenant, id, model, labels, metadata, policy_override, parent)
    VALUES (s.tenant, p_new_session, s.model, s.labels, s.metadata, s.policy_override, s.sid) ON CONFLICT (tenant, id) DO NOTHING RETURNING * INTO n;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'session % of tenant % exists already', p_new_session, v_tenant USING ERRCODE = 'unique_violation';
    END IF;

    -- What is out of the view, by what is in it in its place: the end of the line of what took the place of what.
    WITH RECURSIVE why AS MATERIALIZED (
        SELECT DISTINCT ON (q.seq) q.seq, e.reason, e.summary_seq
        FROM @schema@.line_of(r.id) o JOIN @schema@.runs t ON t.id = o JOIN @schema@.exclusions e ON e.sid = s.sid AND e.run = t.id
        CROSS JOIN LATERAL unnest(e.seqs) u(x) CROSS JOIN LATERAL generate_series(lower(u.x), upper(u.x) - 1) q(seq)
        WHERE NOT r.live_after @> q.seq ORDER BY q.seq, t.revision DESC
    ), up AS (
        SELECT f.i, y.reason, f.seq AS reached, 0 AS steps FROM unnest(v_first) WITH ORDINALITY f(seq, i) JOIN why y USING (seq)
        UNION ALL SELECT u.i, u.reason, y.summary_seq, u.steps + 1 FROM up u JOIN why y ON y.seq = u.reached WHERE y.summary_seq IS NOT NULL
    ), ends AS (
        SELECT DISTINCT ON (u.i) u.i, u.reason, CASE WHEN r.live_after @> u.reached THEN u.reached END AS root FROM up u ORDER BY u.i, u.steps DESC
    ), grouped AS (
        SELECT root, min(reason) AS reason, range_agg(int8range(i, i + 1)) AS seqs FROM ends GROUP BY root, CASE WHEN root IS NULL THEN reason END)
    SELECT array_agg(root ORDER BY root NULLS LAST, reason), array_agg(seqs ORDER BY root NULLS LAST, reason), array_agg(reason ORDER BY root NULLS LAST, reason), count(root)
    INTO v_roots, v_covers, v_reasons, k FROM grouped;

    IF r.id IS NOT NULL THEN
        INSERT INTO @schema@.runs (sid, trigger, kind, requested_by, status, outcome, started_at, ended_at, in_force, revision,
            snapshot_seq, snapshot_revision, applied_seq, live_before, live_after, included, appended, reasoning_before)
        VALUES (n.sid, 'application', 'fork', coalesce(p_requested_by, ''), 'applied', 'forked', now(), clock_timestamp(), true, 1,
            m, 0, m, '{[1,)}', '{[1,)}' - coalesce((SELECT range_agg(x) FROM unnest(v_covers) c, unnest(c) x), '{}'), '{}',
            int8multirange(int8range(m + 1, m + k + 1)), '{}')
        RETURNING id INTO v_run;
    END IF;
    INSERT INTO @schema@.message_log (sid, seq, position, cumulative_tokens, token_count, calls, flags, role_code, kind, id, role,
        name, call_ids, tool_call_id, source_id, counter, summary_of, run, created_at, body, reasoning_tokens)
    SELECT n.sid, x.new, CASE WHEN l.position = l.seq THEN x.new ELSE p.i + CASE WHEN p.i > m THEN k ELSE 0 END END,
        CASE WHEN x.covers IS NULL THEN l.cumulative_tokens ELSE (SELECT c.cumulative_tokens FROM @schema@.message_log c WHERE c.sid = s.sid AND c.seq = v_first[m]) END,
        l.token_count, l.calls, l.flags, l.role_code, l.kind, l.id, l.role, l.name, l.call_ids, l.tool_call_id, l.source_id, l.counter,
        x.covers, CASE WHEN x.covers IS NOT NULL THEN v_run END, l.created_at, l.body, l.reasoning_tokens
    FROM (SELECT seq, i + CASE WHEN i > m THEN k ELSE 0 END AS new, NULL AS covers FROM unnest(v_first || v_then) WITH ORDINALITY u(seq, i)
        UNION ALL SELECT root, m + i, covers FROM unnest(v_roots, v_covers) WITH ORDINALITY u(root, covers, i) WHERE root IS NOT NULL) x
    JOIN @schema@.message_log l ON l.sid = s.sid AND l.seq = x.seq
    CROSS JOIN LATERAL (SELECT CASE WHEN l.position = l.seq THEN 0 ELSE width_bucket(l.position, v_first || v_then) END AS i) p;
    INSERT INTO @schema@.exclusions (run, sid, reason, seqs, summary_seq)
    SELECT v_run, n.sid, reason, covers, CASE WHEN root IS NOT NULL THEN m + i END
    FROM unnest(v_roots, v_covers, v_reasons) WITH ORDINALITY u(root, covers, reason, i);

    SELECT * INTO v_last FROM @schema@.message_log l WHERE l.sid = s.sid AND l.seq = v_at;
    n.pinned := coalesce((SELECT range_agg(int8range(x.new, x.new + 1)) FROM (SELECT seq, i + CASE WHEN i > m THEN k ELSE 0 END AS new
        FROM unnest(v_first || v_then) WITH ORDINALITY u(seq, i)) x WHERE s.pinned @> x.seq), '{}');
    n := @schema@.recount(n);
    w := n;
    IF r.id IS NOT NULL THEN
        -- Whether all that is not valid in this view is known, as it was written on views that are not those of the fork.
        v_known := s.reasoning_since <= v_at AND NOT (r.kind = 'replace' AND EXISTS (SELECT FROM @schema@.message_log l
            WHERE l.sid = s.sid AND l.kind = 'm' AND l.seq > v_at AND l.position <> l.seq AND l.position <= v_at));
        n.reasoning_since := CASE WHEN v_known THEN m + k END;
        IF v_known THEN
            w.reasoning_out := coalesce((SELECT range_agg(int8range(x.new, x.new + 1)) FROM (SELECT seq, i + CASE WHEN i > m THEN k ELSE 0 END AS new
                    FROM unnest(v_first || v_then) WITH ORDINALITY u(seq, i)) x
                WHERE CASE WHEN r.kind = 'undo' THEN (SELECT u.reasoning_before FROM @schema@.runs u WHERE u.id = r.undoes) ELSE r.reasoning_before END
                    + r.reasoning_taken @> x.seq), '{}');
            v_out := w.reasoning_out + @schema@.stale_reasoning(n.sid, n.live * int8multirange(int8range(1, m + k + 1)),
                @schema@.first_change(n.sid, int8multirange(int8range(1, m + 1)), n.live, m + k));
        END IF;
        UPDATE @schema@.runs SET reasoning_taken = v_out WHERE id = v_run;
        n := @schema@.recount(n);
        IF @schema@.open_reasoning(w) IS DISTINCT FROM @schema@.open_reasoning(n) THEN
            RAISE EXCEPTION 'session % has an open tool loop with signed reasoning at message %: fork it before the loop, or when it has ended', s.id, v_last.id
                USING ERRCODE = 'object_in_use';
        END IF;
        UPDATE @schema@.runs SET messages_before = n.messages, tokens_before = n.total_tokens, messages_after = n.live_messages, tokens_after = n.live_tokens
        WHERE id = v_run;
    END IF;
    SELECT coalesce(max(f.want) FILTER (WHERE f.field = 'open_calls'), '{}')::text[], coalesce(bool_or(f.field = 'open_answered'), false)
    INTO n.open_calls, n.open_answered FROM @schema@.audit_derived(n) f;
    UPDATE @schema@.sessions SET live = n.live, pinned = n.pinned, reasoning_out = n.reasoning_out, reasoning_since = n.reasoning_since,
        revision = n.revision, head_run = n.head_run, tail_start_seq = n.tail_start_seq, last_seq = n.last_seq, last_source_seq = n.last_source_seq,
        messages = n.messages, turns = n.turns, total_tokens = n.total_tokens, live_messages = n.live_messages, live_tokens = n.live_tokens,
        live_estimated_tokens = n.live_estimated_tokens, messages_since_run = CASE WHEN v_run IS NULL THEN n.messages ELSE cardinality(v_then) END,
        tokens_since_run = n.total_tokens - coalesce((SELECT l.cumulative_tokens FROM @schema@.message_log l WHERE v_run IS NOT NULL AND l.sid = n.sid AND l.seq = m), 0),
        turns_since_run = (SELECT count(*) FROM @schema@.message_log l WHERE l.sid = n.sid AND l.kind = 'm' AND l.role_code = 'u' AND (v_run IS NULL OR l.seq > m)),
        open_calls = n.open_calls, open_answered = n.open_answered, open_pending = true,   -- see replace_view
        suspect_seq = n.last_seq, due = false, last_message_at = v_last.created_at
    WHERE sid = n.sid RETURNING * INTO n;
    -- Who changes the labels of the parent sees this child, or waits for it.
    PERFORM FROM @schema@.sessions WHERE sid = s.sid FOR SHARE;
    PERFORM @schema@.use_policy(n);
    RETURN n.messages;
END $$;
