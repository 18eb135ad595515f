-- Pairing (which tool result answers a call, and which calls are one batch) follows chat.Pairer, here for one message; for a
-- list of them see append_many.
CREATE OR REPLACE FUNCTION @schema@.append_one(s @schema@.sessions, p @schema@.parsed_message, p_position bigint)
RETURNS @schema@.appended LANGUAGE plpgsql AS $$
DECLARE
    v        @schema@.appended;
    v_known  record;
    v_flag   int := 0;
    i        int;
BEGIN
    IF p.id IS NOT NULL THEN
        SELECT l.seq, b.body, l.body_digest INTO v_known FROM @schema@.message_log l LEFT JOIN @schema@.message_body b ON b.sid = l.sid AND b.seq = l.seq
        WHERE l.sid = s.sid AND l.id = p.id;
        IF FOUND THEN
            v.seqs := ARRAY[v_known.seq];
            v.n := 0;
            v.conflict := CASE WHEN NOT coalesce(@schema@.same_message(v_known.body, p.body), nullif(v_known.body_digest = @schema@.body_digest(p.body), false),
                @schema@.archived_as(s.sid, v_known.seq, p.body)) AND NOT s.erased @> v_known.seq AND NOT @schema@.is_merged(s, v_known.seq, p.body) THEN p.id END;
            RETURN v;
        END IF;
    END IF;
    v := ROW(ARRAY[s.last_seq + 1], NULL, 1, s.last_seq + 1, p.tokens, CASE WHEN p.flags & 16 > 0 THEN p.tokens ELSE 0 END,
        (p.role = 'user')::int, coalesce(p.created, now()), s.open_pending, s.open_calls, s.open_answered, false)::@schema@.appended;
    IF p.role = 'tool' THEN
        v.answered := true;
        i := array_position(s.open_calls, coalesce(p.tool_call_id, ''));
        IF i IS NULL THEN
            v.fault := true;
        ELSE
            v_flag := 8;
            v.open_calls := s.open_calls[:i - 1] || s.open_calls[i + 1:];
        END IF;
    ELSIF p.role = 'assistant' AND p.call_ids IS NOT NULL AND cardinality(s.open_calls) > 0 AND NOT s.open_answered AND NOT p.call_ids && s.open_calls
        AND '' <> ALL (s.open_calls || p.call_ids) THEN
        v_flag := 256;
        v.pending := true;
        v.open_calls := s.open_calls || p.call_ids;
    ELSIF NOT p.reasoning_only OR s.open_answered THEN
        v.fault := v.fault OR cardinality(s.open_calls) > 0;
        v.open_calls := CASE WHEN p.role = 'assistant' THEN p.call_ids END;
        v.answered := false;
    END IF;
    INSERT INTO @schema@.message_log (sid, seq, position, cumulative_tokens, token_count, calls, flags, role_code, kind, id, role,
        name, call_ids, tool_call_id, source_id, counter, created_at, body_digest, reasoning_tokens)
    VALUES (s.sid, v.last_seq, coalesce(p_position, v.last_seq), s.total_tokens + p.tokens, p.tokens,
        coalesce(cardinality(p.call_ids), 0), p.flags + v_flag + @schema@.undated(p.created), @schema@.role_code(p.role), 'm',
        coalesce(p.id, 'm' || v.last_seq || '-' || to_hex((random() * 2147483647)::int)), p.role,
        p.name, p.call_ids, p.tool_call_id, p.source_id, p.counter, v.last_at, @schema@.body_digest(p.body),
        CASE WHEN @schema@.signed_reasoning(p.flags) THEN @schema@.reasoning_tokens(p.body, p.tokens) END);
    INSERT INTO @schema@.message_body VALUES (s.sid, v.last_seq, p.body);
    RETURN v;
END $$;

