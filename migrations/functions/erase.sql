-- Erasure of words, for legal reasons: what was said leaves the log and the archive, what models answered leaves the stored
-- answers, and summaries and replacements that may repeat it leave the log as well. The rows stay, with their seqs and ids,
-- the ids of their calls and the names of their tools, so that views stay valid and the ledger says what it said.

-- What stands in the place of a body: a message of the same role, calls and kind that says nothing.
CREATE OR REPLACE FUNCTION @schema@.erased_body(m @schema@.message_log, p_body text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT json_strip_nulls(json_build_object('role', m.role,
        'content', CASE WHEN @schema@.reasoning_only(m.role_code, m.calls, m.flags) THEN '' ELSE '[erased]' END,
        'reasoning_content', CASE WHEN @schema@.reasoning_only(m.role_code, m.calls, m.flags) THEN '[erased]' END,
        'tool_call_id', m.tool_call_id,
        'tool_calls', CASE WHEN m.calls > 0 THEN (
            SELECT json_agg(json_build_object('id', id, 'type', coalesce(c->>'type', 'function'),
                CASE c->>'type' WHEN 'custom' THEN 'custom' ELSE 'function' END,
                CASE c->>'type' WHEN 'custom' THEN json_build_object('name', c->'custom'->>'name', 'input', '')
                    ELSE json_build_object('name', coalesce(c->'function'->>'name', 'erased'), 'arguments', '{}') END) ORDER BY n)
            FROM unnest(m.call_ids) WITH ORDINALITY i(id, n) LEFT JOIN LATERAL (SELECT p_body::json->'tool_calls'->(n::int - 1) AS c) b ON true) END))::text
$$;

-- Whether what was said in a message was erased.
CREATE OR REPLACE FUNCTION @schema@.is_erased(p_sid bigint, p_seq bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT erased @> p_seq FROM @schema@.sessions WHERE sid = p_sid
$$;

-- Erases messages of a locked session, what was derived from them, and all answers of models that are stored for it. A
-- summary may repeat whatever was there when it was written: what the user wants now is in it verbatim, and what is pinned.
-- So those after the first of the messages go; a replacement goes with what it stands for. One that is in the view is
-- written anew from the log by an operator's run, unless one waits already.
CREATE OR REPLACE FUNCTION @schema@.erase_seqs(s @schema@.sessions, p_seqs int8multirange, p_by text, p_rebuild boolean,
    OUT messages bigint, OUT derived bigint, OUT answers bigint) LANGUAGE plpgsql AS $$
DECLARE
    v_all     int8multirange;
    v_more    int8multirange;
    v_taken   int8multirange := '{}';
    v_from    bigint;
    v_run     bigint;
BEGIN
    p_seqs := p_seqs * int8multirange(int8range(1, s.last_seq + 1)) - s.erased;
    v_all := p_seqs;
    LOOP
        SELECT range_agg(int8range(m.seq, m.seq + 1)) INTO v_more FROM @schema@.message_log m
        WHERE m.sid = s.sid AND m.kind <> 'm' AND NOT (v_all + s.erased) @> m.seq AND (m.summary_of && v_all OR m.kind = 's' AND m.seq > lower(p_seqs));
        EXIT WHEN v_more IS NULL;
        v_all := v_all + v_more;
    END LOOP;
    -- A run that is under way has read the words. It is executed again, and what its model answers is not stored.
    UPDATE @schema@.runs SET status = 'queued', lease_until = NULL, fence = fence + 1, deliver_at = now(), waiting_since = now()
    WHERE sid = s.sid AND status = 'running';
    UPDATE @schema@.summary_calls SET server_error = NULL WHERE sid = s.sid AND server_error IS NOT NULL;   -- a server may repeat words
    UPDATE @schema@.summary_calls SET state = CASE state WHEN 'asked' THEN 'lost' ELSE 'forgotten' END, answer = NULL,
        ended_at = coalesce(ended_at, clock_timestamp())
    WHERE sid = s.sid AND (answer IS NOT NULL OR state = 'asked');
    GET DIAGNOSTICS answers = ROW_COUNT;
    messages := 0;
    derived := 0;
    IF isempty(v_all) THEN RETURN; END IF;

    UPDATE @schema@.sessions SET erased = erased + v_all, archived = archived - v_all WHERE sid = s.sid;   -- the triggers of the log look there
    PERFORM set_config('compactor.fix', 'on', true);
    INSERT INTO @schema@.message_body AS b (sid, seq, body)
    SELECT m.sid, m.seq, @schema@.erased_body(m, o.body)
    FROM @schema@.message_log m LEFT JOIN @schema@.message_body o ON o.sid = m.sid AND o.seq = m.seq
    WHERE m.sid = s.sid AND v_all @> m.seq
    ON CONFLICT (sid, seq) DO UPDATE SET body = EXCLUDED.body;
    DELETE FROM @schema@.archive_segments WHERE sid = s.sid AND seqs <@ v_all;
    UPDATE @schema@.archive_segments SET seqs = seqs - v_all WHERE sid = s.sid AND data IS NULL AND seqs && v_all;
    UPDATE @schema@.message_log m SET name = CASE m.role_code WHEN 't' THEN m.name END, reasoning_tokens = NULL, token_count = p.tokens,
        counter = p.counter, flags = p.flags | m.flags & 136::smallint, body_digest = @schema@.body_digest(b.body)
    FROM @schema@.message_body b CROSS JOIN LATERAL @schema@.parse_messages(json_build_array(b.body::json), NULL) p
    WHERE m.sid = s.sid AND v_all @> m.seq AND b.sid = m.sid AND b.seq = m.seq;
    UPDATE @schema@.message_log m SET cumulative_tokens = x.tokens
    FROM (SELECT l.seq, coalesce(sum(l.token_count) FILTER (WHERE l.kind = 'm') OVER (ORDER BY l.seq), 0) AS tokens
          FROM @schema@.message_log l WHERE l.sid = s.sid) x
    WHERE m.sid = s.sid AND m.seq = x.seq AND m.cumulative_tokens <> x.tokens;
    PERFORM set_config('compactor.fix', '', true);

    -- Signed reasoning behind a message that has changed is valid on no view any more, those of the past included.
    IF s.reasoning_since IS NOT NULL THEN
        SELECT min(r.position) INTO v_from FROM @schema@.view_rows(s.sid, s.live * v_all, '{}') r;
        v_taken := @schema@.stale_reasoning(s.sid, s.live, v_from) - s.reasoning_out;
        s.reasoning_since := s.last_seq;
    END IF;
    INSERT INTO @schema@.runs (sid, trigger, kind, requested_by, status, outcome, started_at, ended_at, in_force, revision, base_run,
        snapshot_seq, snapshot_revision, applied_seq, live_before, live_after, included, appended, messages_before, tokens_before,
        reasoning_before, reasoning_taken)
    VALUES (s.sid, 'operator', 'erase', coalesce(p_by, ''), 'applied', 'erased', now(), clock_timestamp(), true, s.revision + 1, s.head_run,
        s.last_seq, s.revision, s.last_seq, s.live, s.live, '{}', '{}', s.live_messages, s.live_tokens, s.reasoning_out, v_taken)
    RETURNING id INTO v_run;
    s := @schema@.recount(s);
    UPDATE @schema@.sessions SET revision = s.revision, head_run = s.head_run, reasoning_out = s.reasoning_out, reasoning_since = s.reasoning_since,
        total_tokens = s.total_tokens, live_messages = s.live_messages, live_tokens = s.live_tokens, live_estimated_tokens = s.live_estimated_tokens,
        tokens_since_run = coalesce((SELECT sum(x.token_count) FROM (SELECT l.token_count FROM @schema@.message_log l
            WHERE l.sid = s.sid AND l.kind = 'm' ORDER BY l.seq DESC LIMIT s.messages_since_run) x), 0),
        reported_prompt_tokens = NULL, tokens_since_report = 0, decision_fingerprint = NULL, view_changed_at = now()
    WHERE sid = s.sid RETURNING * INTO s;
    UPDATE @schema@.sessions SET due = @schema@.is_due(s) WHERE sid = s.sid AND due <> @schema@.is_due(s);
    UPDATE @schema@.runs SET messages_after = s.live_messages, tokens_after = s.live_tokens WHERE id = v_run;
    PERFORM pg_notify('@schema@', v_run::text);   -- see wait_run

    SELECT count(*) FILTER (WHERE m.kind = 'm'), count(*) FILTER (WHERE m.kind <> 'm') INTO messages, derived
    FROM @schema@.message_log m WHERE m.sid = s.sid AND v_all @> m.seq;
    IF p_rebuild AND EXISTS (SELECT FROM @schema@.view_rows(s.sid, s.live * v_all, s.reasoning_out) r WHERE r.kind = 's')
        AND NOT EXISTS (SELECT FROM @schema@.runs q WHERE q.sid = s.sid AND q.trigger = 'operator' AND q.status = 'queued') THEN
        PERFORM @schema@.request_compaction(s.tenant, s.id, '{"from": "log", "allow_growth": true}', p_by, 'operator');
    END IF;
END $$;

-- The session, and those of its forks that have copies of these messages; and with p_up those that it was forked from.
CREATE OR REPLACE FUNCTION @schema@.copies_of(p_sid bigint, p_seqs int8multirange, p_up boolean) RETURNS TABLE (sid bigint, seqs int8multirange)
LANGUAGE sql STABLE AS $$
    WITH RECURSIVE family AS (
        SELECT p_sid AS sid, p_seqs AS seqs
        UNION
        SELECT c.* FROM family f
        CROSS JOIN LATERAL (SELECT t.sid FROM @schema@.sessions t WHERE t.parent = f.sid
            UNION ALL SELECT t.parent FROM @schema@.sessions t WHERE t.sid = f.sid AND t.parent IS NOT NULL AND p_up) n
        CROSS JOIN LATERAL (SELECT n.sid, (SELECT range_agg(int8range(m.seq, m.seq + 1))
            FROM @schema@.message_log m JOIN @schema@.message_log c ON c.sid = n.sid AND c.seq = m.seq AND c.id = m.id AND c.created_at = m.created_at
            WHERE m.sid = f.sid AND f.seqs @> m.seq AND m.kind = 'm') AS seqs) c
        WHERE c.seqs IS NOT NULL)
    SELECT f.sid, f.seqs FROM family f ORDER BY f.sid
$$;

-- Of the sessions with these messages, those that have words in the archive.
CREATE OR REPLACE FUNCTION @schema@.archived_copies(p_tenant text, p_session text, p_ids text[]) RETURNS SETOF text LANGUAGE sql STABLE AS $$
    SELECT t.id FROM @schema@.sessions s
    CROSS JOIN LATERAL @schema@.copies_of(s.sid, (SELECT range_agg(int8range(m.seq, m.seq + 1)) FROM @schema@.message_log m WHERE m.sid = s.sid AND m.id = ANY(p_ids)), true) c
    JOIN @schema@.sessions t ON t.sid = c.sid
    WHERE s.tenant = @schema@.tenant_of(p_tenant) AND s.id = p_session AND EXISTS (SELECT FROM @schema@.archive_segments a WHERE a.sid = t.sid AND a.data IS NOT NULL)
$$;

-- Erases what else a session has of words.
CREATE OR REPLACE FUNCTION @schema@.erase_rest(p_sid bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    s @schema@.sessions;
BEGIN
    UPDATE @schema@.sessions SET labels = '{}', metadata = '{}' WHERE sid = p_sid RETURNING * INTO s;
    UPDATE @schema@.runs SET options = CASE WHEN status IN ('queued', 'running') THEN options - 'focus' END WHERE sid = p_sid AND options IS NOT NULL;
    PERFORM @schema@.use_policy(s);
    PERFORM @schema@.refresh_children(s.sid);
END $$;

-- Erases messages of a session wherever they were copied to or from by forks, or with null for p_ids all of it, with its
-- labels, its metadata and what was asked of its runs, and the copies in its forks. Returns the row that records it.
--
-- A segment of the archive keeps what it was made of, so all of a session have to be back before messages of it are erased
-- (CA001). p_dry_run does without, for a caller that rolls back.
CREATE OR REPLACE FUNCTION @schema@.erase(p_tenant text, p_session text, p_ids text[], p_note text, p_by text, p_dry_run boolean) RETURNS @schema@.erasures
LANGUAGE plpgsql SET jit = off AS $$
DECLARE
    e      @schema@.erasures;
    s      @schema@.sessions;
    v_seqs int8multirange;
    v_bad  text;
    v_copy record;
    v      record;
    v_n    int;
    v_last int;
BEGIN
    IF coalesce(p_note, '') = '' THEN
        RAISE EXCEPTION 'erase: a note that says why is required' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    s := @schema@.lock_session(p_tenant, p_session, NULL, false);
    SELECT string_agg(quote_literal(i), ', ') INTO v_bad FROM unnest(p_ids) i
    WHERE NOT EXISTS (SELECT FROM @schema@.message_log m WHERE m.sid = s.sid AND m.id = i AND m.kind = 'm');
    IF v_bad IS NOT NULL OR cardinality(p_ids) = 0 THEN
        RAISE EXCEPTION 'session % has no source message %', s.id, left(coalesce(v_bad, ''), 1000) USING ERRCODE = 'no_data_found';
    END IF;
    v_seqs := CASE WHEN p_ids IS NULL THEN int8multirange(int8range(1, s.last_seq + 1)) ELSE
        (SELECT range_agg(int8range(m.seq, m.seq + 1)) FROM @schema@.message_log m WHERE m.sid = s.sid AND m.id = ANY(p_ids)) END;
    INSERT INTO @schema@.erasures (tenant, session, ids, note, requested_by, confirmed_by, confirmed_at)
    VALUES (s.tenant, s.id, p_ids, p_note, coalesce(p_by, ''), coalesce(p_by, ''), now()) RETURNING * INTO e;
    LOOP   -- until no fork of one that was not locked yet has made another copy; of two erasures of a family that meet, one is repeated
        PERFORM FROM @schema@.sessions t WHERE t.sid IN (SELECT c.sid FROM @schema@.copies_of(s.sid, v_seqs, p_ids IS NOT NULL) c) ORDER BY t.sid FOR NO KEY UPDATE;
        GET DIAGNOSTICS v_n = ROW_COUNT;
        EXIT WHEN v_n = v_last;
        v_last := v_n;
    END LOOP;
    FOR v_copy IN SELECT * FROM @schema@.copies_of(s.sid, v_seqs, p_ids IS NOT NULL) LOOP
        SELECT * INTO s FROM @schema@.sessions WHERE sid = v_copy.sid FOR NO KEY UPDATE;
        s := @schema@.follow_policy(s);
        IF p_ids IS NOT NULL THEN
            IF NOT p_dry_run AND EXISTS (SELECT FROM @schema@.archive_segments WHERE sid = s.sid AND data IS NOT NULL) THEN
                RAISE EXCEPTION 'session %: words are in the archive', s.id USING ERRCODE = 'CA001', DETAIL = '{[1,)}',
                    HINT = format('Execute: compactor restore %s --tenant %s', quote_literal(s.id), quote_literal(s.tenant));
            END IF;
            PERFORM @schema@.refuse_in_open_loop(s, (SELECT min(r.position) FROM @schema@.view_rows(s.sid, s.live * v_copy.seqs, '{}') r));
        END IF;
        SELECT * INTO v FROM @schema@.erase_seqs(s, v_copy.seqs, p_by, p_ids IS NOT NULL);
        e.sessions := e.sessions + 1;
        e.messages := e.messages + v.messages;
        e.derived := e.derived + v.derived;
        e.answers := e.answers + v.answers;
    END LOOP;
    IF p_ids IS NULL THEN
        PERFORM @schema@.erase_rest((SELECT sid FROM @schema@.sessions WHERE tenant = e.tenant AND id = e.session));
    END IF;
    UPDATE @schema@.erasures SET sessions = e.sessions, messages = e.messages, derived = e.derived, answers = e.answers, ended_at = clock_timestamp()
    WHERE id = e.id RETURNING * INTO e;
    RETURN e;
END $$;

-- Asks for the erasure of all sessions of a tenant; confirm_erasure begins it.
CREATE OR REPLACE FUNCTION @schema@.request_erasure(p_tenant text, p_note text, p_by text) RETURNS @schema@.erasures LANGUAGE plpgsql AS $$
DECLARE
    v_tenant text := @schema@.tenant_of(p_tenant);
    e        @schema@.erasures;
BEGIN
    IF coalesce(p_note, '') = '' THEN
        RAISE EXCEPTION 'erase: a note that says why is required' USING ERRCODE = 'invalid_parameter_value';
    ELSIF NOT EXISTS (SELECT FROM @schema@.sessions WHERE tenant = v_tenant) THEN
        RAISE EXCEPTION 'tenant % has no sessions', v_tenant USING ERRCODE = 'no_data_found';
    END IF;
    INSERT INTO @schema@.erasures (tenant, note, requested_by, sessions, messages)
    SELECT v_tenant, p_note, coalesce(p_by, ''), count(*), coalesce(sum(s.messages), 0) FROM @schema@.sessions s WHERE s.tenant = v_tenant RETURNING * INTO e;
    RETURN e;
END $$;

-- Confirms the erasure of a tenant, within a week of the request. One that is confirmed already stays so.
CREATE OR REPLACE FUNCTION @schema@.confirm_erasure(p_id bigint, p_tenant text, p_by text) RETURNS @schema@.erasures LANGUAGE plpgsql AS $$
DECLARE
    e @schema@.erasures;
BEGIN
    SELECT * INTO e FROM @schema@.erasures WHERE id = p_id AND tenant = @schema@.tenant_of(p_tenant) AND session IS NULL FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no erasure % of tenant %', p_id, p_tenant USING ERRCODE = 'no_data_found';
    ELSIF e.ended_at IS NOT NULL THEN
        RAISE EXCEPTION 'erasure % has ended', p_id USING ERRCODE = 'object_not_in_prerequisite_state';
    ELSIF e.confirmed_at IS NULL AND e.requested_at < now() - interval '7 days' THEN
        RAISE EXCEPTION 'erasure % was requested more than 7 days ago: request it again', p_id USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    IF e.confirmed_at IS NULL THEN
        UPDATE @schema@.erasures SET confirmed_at = now(), confirmed_by = coalesce(p_by, ''), sessions = 0, messages = 0
        WHERE id = p_id RETURNING * INTO e;
    END IF;
    RETURN e;
END $$;

-- Erases the next session of a tenant whose erasure is confirmed; ended_at tells that there is none left.
CREATE OR REPLACE FUNCTION @schema@.erase_next(p_id bigint, p_tenant text) RETURNS @schema@.erasures LANGUAGE plpgsql SET jit = off AS $$
DECLARE
    e @schema@.erasures;
    s @schema@.sessions;
    v record;
BEGIN
    SELECT * INTO e FROM @schema@.erasures WHERE id = p_id AND tenant = @schema@.tenant_of(p_tenant) AND session IS NULL
        AND confirmed_at IS NOT NULL AND ended_at IS NULL FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'erasure % of tenant % is not confirmed, or has ended', p_id, p_tenant USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    SELECT * INTO s FROM @schema@.sessions WHERE tenant = e.tenant AND sid > e.last_sid ORDER BY sid LIMIT 1 FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        UPDATE @schema@.erasures SET ended_at = clock_timestamp() WHERE id = p_id RETURNING * INTO e;
        RETURN e;
    END IF;
    SELECT * INTO v FROM @schema@.erase_seqs(@schema@.follow_policy(s), int8multirange(int8range(1, s.last_seq + 1)), e.confirmed_by, false);
    PERFORM @schema@.erase_rest(s.sid);
    UPDATE @schema@.erasures SET last_sid = s.sid, sessions = sessions + 1, messages = messages + v.messages,
        derived = derived + v.derived, answers = answers + v.answers WHERE id = p_id RETURNING * INTO e;
    RETURN e;
END $$;

-- The planner keeps samples of columns in its statistics. Those of bodies are of no use to it. Only where it is missing, as
-- writers wait for it.
DO $$
DECLARE
    t regclass;
BEGIN
    FOR t IN SELECT a.attrelid FROM pg_attribute a WHERE a.attname = 'body' AND a.attstattarget <> 0 AND a.attrelid IN (
        SELECT '@schema@.message_body'::regclass UNION ALL SELECT inhrelid FROM pg_inherits WHERE inhparent = '@schema@.message_body'::regclass)
    LOOP
        EXECUTE format('ALTER TABLE %s ALTER COLUMN body SET STATISTICS 0', t);
    END LOOP;
END $$;
