-- Ends a run: what it decided, all of it or nothing, in one transaction. p_fence is the claim's, or 0
-- for a run that was never claimed because it only looked at metadata. A run with status applied
-- also changes the view:
--   p_reasons, p_seqs, p_by   parallel arrays, one exclusion each; p_by is the index of the addition in their place
--   p_include                 what comes back
--   p_additions               [{kind, position, role_code, token_count, calls, flags, counter, covers, message}]
-- p is flat: the ledger's columns, by how much the live counters of the snapshot change (d_messages,
-- d_tokens, d_estimated), and what stays on the session (model, for which the thresholds are, base_hash, which is the
-- policy_hash that the session had, due_tokens, estimate_margin, fleet_hash, decision_fingerprint, cooldown_seconds,
-- ineffective, unholdable, awaits_loop, awaits_answer, hold_code, state, quarantine_reason, low_gain, check_seconds; without due_tokens the session keeps what it has), and the pins that the plan knows of: what of them it excludes could not stay as it was. Unless
-- free_reasoning says that the model accepts signed reasoning whatever precedes it, the messages in reasoning_out lose
-- theirs, and so do those appended since the snapshot: they were written on the view before.
--
-- p_wait waits for the session's lock. It is for a transaction that holds no other: one that ends several runs must
-- not make the writers of its sessions wait for the writer of another one.
--
-- code: ended | locked (another transaction holds the session or the run) | fenced (another worker has the run, or it
-- is over) | stale (the view changed since the snapshot, or a pin was set on what is to go). Messages appended since the
-- snapshot stay in the view and do not make a plan stale.
CREATE OR REPLACE FUNCTION @schema@.end_run(p_run bigint, p_fence bigint, p_status text, p_revision bigint, p_snapshot_seq bigint,
    p_reasons text[], p_seqs int8multirange[], p_by int[], p_exclude int8multirange, p_include int8multirange,
    p_additions json, p json, p_wait boolean DEFAULT true, OUT code text, OUT appended int8multirange)
LANGUAGE plpgsql AS $$
DECLARE
    s         @schema@.sessions;
    v         record;
    v_applied boolean := p_status = 'applied';
    v_add     record;
    v_n       int := coalesce(json_array_length(p_additions), 0);
    v_base    bigint;
    v_pins    int8multirange := coalesce((p->>'pinned')::int8multirange, '{}');
    v_taken   int8multirange := '{}';
    v_new     @schema@.sessions;
    v_late    boolean := false;
