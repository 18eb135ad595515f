-- +goose Up

-- Asks for a compaction of one session and returns the run. A queued run of the same trigger is
-- returned instead of a second one, if it asks for the same; asking for something else meanwhile
-- is an error. The relay rings for it in Redis; a caller who has Redis at hand may do so first.
--
-- options: from (log | view), pipeline ([{strategy, params}]), focus, dry_run, allow_growth.
-- +goose StatementBegin
CREATE FUNCTION @schema@.request_compaction(p_tenant text, p_session text, p_options jsonb DEFAULT '{}',
    p_requested_by text DEFAULT '', p_trigger text DEFAULT 'application')
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    s @schema@.sessions;
    v record;
BEGIN
    IF p_trigger NOT IN ('application', 'operator') THEN
        RAISE EXCEPTION 'request_compaction: trigger % is not one of application, operator', p_trigger
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    s := @schema@.lock_session(p_tenant, p_session, NULL, false);
    SELECT id, options INTO v FROM @schema@.runs WHERE sid = s.sid AND trigger = p_trigger AND status = 'queued';
    IF FOUND THEN
        IF v.options = coalesce(p_options, '{}') THEN RETURN v.id; END IF;
        RAISE EXCEPTION 'session %: run % is queued already with other options', s.id, v.id USING ERRCODE = 'object_in_use';
    END IF;
    INSERT INTO @schema@.runs (sid, trigger, requested_by, options)
    VALUES (s.sid, p_trigger, coalesce(p_requested_by, ''), coalesce(p_options, '{}')) RETURNING id INTO v;
    RETURN v.id;
END $$;
-- +goose StatementEnd