-- The same for a list, in one pass and two statements. Without nested loops, as a generic plan expects few messages. What has a place
-- in the view has its flags from there: the end of the log waits for results as before.
DROP FUNCTION IF EXISTS @schema@.append_many(@schema@.sessions, @schema@.parsed_message[], bigint[]);   -- of earlier versions
CREATE OR REPLACE FUNCTION @schema@.append_many(s @schema@.sessions, ps @schema@.parsed_message[], p_positions bigint[], p_flags smallint[])
RETURNS @schema@.appended LANGUAGE plpgsql SET enable_nestloop = off SET work_mem = '32MB' AS $$
DECLARE
    v           @schema@.appended;
    m           record;
    v_seqs      bigint[] := '{}';
    v_flags     smallint[] := array_fill(0::smallint, ARRAY[coalesce(cardinality(ps), 0)]);   -- which of 8 and 256 a message has, -1 for one that is there
    v_differ    int[] := '{}';   -- what is there, and says something else
    v_conflict  text;
    v_fault     boolean := s.open_pending;
    v_open      text[] := s.open_calls;
    v_answered  boolean := s.open_answered;
    v_last      bigint := s.last_seq;
    v_most      boolean := cardinality(ps) > 100 AND s.last_seq < 50 * cardinality(ps);   -- the list may name most of the log
    i           int;
BEGIN
    FOR m IN
        -- What is there already, in one pass whichever index the planner takes: before the first ANALYZE it
        -- may well take the wrong one, and a look-up for each message would then be quadratic.
        WITH stored AS MATERIALIZED (
            SELECT l.id, l.seq, b.body, l.body_digest FROM (
                SELECT * FROM @schema@.message_log k WHERE NOT v_most AND k.sid = s.sid AND k.id = ANY(ARRAY(SELECT p.id FROM unnest(ps) p WHERE p.id IS NOT NULL))
                UNION ALL   -- by a hash, as an array may be searched from its begin for each message of the log
                SELECT * FROM @schema@.message_log k WHERE v_most AND k.sid = s.sid AND k.id IN (SELECT p.id FROM unnest(ps) p)) l
            LEFT JOIN @schema@.message_body b ON b.sid = s.sid AND b.seq = l.seq)   -- of one partition
        -- Without the bodies: what is sorted is narrow.
        SELECT p.ord::int AS ord, p.id, p.role, CASE WHEN p.role = 'assistant' THEN p.call_ids END AS call_ids,
            coalesce(p.tool_call_id, '') AS tool_call_id, p.tokens, p.flags, p.reasoning_only, p.created, l.seq AS known_seq,
            l.seq IS NOT NULL AND NOT coalesce(@schema@.same_message(l.body, p.body),
                nullif(l.body_digest = @schema@.body_digest(p.body), false), @schema@.archived_as(s.sid, l.seq, p.body)) AND NOT s.erased @> l.seq AS differs,   -- which parses both
            (min(p.ord) OVER (PARTITION BY p.id, CASE WHEN p.id IS NULL THEN p.ord END))::int AS first_ord
        FROM unnest(ps) p LEFT JOIN stored l ON l.id = p.id ORDER BY p.ord
    LOOP
        IF m.known_seq IS NOT NULL THEN
            v_seqs := v_seqs || m.known_seq;
            v_flags[m.ord] := -1;
            IF m.differs THEN
                v_differ := v_differ || m.ord;
            END IF;
            CONTINUE;
        ELSIF m.first_ord < m.ord THEN
            v_seqs := v_seqs || v_seqs[m.first_ord];
            v_flags[m.ord] := -1;
            IF NOT @schema@.same_message(ps[m.ord].body, ps[m.first_ord].body) THEN
                v_conflict := least(v_conflict, m.id);
            END IF;
            CONTINUE;
        END IF;
        v_last := v_last + 1;
        v_seqs := v_seqs || v_last;
        IF p_flags[m.ord] >= 0 THEN
            v_flags[m.ord] := p_flags[m.ord];
        ELSIF m.role = 'tool' THEN
            v_answered := true;
            i := array_position(v_open, m.tool_call_id);
            IF i IS NULL THEN
                v_fault := true;
            ELSE
                v_flags[m.ord] := 8;
                v_open := v_open[:i - 1] || v_open[i + 1:];
            END IF;
        ELSIF m.call_ids IS NOT NULL AND cardinality(v_open) > 0 AND NOT v_answered AND NOT m.call_ids && v_open
            AND '' <> ALL (v_open || m.call_ids) THEN
            v_flags[m.ord] := 256;
            v_open := v_open || m.call_ids;
        ELSIF v_answered OR NOT m.reasoning_only AND (m.call_ids IS NOT NULL OR cardinality(v_open) > 0) THEN
            v_fault := v_fault OR cardinality(v_open) > 0;
            v_open := coalesce(m.call_ids, '{}');
            v_answered := false;
        END IF;
    END LOOP;
    IF cardinality(v_differ) > 0 THEN   -- but for messages as view gives them out: see is_merged
        v_conflict := least(v_conflict, (SELECT min(ps[d].id) FROM unnest(v_differ) d
            LEFT JOIN (SELECT * FROM @schema@.merged_view(s.tenant, s.id) g WHERE s.parallel AND cardinality(g.seqs) > 1) g ON g.seq = v_seqs[d]
            WHERE g.seq IS NULL OR NOT @schema@.same_message(g.message::text, ps[d].body)));
    END IF;
    WITH t AS MATERIALIZED (
        SELECT p.*, v_seqs[p.ord] AS seq, v_flags[p.ord] AS flag, sum(p.tokens::bigint) OVER (ORDER BY p.ord) AS running FROM unnest(ps) p WHERE v_flags[p.ord] >= 0
    ), written AS (
        INSERT INTO @schema@.message_log (sid, seq, position, cumulative_tokens, token_count, calls, flags, role_code, kind, id, role,
            name, call_ids, tool_call_id, source_id, counter, created_at, body_digest, reasoning_tokens)
        SELECT s.sid, t.seq, coalesce(p_positions[t.ord], t.seq), s.total_tokens + t.running, t.tokens,
            coalesce(cardinality(t.call_ids), 0), t.flags + t.flag + @schema@.undated(t.created), @schema@.role_code(t.role),
            'm', coalesce(t.id, 'm' || t.seq || '-' || to_hex((random() * 2147483647)::int)), t.role,
            t.name, t.call_ids, t.tool_call_id, t.source_id, t.counter,
            coalesce(t.created, now()), @schema@.body_digest(t.body),
            CASE WHEN @schema@.signed_reasoning(t.flags) THEN @schema@.reasoning_tokens(t.body, t.tokens) END
        FROM t
    ), worded AS (
        INSERT INTO @schema@.message_body SELECT s.sid, t.seq, t.body FROM t
    )
    SELECT v_seqs, v_conflict, count(*), v_last, coalesce(sum(t.tokens), 0), coalesce(sum(t.tokens) FILTER (WHERE t.flags & 16 > 0), 0),
        count(*) FILTER (WHERE t.role = 'user'), max(coalesce(t.created, now())), v_fault, v_open, v_answered, 256 = ANY(v_flags)
    INTO v FROM t;
    RETURN v;
