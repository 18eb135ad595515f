-- What the application knows of a session, for the triggers of policies: an object of true and false with the keys closed,
-- overflow (a prompt did not fit into the window; both are events, which hold until a run has seen them), needs_follow_up
-- and has_pending_input (which hold until they are reported as false). What is left out stays as it is.
CREATE OR REPLACE FUNCTION @schema@.report_state(p_tenant text, p_session text, p_state jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    s     @schema@.sessions;
    v_on  int;
    v_off int;
BEGIN
    IF jsonb_typeof(p_state) IS DISTINCT FROM 'object' OR EXISTS (SELECT FROM jsonb_each(p_state)
            WHERE jsonb_typeof(value) <> 'boolean' OR key NOT IN ('closed', 'overflow', 'needs_follow_up', 'has_pending_input')) THEN
        RAISE EXCEPTION 'report_state: must be an object of true and false with the keys closed, overflow, needs_follow_up and has_pending_input'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT coalesce(bit_or(bit) FILTER (WHERE p_state->name = 'true'), 0), coalesce(bit_or(bit) FILTER (WHERE p_state->name = 'false'), 0)
    INTO v_on, v_off FROM (VALUES ('closed', 1), ('overflow', 2), ('needs_follow_up', 4), ('has_pending_input', 8)) b(name, bit);
    s := @schema@.lock_session(p_tenant, p_session, NULL, false);
    -- The parent is told later. A transaction that has this session must not wait for another one's writers, nor they for
    -- it: applications lock several sessions in an order of their own, in which they would not expect the parent.
    IF v_on & ~s.signals & 1 > 0 AND s.parent IS NOT NULL THEN
        INSERT INTO @schema@.closed_children (parent, sid) VALUES (s.parent, s.sid) ON CONFLICT DO NOTHING;
    END IF;
    PERFORM @schema@.set_signals(s, v_on, v_off);
END $$;

-- Sets and clears signals of a locked session. Those that were set before are no news.
CREATE OR REPLACE FUNCTION @schema@.set_signals(s @schema@.sessions, p_on int, p_off int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_was boolean := s.due;
BEGIN
    s.new_signals := (s.new_signals & ~p_off) | (p_on & ~s.signals);
    s.signals := (s.signals & ~p_off) | p_on;
    s.checked_seq := NULL;
    s.due := @schema@.is_due(s);
    UPDATE @schema@.sessions SET signals = s.signals, new_signals = s.new_signals, checked_seq = NULL, due = s.due WHERE sid = s.sid;
    IF s.due AND NOT v_was THEN
        INSERT INTO @schema@.outbox AS o (sid, tenant) VALUES (s.sid, s.tenant) ON CONFLICT (sid) DO UPDATE SET gen = o.gen + 1, last_at = now();
    END IF;
END $$;

-- Tells up to p_limit parents of children that were closed, and returns how many. Those that are locked are told by a later
-- call: this one, which holds the locks of several, waits for none.
CREATE OR REPLACE FUNCTION @schema@.tell_parents(p_limit int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    s   @schema@.sessions;
    v_n int := 0;
BEGIN
    FOR s IN SELECT p.* FROM @schema@.sessions p
        WHERE p.sid IN (SELECT DISTINCT c.parent FROM @schema@.closed_children c ORDER BY c.parent LIMIT p_limit) FOR NO KEY UPDATE SKIP LOCKED LOOP
        v_n := v_n + 1;
        DELETE FROM @schema@.closed_children WHERE parent = s.sid;
        PERFORM @schema@.set_signals(@schema@.follow_policy(s), 16, 0);
    END LOOP;
    RETURN v_n;
END $$;
