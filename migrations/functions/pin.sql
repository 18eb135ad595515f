-- Pins a source message: no run takes it out of the view. One that is out comes back, with its
-- group, by the run this makes due.
CREATE OR REPLACE FUNCTION @schema@.pin(p_tenant text, p_session text, p_message text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    s     @schema@.sessions;
    v_seq bigint;
BEGIN
    s := @schema@.lock_session(p_tenant, p_session, NULL, false);
    SELECT seq INTO v_seq FROM @schema@.message_log WHERE sid = s.sid AND id = p_message AND kind = 'm';
    IF v_seq IS NULL THEN
        RAISE EXCEPTION 'session % has no source message %', s.id, p_message USING ERRCODE = 'no_data_found';
    END IF;
    PERFORM @schema@.refuse_archived(s, int8multirange(int8range(v_seq, v_seq + 1)));
    UPDATE @schema@.sessions SET pinned = pinned + int8multirange(int8range(v_seq, v_seq + 1)) WHERE sid = s.sid;
    IF NOT s.live @> v_seq THEN
        UPDATE @schema@.sessions SET suspect_seq = last_seq, loop_seq = NULL, hold_seq = 0, due = state <> 'service_managed',
            state = CASE state WHEN 'quarantined' THEN 'active' ELSE state END, quarantine_reason = NULL WHERE sid = s.sid;
        INSERT INTO @schema@.outbox AS o (sid, tenant) VALUES (s.sid, s.tenant) ON CONFLICT (sid) DO UPDATE SET gen = o.gen + 1, last_at = now();
    END IF;
END $$;

CREATE OR REPLACE FUNCTION @schema@.unpin(p_tenant text, p_session text, p_message text) RETURNS void LANGUAGE plpgsql AS $$
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