END $$;

-- Whether a batch with this key was there before the present one and had another size: the ids of a key
-- are there all or not at all, and none behind them.
CREATE OR REPLACE FUNCTION @schema@.key_conflict(s @schema@.sessions, p_key text, ps @schema@.parsed_message[]) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT count(*) NOT IN (0, (SELECT count(*) FROM unnest(ps) p WHERE p.id = p_key || '#' || p.ord))
    FROM generate_series(1, coalesce(cardinality(ps), 0) + 1) n
    JOIN @schema@.message_log l ON l.sid = s.sid AND l.id = p_key || '#' || n AND l.seq <= s.last_seq
$$;

-- What append does. One statement does a batch, so 20,000 messages are one pass. p_positions gives the
-- messages other places in the view than behind everything, and p_flags their flags there: see placed, of replace_view.
DROP FUNCTION IF EXISTS @schema@.append_at(text, text, json, text, text, bigint[]);
CREATE OR REPLACE FUNCTION @schema@.append_at(p_tenant text, p_session text, p_messages json, p_model text, p_key text, p_positions bigint[],
    p_flags smallint[] DEFAULT NULL)
RETURNS bigint[] LANGUAGE plpgsql SET timezone = 'UTC' SET plan_cache_mode = 'force_generic_plan' SET jit = off AS $$
-- A generic plan, as planning costs more than appending one message.
DECLARE
    s     @schema@.sessions;
    p     @schema@.parsed_message;
    ps    @schema@.parsed_message[];
    v     @schema@.appended;
    v_bad text;
