-- Gives sessions behind sid p_after the thresholds of the present policy, a page at a time, but for those that
-- another transaction holds. Returns how many it changed and the last of them, null when there are none behind it.
CREATE OR REPLACE FUNCTION @schema@.refresh_thresholds(p_after bigint, p_limit int, OUT changed int, OUT last_sid bigint)
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
        SELECT * INTO t FROM @schema@.thresholds_of(s.model);
        s.due_tokens := t.due_tokens;
        s.estimate_margin := t.estimate_margin;
        s.loop_seq := NULL;   -- the model may not bind reasoning any more
        UPDATE @schema@.sessions SET due_tokens = s.due_tokens, estimate_margin = s.estimate_margin,
            policy_hash = t.policy_hash, loop_seq = NULL, due = @schema@.is_due(s) WHERE sid = s.sid;
        changed := changed + 1;
        last_sid := s.sid;
    END LOOP;
    IF changed < p_limit THEN
        last_sid := NULL;
    END IF;
END $$;
