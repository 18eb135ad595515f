-- A new session, the child of p_session, that goes on from one of its messages: p_at is the id of the message, or else its seq;
-- null is the last one. It has a copy of the log up to there, of what runs had written in it by then and of these runs, so
-- its view is the one that the session had then, and can be explained and undone as there. Pins apart, what came later
-- changes nothing about it. Copies of runs name those that they are from (origin). The next run checks the view. Returns the
-- number of messages that were said.
CREATE OR REPLACE FUNCTION @schema@.fork(p_tenant text, p_session text, p_new_session text, p_at text DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql SET jit = off AS $$
DECLARE
    v_tenant text := @schema@.tenant_of(p_tenant);
    s        @schema@.sessions;
    n        @schema@.sessions;
    r        @schema@.runs;   -- the last one that is copied
    v_at     bigint;
    v_next   bigint;
    v_runs   bigint[];        -- what is copied, and the ids of the copies
    v_ids    bigint[];
    v_since  record;
BEGIN
    -- Locked: the archiver, an erasure or an append between two of the statements below would leave a copy that lacks words, or
    -- has those that were erased. Who changes the labels of the parent sees this child, or waits for it.
    SELECT * INTO s FROM @schema@.sessions WHERE tenant = v_tenant AND id = p_session FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'session % of tenant % does not exist', p_session, v_tenant USING ERRCODE = 'no_data_found';
    ELSIF coalesce(p_new_session, '') = '' THEN
        RAISE EXCEPTION 'fork: an empty id is not allowed' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM @schema@.refuse_long('the id of the new session', p_new_session);
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
    -- The runs that were applied before the next message came. A replacement appends messages of its own, so that it counts
    -- from the first of these on.
    v_next := coalesce((SELECT l.seq FROM @schema@.message_log l WHERE l.sid = s.sid AND l.seq > v_at AND l.kind = 'm'
        ORDER BY l.seq LIMIT 1), s.last_seq + 1);
    PERFORM @schema@.refuse_archived(s, int8multirange(int8range(1, v_next)));
    SELECT * INTO r FROM @schema@.runs t WHERE t.sid = s.sid AND t.status = 'applied'
        AND t.applied_seq < CASE WHEN t.kind = 'replace' AND v_at < s.last_source_seq THEN v_at ELSE v_next END
    ORDER BY t.revision DESC LIMIT 1;
    INSERT INTO @schema@.sessions (tenant, id, model, labels, metadata, policy_override, parent, erased, pinned, repeated_ids, format_keys, reasoning_since)
    VALUES (s.tenant, p_new_session, s.model, s.labels, s.metadata, s.policy_override, s.sid, s.erased * int8multirange(int8range(1, v_next)),
        s.pinned * int8multirange(int8range(1, v_at + 1)), s.repeated_ids, s.format_keys,
        -- What of a replacement is not copied may be before reasoning that is.
        CASE WHEN r.id IS NULL THEN 0 WHEN s.reasoning_since <= v_at AND NOT (r.kind = 'replace' AND EXISTS (SELECT FROM @schema@.message_log l
            WHERE l.sid = s.sid AND l.kind = 'm' AND l.seq > v_at AND l.position <> l.seq AND l.position <= v_at)) THEN s.reasoning_since END)
    ON CONFLICT (tenant, id) DO NOTHING RETURNING * INTO n;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'session % of tenant % exists already', p_new_session, v_tenant USING ERRCODE = 'unique_violation';
    END IF;
    INSERT INTO @schema@.forked_from VALUES (n.sid, s.sid, int8multirange(int8range(1, v_next)));

    SELECT array_agg(t.id), array_agg(nextval(pg_get_serial_sequence('@schema@.runs', 'id'))) INTO v_runs, v_ids
    FROM (SELECT id FROM @schema@.runs WHERE sid = s.sid AND status = 'applied' AND revision <= r.revision ORDER BY revision) t;
    INSERT INTO @schema@.runs (id, sid, origin, trigger, kind, requested_by, options, policy_hash, policy, policy_version, fired, status, outcome, queued_at,
        started_at, ended_at, worker, revision, base_run, undoes, restores, snapshot_seq, snapshot_revision, applied_seq, live_before, live_after,
        included, appended, steps, messages_before, messages_after, tokens_before, tokens_after, utilization, plan_us, total_us,
        reasoning_before, reasoning_taken, said_until)
    OVERRIDING SYSTEM VALUE
    SELECT v_ids[i], n.sid, coalesce(t.origin, t.id), t.trigger, t.kind, t.requested_by, t.options, t.policy_hash, t.policy, t.policy_version, t.fired, t.status, t.outcome, t.queued_at,
        t.started_at, t.ended_at, t.worker, t.revision, v_ids[array_position(v_runs, t.base_run)], v_ids[array_position(v_runs, t.undoes)],
        v_ids[array_position(v_runs, t.restores)], t.snapshot_seq, t.snapshot_revision, t.applied_seq, t.live_before, t.live_after,
        t.included, t.appended, t.steps, t.messages_before, t.messages_after, t.tokens_before, t.tokens_after, t.utilization, t.plan_us, t.total_us,
        t.reasoning_before, t.reasoning_taken * int8multirange(int8range(1, v_next)), t.said_until
    FROM unnest(v_runs) WITH ORDINALITY u(run, i) JOIN @schema@.runs t ON t.id = u.run;
    INSERT INTO @schema@.message_log (sid, seq, position, cumulative_tokens, token_count, calls, flags, role_code, kind, id, role,
        name, call_ids, tool_call_id, source_id, counter, summary_of, run, created_at, body_digest, reasoning_tokens)
    SELECT n.sid, l.seq, l.position, l.cumulative_tokens, l.token_count, l.calls, l.flags, l.role_code, l.kind, l.id, l.role,
        l.name, l.call_ids, l.tool_call_id, l.source_id, l.counter, l.summary_of, v_ids[array_position(v_runs, l.run)], l.created_at,
        l.body_digest, l.reasoning_tokens
    FROM @schema@.message_log l WHERE l.sid = s.sid AND l.seq < v_next;
    INSERT INTO @schema@.message_body SELECT n.sid, b.seq, b.body FROM @schema@.message_body b WHERE b.sid = s.sid AND b.seq < v_next;
    INSERT INTO @schema@.exclusions (run, sid, reason, seqs, summary_seq)
    SELECT v_ids[array_position(v_runs, e.run)], n.sid, e.reason, e.seqs, e.summary_seq
    FROM @schema@.exclusions e WHERE e.sid = s.sid AND e.run = ANY(v_runs);
    PERFORM @schema@.mark_in_force(n.sid, v_ids[cardinality(v_ids)]);

    n := @schema@.recount(n);
    SELECT coalesce(max(f.want) FILTER (WHERE f.field = 'open_calls'), '{}')::text[], coalesce(bool_or(f.field = 'open_answered'), false)
    INTO n.open_calls, n.open_answered FROM @schema@.audit_derived(n) f;
    SELECT count(*) AS messages, coalesce(sum(l.token_count), 0) AS tokens, count(*) FILTER (WHERE l.role_code = 'u') AS turns INTO v_since
    FROM @schema@.message_log l WHERE l.sid = n.sid AND l.kind = 'm' AND l.seq > coalesce((SELECT c.snapshot_seq FROM @schema@.runs c
        WHERE c.sid = n.sid AND c.kind IN ('compact', 'repair') ORDER BY c.revision DESC LIMIT 1), 0);   -- as end_run counts
    UPDATE @schema@.sessions SET live = n.live, reasoning_out = n.reasoning_out, revision = n.revision, head_run = n.head_run,
        tail_start_seq = n.tail_start_seq, last_seq = n.last_seq, last_source_seq = n.last_source_seq, messages = n.messages, turns = n.turns,
        total_tokens = n.total_tokens, live_messages = n.live_messages, live_tokens = n.live_tokens, live_estimated_tokens = n.live_estimated_tokens,
        messages_since_run = v_since.messages, tokens_since_run = v_since.tokens, turns_since_run = v_since.turns,
        open_calls = n.open_calls, open_answered = n.open_answered, open_pending = true /* see change_view */, parallel = s.parallel,
        suspect_seq = n.last_seq, due = false, last_message_at = (SELECT l.created_at FROM @schema@.message_log l WHERE l.sid = s.sid AND l.seq = v_at)
    WHERE sid = n.sid RETURNING * INTO n;
    PERFORM @schema@.repair_view(@schema@.use_policy(n));
    RETURN n.messages;
END $$;
