-- Pins source messages: no run takes them out of the view. Those that are out come back, with their
-- groups, by the run this makes due. Many in one call cost one update of the session; a call for each of them, in one
-- transaction, costs with each the updates before it.
CREATE OR REPLACE FUNCTION @schema@.pin(p_tenant text, p_session text, p_messages text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    s      @schema@.sessions := @schema@.lock_session(p_tenant, p_session, NULL, false);
    v_seqs int8multirange := @schema@.messages_named(s, p_messages);
BEGIN
    PERFORM @schema@.refuse_archived(s, v_seqs - s.pinned);
    IF NOT v_seqs <@ s.pinned THEN
        UPDATE @schema@.sessions SET pinned = pinned + v_seqs WHERE sid = s.sid;
        PERFORM @schema@.note_change(CASE WHEN v_seqs <@ s.live THEN 'message.pin' ELSE 'message.restore' END, s, @schema@.some_names(p_messages));
    END IF;
    IF NOT v_seqs <@ s.live THEN
        UPDATE @schema@.sessions SET suspect_seq = last_seq, loop_seq = NULL, hold_seq = 0, due = state <> 'service_managed',
            state = CASE state WHEN 'quarantined' THEN 'active' ELSE state END, quarantine_reason = NULL WHERE sid = s.sid;
        INSERT INTO @schema@.outbox AS o (sid, tenant) VALUES (s.sid, s.tenant) ON CONFLICT (sid) DO UPDATE SET gen = o.gen + 1, last_at = now();
    END IF;
END $$;

CREATE OR REPLACE FUNCTION @schema@.unpin(p_tenant text, p_session text, p_messages text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    s      @schema@.sessions := @schema@.lock_session(p_tenant, p_session, NULL, false);
    v_seqs int8multirange := @schema@.messages_named(s, p_messages);
BEGIN
    IF NOT v_seqs <@ s.pinned THEN
        RAISE EXCEPTION 'session % has no pinned message %', s.id, (SELECT m.id FROM @schema@.message_log m
            WHERE m.sid = s.sid AND m.seq = lower(v_seqs - s.pinned)) USING ERRCODE = 'no_data_found';
    END IF;
    UPDATE @schema@.sessions SET pinned = pinned - v_seqs WHERE sid = s.sid;
    PERFORM @schema@.note_change('message.unpin', s, @schema@.some_names(p_messages));
END $$;

-- The first of some names, and how many more there are.
CREATE OR REPLACE FUNCTION @schema@.some_names(p_names text[]) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT array_to_string(p_names[:5], ', ') || CASE WHEN cardinality(p_names) > 5 THEN format(', and %s more', cardinality(p_names) - 5) ELSE '' END
$$;

-- The same for one message.
CREATE OR REPLACE FUNCTION @schema@.pin(p_tenant text, p_session text, p_message text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN PERFORM @schema@.pin(p_tenant, p_session, ARRAY[p_message]); END $$;

CREATE OR REPLACE FUNCTION @schema@.unpin(p_tenant text, p_session text, p_message text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN PERFORM @schema@.unpin(p_tenant, p_session, ARRAY[p_message]); END $$;

-- The seqs of source messages of a locked session, by their ids.
CREATE OR REPLACE FUNCTION @schema@.messages_named(s @schema@.sessions, p_messages text[]) RETURNS int8multirange LANGUAGE plpgsql STABLE AS $$
DECLARE
    v record;
BEGIN
    SELECT range_agg(int8range(m.seq, m.seq + 1)) AS seqs, min(coalesce(n.id, '')) FILTER (WHERE m.seq IS NULL) AS missing INTO v
    FROM unnest(p_messages) n(id) LEFT JOIN @schema@.message_log m ON m.sid = s.sid AND m.id = n.id AND m.kind = 'm';
    IF v.missing IS NOT NULL OR v.seqs IS NULL THEN
        RAISE EXCEPTION 'session % has no source message %', s.id, coalesce(v.missing, '(none is named)') USING ERRCODE = 'no_data_found';
    END IF;
    RETURN v.seqs;
END $$;
