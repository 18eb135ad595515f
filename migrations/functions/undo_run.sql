-- Takes a run back: the view before it, with everything appended since, and without what the application has deleted since (see
-- exclude). Later runs in force go with it (p_cascade) or are named in the error. An undo is a run itself and can be undone.
CREATE OR REPLACE FUNCTION @schema@.undo_run(p_tenant text, p_session text, p_run bigint, p_cascade boolean DEFAULT false,
    p_requested_by text DEFAULT '')
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
    v_out   int8multirange;
    v_gone  int8multirange;   -- deleted since
BEGIN
    s := @schema@.lock_session(p_tenant, p_session, NULL, false);
    SELECT * INTO r FROM @schema@.runs WHERE id = p_run AND sid = s.sid;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'session % has no run %', s.id, p_run USING ERRCODE = 'no_data_found';
    END IF;
    IF r.status <> 'applied' THEN
        RAISE EXCEPTION 'run % is %: only an applied run can be undone', p_run, r.status USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    IF r.kind = 'erase' THEN
        RAISE EXCEPTION 'run % is an erasure, which cannot be undone', p_run USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    -- Walk the line of views back from the present one; an undo jumps over what it took back.
    v_next := s.head_run;
    WHILE v_next IS NOT NULL LOOP
        SELECT * INTO v_node FROM @schema@.runs WHERE id = v_next;
        IF v_node.id = p_run THEN v_found := true; EXIT; END IF;
        IF v_node.kind = 'undo' THEN
            v_next := v_node.restores;
        ELSIF v_node.kind = 'erase' THEN   -- the view was the same
            v_next := v_node.base_run;
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
    v_gone := v_live * (@schema@.deleted_messages(s.sid) - coalesce((SELECT range_agg(x) FROM @schema@.exclusions e, unnest(e.seqs) x
        WHERE e.sid = s.sid AND e.run = r.id AND e.reason = 'deleted_by_application'), '{}'));
    v_live := v_live - v_gone;
    PERFORM @schema@.refuse_archived(s, v_live);
    PERFORM @schema@.refuse_in_open_loop(s, @schema@.first_change(s.sid, s.live, v_live, s.last_seq));
    -- Reasoning that was valid in the view before the run is so again, unless the application has put something before it
    -- since; what was written since then was written on another view.
    v_out := coalesce(r.reasoning_before, '{}');
    IF s.reasoning_since IS NOT NULL THEN
        v_out := v_out + int8multirange(int8range(1, s.reasoning_since + 1)) + @schema@.stale_reasoning(s.sid, v_live,
            least(r.applied_seq + 1, (SELECT min(m.position) FROM @schema@.view_rows(s.sid, v_live * int8multirange(int8range(r.applied_seq + 1, NULL)), '{}') m)));
    END IF;
    INSERT INTO @schema@.runs (sid, trigger, kind, requested_by, status, outcome, started_at, ended_at, in_force, revision, base_run,
        undoes, restores, snapshot_seq, snapshot_revision, applied_seq, live_before, live_after, appended, messages_before, tokens_before,
        reasoning_before, reasoning_taken)
    VALUES (s.sid, 'operator', 'undo', coalesce(p_requested_by, ''), 'applied', 'undone', now(), clock_timestamp(), true, s.revision + 1, s.head_run,
        r.id, r.base_run, s.last_seq, s.revision, s.last_seq, s.live, v_live, '{}', s.live_messages, s.live_tokens,
        s.reasoning_out, v_out - coalesce(r.reasoning_before, '{}'))
    RETURNING id INTO v_undo;
    IF NOT isempty(v_gone) THEN
        INSERT INTO @schema@.exclusions (run, sid, reason, seqs) VALUES (v_undo, s.sid, 'deleted_by_application', v_gone);
    END IF;
    SELECT count(*) AS messages, coalesce(sum(token_count), 0) AS tokens, coalesce(sum(token_count) FILTER (WHERE flags & 16 > 0), 0) AS estimated
    INTO v_new FROM @schema@.view_rows(s.sid, v_live, v_out);
    UPDATE @schema@.sessions SET live = v_live, reasoning_out = v_out, loop_seq = NULL, revision = s.revision + 1, head_run = v_undo, view_changed_at = now(),
        next_check_at = least(next_check_at, now() + make_interval(secs => due_since_run)),
        tail_start_seq = (SELECT lower(x) FROM unnest(v_live) x WHERE upper_inf(x)),
        live_messages = v_new.messages, live_tokens = v_new.tokens, live_estimated_tokens = v_new.estimated,
        tokens_since_report = tokens_since_report + CASE WHEN reported_prompt_tokens IS NULL THEN 0 ELSE v_new.tokens - s.live_tokens END,
        -- Automatic runs wait for a new message. No run has checked this view: the log has grown, pins were set.
        hold_seq = last_source_seq, due = false, suspect_seq = last_seq, unholdable = '{}', decision_fingerprint = NULL, cooldown_until = NULL, hold_code = NULL,
        awaits_answer = false, low_gain_runs = 0, state = CASE state WHEN 'quarantined' THEN 'active' ELSE state END, quarantine_reason = NULL
    WHERE sid = s.sid RETURNING * INTO s;
    DELETE FROM @schema@.outbox WHERE sid = s.sid;
    UPDATE @schema@.runs SET messages_after = v_new.messages, tokens_after = v_new.tokens WHERE id = v_undo;
    PERFORM @schema@.mark_in_force(s.sid, v_undo);
    PERFORM @schema@.repair_view(s);
    PERFORM pg_notify('@schema@', v_undo::text);   -- see wait_run
    RETURN v_undo;
END $$;

-- Which runs make the view that a run left: those on the line back from it. Ends where the line is a circle.
CREATE OR REPLACE FUNCTION @schema@.line_of(p_head bigint) RETURNS SETOF bigint LANGUAGE sql STABLE AS $$
    WITH RECURSIVE line AS (
        SELECT id, CASE WHEN kind = 'undo' THEN restores ELSE base_run END AS next FROM @schema@.runs WHERE id = p_head
        UNION
        SELECT r.id, CASE WHEN r.kind = 'undo' THEN r.restores ELSE r.base_run END FROM line l JOIN @schema@.runs r ON r.id = l.next)
    SELECT id FROM line
$$;

CREATE OR REPLACE FUNCTION @schema@.mark_in_force(p_sid bigint, p_head bigint) RETURNS void LANGUAGE sql AS $$
    UPDATE @schema@.runs SET in_force = NOT in_force
    WHERE sid = p_sid AND status = 'applied' AND in_force <> (id IN (SELECT @schema@.line_of(p_head)))
$$;