BEGIN
    IF json_typeof(p_messages) = 'object' THEN
        p_messages := json_build_array(p_messages);
    ELSIF json_typeof(p_messages) IS DISTINCT FROM 'array' THEN
        RAISE EXCEPTION 'append: messages must be a JSON array of messages or one message, not %',
            coalesce(json_typeof(p_messages), 'null') USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF @schema@.unstorable(p_messages) THEN
        p_messages := @schema@.repair_json(p_messages::text)::json;
    END IF;
    IF json_array_length(p_messages) = 1 THEN
        p := @schema@.parse_plain(p_messages->0, nullif(p_key, ''));
    END IF;
    IF p.ord IS NOT NULL THEN
        ps := ARRAY[p];
    ELSE
        SELECT string_agg(format('message %s: must be an object, not %s', ord - 1, json_typeof(m)), '; ') INTO v_bad
        FROM json_array_elements(p_messages) WITH ORDINALITY e(m, ord) WHERE json_typeof(m) <> 'object';
        IF v_bad IS NULL THEN
            SELECT array_agg(q), string_agg(format('message %s: %s', q.ord - 1, q.fault), '; ') FILTER (WHERE q.fault IS NOT NULL) INTO ps, v_bad
            FROM @schema@.parse_messages(p_messages, nullif(p_key, '')) q;
        END IF;
        IF v_bad IS NOT NULL THEN
            RAISE EXCEPTION 'append to session %: %', p_session, left(v_bad, 1000) USING ERRCODE = 'invalid_parameter_value';
        END IF;
    END IF;

    s := @schema@.lock_session(p_tenant, p_session, p_model, true);
    IF p.ord IS NOT NULL THEN
        v := @schema@.append_one(s, p, p_positions[1]);
    ELSE
        PERFORM @schema@.refuse_long(format('append to session %s: the id of message %s', s.id, q.ord - 1), q.id) FROM unnest(ps) q
        WHERE octet_length(q.id) > 1024 AND NOT EXISTS (SELECT FROM @schema@.message_log l WHERE l.sid = s.sid AND l.id = q.id);
        IF cardinality(ps) = 1 THEN
            v := @schema@.append_one(s, ps[1], p_positions[1]);
        ELSE
            v := @schema@.append_many(s, ps, p_positions, p_flags);
        END IF;
    END IF;
    IF v.conflict IS NOT NULL OR coalesce(p_key, '') <> '' AND @schema@.key_conflict(s, p_key, ps) THEN
        RAISE EXCEPTION 'append to session %: % is there already with other content', s.id, coalesce('message ' || v.conflict, 'key ' || p_key)
            USING ERRCODE = 'unique_violation', HINT = 'Ids name one message, and keys one batch, for ever; give what was edited one of its own.';
    END IF;
    IF v.n = 0 THEN
        IF cardinality(v.seqs) > 0 AND p_positions IS NULL AND coalesce(current_setting('compactor.quiet', true), '') <> 'on' THEN
            PERFORM @schema@.bring_back(s, v.seqs);
        END IF;
        IF v.seqs IS NULL OR v.seqs = '{}' THEN   -- an empty list repeats nothing
            PERFORM @schema@.use_model(s, p_model);
        END IF;
        RETURN coalesce(v.seqs, '{}');
    END IF;
    s := @schema@.use_model(s, p_model);

    -- A call that still waits may have left the view, or its place, by a replacement: then its result has
    -- nothing to follow there.
    IF cardinality(s.open_calls) > 0 AND NOT v.fault THEN
        v.fault := NOT EXISTS (
            SELECT FROM (SELECT l.seq FROM @schema@.message_log l
                WHERE l.sid = s.sid AND l.seq <= v.last_seq - v.n AND l.calls > 0 AND l.position = l.seq ORDER BY l.seq DESC LIMIT 1) c
            WHERE s.live @> c.seq);
    END IF;
    -- One statement: each expression of PL/pgSQL is prepared anew in each transaction. Of the first messages, those of
    -- an import may be old.
    UPDATE @schema@.sessions t SET
        last_seq = v.last_seq, last_source_seq = v.last_seq, messages = t.messages + v.n, turns = t.turns + v.turns,
        total_tokens = t.total_tokens + v.tokens, live_messages = t.live_messages + v.n, live_tokens = t.live_tokens + v.tokens,
        live_estimated_tokens = t.live_estimated_tokens + v.estimated, messages_since_run = t.messages_since_run + v.n,
        tokens_since_run = t.tokens_since_run + v.tokens, turns_since_run = t.turns_since_run + v.turns,
        tokens_since_report = t.tokens_since_report + CASE WHEN t.reported_prompt_tokens IS NULL THEN 0 ELSE v.tokens END,
        repeated_ids = t.repeated_ids OR (v.n > 1 OR cardinality(v.open_calls) > 1 OR p_positions IS NOT NULL) AND EXISTS (SELECT FROM unnest(ps) q WHERE cardinality(q.call_ids) > 1 AND @schema@.repeats(q.call_ids)),
        format_keys = t.format_keys OR EXISTS (SELECT FROM unnest(ps) q WHERE q.format_keys),
        last_message_at = v.last_at, open_calls = coalesce(v.open_calls, '{}'), open_answered = v.answered, open_pending = false, parallel = t.parallel OR v.pending,
        state = CASE t.state WHEN 'quarantined' THEN 'active' ELSE t.state END,
        quarantine_reason = CASE WHEN t.state <> 'quarantined' THEN t.quarantine_reason END, timed = false,
        created_at = CASE t.messages WHEN 0 THEN least(t.created_at, ps[1].created) ELSE t.created_at END,
        next_check_at = least(t.next_check_at, v.last_at + make_interval(secs => t.due_idle),
            CASE t.messages WHEN 0 THEN least(t.created_at, ps[1].created) + make_interval(secs => least(t.due_age, t.due_since_run)) END)
    WHERE t.sid = s.sid RETURNING * INTO s;
    IF v.fault AND p_positions IS NULL THEN   -- replace_view has a view of its own to repair
        s := @schema@.repair_view(s);
    END IF;
    IF @schema@.is_due(s) <> s.due THEN
        s.due := NOT s.due;
        UPDATE @schema@.sessions SET due = s.due WHERE sid = s.sid;
    END IF;
    -- An import sets compactor.quiet: a backlog waits for the sweep instead of ringing for every session.
    IF s.due AND coalesce(current_setting('compactor.quiet', true), '') <> 'on' THEN
        INSERT INTO @schema@.outbox AS o (sid, tenant) VALUES (s.sid, s.tenant)
        ON CONFLICT (sid) DO UPDATE SET gen = o.gen + 1, last_at = now(), traceparent = coalesce(excluded.traceparent, o.traceparent);
    END IF;
    IF v.n < cardinality(v.seqs) AND p_positions IS NULL AND coalesce(current_setting('compactor.quiet', true), '') <> 'on' THEN
        PERFORM @schema@.bring_back(s, v.seqs);
    END IF;
    RETURN v.seqs;
