-- +goose Up

-- The timestamp in a message's envelope, or null where it is none: ISO 8601 or alike, or a unix
-- time in seconds, milli-, micro- or nanoseconds, told apart by their size. One without a zone is
-- in the session's: append sets UTC.
-- +goose StatementBegin
CREATE FUNCTION @schema@.parse_time(t text) RETURNS timestamptz
LANGUAGE plpgsql STABLE AS $$
DECLARE
    n numeric;
BEGIN
    IF t ~ '^\d{4}-\d\d-\d\d' THEN
        RETURN t::timestamptz;
    ELSIF t ~ '^\d{1,19}(\.\d{1,9})?$' THEN
        n := t;
        RETURN to_timestamp((n / CASE WHEN n < 1e11 THEN 1 WHEN n < 1e14 THEN 1e3 WHEN n < 1e17 THEN 1e6 ELSE 1e9 END)::double precision);
    END IF;
    RETURN NULL;
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- JSON text that Postgres can take apart: \u0000 and lone surrogates become U+FFFD. Escaped
-- backslashes and whole pairs are set aside first, as control characters, which no JSON text holds.
-- +goose StatementBegin
CREATE FUNCTION @schema@.repair_json(t text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT replace(replace(
        regexp_replace(
            regexp_replace(replace(t, '\\', chr(1)),
                '(\\u[dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})', '\1' || chr(2) || '\2', 'g'),
            '\\u(0000|[dD][89a-fA-F][0-9a-fA-F]{2}(?!' || chr(2) || '))', '\\ufffd', 'g'),
        chr(2), '\u'), chr(1), '\\')
$$;
-- +goose StatementEnd

-- Whether two bodies say the same, however they are written: order of keys, white space, nulls.
-- +goose StatementBegin
CREATE FUNCTION @schema@.same_message(a text, b text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT a = b OR jsonb '{"tool_calls": []}' || jsonb_strip_nulls(a::jsonb) = jsonb '{"tool_calls": []}' || jsonb_strip_nulls(b::jsonb)
$$;
-- +goose StatementEnd

-- Whether an automatic run has something to look at.
-- +goose StatementBegin
CREATE FUNCTION @schema@.is_due(s @schema@.sessions) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT s.state = 'active' AND s.last_source_seq > s.hold_seq AND coalesce(
        s.suspect_seq IS NOT NULL
        OR coalesce(s.reported_prompt_tokens + s.tokens_since_report,
                    s.live_tokens + s.live_estimated_tokens * s.estimate_margin) > s.due_tokens
        OR s.messages_since_run >= s.due_messages
        OR s.turns_since_run >= s.due_turns, false)
$$;
-- +goose StatementEnd

-- A model's name as thresholds have it: lower case, without its provider ("openai/GPT-4o").
-- +goose StatementBegin
CREATE FUNCTION @schema@.model_key(model text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT lower(regexp_replace(coalesce(model, ''), '^.*/', ''))
$$;
-- +goose StatementEnd

-- Make the session row if there is none, lock it, return it.
-- +goose StatementBegin
CREATE FUNCTION @schema@.lock_session(p_tenant text, p_session text, p_model text, p_create boolean)
RETURNS @schema@.sessions LANGUAGE plpgsql AS $$
DECLARE
    s @schema@.sessions;
    v_tenant text := coalesce(nullif(p_tenant, ''), 'default');
BEGIN
    SELECT * INTO s FROM @schema@.sessions WHERE tenant = v_tenant AND id = p_session FOR NO KEY UPDATE;
    IF FOUND THEN RETURN s; END IF;
    IF coalesce(p_session, '') = '' THEN
        RAISE EXCEPTION 'session: an empty id is not allowed' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF NOT p_create THEN
        RAISE EXCEPTION 'session % of tenant % does not exist', p_session, v_tenant USING ERRCODE = 'no_data_found';
    END IF;
    INSERT INTO @schema@.sessions (tenant, id, model, due_tokens, estimate_margin, policy_hash)
    SELECT v_tenant, p_session, coalesce(p_model, ''), t.due_tokens, coalesce(t.estimate_margin, 0), coalesce(t.policy_hash, '')
    FROM (SELECT) one LEFT JOIN LATERAL (
        SELECT * FROM @schema@.thresholds WHERE starts_with(@schema@.model_key(p_model), model_prefix)
        ORDER BY length(model_prefix) DESC LIMIT 1) t ON true
    ON CONFLICT (tenant, id) DO NOTHING;
    SELECT * INTO s FROM @schema@.sessions WHERE tenant = v_tenant AND id = p_session FOR NO KEY UPDATE;
    RETURN s;
END $$;
-- +goose StatementEnd

-- What append makes of one message before it looks at the session.
CREATE TYPE @schema@.parsed_message AS (
    ord bigint, id text, role text, name text, source_id text, tool_call_id text, call_ids text[], tokens int, counter text,
    flags smallint, reasoning_only boolean, created timestamptz, body text, fault text);

-- +goose StatementBegin
CREATE FUNCTION @schema@.role_code(role text) RETURNS "char" LANGUAGE sql IMMUTABLE AS $$
    SELECT (CASE role WHEN 'system' THEN 's' WHEN 'user' THEN 'u' WHEN 'assistant' THEN 'a' WHEN 'tool' THEN 't'
        WHEN 'developer' THEN 'd' ELSE 'o' END)::"char"
$$;
-- +goose StatementEnd

-- Takes an array of messages apart. Facts are those that chat.Message has; what chat.Message would
-- not read is a fault.
-- +goose StatementBegin
CREATE FUNCTION @schema@.parse_messages(p json) RETURNS SETOF @schema@.parsed_message
LANGUAGE sql STABLE AS $$
    SELECT f.ord, f.id #>> '{}', f.role #>> '{}', CASE WHEN json_typeof(f.name) = 'string' THEN f.name #>> '{}' END,
        f.source_id, f.tool_call_id #>> '{}', f.call_ids,
        -- octets/3; images and the like at a flat cost, whatever their encoded length
        CASE WHEN f.token_count IS NULL THEN least(2147483647, (octet_length(f.body) - f.media_octets + 2) / 3 + 1000 * f.media)::int
             WHEN f.token_count ~ '^\d{1,9}$' THEN f.token_count::int END,
        CASE WHEN f.token_count IS NULL THEN 'octets/3' ELSE coalesce(f.token_counter, 'application') END,
        (f.has_text::int + 2 * f.has_reasoning::int + 4 * (f.media > 0)::int + 16 * (f.token_count IS NULL OR coalesce(f.token_counter, '') IN ('octets/3', 'chars/4'))::int)::smallint,
        f.role #>> '{}' = 'assistant' AND f.has_reasoning AND NOT f.has_text AND f.media = 0 AND f.call_ids IS NULL,
        f.created, f.body,
        CASE WHEN json_typeof(f.role) IS DISTINCT FROM 'string' OR f.role #>> '{}' = '' THEN 'role must be a string that is not empty'
             WHEN json_typeof(f.id) <> 'string' THEN 'id must be a string'
             WHEN f.token_count !~ '^\d{1,9}$' THEN 'token_count must be a whole number, 0 or more'
             WHEN json_typeof(f.tool_call_id) <> 'string' THEN 'tool_call_id must be a string'
             WHEN json_typeof(f.content) NOT IN ('string', 'array') THEN 'content must be a string, an array of parts or null'
             WHEN f.bad_part THEN 'content: a part must be a string or an object with a type that is a string'
             WHEN json_typeof(f.tool_calls) <> 'array' THEN 'tool_calls must be an array'
             WHEN f.bad_call THEN 'tool_calls: a call must be an object with an id that is a string' END
    FROM (
        SELECT e.*, c.created,
            coalesce(parts.media, 0) AS media, coalesce(parts.media_octets, 0) AS media_octets, parts.bad AS bad_part,
            calls.ids AS call_ids, calls.bad AS bad_call,
            CASE json_typeof(e.content) WHEN 'string' THEN e.content #>> '{}' ~ b.letter ELSE coalesce(parts.has_text, false) END AS has_text,
            coalesce(parts.has_reasoning OR e.reasoning::text ~ b.filled OR e.reasoning_content::text ~ b.filled
                OR e.reasoning_details::text ~ b.filled, false) AS has_reasoning,
            -- The message without its envelope, its fields otherwise untouched and in their order.
            CASE WHEN num_nonnulls(e.id, e.created_at, e.token_count, e.token_counter, e.source_id) = 0
                    AND NOT (e.m::text LIKE '%null%' AND e.m::text ~ '"(id|created_at|token_count|token_counter|source_id)"\s*:\s*null')
                THEN e.m::text ELSE
                (SELECT '{' || string_agg(to_json(k.key)::text || ':' || k.value::text, ',' ORDER BY k.n) || '}'
                 FROM json_each(e.m) WITH ORDINALITY k(key, value, n)
                 WHERE k.key NOT IN ('id', 'token_count', 'token_counter', 'source_id')
                    AND (k.key <> 'created_at' OR c.created IS NULL AND json_typeof(k.value) <> 'null')) END AS body
        FROM ROWS FROM (json_array_elements(p),
                json_to_recordset(p) AS (id json, role json, name json, content json, tool_calls json, tool_call_id json,
                    reasoning json, reasoning_content json, reasoning_details json,
                    created_at text, token_count text, token_counter text, source_id text))
            WITH ORDINALITY AS e(m, id, role, name, content, tool_calls, tool_call_id, reasoning, reasoning_content, reasoning_details,
                    created_at, token_count, token_counter, source_id, ord)
        -- letter: something other than what Go calls white space. filled: a string, array or object that holds something.
        CROSS JOIN (VALUES ('[^\t\n\v\f\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]',
                '^\s*("[^"]|[\[{]\s*[^\s\]}])')) b(letter, filled)
        CROSS JOIN LATERAL (SELECT CASE WHEN e.created_at IS NOT NULL THEN @schema@.parse_time(e.created_at) END AS created OFFSET 0) c
        LEFT JOIN LATERAL (
            SELECT bool_or(CASE json_typeof(x.p) WHEN 'string' THEN x.p #>> '{}' ~ b.letter
                    WHEN 'object' THEN json_typeof(x.said) = 'string' AND x.said #>> '{}' ~ b.letter END) AS has_text,
                bool_or(x.type IN ('thinking', 'redacted_thinking', 'reasoning', 'reasoning_text', 'summary_text')) AS has_reasoning,
                count(*) FILTER (WHERE x.media) AS media, sum(octet_length(x.p::text)) FILTER (WHERE x.media) AS media_octets,
                bool_or(x.bad) AS bad
            FROM (SELECT q.p, t.type, CASE WHEN t.type IN ('text', 'input_text', 'output_text', '') THEN q.p->'text'
                        WHEN t.type = 'refusal' THEN q.p->'refusal' END AS said,
                    t.type NOT IN ('text', 'input_text', 'output_text', 'refusal', 'tool_use', 'tool_result', '',
                        'thinking', 'redacted_thinking', 'reasoning', 'reasoning_text', 'summary_text') AS media,
                    json_typeof(q.p) NOT IN ('object', 'string') OR coalesce(json_typeof(t.raw), 'null') NOT IN ('string', 'null') AS bad
                FROM json_array_elements(CASE json_typeof(e.content) WHEN 'array' THEN e.content END) q(p)
                CROSS JOIN LATERAL (SELECT r.raw, coalesce(r.raw #>> '{}', '') AS type
                    FROM (SELECT CASE WHEN json_typeof(q.p) = 'object' THEN q.p->'type' END AS raw OFFSET 0) r OFFSET 0) t) x
            ) parts ON true
        LEFT JOIN LATERAL (
            SELECT array_agg(coalesce(CASE WHEN json_typeof(o.c) = 'object' THEN o.c->>'id' END, '')) AS ids,
                bool_or(json_typeof(o.c) <> 'object'
                    OR json_typeof(CASE WHEN json_typeof(o.c) = 'object' THEN o.c->'id' END) NOT IN ('string', 'null')) AS bad
            FROM json_array_elements(CASE json_typeof(e.tool_calls) WHEN 'array' THEN e.tool_calls END) o(c)) calls ON true
    ) f
$$;
-- +goose StatementEnd

-- What appending to a session's log did, and what it leaves for the next call.
CREATE TYPE @schema@.appended AS (
    seqs bigint[], conflict text, n bigint, last_seq bigint, tokens bigint, estimated bigint, turns bigint, last_at timestamptz,
    fault boolean, open_calls text[], answered boolean, pending boolean);

-- Pairing (which tool result answers a call) follows chat.Pairer, here as it stands there, for one
-- message; for a batch see append_many.
-- +goose StatementBegin
CREATE FUNCTION @schema@.append_one(s @schema@.sessions, p @schema@.parsed_message, p_position bigint)
RETURNS @schema@.appended LANGUAGE plpgsql AS $$
DECLARE
    v        @schema@.appended;
    v_known  record;
    v_paired boolean := false;
    i        int;
BEGIN
    IF p.id IS NOT NULL THEN
        SELECT seq, body INTO v_known FROM @schema@.message_log WHERE sid = s.sid AND id = p.id;
        IF FOUND THEN
            v.seqs := ARRAY[v_known.seq];
            v.n := 0;
            v.conflict := CASE WHEN NOT @schema@.same_message(v_known.body, p.body) THEN p.id END;
            RETURN v;
        END IF;
    END IF;
    v.open_calls := s.open_calls;
    v.answered := s.open_answered;
    v.pending := s.open_pending;
    v.fault := false;
    IF p.role = 'tool' THEN
        v.answered := true;
        i := array_position(s.open_calls, coalesce(p.tool_call_id, ''));
        v_paired := i IS NOT NULL;
        v.fault := NOT v_paired;
        IF v_paired THEN
            v.open_calls := s.open_calls[:i - 1] || s.open_calls[i + 1:];
        END IF;
    ELSIF NOT p.reasoning_only OR s.open_answered THEN
        v.pending := s.open_pending OR cardinality(s.open_calls) > 0;
        v.open_calls := CASE WHEN p.role = 'assistant' THEN p.call_ids END;
        v.answered := false;
        v.fault := p.role = 'user' AND v.pending;
        v.pending := v.pending AND p.role <> 'user';
    END IF;
    v.last_seq := s.last_seq + 1;
    v.seqs := ARRAY[v.last_seq];
    v.n := 1;
    v.tokens := p.tokens;
    v.estimated := CASE WHEN p.flags & 16 > 0 THEN p.tokens ELSE 0 END;
    v.turns := (p.role = 'user')::int;
    v.last_at := coalesce(p.created, now());
    INSERT INTO @schema@.message_log (sid, seq, position, cumulative_tokens, token_count, calls, flags, role_code, kind, id, role,
        name, call_ids, tool_call_id, source_id, counter, created_at, body)
    VALUES (s.sid, v.last_seq, coalesce(p_position, v.last_seq), s.total_tokens + p.tokens, p.tokens,
        least(coalesce(cardinality(p.call_ids), 0), 32767), p.flags + 8 * v_paired::int, @schema@.role_code(p.role), 'm',
        coalesce(p.id, 'm' || v.last_seq || '-' || to_hex((random() * 2147483647)::int)), p.role,
        p.name, p.call_ids, p.tool_call_id, p.source_id, p.counter, v.last_at, p.body);
    RETURN v;
END $$;
-- +goose StatementEnd

-- The same in one statement for a batch: a segment starts at every message that is neither a tool
-- result nor reasoning directly behind its call, and the results in a segment answer the calls of
-- the message that started it. Without nested loops, as a generic plan expects few messages.
-- +goose StatementBegin
CREATE FUNCTION @schema@.append_many(s @schema@.sessions, ps @schema@.parsed_message[], p_positions bigint[])
RETURNS @schema@.appended LANGUAGE plpgsql SET enable_nestloop = off SET work_mem = '32MB' AS $$
DECLARE
    v @schema@.appended;
BEGIN
    -- What is there already, in one pass whichever index the planner takes: before the first ANALYZE it
    -- may well take the wrong one, and a look-up for each message would then be quadratic.
    WITH stored AS MATERIALIZED (
        SELECT l.id, l.seq, l.body FROM @schema@.message_log l
        WHERE l.sid = s.sid AND l.id = ANY(ARRAY(SELECT p.id FROM unnest(ps) p WHERE p.id IS NOT NULL))
    ), known AS MATERIALIZED (   -- without the bodies: what is sorted is narrow
        SELECT p.ord, p.id, p.role, CASE WHEN p.role = 'assistant' THEN p.call_ids END AS call_ids,
            coalesce(p.tool_call_id, '') AS tool_call_id, p.tokens, p.flags, p.reasoning_only, p.created,
            l.seq AS known_seq, NOT @schema@.same_message(l.body, p.body) AS differs,
            min(p.ord) OVER (PARTITION BY p.id, CASE WHEN p.id IS NULL THEN p.ord END) AS first_ord
        FROM unnest(ps) p LEFT JOIN stored l ON l.id = p.id
    ), fresh AS (
        SELECT k.*, coalesce(lag(role = 'tool') OVER (ORDER BY ord), s.open_answered) AS behind_result
        FROM known k WHERE known_seq IS NULL AND first_ord = ord
    ), segmented AS (
        SELECT f.*, s.last_seq + row_number() OVER (ORDER BY ord) AS seq, sum(tokens::bigint) OVER (ORDER BY ord) AS running,
            count(*) FILTER (WHERE role <> 'tool' AND (NOT reasoning_only OR behind_result)) OVER (ORDER BY ord) AS seg
        FROM fresh f
    ), anchored AS (
        SELECT g.*, CASE WHEN seg = 0 THEN s.open_calls ELSE first_value(call_ids) OVER (PARTITION BY seg ORDER BY ord) END AS seg_calls,
            CASE WHEN role = 'tool' THEN row_number() OVER (PARTITION BY seg, role = 'tool', tool_call_id ORDER BY ord) END AS nth
        FROM segmented g
    ), staged AS MATERIALIZED (
        SELECT a.*, coalesce(nth <= cardinality(array_positions(seg_calls, tool_call_id)), false) AS paired FROM anchored a
    ), written AS (
        INSERT INTO @schema@.message_log (sid, seq, position, cumulative_tokens, token_count, calls, flags, role_code, kind, id, role,
            name, call_ids, tool_call_id, source_id, counter, created_at, body)
        SELECT s.sid, t.seq, coalesce(p_positions[t.ord], t.seq), s.total_tokens + t.running, t.tokens,
            least(coalesce(cardinality(ps[t.ord].call_ids), 0), 32767), t.flags + 8 * t.paired::int, @schema@.role_code(t.role),
            'm', coalesce(t.id, 'm' || t.seq || '-' || to_hex((random() * 2147483647)::int)), t.role,
            ps[t.ord].name, ps[t.ord].call_ids, ps[t.ord].tool_call_id, ps[t.ord].source_id, ps[t.ord].counter,
            coalesce(t.created, now()), ps[t.ord].body
        FROM staged t ORDER BY t.seq
        RETURNING seq
    ), segments AS (
        SELECT seg, max(seg_calls) AS calls, bool_or(role = 'user') AS user_turn, bool_or(role = 'tool') AS answered,
            coalesce(cardinality(max(seg_calls)), 0) - count(*) FILTER (WHERE paired) AS open
        FROM staged GROUP BY seg
        UNION ALL   -- what was open before the batch, when the batch starts a segment of its own
        SELECT 0, s.open_calls, false, false, cardinality(s.open_calls)
        WHERE (SELECT min(seg) FROM staged) > 0
    ), last_user AS (SELECT coalesce(max(seg), -1) AS seg FROM segments WHERE user_turn
    ), last_seg AS (SELECT * FROM segments ORDER BY seg DESC LIMIT 1)
    SELECT
        (SELECT array_agg(coalesce(k.known_seq, t.seq) ORDER BY k.ord)
         FROM known k LEFT JOIN staged t ON t.ord = k.first_ord) AS seqs,
        (SELECT min(k.id) FROM known k WHERE k.differs
            OR k.known_seq IS NULL AND k.first_ord < k.ord AND NOT @schema@.same_message(ps[k.ord].body, ps[k.first_ord].body)) AS conflict,
        count(*) AS n, max(t.seq) AS last_seq, coalesce(sum(t.tokens), 0) AS tokens,
        coalesce(sum(t.tokens) FILTER (WHERE t.flags & 16 > 0), 0) AS estimated,
        count(*) FILTER (WHERE t.role = 'user') AS turns, max(coalesce(t.created, now())) AS last_at,
        coalesce(bool_or(t.role = 'tool' AND NOT t.paired), false)
            OR (s.open_pending AND (SELECT seg FROM last_user) >= 0)
            OR EXISTS (SELECT FROM segments o WHERE o.open > 0 AND o.seg < (SELECT seg FROM last_user)) AS fault,
        -- what is left of the last segment's calls: each result takes one of its id away
        (SELECT ARRAY(SELECT c FROM (SELECT c, row_number() OVER (PARTITION BY c) AS nth FROM unnest(calls) c) x
                LEFT JOIN (SELECT y.tool_call_id, count(*) AS taken FROM staged y WHERE y.seg = (SELECT seg FROM last_seg) AND y.paired
                    GROUP BY 1) r ON r.tool_call_id = x.c
                WHERE nth > coalesce(taken, 0))
         FROM last_seg) AS open_calls,
        (SELECT CASE WHEN seg = 0 THEN s.open_answered OR answered ELSE answered END FROM last_seg) AS answered,
        EXISTS (SELECT FROM segments o WHERE o.open > 0 AND o.seg < (SELECT seg FROM last_seg) AND o.seg >= (SELECT seg FROM last_user))
            OR (s.open_pending AND (SELECT seg FROM last_user) < 0) AS pending
    INTO v FROM staged t;
    RETURN v;
END $$;
-- +goose StatementEnd

-- The one way in. messages is a JSON array of chat-completions messages (or one of them), each
-- with its envelope beside it: id, created_at, token_count, token_counter, source_id, all
-- optional. Returns the seqs, in order.
--
-- Idempotent by message id: an id that is there already is not appended again, and is an error
-- if its content differs. One statement does a batch, so 20,000 messages are one pass.
--
-- p_positions gives the messages other places in the view than behind everything (replace).
-- +goose StatementBegin
CREATE FUNCTION @schema@.append(p_tenant text, p_session text, p_messages json, p_model text DEFAULT NULL,
                                p_positions bigint[] DEFAULT NULL)
RETURNS bigint[] LANGUAGE plpgsql SET timezone = 'UTC' SET plan_cache_mode = 'force_generic_plan' SET jit = off AS $$
-- A generic plan, as planning costs more than appending one message.
DECLARE
    s     @schema@.sessions;
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
    IF p_messages::text LIKE ANY ('{"%\\\\u0000%","%\\\\ud%","%\\\\uD%"}') THEN
        p_messages := @schema@.repair_json(p_messages::text)::json;
    END IF;
    SELECT string_agg(format('message %s: must be an object, not %s', ord - 1, json_typeof(m)), '; ') INTO v_bad
    FROM json_array_elements(p_messages) WITH ORDINALITY e(m, ord) WHERE json_typeof(m) <> 'object';
    IF v_bad IS NULL THEN
        SELECT array_agg(p), string_agg(format('message %s: %s', ord - 1, fault), '; ') FILTER (WHERE fault IS NOT NULL) INTO ps, v_bad
        FROM @schema@.parse_messages(p_messages) p;
    END IF;
    IF v_bad IS NOT NULL THEN
        RAISE EXCEPTION 'append to session %: %', p_session, left(v_bad, 1000) USING ERRCODE = 'invalid_parameter_value';
    END IF;

    s := @schema@.lock_session(p_tenant, p_session, p_model, true);

    IF cardinality(ps) = 1 THEN
        v := @schema@.append_one(s, ps[1], p_positions[1]);
    ELSE
        v := @schema@.append_many(s, ps, p_positions);
    END IF;
    IF v.conflict IS NOT NULL THEN
        RAISE EXCEPTION 'append to session %: message % is there already with other content', s.id, v.conflict
            USING ERRCODE = 'unique_violation', HINT = 'Ids name one message for ever; give an edited message an id of its own.';
    END IF;
    IF v.n = 0 THEN RETURN coalesce(v.seqs, '{}'); END IF;

    s.last_seq := v.last_seq;
    s.last_source_seq := v.last_seq;
    s.messages := s.messages + v.n;
    s.turns := s.turns + v.turns;
    s.total_tokens := s.total_tokens + v.tokens;
    s.live_messages := s.live_messages + v.n;
    s.live_tokens := s.live_tokens + v.tokens;
    s.live_estimated_tokens := s.live_estimated_tokens + v.estimated;
    s.messages_since_run := s.messages_since_run + v.n;
    s.tokens_since_run := s.tokens_since_run + v.tokens;
    s.turns_since_run := s.turns_since_run + v.turns;
    s.tokens_since_report := s.tokens_since_report + CASE WHEN s.reported_prompt_tokens IS NULL THEN 0 ELSE v.tokens END;
    -- A call that still waits may have left the view, or its place, by a replacement: then its result has
    -- nothing to follow there.
    IF v.fault OR cardinality(s.open_calls) > 0 AND NOT EXISTS (
            SELECT FROM (SELECT l.seq, l.position FROM @schema@.message_log l
                WHERE l.sid = s.sid AND l.seq <= s.last_seq - v.n AND l.calls > 0 ORDER BY l.seq DESC LIMIT 1) c
            WHERE s.live @> c.seq AND c.position = c.seq) THEN
        s.suspect_seq := v.last_seq;
    END IF;
    s.due := @schema@.is_due(s);
    UPDATE @schema@.sessions SET
        last_seq = s.last_seq, last_source_seq = s.last_source_seq, messages = s.messages, turns = s.turns,
        total_tokens = s.total_tokens, live_messages = s.live_messages, live_tokens = s.live_tokens,
        live_estimated_tokens = s.live_estimated_tokens, messages_since_run = s.messages_since_run,
        tokens_since_run = s.tokens_since_run, turns_since_run = s.turns_since_run,
        tokens_since_report = s.tokens_since_report, suspect_seq = s.suspect_seq, due = s.due,
        last_message_at = v.last_at, open_calls = coalesce(v.open_calls, '{}'), open_answered = v.answered, open_pending = v.pending
    WHERE sid = s.sid;
    -- An import sets compactor.quiet: a backlog waits for the sweep instead of ringing for every session.
    IF s.due AND coalesce(current_setting('compactor.quiet', true), '') <> 'on' THEN
        INSERT INTO @schema@.outbox AS o (sid) VALUES (s.sid)
        ON CONFLICT (sid) DO UPDATE SET gen = o.gen + 1, last_at = now();
    END IF;
    RETURN v.seqs;
END $$;
-- +goose StatementEnd

-- The history a model is given: the included messages with summaries and stand-ins in place.
-- Costs what the view holds, not what the log holds: OFFSET 0 keeps the planner on the ranges.
-- +goose StatementBegin
CREATE FUNCTION @schema@.view(p_tenant text, p_session text)
RETURNS TABLE (seq bigint, id text, kind text, role text, message json, token_count int, created_at timestamptz, source_id text)
LANGUAGE sql STABLE ROWS 200 AS $$
    SELECT m.seq, m.id, CASE m.kind WHEN 'm' THEN 'source' WHEN 's' THEN 'summary' ELSE 'stand_in' END,
           m.role, m.body::json, m.token_count, m.created_at, m.source_id
    FROM @schema@.sessions s CROSS JOIN LATERAL unnest(s.live) r(x)
    CROSS JOIN LATERAL (SELECT * FROM @schema@.message_log l
        WHERE l.sid = s.sid AND l.seq >= lower(r.x) AND l.seq < coalesce(upper(r.x), 9223372036854775807) OFFSET 0) m
    WHERE s.tenant = coalesce(nullif(p_tenant, ''), 'default') AND s.id = p_session
    ORDER BY m.position, (m.kind <> 's'), (m.kind = 'm' AND m.position <> m.seq), m.seq
$$;
-- +goose StatementEnd

-- Every message with why it is, or is not, in the view. Each message that is out is looked up once
-- for the whole session: asking message by message would be messages times runs.
-- +goose StatementBegin
CREATE VIEW @schema@.messages AS
SELECT s.tenant, s.id AS session, m.seq, m.id,
    CASE m.kind WHEN 'm' THEN 'source' WHEN 's' THEN 'summary' ELSE 'stand_in' END AS kind,
    m.role, m.name, m.source_id, m.body::json->>'content' AS content, m.body::json AS message,
    m.token_count, m.counter AS token_counter, m.created_at, m.position, m.run,
    s.live @> m.seq AS included, NOT s.live @> m.seq AS excluded,
    m.reason AS exclude_reason, m.excluded_by, m.summary_seq AS summarized_by_seq, m.summarized_by,
    m.summary_of, s.pinned @> m.seq AS pinned
FROM @schema@.sessions s CROSS JOIN LATERAL (
    SELECT m.*, x.reason, x.run AS excluded_by, x.summary_seq, l.id AS summarized_by
    FROM @schema@.message_log m
    LEFT JOIN (
        SELECT DISTINCT ON (q.seq) q.seq, e.reason, e.run, e.summary_seq
        FROM @schema@.exclusions e JOIN @schema@.runs r ON r.id = e.run
        CROSS JOIN LATERAL unnest(e.seqs * (int8multirange(int8range(1, NULL)) - s.live)) u(x)
        CROSS JOIN LATERAL generate_series(lower(u.x), upper(u.x) - 1) q(seq)
        WHERE e.sid = s.sid AND r.in_force
        ORDER BY q.seq, r.revision DESC) x ON x.seq = m.seq
    LEFT JOIN @schema@.message_log l ON l.sid = s.sid AND l.seq = x.summary_seq
    WHERE m.sid = s.sid) m;
-- +goose StatementEnd