BEGIN
    -- The session first: an ending that has the lock of the run's row alone would keep another one from it.
    IF p_wait THEN
        SELECT * INTO s FROM @schema@.sessions WHERE sid = (SELECT sid FROM @schema@.runs WHERE id = p_run) FOR NO KEY UPDATE;
        PERFORM FROM @schema@.runs WHERE id = p_run FOR NO KEY UPDATE;   -- who has it alone waits for nothing
    ELSE
        SELECT * INTO s FROM @schema@.sessions WHERE sid = (SELECT sid FROM @schema@.runs WHERE id = p_run) FOR NO KEY UPDATE SKIP LOCKED;
        IF FOUND THEN
            PERFORM FROM @schema@.runs WHERE id = p_run FOR NO KEY UPDATE SKIP LOCKED;
        END IF;
    END IF;
    IF NOT FOUND THEN
        code := 'locked';
        RETURN;
    END IF;
    IF v_applied AND (s.revision <> p_revision OR s.pinned - v_pins && p_exclude
            OR p_exclude + p_include && int8multirange(int8range(p_snapshot_seq + 1, NULL))) THEN
        code := CASE WHEN EXISTS (SELECT FROM @schema@.runs WHERE id = p_run AND fence >= p_fence
                                  AND status = CASE WHEN p_fence = 0 THEN 'queued' ELSE 'running' END) THEN 'stale' ELSE 'fenced' END;
        RETURN;
    END IF;
    IF v_applied AND s.archived && p_include THEN
        PERFORM @schema@.refuse_archived(s, p_include);
    END IF;
    SELECT * INTO v FROM json_to_record(p) AS t(kind text, outcome text, policy_hash text, policy text, policy_version int, error_code text, error text, steps jsonb,
        messages_before bigint, messages_after bigint, tokens_before bigint, tokens_after bigint, utilization real,
        plan_us bigint, total_us bigint, worker text, d_messages bigint, d_tokens bigint, d_estimated bigint,
        model text, due_tokens bigint, estimate_margin real, base_hash text, fleet_hash text, decision_fingerprint text, cooldown_seconds double precision,
        ineffective boolean, unholdable int8multirange, free_reasoning boolean, reasoning_out int8multirange, awaits_loop boolean,
        awaits_answer boolean, hold_code text, state text, quarantine_reason text, low_gain boolean, checked boolean, seen_signals int,
        due_messages bigint, due_turns bigint, due_new_tokens bigint, due_live_messages bigint, due_signals int, seen_time boolean, fired text,
        check_seconds double precision);
    v_base := s.last_seq;
    appended := int8multirange(int8range(v_base + 1, v_base + 1 + v_n));
    IF v_applied AND NOT v.free_reasoning THEN
        v_taken := CASE WHEN s.reasoning_since IS NULL AND s.revision > 0   -- which of it is stale is not known
                THEN int8multirange(int8range(1, v_base + v_n + 1))
            WHEN v_base > p_snapshot_seq AND EXISTS (SELECT FROM @schema@.message_log m WHERE m.sid = s.sid AND m.seq > p_snapshot_seq AND m.seq <= v_base
                    AND @schema@.signed_reasoning(m.flags))
                THEN coalesce(v.reasoning_out, '{}') + int8multirange(int8range(p_snapshot_seq + 1, v_base + 1))
            ELSE coalesce(v.reasoning_out, '{}') END;
    END IF;
    UPDATE @schema@.runs SET status = p_status, kind = coalesce(nullif(v.kind, ''), kind), outcome = v.outcome, policy_hash = v.policy_hash,
        policy = v.policy, policy_version = v.policy_version, fired = v.fired, error_code = v.error_code, error = left(v.error, 500), steps = v.steps, lease_until = NULL,
        attempts = CASE WHEN p_fence = 0 THEN attempts + 1 ELSE attempts END, failures = failures + (p_status = 'failed')::int, worker = v.worker,
        started_at = coalesce(started_at, clock_timestamp() - make_interval(secs => v.total_us / 1e6)), ended_at = clock_timestamp(),
        messages_before = v.messages_before, messages_after = v.messages_after,
        tokens_before = v.tokens_before, tokens_after = v.tokens_after, utilization = v.utilization,
        plan_us = v.plan_us, total_us = v.total_us, snapshot_seq = p_snapshot_seq, snapshot_revision = p_revision,
        in_force = v_applied, revision = CASE WHEN v_applied THEN s.revision + 1 END, base_run = CASE WHEN v_applied THEN s.head_run END,
        applied_seq = CASE WHEN v_applied THEN v_base END, live_before = CASE WHEN v_applied THEN s.live END,
        live_after = CASE WHEN v_applied THEN s.live - p_exclude + p_include END,
        included = CASE WHEN v_applied THEN p_include END, appended = CASE WHEN v_applied THEN end_run.appended END,
        reasoning_before = CASE WHEN v_applied THEN s.reasoning_out END, reasoning_taken = CASE WHEN v_applied THEN v_taken - s.reasoning_out END
    WHERE id = p_run AND CASE WHEN p_fence = 0 THEN status = 'queued' ELSE status = 'running' AND fence = p_fence END;
    IF NOT FOUND THEN
        code := 'fenced';
        RETURN;
    END IF;

    IF v.due_tokens IS NOT NULL THEN   -- the session is written
        v_new := @schema@.in_force(s);
        IF (v_new.policy, v_new.thresholds_revision) <> (s.policy, s.thresholds_revision) THEN
            PERFORM @schema@.save_policies(ARRAY[v_new]);
            s := v_new;
            v.base_hash := coalesce(v.base_hash, '-');   -- who has read none has read the former thresholds
        END IF;
    END IF;
    IF v_applied THEN
        IF v_n > 0 THEN
            -- Appended behind everything, and in the view by that: live has no end.
            INSERT INTO @schema@.message_log (sid, seq, position, cumulative_tokens, token_count, calls, flags, role_code, kind, id, role,
                name, call_ids, tool_call_id, counter, summary_of, run, created_at, body_digest, reasoning_tokens)
            SELECT s.sid, v_base + ord, a.position, s.total_tokens, a.token_count, a.calls, a.flags | coalesce(o.flags & 128, 0)::smallint, a.role_code::"char", a.kind::"char",
                -- An application may have an id of this form: from an export, or of its own.
                n.id || coalesce((SELECT '-' || to_hex((random() * 2147483647)::int) FROM @schema@.message_log l WHERE l.sid = s.sid AND l.id = n.id), ''),
                a.message->>'role',
                a.message->>'name', CASE WHEN a.calls > 0 THEN ARRAY(SELECT coalesce(c->>'id', '') FROM json_array_elements(a.message->'tool_calls') c) END,
                a.message->>'tool_call_id', a.counter, a.covers, p_run, coalesce(o.created_at, now()), @schema@.body_digest(a.message::text),
                CASE WHEN @schema@.signed_reasoning(a.flags) THEN @schema@.reasoning_tokens(a.message::text, a.token_count) END
            FROM ROWS FROM (json_to_recordset(p_additions) AS (kind text, position bigint, token_count int, calls smallint, flags smallint,
                    role_code text, counter text, covers int8multirange, message json))
                WITH ORDINALITY AS a(kind, position, token_count, calls, flags, role_code, counter, covers, message, ord)
            CROSS JOIN LATERAL (SELECT CASE a.kind WHEN 's' THEN 'summary-' ELSE 'standin-' END || v_base + ord || '-' || p_run AS id) n
            LEFT JOIN @schema@.message_log o ON a.kind <> 's' AND o.sid = s.sid AND o.seq = lower(a.covers);   -- what it stands in for says when
            INSERT INTO @schema@.message_body
            SELECT s.sid, v_base + ord, message::text FROM ROWS FROM (json_to_recordset(p_additions) AS (message json)) WITH ORDINALITY AS a(message, ord);
            SELECT sum(token_count) AS tokens, coalesce(sum(token_count) FILTER (WHERE flags & 16 > 0), 0) AS estimated
            INTO v_add FROM json_to_recordset(p_additions) AS a(token_count int, flags smallint);
            v.d_tokens := v.d_tokens + v_add.tokens;
            v.d_estimated := v.d_estimated + v_add.estimated;
        END IF;
        INSERT INTO @schema@.exclusions (run, sid, reason, seqs, summary_seq)
        SELECT p_run, s.sid, e.reason, e.seqs, v_base + 1 + e.addition FROM unnest(p_reasons, p_seqs, p_by) AS e(reason, seqs, addition);
        s.live := s.live - p_exclude + p_include;
        IF v.free_reasoning THEN
            s.reasoning_since := NULL;
        ELSE
            v_taken := v_taken - s.reasoning_out;
            IF NOT isempty(v_taken) THEN
                SELECT v.d_messages - messages, v.d_tokens - tokens, v.d_estimated - estimated INTO v.d_messages, v.d_tokens, v.d_estimated
                FROM @schema@.reasoning_in(s.sid, s.live * v_taken);
            END IF;
            s.reasoning_out := s.reasoning_out + v_taken;
            s.reasoning_since := coalesce(s.reasoning_since, CASE WHEN s.revision = 0 THEN 0 ELSE v_base + v_n END);
        END IF;
        s.revision := s.revision + 1;
        s.head_run := p_run;
        s.tail_start_seq := (SELECT lower(x) FROM unnest(s.live) x WHERE upper_inf(x));
        s.last_seq := v_base + v_n;
        s.live_messages := s.live_messages + v.d_messages + v_n;
        s.live_tokens := s.live_tokens + v.d_tokens;
        s.live_estimated_tokens := s.live_estimated_tokens + v.d_estimated;
        s.tokens_since_report := s.tokens_since_report + CASE WHEN s.reported_prompt_tokens IS NULL THEN 0 ELSE v.d_tokens END;
        s.messages_since_run := 0;
        s.tokens_since_run := 0;
        s.turns_since_run := 0;
        IF s.last_source_seq > p_snapshot_seq THEN   -- what came meanwhile counts from now on
            SELECT count(*), coalesce(sum(token_count), 0), count(*) FILTER (WHERE role_code = 'u')
            INTO s.messages_since_run, s.tokens_since_run, s.turns_since_run
            FROM @schema@.message_log m WHERE m.sid = s.sid AND m.seq > p_snapshot_seq AND m.kind = 'm';
            -- The plan knew nothing of a message that came meanwhile: it may have taken the call of a result, or brought back
            -- calls as open that something follows now.
            v_late := true;
        END IF;
    END IF;
    code := 'ended';
    -- What a run found of a view that is not the present one any more says nothing about the session.
    IF v.due_tokens IS NULL OR NOT v_applied AND s.revision <> p_revision THEN RETURN; END IF;
    IF v.model <> s.model OR v.base_hash <> s.policy_hash THEN   -- the model or the policy was set meanwhile, with thresholds of its own
        v.due_tokens := s.due_tokens;
        v.estimate_margin := s.estimate_margin;
        v.fleet_hash := s.policy_hash;
        v.awaits_loop := false;
        v.state := NULL;
        v.hold_code := NULL;
        v.checked := false;
    ELSE
        s.due_messages := v.due_messages;
        s.due_turns := v.due_turns;
        s.due_new_tokens := v.due_new_tokens;
        s.due_live_messages := v.due_live_messages;
        s.due_signals := coalesce(v.due_signals, 0);
    END IF;
    s.checked_seq := CASE WHEN v.checked THEN p_snapshot_seq END;
    -- Events are over when a run has seen them; one that was reported again meanwhile is the same.
    s.new_signals := s.new_signals & ~coalesce(v.seen_signals, 0);
    s.signals := s.signals & ~(coalesce(v.seen_signals, 0) & 19);
    s.timed := s.timed AND NOT coalesce(v.seen_time, true);
    s.due_tokens := v.due_tokens;
    s.estimate_margin := v.estimate_margin;
    s.unholdable := s.unholdable + coalesce(v.unholdable, '{}');
    s.loop_seq := CASE WHEN v.awaits_loop THEN p_snapshot_seq END;
    s.awaits_answer := s.loop_seq IS NOT NULL AND coalesce(v.awaits_answer, false);
    IF v.state = 'service_managed' OR v.state = 'quarantined' AND s.state = 'active' AND s.last_source_seq <= p_snapshot_seq THEN
        s.state := v.state;
        s.quarantine_reason := v.quarantine_reason;
    ELSIF v_applied AND s.state = 'quarantined' THEN
        s.state := 'active';
        s.quarantine_reason := NULL;
    END IF;
    -- What came meanwhile is news for the next run, and so is a pinned message that is out, until it is back or known
    -- to fit into no valid view. A fault that an open tool loop holds is one still.
    s.suspect_seq := CASE WHEN s.suspect_seq > p_snapshot_seq THEN s.suspect_seq
                          WHEN NOT s.pinned <@ (s.live + s.unholdable) THEN coalesce(s.suspect_seq, p_snapshot_seq)
                          WHEN NOT v_applied AND (s.loop_seq IS NOT NULL OR s.state = 'service_managed') THEN s.suspect_seq
                          -- One that an open tool loop held to the end of the view has not decided what awaits a repair before it.
                          WHEN v_applied AND s.suspect_seq IS NOT NULL AND NOT isempty(@schema@.awaiting_repair(s)) THEN s.suspect_seq END;
    s.due := @schema@.is_due(s);
    UPDATE @schema@.sessions SET live = s.live, revision = s.revision, head_run = s.head_run, tail_start_seq = s.tail_start_seq,
        last_seq = s.last_seq, live_messages = s.live_messages, live_tokens = s.live_tokens,
        live_estimated_tokens = s.live_estimated_tokens, tokens_since_report = s.tokens_since_report,
        messages_since_run = s.messages_since_run, tokens_since_run = s.tokens_since_run, turns_since_run = s.turns_since_run,
        reasoning_out = s.reasoning_out, reasoning_since = s.reasoning_since, loop_seq = s.loop_seq,
        due_tokens = s.due_tokens, estimate_margin = s.estimate_margin, policy_hash = v.fleet_hash,
        suspect_seq = s.suspect_seq, unholdable = s.unholdable, due = s.due, due_since = CASE WHEN v_applied THEN now() ELSE s.due_since END, decision_fingerprint = v.decision_fingerprint,
        ineffective_runs = CASE WHEN v.ineffective THEN s.ineffective_runs + 1 WHEN v_applied THEN 0 ELSE s.ineffective_runs END,
        low_gain_runs = CASE WHEN NOT v_applied OR v.low_gain IS NULL THEN s.low_gain_runs WHEN v.low_gain THEN s.low_gain_runs + 1 ELSE 0 END,
        due_messages = s.due_messages, due_turns = s.due_turns, due_new_tokens = s.due_new_tokens, due_live_messages = s.due_live_messages,
        due_signals = s.due_signals, checked_seq = s.checked_seq, signals = s.signals, new_signals = s.new_signals, timed = s.timed,
        next_check_at = least(s.next_check_at, now() + make_interval(secs => v.check_seconds),
            CASE WHEN v_applied THEN now() + make_interval(secs => s.due_since_run) END),
        view_changed_at = CASE WHEN v_applied THEN now() ELSE s.view_changed_at END,
        awaits_answer = s.awaits_answer, state = s.state, quarantine_reason = s.quarantine_reason,
        hold_code = CASE WHEN v.cooldown_seconds > 0 THEN v.hold_code END,
        cooldown_until = CASE WHEN v.cooldown_seconds > 0 THEN now() + make_interval(secs => v.cooldown_seconds) END
    WHERE sid = s.sid RETURNING * INTO s;
    IF v_late THEN
        s := @schema@.repair_view(s);
    END IF;
    -- A wake-up where messages came meanwhile and a trigger holds again.
    IF s.due AND s.last_source_seq > p_snapshot_seq THEN
        INSERT INTO @schema@.outbox AS o (sid, tenant) VALUES (s.sid, s.tenant) ON CONFLICT (sid) DO UPDATE SET gen = o.gen + 1, last_at = now();
    END IF;
END $$;
