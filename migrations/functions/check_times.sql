-- Tells parents of children that were closed, looks at up to p_limit sessions whose next_check_at has come, and returns how
-- many there were. Those with a context as
-- large as it takes are due if they have been idle for as long as a trigger of their policy waits, or are as old, or if
-- their view has not changed for so long; in the last two cases the size alone makes them due from then on, until a run
-- sets their thresholds. The others, such as those that were written since, are looked at again at the next such time.
CREATE OR REPLACE FUNCTION @schema@.check_times(p_limit int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    s     @schema@.sessions;
    v_was boolean;
    v_n   int := @schema@.tell_parents(p_limit);
BEGIN
    FOR s IN SELECT * FROM @schema@.sessions WHERE next_check_at <= now() ORDER BY next_check_at LIMIT p_limit FOR NO KEY UPDATE SKIP LOCKED LOOP
        v_n := v_n + 1;
        s := @schema@.follow_policy(s);
        v_was := s.due;
        s.next_check_at := @schema@.next_time(s, now());
        s.timed := coalesce(@schema@.next_time(s, '-infinity') <= now() AND coalesce(s.reported_prompt_tokens + s.tokens_since_report, @schema@.estimated_tokens(s),
            s.live_tokens + s.live_estimated_tokens * s.estimate_margin) > coalesce(s.due_idle_tokens, 0), false);
        IF least(s.created_at + make_interval(secs => s.due_age), coalesce(s.view_changed_at, s.created_at) + make_interval(secs => s.due_since_run)) <= now() THEN
            s.due_tokens := least(s.due_tokens, s.due_idle_tokens);
        END IF;
        s.due := @schema@.is_due(s);
        UPDATE @schema@.sessions SET next_check_at = s.next_check_at, timed = s.timed, due_tokens = s.due_tokens, due = s.due WHERE sid = s.sid;
        IF s.due AND NOT v_was THEN
            INSERT INTO @schema@.outbox AS o (sid, tenant) VALUES (s.sid, s.tenant) ON CONFLICT (sid) DO UPDATE SET gen = o.gen + 1, last_at = now();
        END IF;
    END LOOP;
    RETURN v_n;
END $$;