-- The provider's own count of the prompt that held the view up to p_seq (null: all of it).
-- Returns false, and changes nothing, for a prompt from before the last compaction. One up to the very
-- message that the compaction saw last counts as such: it was most likely on its way meanwhile.
-- +goose StatementBegin
CREATE FUNCTION @schema@.report_usage(p_tenant text, p_session text, p_prompt_tokens bigint, p_seq bigint DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    s @schema@.sessions;
    v_was boolean;
BEGIN
    IF p_prompt_tokens IS NULL OR p_prompt_tokens < 0 THEN
        RAISE EXCEPTION 'report_usage: prompt_tokens must be 0 or more, not %', p_prompt_tokens USING ERRCODE = 'invalid_parameter_value';
    END IF;
    s := @schema@.lock_session(p_tenant, p_session, NULL, false);
    IF p_seq <= (SELECT r.applied_seq FROM @schema@.runs r WHERE r.id = s.head_run) THEN
        RETURN false;
    END IF;
    v_was := s.due;
    s.reported_prompt_tokens := p_prompt_tokens;
    s.tokens_since_report := coalesce((SELECT sum(m.token_count) FROM @schema@.message_log m
        WHERE m.sid = s.sid AND m.seq > p_seq AND m.kind = 'm'), 0);
    s.due := @schema@.is_due(s);
    UPDATE @schema@.sessions SET reported_prompt_tokens = s.reported_prompt_tokens,
        tokens_since_report = s.tokens_since_report, due = s.due WHERE sid = s.sid;
    IF s.due AND NOT v_was THEN
        INSERT INTO @schema@.outbox AS o (sid) VALUES (s.sid) ON CONFLICT (sid) DO UPDATE SET gen = o.gen + 1, last_at = now();
    END IF;
    RETURN true;
END $$;
-- +goose StatementEnd

-- Pins a source message: no run takes it out of the view. One that is out comes back, with its
-- group, by the run this makes due.
-- +goose StatementBegin
CREATE FUNCTION @schema@.pin(p_tenant text, p_session text, p_message text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    s     @schema@.sessions;
    v_seq bigint;
BEGIN
    s := @schema@.lock_session(p_tenant, p_session, NULL, false);
    SELECT seq INTO v_seq FROM @schema@.message_log WHERE sid = s.sid AND id = p_message AND kind = 'm';
    IF v_seq IS NULL THEN
        RAISE EXCEPTION 'session % has no source message %', s.id, p_message USING ERRCODE = 'no_data_found';
    END IF;
    UPDATE @schema@.sessions SET pinned = pinned + int8multirange(int8range(v_seq, v_seq + 1)) WHERE sid = s.sid;
    IF NOT s.live @> v_seq THEN
        UPDATE @schema@.sessions SET suspect_seq = last_seq, hold_seq = 0, due = (state = 'active') WHERE sid = s.sid;
        INSERT INTO @schema@.outbox AS o (sid) VALUES (s.sid) ON CONFLICT (sid) DO UPDATE SET gen = o.gen + 1, last_at = now();
    END IF;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION @schema@.unpin(p_tenant text, p_session text, p_message text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    s     @schema@.sessions;
    v_seq bigint;
BEGIN
    s := @schema@.lock_session(p_tenant, p_session, NULL, false);
    SELECT seq INTO v_seq FROM @schema@.message_log WHERE sid = s.sid AND id = p_message AND kind = 'm';
    IF v_seq IS NULL OR NOT s.pinned @> v_seq THEN
        RAISE EXCEPTION 'session % has no pinned message %', s.id, p_message USING ERRCODE = 'no_data_found';
    END IF;
    UPDATE @schema@.sessions SET pinned = pinned - int8multirange(int8range(v_seq, v_seq + 1)) WHERE sid = s.sid;
END $$;
-- +goose StatementEnd

-- A worker takes a run. code: claimed | gone (finished or unknown) | busy (a live worker has this
-- session). An expired lease is taken over: of this run by a new fence token, of another run of the
-- session by sending that one back to the queue (or ending it, where one is queued already).
-- +goose StatementBegin
CREATE FUNCTION @schema@.claim_run(p_run bigint, p_worker text, p_lease interval, OUT code text, OUT fence bigint)
LANGUAGE plpgsql AS $$
DECLARE
    r       @schema@.runs;
    v_other @schema@.runs;
BEGIN
    -- A claim lost in a crash of the server is harmless: the run is simply queued again.
    PERFORM set_config('synchronous_commit', 'off', true);
    SELECT * INTO r FROM @schema@.runs WHERE id = p_run FOR NO KEY UPDATE;
    IF NOT FOUND OR r.status NOT IN ('queued', 'running') THEN
        code := 'gone'; RETURN;
    END IF;
    IF r.status = 'running' AND r.lease_until >= now() THEN
        code := 'busy'; RETURN;
    END IF;
    IF r.status = 'queued' THEN
        SELECT * INTO v_other FROM @schema@.runs WHERE sid = r.sid AND status = 'running';
        IF FOUND THEN
            IF v_other.lease_until >= now() THEN
                code := 'busy'; RETURN;
            END IF;
            UPDATE @schema@.runs SET fence = runs.fence + 1, lease_until = NULL,
                status = CASE WHEN queued_twin THEN 'failed' ELSE 'queued' END,
                outcome = CASE WHEN queued_twin THEN 'lease_expired' END,
                ended_at = CASE WHEN queued_twin THEN now() END, deliver_at = now()
            FROM (SELECT EXISTS (SELECT FROM @schema@.runs q WHERE q.sid = r.sid AND q.trigger = v_other.trigger
                                 AND q.status = 'queued') AS queued_twin) t
            WHERE id = v_other.id AND runs.status = 'running' AND runs.lease_until < now();
            IF NOT FOUND THEN   -- it ended or came back to life while we looked
                code := 'busy'; RETURN;
            END IF;
        END IF;
    END IF;
    UPDATE @schema@.runs SET status = 'running', fence = runs.fence + 1, lease_until = now() + p_lease, worker = p_worker,
        attempts = attempts + 1, started_at = coalesce(started_at, now())
    WHERE id = p_run RETURNING runs.fence INTO fence;
    code := 'claimed';
END $$;
-- +goose StatementEnd

-- Ends a run: what it decided, all of it or nothing, in one transaction. p_fence is the claim's, or 0
-- for a run that was never claimed because it only looked at metadata. A run with status applied
-- also changes the view:
--   p_reasons, p_seqs, p_by   parallel arrays, one exclusion each; p_by is the index of the addition in their place
--   p_include                 what comes back
--   p_additions               [{kind, position, role_code, token_count, calls, flags, counter, covers, message}]
-- p is flat: the ledger's columns, by how much the live counters of the snapshot change (d_messages,
-- d_tokens, d_estimated), and what stays on the session (due_tokens, estimate_margin, fleet_hash,
-- settled, cooldown_seconds, ineffective; without due_tokens the session keeps what it has), and the
-- pins that the plan knows of: what of them it excludes could not stay as it was.
--
-- code: ended | fenced (another worker has the run, or it is over) | stale (the view changed since the
-- snapshot, or a pin was set on what is to go). Messages appended since the snapshot stay in the view and do not
-- make a plan stale.
-- +goose StatementBegin
CREATE FUNCTION @schema@.end_run(p_run bigint, p_fence bigint, p_status text, p_revision bigint, p_snapshot_seq bigint,
    p_reasons text[], p_seqs int8multirange[], p_by int[], p_exclude int8multirange, p_include int8multirange,
    p_additions json, p json, OUT code text, OUT appended int8multirange)
LANGUAGE plpgsql AS $$
DECLARE
    s         @schema@.sessions;
    v         record;
    v_applied boolean := p_status = 'applied';
    v_add     record;
    v_n       int := coalesce(json_array_length(p_additions), 0);
    v_base    bigint;
    v_pins    int8multirange := coalesce((p->>'pinned')::int8multirange, '{}');
BEGIN
    SELECT t.* INTO s FROM @schema@.runs r JOIN @schema@.sessions t ON t.sid = r.sid WHERE r.id = p_run FOR NO KEY UPDATE OF t;
    IF v_applied AND (s.revision <> p_revision OR s.pinned - v_pins && p_exclude
            OR p_exclude + p_include && int8multirange(int8range(p_snapshot_seq + 1, NULL))) THEN
        code := CASE WHEN EXISTS (SELECT FROM @schema@.runs WHERE id = p_run AND fence >= p_fence
                                  AND status = CASE WHEN p_fence = 0 THEN 'queued' ELSE 'running' END) THEN 'stale' ELSE 'fenced' END;
        RETURN;
    END IF;
    SELECT * INTO v FROM json_to_record(p) AS t(kind text, outcome text, policy_hash text, error_code text, error text, steps jsonb,
        messages_before bigint, messages_after bigint, tokens_before bigint, tokens_after bigint, utilization real,
        plan_us bigint, total_us bigint, worker text, d_messages bigint, d_tokens bigint, d_estimated bigint,
        due_tokens bigint, estimate_margin real, fleet_hash text, settled text, cooldown_seconds double precision, ineffective boolean);
    v_base := s.last_seq;
    appended := int8multirange(int8range(v_base + 1, v_base + 1 + v_n));
    UPDATE @schema@.runs SET status = p_status, kind = coalesce(nullif(v.kind, ''), kind), outcome = v.outcome, policy_hash = v.policy_hash,
        error_code = v.error_code, error = left(v.error, 500), steps = v.steps, lease_until = NULL,
        attempts = CASE WHEN p_fence = 0 THEN attempts + 1 ELSE attempts END, worker = v.worker,
        started_at = coalesce(started_at, clock_timestamp() - make_interval(secs => v.total_us / 1e6)), ended_at = clock_timestamp(),
        messages_before = v.messages_before, messages_after = v.messages_after,
        tokens_before = v.tokens_before, tokens_after = v.tokens_after, utilization = v.utilization,
        plan_us = v.plan_us, total_us = v.total_us, snapshot_seq = p_snapshot_seq, snapshot_revision = p_revision,
        in_force = v_applied, revision = CASE WHEN v_applied THEN s.revision + 1 END, base_run = CASE WHEN v_applied THEN s.head_run END,
        applied_seq = CASE WHEN v_applied THEN v_base END, live_before = CASE WHEN v_applied THEN s.live END,
        live_after = CASE WHEN v_applied THEN s.live - p_exclude + p_include END, appended = CASE WHEN v_applied THEN end_run.appended END
    WHERE id = p_run AND CASE WHEN p_fence = 0 THEN status = 'queued' ELSE status = 'running' AND fence = p_fence END;
    IF NOT FOUND THEN
        code := 'fenced';
        RETURN;
    END IF;

    IF v_applied THEN
        IF v_n > 0 THEN
            -- Appended behind everything, and in the view by that: live has no end.
            INSERT INTO @schema@.message_log (sid, seq, position, cumulative_tokens, token_count, calls, flags, role_code, kind, id, role,
                name, call_ids, tool_call_id, counter, summary_of, run, created_at, body)
            SELECT s.sid, v_base + ord, a.position, s.total_tokens, a.token_count, a.calls, a.flags, a.role_code::"char", a.kind::"char",
                CASE a.kind WHEN 's' THEN 'summary-' ELSE 'standin-' END || v_base + ord || '-' || p_run, a.message->>'role',
                a.message->>'name', CASE WHEN a.calls > 0 THEN ARRAY(SELECT coalesce(c->>'id', '') FROM json_array_elements(a.message->'tool_calls') c) END,
                a.message->>'tool_call_id', a.counter, a.covers, p_run, now(), a.message::text
            FROM ROWS FROM (json_to_recordset(p_additions) AS (kind text, position bigint, token_count int, calls smallint, flags smallint,
                    role_code text, counter text, covers int8multirange, message json))
                WITH ORDINALITY AS a(kind, position, token_count, calls, flags, role_code, counter, covers, message, ord);
            SELECT sum(token_count) AS tokens, coalesce(sum(token_count) FILTER (WHERE flags & 16 > 0), 0) AS estimated
            INTO v_add FROM json_to_recordset(p_additions) AS a(token_count int, flags smallint);
            v.d_tokens := v.d_tokens + v_add.tokens;
            v.d_estimated := v.d_estimated + v_add.estimated;
        END IF;
        INSERT INTO @schema@.exclusions (run, sid, reason, seqs, summary_seq)
        SELECT p_run, s.sid, e.reason, e.seqs, v_base + 1 + e.addition FROM unnest(p_reasons, p_seqs, p_by) AS e(reason, seqs, addition);
        s.live := s.live - p_exclude + p_include;
        s.revision := s.revision + 1;
        s.head_run := p_run;
        s.tail_start_seq := (SELECT lower(x) FROM unnest(s.live) x WHERE upper_inf(x));
        s.last_seq := v_base + v_n;
        s.live_messages := s.live_messages + v.d_messages + v_n;
        s.live_tokens := s.live_tokens + v.d_tokens;
        s.live_estimated_tokens := s.live_estimated_tokens + v.d_estimated;
        IF s.reported_prompt_tokens IS NOT NULL THEN   -- greatest would take null for 0
            s.reported_prompt_tokens := greatest(0, s.reported_prompt_tokens + v.d_tokens);
        END IF;
        s.messages_since_run := 0;
        s.tokens_since_run := 0;
        s.turns_since_run := 0;
        IF s.last_source_seq > p_snapshot_seq THEN   -- what came meanwhile counts from now on
            SELECT count(*), coalesce(sum(token_count), 0), count(*) FILTER (WHERE role_code = 'u')
            INTO s.messages_since_run, s.tokens_since_run, s.turns_since_run
            FROM @schema@.message_log m WHERE m.sid = s.sid AND m.seq > p_snapshot_seq AND m.kind = 'm';
            -- The plan knew nothing of a result that came meanwhile, and may have taken its call.
            IF EXISTS (SELECT FROM @schema@.message_log m WHERE m.sid = s.sid AND m.seq > p_snapshot_seq AND m.role_code = 't') THEN
                s.suspect_seq := s.last_source_seq;
            END IF;
        END IF;
    END IF;
    code := 'ended';
    -- What a run found of a view that is not the present one any more says nothing about the session.
    IF v.due_tokens IS NULL OR NOT v_applied AND s.revision <> p_revision THEN RETURN; END IF;
    s.due_tokens := v.due_tokens;
    s.estimate_margin := v.estimate_margin;
    -- What came meanwhile is news for the next run, and so is a pinned message that is out, until it is back.
    s.suspect_seq := CASE WHEN s.suspect_seq > p_snapshot_seq THEN s.suspect_seq
                          WHEN NOT s.pinned <@ s.live THEN coalesce(s.suspect_seq, p_snapshot_seq) END;
    s.due := @schema@.is_due(s);
    UPDATE @schema@.sessions SET live = s.live, revision = s.revision, head_run = s.head_run, tail_start_seq = s.tail_start_seq,
        last_seq = s.last_seq, live_messages = s.live_messages, live_tokens = s.live_tokens,
        live_estimated_tokens = s.live_estimated_tokens, reported_prompt_tokens = s.reported_prompt_tokens,
        messages_since_run = s.messages_since_run, tokens_since_run = s.tokens_since_run, turns_since_run = s.turns_since_run,
        due_tokens = s.due_tokens, estimate_margin = s.estimate_margin, policy_hash = v.fleet_hash,
        suspect_seq = s.suspect_seq, due = s.due, settled = v.settled,
        ineffective_runs = CASE WHEN v.ineffective THEN s.ineffective_runs + 1 WHEN v_applied THEN 0 ELSE s.ineffective_runs END,
        cooldown_until = CASE WHEN v.cooldown_seconds > 0 THEN now() + make_interval(secs => v.cooldown_seconds) END
    WHERE sid = s.sid;
    -- A wake-up where messages came meanwhile and a trigger holds again.
    IF s.due AND s.last_source_seq > p_snapshot_seq THEN
        INSERT INTO @schema@.outbox AS o (sid) VALUES (s.sid) ON CONFLICT (sid) DO UPDATE SET gen = o.gen + 1, last_at = now();
    END IF;
END $$;
-- +goose StatementEnd

-- Takes a run back: the view before it, with everything appended since. Later runs in force go
-- with it (p_cascade) or are named in the error. An undo is a run itself and can be undone.
-- +goose StatementBegin
CREATE FUNCTION @schema@.undo_run(p_run bigint, p_cascade boolean DEFAULT false, p_requested_by text DEFAULT '')
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    s       @schema@.sessions;
    r       @schema@.runs;
    v_later bigint[];
    v_found boolean := false;
    v_live  int8multirange;
    v_undo  bigint;
    v_node  @schema@.runs;
    v_next  bigint;
    v_new   record;
BEGIN
    SELECT * INTO r FROM @schema@.runs WHERE id = p_run;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'run % does not exist', p_run USING ERRCODE = 'no_data_found';
    END IF;
    IF r.status <> 'applied' THEN
        RAISE EXCEPTION 'run % is %: only an applied run can be undone', p_run, r.status USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    SELECT * INTO s FROM @schema@.sessions WHERE sid = r.sid FOR NO KEY UPDATE;
    -- Walk the line of views back from the present one; an undo jumps over what it took back.
    v_next := s.head_run;
    WHILE v_next IS NOT NULL LOOP
        SELECT * INTO v_node FROM @schema@.runs WHERE id = v_next;
        IF v_node.id = p_run THEN v_found := true; EXIT; END IF;
        IF v_node.kind = 'undo' THEN
            v_next := v_node.restores;
        ELSE
            v_later := v_later || v_node.id;
            v_next := v_node.base_run;
        END IF;
    END LOOP;
    IF NOT v_found THEN
        RAISE EXCEPTION 'run % is not in force: it was undone', p_run USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    IF v_later IS NOT NULL AND NOT p_cascade THEN
        RAISE EXCEPTION 'run % has later runs on top of it: %', p_run, array_to_string(v_later, ', ')
            USING ERRCODE = 'object_in_use', HINT = 'Undo those first, or take them back with it (cascade).';
    END IF;
    -- The view before the run has no end, so it holds what was appended since; what runs wrote since is not of it.
    v_live := r.live_before - coalesce((SELECT range_agg(x) FROM @schema@.runs t, unnest(t.appended) x
        WHERE t.sid = s.sid AND t.revision >= r.revision), '{}');
    INSERT INTO @schema@.runs (sid, trigger, kind, requested_by, status, outcome, started_at, ended_at, in_force, revision, base_run,
        undoes, restores, snapshot_seq, snapshot_revision, applied_seq, live_before, live_after, appended, messages_before, tokens_before)
    VALUES (s.sid, 'operator', 'undo', coalesce(p_requested_by, ''), 'applied', 'undone', now(), clock_timestamp(), true, s.revision + 1, s.head_run,
        r.id, r.base_run, s.last_seq, s.revision, s.last_seq, s.live, v_live, '{}', s.live_messages, s.live_tokens)
    RETURNING id INTO v_undo;
    SELECT count(*) AS messages, coalesce(sum(token_count), 0) AS tokens, coalesce(sum(token_count) FILTER (WHERE flags & 16 > 0), 0) AS estimated
    INTO v_new FROM unnest(v_live) x CROSS JOIN LATERAL (SELECT token_count, flags FROM @schema@.message_log m WHERE m.sid = s.sid
        AND m.seq >= lower(x) AND m.seq < coalesce(upper(x), 9223372036854775807) OFFSET 0) m;
    UPDATE @schema@.sessions SET live = v_live, revision = s.revision + 1, head_run = v_undo,
        tail_start_seq = (SELECT lower(x) FROM unnest(v_live) x WHERE upper_inf(x)),
        live_messages = v_new.messages, live_tokens = v_new.tokens, live_estimated_tokens = v_new.estimated,
        reported_prompt_tokens = CASE WHEN reported_prompt_tokens IS NOT NULL
            THEN greatest(0, reported_prompt_tokens + v_new.tokens - s.live_tokens) END,
        -- Automatic runs wait for a new message. Nobody has checked this view: the log has grown, pins were set.
        hold_seq = last_source_seq, due = false, suspect_seq = last_seq, settled = NULL, cooldown_until = NULL
    WHERE sid = s.sid;
    DELETE FROM @schema@.outbox WHERE sid = s.sid;
    UPDATE @schema@.runs SET messages_after = v_new.messages, tokens_after = v_new.tokens WHERE id = v_undo;
    PERFORM @schema@.mark_in_force(s.sid, v_undo);
    RETURN v_undo;
END $$;
-- +goose StatementEnd

-- Which runs make the present view: those on the line from its head.
-- +goose StatementBegin
CREATE FUNCTION @schema@.mark_in_force(p_sid bigint, p_head bigint) RETURNS void LANGUAGE sql AS $$
    WITH RECURSIVE line AS (
        SELECT id, CASE WHEN kind = 'undo' THEN restores ELSE base_run END AS next FROM @schema@.runs WHERE id = p_head
        UNION ALL
        SELECT r.id, CASE WHEN r.kind = 'undo' THEN r.restores ELSE r.base_run END FROM line l JOIN @schema@.runs r ON r.id = l.next)
    UPDATE @schema@.runs SET in_force = NOT in_force
    WHERE sid = p_sid AND status = 'applied' AND in_force <> (id IN (SELECT id FROM line))
$$;
-- +goose StatementEnd

-- The last position at or before p_behind that is inside no group of a call, its results and its reasoning. Reasoning is
-- given a wide berth: which call it belongs to can change when another one is mended.
-- +goose StatementBegin
CREATE FUNCTION @schema@.group_boundary(p_sid bigint, p_behind bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
    v record;
BEGIN
    LOOP
        SELECT b.seq, n.role_code = 't' OR @schema@.reasoning_only(b.role_code, b.calls, b.flags)
            OR b.calls > 0 AND @schema@.reasoning_only(n.role_code, n.calls, n.flags) AS inside INTO v
        FROM (SELECT * FROM @schema@.message_log m WHERE m.sid = p_sid AND m.seq <= p_behind AND m.kind = 'm' AND m.position = m.seq
              ORDER BY m.seq DESC LIMIT 1) b
        CROSS JOIN LATERAL (SELECT * FROM @schema@.message_log m WHERE m.sid = p_sid AND m.seq > b.seq AND m.kind = 'm' AND m.position = m.seq
              ORDER BY m.seq LIMIT 1) n;
        IF NOT FOUND OR NOT v.inside THEN
            RETURN p_behind;
        END IF;
        p_behind := v.seq - 1;
    END LOOP;
END $$;
-- +goose StatementEnd

-- The flags are those of chat.Flags: 1 text, 2 reasoning, 4 media.
-- +goose StatementBegin
CREATE FUNCTION @schema@.reasoning_only(p_role_code "char", p_calls smallint, p_flags smallint) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT p_role_code = 'a' AND p_calls = 0 AND p_flags & 7 = 2
$$;
-- +goose StatementEnd

-- A history that was compacted elsewhere: known ids stay, those absent are excluded (reason
-- replaced), new ones are appended, in the place where they stand in the list. p_revision is the
-- revision the caller read; another one is an error. p_seen is the last seq the caller read: what was
-- appended behind it stays in the view; without it the caller is taken to have seen everything.
-- Returns the run.
-- +goose StatementBegin
CREATE FUNCTION @schema@.replace_view(p_tenant text, p_session text, p_revision bigint, p_messages json, p_requested_by text DEFAULT '',
    p_seen bigint DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    s       @schema@.sessions;
    s2      @schema@.sessions;
    v_pos   bigint[];
    v_seqs  bigint[];
    v_keep  int8multirange;
    v_gone  int8multirange;
    v_back  int8multirange;
    v_run   bigint;
    v_count record;
BEGIN
    IF json_typeof(p_messages) IS DISTINCT FROM 'array' OR json_array_length(p_messages) = 0 THEN
        RAISE EXCEPTION 'replace: messages must be a JSON array of at least one message' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    s := @schema@.lock_session(p_tenant, p_session, NULL, false);
    IF s.revision <> p_revision THEN
        RAISE EXCEPTION 'session % is at revision %, not %: read the view again', s.id, s.revision, p_revision
            USING ERRCODE = 'serialization_failure';
    END IF;
    -- A new message goes behind the known one before it in the list; behind the last known one, at the end. Nothing goes
    -- before the system prompt, wherever the list has it, and nothing but results into a tool group: no provider would take
    -- that.
    WITH listed AS (
        SELECT ord, m->>'role' AS role, l.seq IS NULL AS new, max(l.position) OVER (ORDER BY ord) AS behind, count(l.seq) OVER (ORDER BY ord) AS place,
            max(ord) FILTER (WHERE l.seq IS NOT NULL) OVER () AS last_known
        FROM json_array_elements(p_messages) WITH ORDINALITY e(m, ord)
        LEFT JOIN @schema@.message_log l ON l.sid = s.sid AND l.id = m->>'id'), placed AS (
        SELECT *, bool_or(new AND role IS DISTINCT FROM 'tool') OVER (PARTITION BY place ORDER BY ord) AS led FROM listed)
    SELECT array_agg(CASE WHEN new AND ord < last_known THEN greatest(CASE WHEN led THEN @schema@.group_boundary(s.sid, coalesce(behind, 0))
        ELSE coalesce(behind, 0) END, lead) END ORDER BY ord) INTO v_pos
    FROM placed, (SELECT coalesce((SELECT l.seq - 1 FROM @schema@.message_log l
        WHERE l.sid = s.sid AND l.kind = 'm' AND l.role_code <> 's' ORDER BY l.seq LIMIT 1), s.last_seq) AS lead) x;
    -- Known ones are appended again too: nothing happens, unless their content is another.
    v_seqs := @schema@.append(p_tenant, p_session, p_messages, NULL, v_pos);
    v_keep := coalesce((SELECT range_agg(int8range(q, q + 1)) FROM unnest(v_seqs) q WHERE q <= s.last_seq), '{}');
    SELECT * INTO s2 FROM @schema@.sessions WHERE sid = s.sid;
    v_gone := (s.live * int8multirange(int8range(1, least(s.last_seq, coalesce(p_seen, s.last_seq)) + 1))) - v_keep;
    v_back := v_keep - s.live;
    INSERT INTO @schema@.runs (sid, trigger, kind, requested_by, status, outcome, started_at, ended_at, in_force, revision, base_run,
        snapshot_seq, snapshot_revision, applied_seq, live_before, live_after, appended, messages_before, tokens_before)
    VALUES (s.sid, 'application', 'replace', coalesce(p_requested_by, ''), 'applied', 'replaced', now(), clock_timestamp(), true, s.revision + 1, s.head_run,
        s.last_seq, s.revision, s.last_seq, s.live, s.live - v_gone + v_back, '{}', s.live_messages, s.live_tokens)
    RETURNING id INTO v_run;
    IF NOT isempty(v_gone) THEN
        INSERT INTO @schema@.exclusions (run, sid, reason, seqs) VALUES (v_run, s.sid, 'replaced', v_gone);
    END IF;
    s2.live := s.live - v_gone + v_back;
    SELECT count(*) AS messages, coalesce(sum(token_count), 0) AS tokens, coalesce(sum(token_count) FILTER (WHERE flags & 16 > 0), 0) AS estimated
    INTO v_count FROM unnest(s2.live) x CROSS JOIN LATERAL (SELECT token_count, flags FROM @schema@.message_log m WHERE m.sid = s.sid
        AND m.seq >= lower(x) AND m.seq < coalesce(upper(x), 9223372036854775807) OFFSET 0) m;
    s2.live_messages := v_count.messages;
    s2.live_tokens := v_count.tokens;
    s2.live_estimated_tokens := v_count.estimated;
    s2.reported_prompt_tokens := NULL;
    s2.suspect_seq := s2.last_seq;   -- nobody has checked this view yet
    s2.due := @schema@.is_due(s2);
    UPDATE @schema@.sessions SET live = s2.live, revision = s.revision + 1, head_run = v_run,
        tail_start_seq = (SELECT lower(x) FROM unnest(s2.live) x WHERE upper_inf(x)),
        live_messages = s2.live_messages, live_tokens = s2.live_tokens, live_estimated_tokens = s2.live_estimated_tokens,
        reported_prompt_tokens = NULL, suspect_seq = s2.suspect_seq, due = s2.due, settled = NULL,
        -- A call may have lost its result, or the user message that passed it by: append, which knows
        -- the log alone, has to have the view looked at when the next user message comes.
        open_pending = true
    WHERE sid = s.sid;
    UPDATE @schema@.runs SET messages_after = v_count.messages, tokens_after = v_count.tokens WHERE id = v_run;
    IF s2.due THEN
        INSERT INTO @schema@.outbox AS o (sid) VALUES (s.sid) ON CONFLICT (sid) DO UPDATE SET gen = o.gen + 1, last_at = now();
    END IF;
    RETURN v_run;
END $$;
-- +goose StatementEnd

-- Gives sessions behind sid p_after the thresholds of the present policy, a page at a time, but for those that
-- somebody holds. Returns how many it changed and the last of them, null when there are none behind it.
-- +goose StatementBegin
CREATE FUNCTION @schema@.refresh_thresholds(p_after bigint, p_limit int, OUT changed int, OUT last_sid bigint)
LANGUAGE plpgsql AS $$
DECLARE
    s @schema@.sessions;
    t @schema@.thresholds;
BEGIN
    changed := 0;
    FOR s IN SELECT * FROM @schema@.sessions
        WHERE sid > p_after AND policy_hash <> (SELECT policy_hash FROM @schema@.thresholds WHERE model_prefix = '')
        ORDER BY sid LIMIT p_limit FOR NO KEY UPDATE SKIP LOCKED
    LOOP
        SELECT * INTO t FROM @schema@.thresholds WHERE starts_with(@schema@.model_key(s.model), model_prefix)
            ORDER BY length(model_prefix) DESC LIMIT 1;
        s.due_tokens := t.due_tokens;
        s.estimate_margin := t.estimate_margin;
        UPDATE @schema@.sessions SET due_tokens = s.due_tokens, estimate_margin = s.estimate_margin,
            policy_hash = t.policy_hash, due = @schema@.is_due(s) WHERE sid = s.sid;
        changed := changed + 1;
        last_sid := s.sid;
    END LOOP;
    IF changed < p_limit THEN
        last_sid := NULL;
    END IF;
END $$;
-- +goose StatementEnd
