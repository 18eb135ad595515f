-- Ends runs of many sessions in one transaction, where that takes no more than the statements below: runs that were
-- loaded together and only exclude messages from views to which nothing has happened since. It returns those that it has
-- ended; end_run ends the others, one by one. What both end is the same: a test compares them.
--   p   [{run, sid, revision, snapshot, exclude, reasons, seqs, and what p of end_run has}]
--
-- It waits for no lock, as it holds others (see end_run).
CREATE OR REPLACE FUNCTION @schema@.end_runs(p json) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    v_ended bigint[];
    v_stale bigint[];
BEGIN
    WITH locked AS MATERIALIZED (
        SELECT e.run, e.sid, e.base_hash = t.policy_hash AS fits, t.thresholds_revision = coalesce((SELECT h.revision FROM @schema@.thresholds h
                WHERE h.policy = t.policy AND h.model_prefix = ''), 0) AS follows   -- see in_force
        FROM json_to_recordset(p) AS e(run bigint, sid bigint, revision bigint, snapshot bigint, model text, base_hash text, free_reasoning boolean)
            JOIN @schema@.runs q ON q.id = e.run JOIN @schema@.sessions t ON t.sid = q.sid
        WHERE q.status = 'queued' AND q.sid = e.sid AND t.revision = e.revision AND t.last_seq = e.snapshot AND t.model = e.model
            AND t.state = 'active' AND t.suspect_seq IS NULL AND isempty(t.pinned) AND isempty(t.reasoning_out)
            AND (e.free_reasoning OR t.reasoning_since IS NOT NULL OR t.revision = 0)
        FOR NO KEY UPDATE OF t, q SKIP LOCKED)
    SELECT array_agg(run) FILTER (WHERE follows), array_agg(run) FILTER (WHERE NOT follows) INTO v_ended, v_stale
    FROM (SELECT DISTINCT ON (sid) run, follows FROM locked WHERE fits OR NOT follows ORDER BY sid, run) one;   -- another run of a session finds another view
    IF v_stale <> '{}' THEN
        PERFORM @schema@.follow_policies(ARRAY(SELECT q.sid FROM @schema@.runs q WHERE q.id = ANY (v_stale)));
        v_ended := v_ended || ARRAY(SELECT e.run FROM json_to_recordset(p) AS e(run bigint, base_hash text) JOIN @schema@.runs q ON q.id = e.run JOIN @schema@.sessions t ON t.sid = q.sid
            WHERE e.run = ANY (v_stale) AND t.policy_hash = e.base_hash);
    END IF;
    IF v_ended IS NULL THEN
        RETURN '{}';
    END IF;
    UPDATE @schema@.runs t SET status = 'applied', kind = coalesce(nullif(e.kind, ''), t.kind), outcome = e.outcome, policy_hash = e.policy_hash,
        policy = e.policy, policy_version = e.policy_version, fired = e.fired, error_code = NULL, error = NULL, steps = e.steps, lease_until = NULL, attempts = attempts + 1, worker = e.worker,
        started_at = coalesce(started_at, clock_timestamp() - make_interval(secs => e.total_us / 1e6)), ended_at = clock_timestamp(),
        messages_before = e.messages_before, messages_after = e.messages_after, tokens_before = e.tokens_before, tokens_after = e.tokens_after,
        utilization = e.utilization, plan_us = e.plan_us, total_us = e.total_us, snapshot_seq = e.snapshot, snapshot_revision = e.revision,
        in_force = true, revision = e.revision + 1, base_run = s.head_run, applied_seq = e.snapshot, live_before = s.live,
        live_after = s.live - e.exclude, included = '{}', appended = '{}', reasoning_before = '{}', reasoning_taken = '{}'
    FROM json_to_recordset(p) AS e(run bigint, revision bigint, snapshot bigint, exclude int8multirange, kind text, outcome text, policy_hash text, policy text, policy_version int, fired text,
            steps jsonb, messages_before bigint, messages_after bigint, tokens_before bigint, tokens_after bigint, utilization real, plan_us bigint, total_us bigint, worker text), @schema@.sessions s
    WHERE e.run = ANY (v_ended) AND t.id = e.run AND s.sid = t.sid;
    PERFORM @schema@.change_views(ARRAY(SELECT e FROM json_populate_recordset(NULL::@schema@.view_change, p) e WHERE e.run = ANY (v_ended)));
    UPDATE @schema@.sessions t SET due = true FROM @schema@.runs r WHERE r.id = ANY (v_ended) AND t.sid = r.sid AND @schema@.is_due(t);
    RETURN v_ended;
END $$;

-- Changes the views of locked sessions as their runs want it, with all that follows from it but whether they are due again.
CREATE OR REPLACE FUNCTION @schema@.change_views(p @schema@.view_change[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO @schema@.exclusions (run, sid, reason, seqs)
    SELECT e.run, e.sid, x.reason, x.seqs FROM unnest(p) e CROSS JOIN LATERAL unnest(e.reasons, e.seqs) x(reason, seqs);
    UPDATE @schema@.sessions t SET live = t.live - e.exclude, revision = t.revision + 1, head_run = e.run, view_changed_at = now(),
        tail_start_seq = (SELECT lower(x) FROM unnest(t.live - e.exclude) x WHERE upper_inf(x)),
        live_messages = t.live_messages + e.d_messages, live_tokens = t.live_tokens + e.d_tokens, live_estimated_tokens = t.live_estimated_tokens + e.d_estimated,
        tokens_since_report = t.tokens_since_report + CASE WHEN t.reported_prompt_tokens IS NULL THEN 0 ELSE e.d_tokens END,
        messages_since_run = 0, tokens_since_run = 0, turns_since_run = 0,
        reasoning_since = CASE WHEN NOT e.free_reasoning THEN coalesce(t.reasoning_since, 0) END, loop_seq = NULL, awaits_answer = false,
        due_tokens = e.due_tokens, due_messages = e.due_messages, due_turns = e.due_turns, due_new_tokens = e.due_new_tokens,
        due_live_messages = e.due_live_messages, due_signals = coalesce(e.due_signals, 0), estimate_margin = e.estimate_margin,
        policy_hash = e.fleet_hash, decision_fingerprint = e.decision_fingerprint, checked_seq = NULL,
        signals = t.signals & ~(coalesce(e.seen_signals, 0) & 19), new_signals = t.new_signals & ~coalesce(e.seen_signals, 0),
        timed = t.timed AND NOT coalesce(e.seen_time, true),
        next_check_at = least(t.next_check_at, now() + make_interval(secs => least(e.check_seconds, t.due_since_run))),
        ineffective_runs = 0, low_gain_runs = CASE WHEN e.low_gain IS NULL THEN t.low_gain_runs WHEN e.low_gain THEN t.low_gain_runs + 1 ELSE 0 END,
        hold_code = NULL, cooldown_until = NULL, due = false
    FROM unnest(p) e WHERE t.sid = e.sid;
END $$;
