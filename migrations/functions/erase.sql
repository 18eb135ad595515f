-- Erasure of words, for legal reasons: what was said leaves the log and the archive, what models answered leaves the stored
-- answers, and summaries and replacements that may repeat it leave the log as well. The rows stay, with their seqs and ids,
-- the ids of their calls and the names of their tools, so that views stay valid and the ledger says what it said. What takes
-- segments of the archive apart and compares texts is store/operator_erase.go, in the transaction of the erasure.

-- What stands in the place of a body: a message of the same role, calls and kind that says nothing. A call from before tools
-- has no id, and its result none either.
CREATE OR REPLACE FUNCTION @schema@.erased_body(m @schema@.message_log, p_body text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT json_strip_nulls(json_build_object('role', CASE WHEN m.role_code = 't' AND m.tool_call_id IS NULL THEN 'function' ELSE m.role END,
        'name', CASE WHEN m.role_code = 't' AND m.tool_call_id IS NULL THEN m.name END,
        'content', CASE WHEN @schema@.reasoning_only(m.role_code, m.calls, m.flags) THEN '' ELSE '[erased]' END,
        'reasoning_content', CASE WHEN @schema@.reasoning_only(m.role_code, m.calls, m.flags) THEN '[erased]' END,
        'tool_call_id', m.tool_call_id,
        'function_call', CASE WHEN m.call_ids = '{""}' THEN json_build_object('name', coalesce(p_body::json->'function_call'->>'name', 'erased'), 'arguments', '{}') END,
        'tool_calls', CASE WHEN m.calls > 0 AND m.call_ids <> '{""}' THEN (
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
-- written anew from the log by an operator's run, unless one that plans on the log waits already.
CREATE OR REPLACE FUNCTION @schema@.erase_seqs(s @schema@.sessions, p_seqs int8multirange, p_by text, p_rebuild boolean,
    OUT messages bigint, OUT derived bigint, OUT answers bigint) LANGUAGE plpgsql AS $$
DECLARE
    v_all     int8multirange;
    v_kept    int8multirange;
    v_more    int8multirange;
    v_taken   int8multirange := '{}';
    v_from    bigint;
    v_run     bigint;
BEGIN
    p_seqs := p_seqs * int8multirange(int8range(1, s.last_seq + 1));
    -- A body that says so already stays, and so does an archived one. That erased names a message is not enough.
    v_kept := s.erased * s.archived;
    p_seqs := p_seqs - coalesce((SELECT range_agg(int8range(m.seq, m.seq + 1)) FROM unnest(p_seqs * s.erased - s.archived) x
        CROSS JOIN LATERAL (SELECT * FROM @schema@.message_log l WHERE l.sid = s.sid AND l.seq >= lower(x) AND l.seq < upper(x) OFFSET 0) m
        JOIN @schema@.message_body b ON b.sid = s.sid AND b.seq = m.seq AND b.body = @schema@.erased_body(m, b.body)), '{}') - v_kept;
    v_all := p_seqs;
    LOOP
        SELECT range_agg(int8range(m.seq, m.seq + 1)) INTO v_more FROM @schema@.message_log m
        WHERE m.sid = s.sid AND m.kind <> 'm' AND NOT (v_all + s.erased) @> m.seq AND (m.summary_of && v_all OR m.kind = 's' AND m.seq > lower(p_seqs));
        EXIT WHEN v_more IS NULL;
        v_all := v_all + v_more;
    END LOOP;
    -- A run that is under way has read the words. It is executed again, and what its model answers is not stored.
    PERFORM @schema@.take_back(s.sid);
    UPDATE @schema@.summary_calls SET server_error = NULL WHERE sid = s.sid AND server_error IS NOT NULL;   -- a server may repeat words
    UPDATE @schema@.summary_calls SET state = CASE state WHEN 'asked' THEN 'lost' ELSE 'forgotten' END, answer = NULL,
        ended_at = coalesce(ended_at, clock_timestamp())
    WHERE sid = s.sid AND (answer IS NOT NULL OR state = 'asked');
    GET DIAGNOSTICS answers = ROW_COUNT;
    SELECT count(*) FILTER (WHERE m.kind = 'm'), count(*) FILTER (WHERE m.kind <> 'm') INTO messages, derived
    FROM @schema@.message_log m WHERE m.sid = s.sid AND v_all @> m.seq;
    v_all := v_all + v_kept;
    IF isempty(v_all) AND NOT EXISTS (SELECT FROM @schema@.archive_segments a WHERE a.sid = s.sid AND a.seqs && s.erased) THEN RETURN; END IF;

    UPDATE @schema@.sessions SET erased = erased + v_all, archived = archived - v_all WHERE sid = s.sid RETURNING erased INTO s.erased;   -- the triggers of the log look there
    PERFORM set_config('compactor.fix', 'on', true);
    INSERT INTO @schema@.message_body AS b (sid, seq, body)
    SELECT m.sid, m.seq, @schema@.erased_body(m, o.body)
    FROM @schema@.message_log m LEFT JOIN @schema@.message_body o ON o.sid = m.sid AND o.seq = m.seq
    WHERE m.sid = s.sid AND v_all @> m.seq
    ON CONFLICT (sid, seq) DO UPDATE SET body = EXCLUDED.body;
    -- A segment that has other words as well is replaced (replace_segment).
    DELETE FROM @schema@.archive_segments WHERE sid = s.sid AND seqs <@ s.erased;
    UPDATE @schema@.archive_segments SET seqs = seqs - s.erased WHERE sid = s.sid AND data IS NULL AND seqs && s.erased;
    UPDATE @schema@.message_log m SET name = CASE m.role_code WHEN 't' THEN m.name END, source_id = NULL, reasoning_tokens = NULL, token_count = p.tokens,
        counter = p.counter, flags = p.flags | (m.flags & 392::smallint), body_digest = @schema@.body_digest(b.body)
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
    s := @schema@.repair_view(s);

    -- Beside a request of an operator that no worker has taken, which is one a session, as a run of the trigger bulk.
    IF p_rebuild AND EXISTS (SELECT FROM @schema@.view_rows(s.sid, s.live * v_all, s.reasoning_out) r WHERE r.kind = 's')
        AND NOT EXISTS (SELECT FROM @schema@.runs q WHERE q.sid = s.sid AND q.trigger IN ('operator', 'bulk') AND q.status = 'queued'
            AND q.options->>'from' IS DISTINCT FROM 'view' AND q.options->'dry_run' IS DISTINCT FROM 'true') THEN
        INSERT INTO @schema@.runs (sid, trigger, requested_by, options)
        SELECT s.sid, CASE WHEN EXISTS (SELECT FROM @schema@.runs q WHERE q.sid = s.sid AND q.trigger = 'operator' AND q.status = 'queued' AND q.attempts = 0)
            THEN 'bulk' ELSE 'operator' END, coalesce(p_by, ''), '{"from": "log", "allow_growth": true}';
    END IF;
END $$;

-- The session with these messages, and those of its forks that have copies of them; and with p_up those that it was forked
-- from. p_more has messages of others of them, as {sid: seqs}.
CREATE OR REPLACE FUNCTION @schema@.copies_of(p_sid bigint, p_seqs int8multirange, p_up boolean, p_more jsonb) RETURNS TABLE (sid bigint, seqs int8multirange)
LANGUAGE sql STABLE AS $$
    WITH RECURSIVE family AS (
        SELECT x.* FROM (SELECT p_sid AS sid, p_seqs AS seqs UNION ALL SELECT k::bigint, v::int8multirange FROM jsonb_each_text(p_more) e(k, v)) x
        UNION
        SELECT c.* FROM family f
        CROSS JOIN LATERAL (SELECT t.sid, t.seqs * f.seqs AS seqs FROM @schema@.forked_from t WHERE t.parent = f.sid
            UNION ALL SELECT t.parent, t.seqs * f.seqs FROM @schema@.forked_from t WHERE t.sid = f.sid AND p_up) c
        WHERE NOT isempty(c.seqs))
    SELECT f.sid, range_agg(x) FROM family f, unnest(f.seqs) x WHERE f.sid IN (SELECT s.sid FROM @schema@.sessions s) GROUP BY 1 ORDER BY 1
$$;

-- Locks the sessions that have messages of a session, with null for p_ids all, and returns each with these, and with what was
-- said in it after the first of them that is neither one of these nor a copy of what another of them says.
CREATE OR REPLACE FUNCTION @schema@.lock_copies(p_tenant text, p_session text, p_ids text[])
RETURNS TABLE (sid bigint, session text, seqs int8multirange, later int8multirange) LANGUAGE plpgsql SET jit = off AS $$
DECLARE
    s      @schema@.sessions;
    v_seqs int8multirange;
    v_bad  text;
    v_n    int;
    v_last int;
BEGIN
    LOOP   -- until no fork of one that was not locked yet has made another copy; all in one order, so that erasures of a family wait for each other
        SELECT * INTO s FROM @schema@.sessions t WHERE t.tenant = @schema@.tenant_of(p_tenant) AND t.id = p_session;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'session % of tenant % does not exist', p_session, @schema@.tenant_of(p_tenant) USING ERRCODE = 'no_data_found';
        END IF;
        SELECT string_agg(quote_literal(i), ', ') INTO v_bad FROM unnest(p_ids) i
        WHERE NOT EXISTS (SELECT FROM @schema@.message_log m WHERE m.sid = s.sid AND m.id = i AND m.kind = 'm');
        IF v_bad IS NOT NULL OR cardinality(p_ids) = 0 THEN
            RAISE EXCEPTION 'session % has no source message %', s.id, left(coalesce(v_bad, ''), 1000) USING ERRCODE = 'no_data_found';
        END IF;
        v_seqs := CASE WHEN p_ids IS NULL THEN int8multirange(int8range(1, s.last_seq + 1)) ELSE
            (SELECT range_agg(int8range(m.seq, m.seq + 1)) FROM @schema@.message_log m WHERE m.sid = s.sid AND m.id = ANY(p_ids)) END;
        PERFORM FROM @schema@.sessions t WHERE t.sid IN (SELECT c.sid FROM @schema@.copies_of(s.sid, v_seqs, p_ids IS NOT NULL, '{}') c) ORDER BY t.sid FOR NO KEY UPDATE;
        GET DIAGNOSTICS v_n = ROW_COUNT;
        EXIT WHEN v_n = v_last;
        v_last := v_n;
    END LOOP;
    RETURN QUERY WITH c AS MATERIALIZED (SELECT * FROM @schema@.copies_of(s.sid, v_seqs, p_ids IS NOT NULL, '{}'))
        SELECT c.sid, t.id, c.seqs, int8multirange(int8range(lower(c.seqs), t.last_seq + 1)) - c.seqs - t.erased
            - coalesce((SELECT range_agg(x) FROM @schema@.forked_from f, unnest(f.seqs) x WHERE f.sid = c.sid AND f.parent IN (SELECT o.sid FROM c o)), '{}')
        FROM c JOIN @schema@.sessions t ON t.sid = c.sid ORDER BY c.sid;
END $$;

-- Erases what else a session has of words; of a fork, what it has of its parent s.
CREATE OR REPLACE FUNCTION @schema@.erase_rest(s @schema@.sessions, p_sid bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    t @schema@.sessions;
BEGIN
    UPDATE @schema@.sessions SET labels = (SELECT coalesce(jsonb_object_agg(k, v), '{}') FROM jsonb_each(labels) e(k, v) WHERE sid <> s.sid AND v IS DISTINCT FROM s.labels->k),
        metadata = (SELECT coalesce(jsonb_object_agg(k, v), '{}') FROM jsonb_each(metadata) e(k, v) WHERE sid <> s.sid AND v IS DISTINCT FROM s.metadata->k)
    WHERE sid = p_sid RETURNING * INTO t;
    UPDATE @schema@.runs SET options = CASE WHEN status IN ('queued', 'running') THEN options - '{focus,summary}'::text[] END
    WHERE sid = p_sid AND options IS NOT NULL AND (sid = s.sid OR origin IS NOT NULL);
    UPDATE @schema@.cache_usage SET miss_reason = NULL WHERE sid = p_sid AND sid = s.sid;
    PERFORM @schema@.use_policy(t);
    PERFORM @schema@.refresh_children(t.sid);
END $$;

-- Erases messages of a session wherever they were copied to or from by forks, or with null for p_ids all of it, with its
-- labels, its metadata and what was asked of its runs, and the copies in its forks. p_more has other messages of these
-- sessions that repeat the words, and p_repeats is a list of these and of those that may, for the record, which is returned.
--
-- Segments of the archive that have other words as well are left to the caller, and the erasure has not ended then:
-- segments_to_erase, replace_segment, end_erasure.
CREATE OR REPLACE FUNCTION @schema@.erase(p_tenant text, p_session text, p_ids text[], p_note text, p_by text, p_more jsonb DEFAULT '{}', p_repeats jsonb DEFAULT '[]')
RETURNS @schema@.erasures LANGUAGE plpgsql SET jit = off AS $$
DECLARE
    e      @schema@.erasures;
    s      @schema@.sessions;
    t      @schema@.sessions;
    v_seqs int8multirange;
    v_copy record;
    v      record;
BEGIN
    IF coalesce(p_note, '') = '' THEN
        RAISE EXCEPTION 'erase: a note that says why is required' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT * INTO s FROM @schema@.sessions WHERE tenant = @schema@.tenant_of(p_tenant) AND id = p_session;
    SELECT c.seqs INTO v_seqs FROM @schema@.lock_copies(p_tenant, p_session, p_ids) c WHERE c.sid = s.sid;
    IF EXISTS (SELECT FROM jsonb_each_text(p_more) k WHERE NOT k.key::bigint IN (SELECT c.sid FROM @schema@.copies_of(s.sid, v_seqs, p_ids IS NOT NULL, '{}') c)) THEN
        RAISE EXCEPTION 'erase: what repeats the words is to be in a session that has them' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    INSERT INTO @schema@.erasures (tenant, session, ids, note, requested_by, confirmed_by, confirmed_at, repeats)
    VALUES (s.tenant, s.id, p_ids, p_note, coalesce(p_by, ''), coalesce(p_by, ''), now(), p_repeats) RETURNING * INTO e;
    -- What repeats the words may have been copied to others.
    PERFORM FROM @schema@.sessions x WHERE x.sid IN (SELECT c.sid FROM @schema@.copies_of(s.sid, v_seqs, p_ids IS NOT NULL, p_more) c) ORDER BY x.sid FOR NO KEY UPDATE;
    SELECT * INTO s FROM @schema@.sessions WHERE sid = s.sid;
    FOR v_copy IN SELECT * FROM @schema@.copies_of(s.sid, v_seqs, p_ids IS NOT NULL, p_more) LOOP
        SELECT * INTO t FROM @schema@.sessions WHERE sid = v_copy.sid FOR NO KEY UPDATE;
        t := @schema@.follow_policy(t);
        IF p_ids IS NOT NULL THEN
            PERFORM @schema@.refuse_in_open_loop(t, (SELECT min(r.position) FROM @schema@.view_rows(t.sid, t.live * v_copy.seqs, '{}') r));
        END IF;
        SELECT * INTO v FROM @schema@.erase_seqs(t, v_copy.seqs, p_by, p_ids IS NOT NULL);
        IF p_ids IS NULL THEN
            PERFORM @schema@.erase_rest(s, t.sid);
        END IF;
        e.sids := e.sids || t.sid;
        e.sessions := e.sessions + 1;
        e.messages := e.messages + v.messages;
        e.derived := e.derived + v.derived;
        e.answers := e.answers + v.answers;
    END LOOP;
    UPDATE @schema@.erasures SET sessions = e.sessions, messages = e.messages, derived = e.derived, answers = e.answers, sids = e.sids WHERE id = e.id;
    IF NOT EXISTS (SELECT FROM @schema@.segments_to_erase(e.id)) THEN
        PERFORM @schema@.end_erasure(e.id);
    END IF;
    SELECT * INTO e FROM @schema@.erasures WHERE id = e.id;
    RETURN e;
END $$;

-- The segments with words that an erasure was about and others, and whose words of them are to stay.
CREATE OR REPLACE FUNCTION @schema@.segments_to_erase(p_erasure bigint) RETURNS TABLE (id bigint, sid bigint, keep int8multirange) LANGUAGE plpgsql STABLE AS $$
DECLARE
    e @schema@.erasures;
BEGIN
    SELECT * INTO e FROM @schema@.erasures x WHERE x.id = p_erasure AND x.tenant = @schema@.tenant_of(x.tenant);
    RETURN QUERY SELECT a.id, a.sid, a.seqs - s.erased FROM @schema@.sessions s JOIN @schema@.archive_segments a ON a.sid = s.sid
        WHERE s.sid = ANY(e.sids) AND a.data IS NOT NULL AND a.held && s.erased ORDER BY a.id;
END $$;

-- Records the end of an erasure, if the archive has nothing left of it.
CREATE OR REPLACE FUNCTION @schema@.end_erasure(p_erasure bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_left bigint := (SELECT min(id) FROM @schema@.segments_to_erase(p_erasure));
BEGIN
    IF v_left IS NOT NULL THEN
        RAISE EXCEPTION 'erasure % has not ended: segment % of the archive has words of it', p_erasure, v_left USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    UPDATE @schema@.erasures SET ended_at = clock_timestamp() WHERE id = p_erasure AND tenant = @schema@.tenant_of(tenant) AND session IS NOT NULL AND ended_at IS NULL;
END $$;

-- Erases the answers to calls for messages of a tenant that are in no session. Of a call that is under way, none is stored.
CREATE OR REPLACE FUNCTION @schema@.erase_stateless(p_tenant text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_n bigint;
BEGIN
    UPDATE @schema@.summary_calls SET state = CASE state WHEN 'asked' THEN 'lost' ELSE 'forgotten' END, answer = NULL, server_error = NULL,
        ended_at = coalesce(ended_at, clock_timestamp())
    WHERE tenant = p_tenant AND (answer IS NOT NULL OR state = 'asked');
    GET DIAGNOSTICS v_n = ROW_COUNT;
    RETURN v_n;
END $$;

-- Asks for the erasure of all sessions of a tenant, and of the answers that are in none; confirm_erasure begins it.
CREATE OR REPLACE FUNCTION @schema@.request_erasure(p_tenant text, p_note text, p_by text) RETURNS @schema@.erasures LANGUAGE plpgsql AS $$
DECLARE
    v_tenant text := @schema@.tenant_of(p_tenant);
    e        @schema@.erasures;
BEGIN
    IF coalesce(p_note, '') = '' THEN
        RAISE EXCEPTION 'erase: a note that says why is required' USING ERRCODE = 'invalid_parameter_value';
    ELSIF NOT EXISTS (SELECT FROM @schema@.sessions WHERE tenant = v_tenant)
        AND NOT EXISTS (SELECT FROM @schema@.summary_calls WHERE tenant = v_tenant AND (answer IS NOT NULL OR state = 'asked')) THEN
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
        UPDATE @schema@.erasures SET confirmed_at = now(), confirmed_by = coalesce(p_by, ''), sessions = 0, messages = 0,
            answers = @schema@.erase_stateless(e.tenant)
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
        UPDATE @schema@.erasures SET ended_at = clock_timestamp(), answers = answers + @schema@.erase_stateless(e.tenant) WHERE id = p_id RETURNING * INTO e;
        RETURN e;
    END IF;
    SELECT * INTO v FROM @schema@.erase_seqs(@schema@.follow_policy(s), int8multirange(int8range(1, s.last_seq + 1)), e.confirmed_by, false);
    PERFORM @schema@.erase_rest(s, s.sid);
    IF EXISTS (SELECT FROM @schema@.archive_segments a WHERE a.sid = s.sid AND a.data IS NOT NULL AND a.held && int8multirange(int8range(1, s.last_seq + 1))) THEN
        RAISE EXCEPTION 'session %: the archive has words of it still', s.id USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
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