END $$;

-- The one way in. messages is a JSON array of chat-completions messages (or one of them), each
-- with its envelope beside it: id, created_at, token_count, token_counter, source_id, all
-- optional. Returns the seqs, in order.
--
-- Idempotent by message id: an id that is there already is not appended again, and is an error
-- if its content differs. One that the application had deleted is back in the view (see
-- exclude). With p_key, the idempotency key of a batch, messages without an id get KEY#1, KEY#2
-- and so on, so that the batch is appended once; its key with other messages is an error.
--
-- The session keeps its model unless p_model names another, and a message is new: a repeated append does not set it back.
--
-- The variant for text takes literals and parameters without a type, for which json and jsonb would be
-- ambiguous. Not LANGUAGE sql, which would plan each call.
CREATE OR REPLACE FUNCTION @schema@.append(p_tenant text, p_session text, p_messages json, p_model text DEFAULT NULL, p_key text DEFAULT NULL)
RETURNS bigint[] LANGUAGE plpgsql AS $$ BEGIN RETURN @schema@.append_at(p_tenant, p_session, p_messages, p_model, p_key, NULL); END $$;

CREATE OR REPLACE FUNCTION @schema@.append(p_tenant text, p_session text, p_messages jsonb, p_model text DEFAULT NULL, p_key text DEFAULT NULL)
RETURNS bigint[] LANGUAGE plpgsql AS $$ BEGIN RETURN @schema@.append_at(p_tenant, p_session, p_messages::json, p_model, p_key, NULL); END $$;

CREATE OR REPLACE FUNCTION @schema@.append(p_tenant text, p_session text, p_messages text, p_model text DEFAULT NULL, p_key text DEFAULT NULL)
RETURNS bigint[] LANGUAGE plpgsql AS $$ BEGIN RETURN @schema@.append_at(p_tenant, p_session, p_messages::json, p_model, p_key, NULL); END $$;
