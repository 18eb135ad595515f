-- +goose Up

-- The timestamp in a message's envelope, or null where it is none. One without a zone is in the
-- session's: append sets UTC.
-- +goose StatementBegin
CREATE FUNCTION @schema@.parse_time(t text) RETURNS timestamptz
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF t ~ '^\d{9,10}(\.\d+)?$' THEN
        RETURN to_timestamp(t::double precision);
    ELSIF t ~ '^\d{4}-\d\d-\d\d' THEN
        RETURN t::timestamptz;
    END IF;
    RETURN NULL;
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- JSON text that Postgres can take apart: \u0000 and lone surrogates become U+FFFD.
-- +goose StatementBegin
CREATE FUNCTION @schema@.repair_json(t text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT regexp_replace(regexp_replace(regexp_replace(t,
        '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g'),
        '(?<!\\)((?:\\\\)*)\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])', '\1\\ufffd', 'g'),
        '(?<!\\u[dD][89abAB][0-9a-fA-F]{2})(?<!\\)((?:\\\\)*)\\u[dD][c-fC-F][0-9a-fA-F]{2}', '\1\\ufffd', 'g')
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

-- The one way in. messages is a JSON array of chat-completions messages (or one of them), each
-- with its envelope beside it: id, created_at, token_count, token_counter, source_id, all
-- optional. Returns the seqs, in order.
--
-- Idempotent by message id: an id that is there already is not appended again, and is an error
-- if its content differs. One statement does the batch, so 20,000 messages are one pass.
--
-- Pairing (which tool result answers a call) follows chat.Pairer: a segment starts at every
-- message that is neither a tool result nor reasoning directly behind its call, and the results
-- in a segment answer the calls of the message that started it.
--
-- p_positions gives the messages other places in the view than behind everything (replace).
-- +goose StatementBegin
CREATE FUNCTION @schema@.append(p_tenant text, p_session text, p_messages json, p_model text DEFAULT NULL,
                                p_positions bigint[] DEFAULT NULL)
RETURNS bigint[] LANGUAGE plpgsql SET timezone = 'UTC' 
    SET plan_cache_mode = 'force_generic_plan' SET enable_nestloop = off SET jit = off SET work_mem = '32MB' AS $$
-- A generic plan, as planning costs more than appending one message; without nested loops, as it
-- expects few messages and some batches have many.
DECLARE
    s     @schema@.sessions;
    v     record;
    v_bad text;
BEGIN
    IF json_typeof(p_messages) = 'object' THEN
        p_messages := json_build_array(p_messages);
    ELSIF json_typeof(p_messages) IS DISTINCT FROM 'array' THEN
        RAISE EXCEPTION 'append: messages must be a JSON array of messages or one message, not %',
            coalesce(json_typeof(p_messages), 'null') USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF p_messages::text ~ '\\u(0000|[dD][89a-fA-F])' THEN
        p_messages := @schema@.repair_json(p_messages::text)::json;
    END IF;
    SELECT string_agg(format('message %s: %s', ord - 1, fault), '; ') INTO v_bad FROM (
        SELECT ord, CASE
            WHEN json_typeof(m) <> 'object' THEN 'must be an object, not ' || json_typeof(m)
            WHEN json_typeof(m->'role') IS DISTINCT FROM 'string' THEN 'role must be a string'
            WHEN coalesce(json_typeof(m->'id'), 'null') NOT IN ('string', 'null') THEN 'id must be a string'
            WHEN coalesce(json_typeof(m->'token_count'), 'null') NOT IN ('number', 'null') THEN 'token_count must be a number'
            END AS fault
        FROM json_array_elements(p_messages) WITH ORDINALITY e(m, ord)) faults
    WHERE fault IS NOT NULL;
    IF v_bad IS NOT NULL THEN
        RAISE EXCEPTION 'append to session %: %', p_session, left(v_bad, 1000) USING ERRCODE = 'invalid_parameter_value';
    END IF;

    s := @schema@.lock_session(p_tenant, p_session, p_model, true);

    WITH parsed AS MATERIALIZED (
        SELECT e.ord, e.id, e.role, e.name, e.source_id, e.tool_call_id, e.token_count, e.token_counter, c.created,
               CASE WHEN e.role = 'assistant' AND json_typeof(e.tool_calls) = 'array'
                    THEN ARRAY(SELECT coalesce(tc->>'id', '') FROM json_array_elements(e.tool_calls) tc) END AS call_ids,
               CASE json_typeof(e.content) WHEN 'string' THEN (e.m->>'content') ~ '\S' ELSE coalesce(parts.has_text, false) END AS has_text,
               coalesce(parts.media, 0) AS media, coalesce(parts.media_octets, 0) AS media_octets,
               coalesce(CASE WHEN json_typeof(e.reasoning_content) = 'string' THEN e.reasoning_content #>> '{}' END,
                        CASE WHEN json_typeof(e.reasoning) = 'string' THEN e.reasoning #>> '{}' END, '') <> '' AS has_reasoning,
               -- The message without its envelope, its fields otherwise untouched and in their order.
               CASE WHEN num_nonnulls(e.id, e.created_at, e.token_count, e.token_counter, e.source_id) = 0 THEN e.m::text ELSE
                   (SELECT '{' || string_agg(to_json(k.key)::text || ':' || k.value::text, ',' ORDER BY k.n) || '}'
                    FROM json_each(e.m) WITH ORDINALITY k(key, value, n)
                    WHERE k.key NOT IN ('id', 'token_count', 'token_counter', 'source_id')
                      AND (k.key <> 'created_at' OR c.created IS NULL)) END AS body
        FROM ROWS FROM (json_array_elements(p_messages),
                json_to_recordset(p_messages) AS (id text, role text, name text, content json, tool_calls json, tool_call_id text,
                    reasoning json, reasoning_content json, created_at text, token_count int, token_counter text, source_id text))
            WITH ORDINALITY AS e(m, id, role, name, content, tool_calls, tool_call_id, reasoning, reasoning_content,
                    created_at, token_count, token_counter, source_id, ord)
        CROSS JOIN LATERAL (SELECT CASE WHEN e.created_at IS NOT NULL THEN @schema@.parse_time(e.created_at) END AS created OFFSET 0) c
        LEFT JOIN LATERAL (
            SELECT bool_or(NOT x.media AND coalesce(x.p->>'text', x.p->>'refusal') ~ '\S') AS has_text,
                   count(*) FILTER (WHERE x.media) AS media, sum(octet_length(x.p::text)) FILTER (WHERE x.media) AS media_octets
            FROM (SELECT p, coalesce(p->>'type', 'text') NOT IN ('text', 'input_text', 'output_text', 'refusal') AS media
                  FROM json_array_elements(CASE json_typeof(e.content) WHEN 'array' THEN e.content ELSE '[]' END) p
                  WHERE json_typeof(p) = 'object') x) parts ON true
    ), known AS MATERIALIZED (   -- from here on without the bodies: what is sorted is narrow
        SELECT p.ord, p.id, p.role, p.call_ids, p.tool_call_id, p.created, p.token_count IS NULL AS uncounted,
            p.token_count IS NULL OR coalesce(p.token_counter, '') IN ('octets/3', 'chars/4') AS estimated,
            -- octets/3; images and the like at a flat cost, whatever their encoded length
            coalesce(p.token_count, least(2147483647, (octet_length(p.body) - p.media_octets + 2) / 3 + 1000 * p.media)::int) AS tokens,
            p.role = 'assistant' AND p.has_reasoning AND NOT p.has_text AND p.media = 0
                AND coalesce(cardinality(p.call_ids), 0) = 0 AS reasoning_only,
            (SELECT l.seq FROM @schema@.message_log l WHERE l.sid = s.sid AND l.id = p.id) AS known_seq,
            coalesce((SELECT l.body <> p.body AND l.body::jsonb <> p.body::jsonb
                      FROM @schema@.message_log l WHERE l.sid = s.sid AND l.id = p.id), false) AS differs,
            min(p.ord) OVER same_id AS first_ord,
            p.hash <> first_value(p.hash) OVER same_id AS differs_in_batch
        FROM (SELECT *, hashtextextended(body, 0) AS hash FROM parsed) p
        WINDOW same_id AS (PARTITION BY p.id, CASE WHEN p.id IS NULL THEN p.ord END ORDER BY p.ord)
    ), fresh AS (
        SELECT k.*, coalesce(lag(role = 'tool') OVER (ORDER BY ord), s.open_answered) AS behind_result
        FROM known k WHERE known_seq IS NULL AND first_ord = ord
    ), segmented AS (
        SELECT f.*, s.last_seq + row_number() OVER (ORDER BY ord) AS seq, sum(tokens::bigint) OVER (ORDER BY ord) AS running,
            count(*) FILTER (WHERE role <> 'tool' AND (NOT reasoning_only OR behind_result)) OVER (ORDER BY ord) AS seg
        FROM fresh f
    ), anchored AS (
        SELECT g.*, CASE WHEN seg = 0 THEN s.open_calls ELSE first_value(call_ids) OVER (PARTITION BY seg ORDER BY ord) END AS seg_calls
        FROM segmented g
    ), staged AS MATERIALIZED (
        SELECT a.*, CASE WHEN role = 'tool' THEN
                row_number() OVER (PARTITION BY seg, role = 'tool', tool_call_id ORDER BY ord)
                    <= coalesce(cardinality(array_positions(seg_calls, tool_call_id)), 0) ELSE false END AS paired
        FROM anchored a
    ), written AS (
        INSERT INTO @schema@.message_log (sid, seq, position, cumulative_tokens, token_count, calls, flags, role_code, kind, id, role,
            name, call_ids, tool_call_id, source_id, counter, created_at, body)
        SELECT s.sid, t.seq, coalesce(p_positions[t.ord], t.seq), s.total_tokens + t.running, t.tokens,
            least(coalesce(cardinality(t.call_ids), 0), 32767),
            p.has_text::int + 2 * p.has_reasoning::int + 4 * (p.media > 0)::int + 8 * t.paired::int + 16 * t.estimated::int,
            (CASE t.role WHEN 'system' THEN 's' WHEN 'user' THEN 'u' WHEN 'assistant' THEN 'a' WHEN 'tool' THEN 't'
                         WHEN 'developer' THEN 'd' ELSE 'o' END)::"char",
            'm', coalesce(t.id, 'm' || t.seq || '-' || to_hex((random() * 2147483647)::int)), t.role,
            p.name, t.call_ids, t.tool_call_id, p.source_id,
            CASE WHEN t.uncounted THEN 'octets/3' ELSE coalesce(p.token_counter, 'application') END,
            coalesce(t.created, now()), p.body
        FROM staged t JOIN parsed p USING (ord) ORDER BY t.seq
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
        (SELECT min(id) FROM known WHERE differs OR differs_in_batch) AS conflict,
        (SELECT count(*) FROM written) AS written,
        count(*) AS n, max(t.seq) AS last_seq, coalesce(sum(t.tokens), 0) AS tokens,
        coalesce(sum(t.tokens) FILTER (WHERE t.estimated), 0) AS estimated,
        count(*) FILTER (WHERE t.role = 'user') AS turns, max(t.created) AS last_at,
        coalesce(bool_or(t.role = 'tool' AND NOT t.paired), false)
            OR (s.open_pending AND (SELECT seg FROM last_user) >= 0)
            OR EXISTS (SELECT FROM segments o WHERE o.open > 0 AND o.seg < (SELECT seg FROM last_user)) AS fault,
        EXISTS (SELECT FROM segments o WHERE o.open > 0 AND o.seg < (SELECT seg FROM last_seg) AND o.seg >= (SELECT seg FROM last_user))
            OR (s.open_pending AND (SELECT seg FROM last_user) < 0) AS pending,
        (SELECT ARRAY(SELECT c FROM (SELECT c, row_number() OVER (PARTITION BY c) AS nth FROM unnest(calls) c) x
                      WHERE nth > (SELECT count(*) FROM staged y WHERE y.seg = last_seg.seg AND y.paired AND y.tool_call_id = x.c))
         FROM last_seg) AS open_calls,
        (SELECT CASE WHEN seg = 0 THEN s.open_answered OR answered ELSE answered END FROM last_seg) AS answered
    INTO v FROM staged t;

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
    IF v.fault THEN s.suspect_seq := v.last_seq; END IF;
    s.due := @schema@.is_due(s);
    UPDATE @schema@.sessions SET
        last_seq = s.last_seq, last_source_seq = s.last_source_seq, messages = s.messages, turns = s.turns,
        total_tokens = s.total_tokens, live_messages = s.live_messages, live_tokens = s.live_tokens,
        live_estimated_tokens = s.live_estimated_tokens, messages_since_run = s.messages_since_run,
        tokens_since_run = s.tokens_since_run, turns_since_run = s.turns_since_run,
        tokens_since_report = s.tokens_since_report, suspect_seq = s.suspect_seq, due = s.due,
        last_message_at = coalesce(v.last_at, now()),
        open_calls = v.open_calls, open_answered = v.answered, open_pending = v.pending
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
RETURNS TABLE (seq bigint, id text, kind text, role text, message json, token_count int, created_at timestamptz)
LANGUAGE sql STABLE ROWS 200 AS $$
    SELECT m.seq, m.id, CASE m.kind WHEN 'm' THEN 'source' WHEN 's' THEN 'summary' ELSE 'stand_in' END,
           m.role, m.body::json, m.token_count, m.created_at
    FROM @schema@.sessions s CROSS JOIN LATERAL unnest(s.live) r(x)
    CROSS JOIN LATERAL (SELECT * FROM @schema@.message_log l
        WHERE l.sid = s.sid AND l.seq >= lower(r.x) AND l.seq < coalesce(upper(r.x), 9223372036854775807) OFFSET 0) m
    WHERE s.tenant = coalesce(nullif(p_tenant, ''), 'default') AND s.id = p_session
    ORDER BY m.position, (m.kind <> 's'), m.seq
$$;
-- +goose StatementEnd

-- Every message with why it is, or is not, in the view.
-- +goose StatementBegin
CREATE VIEW @schema@.messages AS
SELECT s.tenant, s.id AS session, m.seq, m.id,
    CASE m.kind WHEN 'm' THEN 'source' WHEN 's' THEN 'summary' ELSE 'stand_in' END AS kind,
    m.role, m.name, m.source_id, m.body::json->>'content' AS content, m.body::json AS message,
    m.token_count, m.counter AS token_counter, m.created_at, m.position, m.run,
    s.live @> m.seq AS included, NOT s.live @> m.seq AS excluded,
    x.reason AS exclude_reason, x.run AS excluded_by, x.summary_seq AS summarized_by_seq, l.id AS summarized_by,
    m.summary_of, s.pinned @> m.seq AS pinned
FROM @schema@.sessions s JOIN @schema@.message_log m ON m.sid = s.sid
LEFT JOIN LATERAL (
    SELECT e.reason, e.run, e.summary_seq FROM @schema@.exclusions e JOIN @schema@.runs r ON r.id = e.run
    WHERE e.sid = m.sid AND r.in_force AND e.seqs @> m.seq AND NOT s.live @> m.seq
    ORDER BY r.revision DESC LIMIT 1) x ON true
LEFT JOIN @schema@.message_log l ON l.sid = m.sid AND l.seq = x.summary_seq;
-- +goose StatementEnd
