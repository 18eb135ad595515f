-- Ends runs of many sessions in one transaction, where that takes no more than the statements below: runs that were
-- loaded together and only exclude messages from views to which nothing has happened since. It returns those that it has
-- ended; end_run ends the others, one by one. What both end is the same: a test compares them.
--   p   [{run, revision, snapshot, exclude, reasons, seqs, and what p of end_run has}]
--
-- It waits for no lock, as it holds others (see end_run).
CREATE OR REPLACE FUNCTION @schema@.end_runs(p json) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    r     record;
    s     @schema@.sessions;
    v_n        int := 0;
    v_ended    bigint[] := '{}';
    v_sids     bigint[] := '{}';
    v_before   int8multirange[] := '{}';
    v_base     bigint[] := '{}';
    v_sessions @schema@.sessions[] := '{}';
BEGIN
    FOR r IN
        WITH e AS (SELECT * FROM json_to_recordset(p) AS e(run bigint, revision bigint, snapshot bigint, exclude int8multirange, d_messages bigint, d_tokens bigint,
                d_estimated bigint, model text, base_hash text, fleet_hash text, decision_fingerprint text, due_tokens bigint, estimate_margin real,
                low_gain boolean, free_reasoning boolean, seen_signals int, seen_time boolean, check_seconds double precision,
                due_messages bigint, due_turns bigint, due_new_tokens bigint, due_live_messages bigint, due_signals int))
        SELECT e.*, t AS session FROM e JOIN @schema@.runs q ON q.id = e.run JOIN @schema@.sessions t ON t.sid = q.sid
        WHERE q.status = 'queued' AND t.revision = e.revision AND t.last_seq = e.snapshot AND t.model = e.model AND t.policy_hash = e.base_hash
            AND t.state = 'active' AND t.suspect_seq IS NULL AND isempty(t.pinned) AND isempty(t.reasoning_out)
            AND (e.free_reasoning OR t.reasoning_since IS NOT NULL OR t.revision = 0)
        FOR NO KEY UPDATE OF t, q SKIP LOCKED
    LOOP
        s := r.session;
        CONTINUE WHEN s.sid = ANY(v_sids);   -- another run of the session has just changed its view
        v_sids[v_n + 1] := s.sid;
        v_n := v_n + 1;
        v_ended[v_n] := r.run;
        v_before[v_n] := s.live;
        v_base[v_n] := s.head_run;
        s.live := s.live - r.exclude;
        s.reasoning_since := CASE WHEN NOT r.free_reasoning THEN coalesce(s.reasoning_since, 0) END;
        s.revision := s.revision + 1;
        s.head_run := r.run;
        s.tail_start_seq := (SELECT lower(x) FROM unnest(s.live) x WHERE upper_inf(x));
        s.live_messages := s.live_messages + r.d_messages;
        s.live_tokens := s.live_tokens + r.d_tokens;
        s.live_estimated_tokens := s.live_estimated_tokens + r.d_estimated;
        s.tokens_since_report := s.tokens_since_report + CASE WHEN s.reported_prompt_tokens IS NULL THEN 0 ELSE r.d_tokens END;
        s.messages_since_run := 0;
        s.tokens_since_run := 0;
        s.turns_since_run := 0;
        s.due_tokens := r.due_tokens;
        s.due_messages := r.due_messages;
        s.due_turns := r.due_turns;
        s.due_new_tokens := r.due_new_tokens;
        s.due_live_messages := r.due_live_messages;
        s.due_signals := coalesce(r.due_signals, 0);
        s.checked_seq := NULL;
        s.new_signals := s.new_signals & ~coalesce(r.seen_signals, 0);
        s.signals := s.signals & ~(coalesce(r.seen_signals, 0) & 19);
        s.timed := s.timed AND NOT coalesce(r.seen_time, true);
        s.next_check_at := least(s.next_check_at, now() + make_interval(secs => least(r.check_seconds, s.due_since_run)));
        s.estimate_margin := r.estimate_margin;
        s.loop_seq := NULL;
        s.awaits_answer := false;
        s.policy_hash := r.fleet_hash;
        s.decision_fingerprint := r.decision_fingerprint;
        s.ineffective_runs := 0;
        s.low_gain_runs := CASE WHEN r.low_gain IS NULL THEN s.low_gain_runs WHEN r.low_gain THEN s.low_gain_runs + 1 ELSE 0 END;
        s.hold_code := NULL;
        s.cooldown_until := NULL;
        s.due := @schema@.is_due(s);
        v_sessions[v_n] := s;
    END LOOP;

    UPDATE @schema@.runs t SET status = 'applied', kind = coalesce(nullif(e.kind, ''), t.kind), outcome = e.outcome, policy_hash = e.policy_hash,
        policy = e.policy, policy_version = e.policy_version, fired = e.fired, error_code = NULL, error = NULL, steps = e.steps, lease_until = NULL, attempts = attempts + 1, worker = e.worker,
        started_at = coalesce(started_at, clock_timestamp() - make_interval(secs => e.total_us / 1e6)), ended_at = clock_timestamp(),
        messages_before = e.messages_before, messages_after = e.messages_after, tokens_before = e.tokens_before, tokens_after = e.tokens_after,
        utilization = e.utilization, plan_us = e.plan_us, total_us = e.total_us, snapshot_seq = e.snapshot, snapshot_revision = e.revision,
        in_force = true, revision = e.revision + 1, base_run = b.base_run, applied_seq = e.snapshot, live_before = b.live_before,
        live_after = n.live, included = '{}', appended = '{}', reasoning_before = '{}', reasoning_taken = '{}'
    FROM json_to_recordset(p) AS e(run bigint, revision bigint, snapshot bigint, kind text, outcome text, policy_hash text, policy text, policy_version int, fired text,
            steps jsonb, messages_before bigint, messages_after bigint, tokens_before bigint, tokens_after bigint, utilization real, plan_us bigint, total_us bigint, worker text)
        JOIN unnest(v_ended, v_before, v_base) b(run, live_before, base_run) USING (run)
        JOIN unnest(v_sessions) n ON n.head_run = e.run
    WHERE t.id = e.run;
    INSERT INTO @schema@.exclusions (run, sid, reason, seqs)
    SELECT n.head_run, n.sid, x.reason, x.seqs
    FROM unnest(v_sessions) n JOIN json_to_recordset(p) AS e(run bigint, reasons text[], seqs int8multirange[]) ON e.run = n.head_run
    CROSS JOIN LATERAL unnest(e.reasons, e.seqs) x(reason, seqs);
    UPDATE @schema@.sessions t SET live = n.live, revision = n.revision, head_run = n.head_run, tail_start_seq = n.tail_start_seq,
        live_messages = n.live_messages, live_tokens = n.live_tokens, live_estimated_tokens = n.live_estimated_tokens,
        tokens_since_report = n.tokens_since_report, messages_since_run = 0, tokens_since_run = 0, turns_since_run = 0,
        reasoning_since = n.reasoning_since, loop_seq = NULL, awaits_answer = false, due_tokens = n.due_tokens, estimate_margin = n.estimate_margin,
        policy_hash = n.policy_hash, due = n.due, decision_fingerprint = n.decision_fingerprint, ineffective_runs = 0, low_gain_runs = n.low_gain_runs,
        due_messages = n.due_messages, due_turns = n.due_turns, due_new_tokens = n.due_new_tokens, due_live_messages = n.due_live_messages,
        due_signals = n.due_signals, checked_seq = NULL, signals = n.signals, new_signals = n.new_signals, timed = n.timed,
        next_check_at = n.next_check_at, view_changed_at = now(),
        hold_code = NULL, cooldown_until = NULL
    FROM unnest(v_sessions) n WHERE t.sid = n.sid;
    RETURN v_ended;
END $$;
