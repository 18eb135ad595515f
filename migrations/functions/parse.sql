-- The timestamp in a message's envelope, or null where it is none: ISO 8601 or alike, or a unix
-- time in seconds, milli-, micro- or nanoseconds, told apart by their size. One without a zone is
-- in the session's: append sets UTC. Null, too, outside the years 1 to 9999, which RFC 3339 has.
CREATE OR REPLACE FUNCTION @schema@.parse_time(t text) RETURNS timestamptz
LANGUAGE plpgsql STABLE AS $$
DECLARE
    n numeric;
    v timestamptz;
BEGIN
    IF t ~ '^\d{4}-\d\d-\d\d' THEN
        v := t;
    ELSIF t ~ '^\d{1,19}(\.\d{1,9})?$' THEN
        n := t;
        IF n >= 1e11 THEN
            n := trunc(n);
        END IF;
        IF n > 9223372036854775807 OR n >= 1e17 AND strpos(t, '.') > 0 THEN -- which chat.Message does not read
            RETURN NULL;
        END IF;
        v := to_timestamp((n / CASE WHEN n < 1e11 THEN 1 WHEN n < 1e14 THEN 1e3 WHEN n < 1e17 THEN 1e6 ELSE 1e9 END)::double precision);
    END IF;
    RETURN CASE WHEN v > '0001-01-01 00:00:00+00' AND v < '10000-01-01 00:00:00+00' THEN v END;
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END $$;

-- JSON text that Postgres can take apart: \u0000 and lone surrogates become U+FFFD. Escaped
-- backslashes and whole pairs are set aside first, as control characters, which no JSON text holds.
CREATE OR REPLACE FUNCTION @schema@.repair_json(t text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT replace(replace(
        regexp_replace(
            regexp_replace(replace(t, '\\', chr(1)),
                '(\\u[dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})', '\1' || chr(2) || '\2', 'g'),
            '\\u(0000|[dD][89a-fA-F][0-9a-fA-F]{2}(?!' || chr(2) || '))', '\\ufffd', 'g'),
        chr(2), '\u'), chr(1), '\\')
$$;

-- Whether repair_json may have something to repair.
CREATE OR REPLACE FUNCTION @schema@.unstorable(p json) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT p::text LIKE ANY ('{"%\\\\u0000%","%\\\\ud%","%\\\\uD%"}')
$$;

-- How deep a JSON text nests.
CREATE OR REPLACE FUNCTION @schema@.json_depth(t text) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT max(depth) FROM (
        SELECT sum(CASE WHEN c IN ('[', '{') THEN 1 ELSE -1 END) OVER (ORDER BY n) AS depth
        FROM string_to_table(regexp_replace(t, '"(?:[^"\\]|\\.)*"|[^][{}"]+', '', 'g'), NULL) WITH ORDINALITY b(c, n)) d
$$;

-- Why a message in the format of another API or program is refused, with the way in where one of the
-- readers of strategies/formats has it (p_reader).
CREATE OR REPLACE FUNCTION @schema@.foreign_format(p_format text, p_sign text, p_reader text DEFAULT NULL) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT format('%s format (%s): ', p_format, p_sign) || coalesce('import it with `compactor import --format ' || p_reader
        || '`, append it with AppendFormat of the Go store, or ', '') || 'convert it to chat-completions'
$$;

-- The same for what has a role, or null for what is no other format. p_call and p_result are types of parts.
CREATE OR REPLACE FUNCTION @schema@.foreign_message(m json, p_role text, p_call text, p_result text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN p_call = 'tool_use' AND p_role = 'assistant' OR p_result = 'tool_result' AND p_role = 'user'
            THEN @schema@.foreign_format('Anthropic', coalesce(p_call, p_result) || ' in content', 'anthropic')
        WHEN p_call = 'tool-call' OR p_result = 'tool-result' THEN @schema@.foreign_format('Vercel AI SDK', coalesce(p_call, p_result) || ' in content')
        WHEN p_call = 'toolUse' OR p_result = 'toolResult' THEN @schema@.foreign_format('Bedrock Converse', coalesce(p_call, p_result) || ' in content')
        WHEN p_role IN ('user', 'assistant') AND coalesce(p_call, p_result) NOT IN ('tool_use', 'tool_result')
            THEN @schema@.foreign_format('another', coalesce(p_call, p_result) || ' in content')
        WHEN json_typeof(m->'parts'->0) = 'object' AND m->'parts'->0->'type' IS NULL THEN @schema@.foreign_format('Gemini', 'parts')
        WHEN json_typeof(m->'parts'->0) = 'object' THEN @schema@.foreign_format('Vercel AI SDK', 'parts')
        WHEN json_typeof(m->'toolInvocations'->0) = 'object' THEN @schema@.foreign_format('Vercel AI SDK', 'toolInvocations')
        WHEN json_typeof(m->'contents'->0) = 'object' THEN @schema@.foreign_format('Agent Framework', 'contents') END
$$;

-- Whether a message without content and calls says something elsewhere: what chat.Message.Validate takes for it.
CREATE OR REPLACE FUNCTION @schema@.says_otherwise(m json) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT EXISTS (SELECT FROM json_each(m) k(key, value)
        WHERE k.key ~ '^(function_call|refusal|audio)$|reasoning|thinking' AND k.value::text ~ '^\s*("[^"]|[\[{]\s*[^\s\]}])')
$$;

-- What is wrong with an object without a role.
CREATE OR REPLACE FUNCTION @schema@.roleless(m json) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN t.type IN ('session_meta', 'response_item', 'event_msg', 'turn_context', 'compacted') AND m->'payload' IS NOT NULL
            THEN @schema@.foreign_format('Codex', 'a line of type ' || t.type, 'codex')
        WHEN num_nonnulls(m->'uuid', m->'sessionId', m->'leafUuid') > 0 THEN @schema@.foreign_format('Claude Code', 'a line with uuid or sessionId', 'claude-code')
        WHEN t.type IN ('session', 'message') AND num_nonnulls(m->'message', m->'cwd') > 0 THEN @schema@.foreign_format('pi', 'a line of type ' || t.type, 'pi')
        WHEN t.type ~ '^[a-z_]{1,40}_call(_output)?$' OR t.type IN ('reasoning', 'item_reference', 'compaction')
            THEN @schema@.foreign_format('OpenAI Responses', 'an item of type ' || t.type, 'responses')
        WHEN m->'from' IS NOT NULL AND m->'value' IS NOT NULL THEN @schema@.foreign_format('ShareGPT', 'from and value', 'sharegpt')
        WHEN json_typeof(m->'messages') = 'array' THEN 'a document: append the list in its key messages'
        ELSE 'role must be a string that is not empty' END
    FROM (SELECT CASE WHEN json_typeof(m->'type') = 'string' THEN m->>'type' END AS type) t
$$;

-- Whether two bodies say the same, however they are written: order of keys, white space, nulls. b may be as the view has
-- given a out: without its reasoning, and with other ids of calls.
CREATE OR REPLACE FUNCTION @schema@.same_message(a text, b text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT a = b OR jsonb '{"tool_calls": []}' || jsonb_strip_nulls(a::jsonb) = jsonb '{"tool_calls": []}' || jsonb_strip_nulls(b::jsonb)
        OR jsonb '{"tool_calls": []}' || jsonb_strip_nulls(@schema@.without_reasoning(a)::jsonb) = jsonb '{"tool_calls": []}' || jsonb_strip_nulls(b::jsonb)
        OR coalesce(jsonb_strip_nulls(@schema@.with_said_ids(a, b)::jsonb) IN (jsonb_strip_nulls(a::jsonb), jsonb_strip_nulls(@schema@.without_reasoning(a)::jsonb)), false)
$$;

-- The flag of a message that is appended without a time: 128 in an import (see append_at), where the time of the append, which
-- is stored, is not that of the message. Whoever reads it gets none; what has to act at some time, such as the trigger idle
-- or archiving by age, takes that of the import. Elsewhere the message is as old as its append.
CREATE OR REPLACE FUNCTION @schema@.undated(p_created timestamptz) RETURNS smallint LANGUAGE sql STABLE AS $$
    SELECT (CASE WHEN p_created IS NULL AND coalesce(current_setting('compactor.quiet', true), '') = 'on' THEN 128 ELSE 0 END)::smallint
$$;

CREATE OR REPLACE FUNCTION @schema@.role_code(role text) RETURNS "char" LANGUAGE sql IMMUTABLE AS $$
    SELECT (CASE role WHEN 'system' THEN 's' WHEN 'user' THEN 'u' WHEN 'assistant' THEN 'a' WHEN 'tool' THEN 't'
        WHEN 'developer' THEN 'd' ELSE 'o' END)::"char"
$$;

-- Why a message that can be read is refused, or null, as chat.Message.Validate has it: no provider takes it.
CREATE OR REPLACE FUNCTION @schema@.unusable(p_role json, p_tool_call_id json, p_calls json) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN r.role NOT IN ('system', 'developer', 'user', 'assistant', 'tool', 'function') THEN
            format('role %s: want system, developer, user, assistant, tool or function', to_json(left(r.role, 40)))
                || coalesce('; this one is ' || CASE
                    WHEN lower(r.role) IN ('system', 'developer', 'user', 'assistant', 'tool', 'function') THEN lower(r.role)
                    WHEN lower(r.role) IN ('ai', 'bot', 'model', 'agent') THEN 'assistant'
                    WHEN lower(r.role) = 'human' THEN 'user' END, '')
        WHEN r.role = 'tool' AND coalesce(p_tool_call_id #>> '{}', '') = '' THEN 'tool_call_id: missing; a tool message names the call that it answers'
        ELSE (SELECT min(CASE WHEN coalesce(c->>'id', '') = '' THEN 'tool_calls: a call has no id; its result could not name it'
                WHEN coalesce(CASE WHEN json_typeof(k.body->'name') = 'string' THEN k.body->>'name' END, '') = ''
                    THEN 'tool_calls: a call has no function with a name' END)
            FROM json_array_elements(CASE json_typeof(p_calls) WHEN 'array' THEN p_calls END) c
            CROSS JOIN LATERAL (SELECT CASE WHEN json_typeof(b) = 'object' THEN b END AS body
                FROM (SELECT CASE WHEN coalesce(json_typeof(c->'function'), 'null') <> 'null' THEN c->'function' ELSE c->'custom' END AS b) x) k
            WHERE json_typeof(c) = 'object') END
    FROM (SELECT p_role #>> '{}' AS role) r
$$;

-- Takes an array of messages apart. Facts are those that chat.Message has; what chat.Message would
-- not read is a fault, and so is what it would read as less than it is: calls, results and contents
-- where another format has them. Messages without an id get one from the idempotency key, if any. format_keys: with keys that the
-- readers of formats keep for these (formats.WithoutKeys), or calls that may have some.
CREATE OR REPLACE FUNCTION @schema@.parse_messages(p json, p_key text) RETURNS SETOF @schema@.parsed_message
LANGUAGE sql STABLE AS $$
    SELECT f.ord, coalesce(f.id #>> '{}', p_key || '#' || f.ord), CASE f.role #>> '{}' WHEN 'function' THEN 'tool' ELSE f.role #>> '{}' END, CASE WHEN json_typeof(f.name) = 'string' THEN f.name #>> '{}' END,
        f.source_id, f.tool_call_id #>> '{}', f.call_ids,
        -- bytes/3; images and the like at a flat cost, whatever their encoded length
        CASE WHEN f.token_count IS NULL THEN least(2147483647, (octet_length(f.body) - f.media_octets + 2) / 3 + 1000 * f.media)::int
             WHEN f.token_count ~ '^\d{1,9}$' THEN f.token_count::int END,
        CASE WHEN f.token_count IS NULL THEN 'bytes/3' ELSE coalesce(f.token_counter, 'application') END,
        (f.has_text::int + CASE WHEN NOT f.has_reasoning THEN 0 WHEN f.signed THEN 2 ELSE 66 END + 4 * (f.media > 0)::int + 16 * (f.token_count IS NULL OR @schema@.estimates(f.token_counter))::int)::smallint,
        f.role #>> '{}' = 'assistant' AND f.has_reasoning AND NOT f.has_text AND f.media = 0 AND f.call_ids IS NULL,
        f.created, f.body,
        CASE WHEN json_typeof(f.role) IS DISTINCT FROM 'string' OR f.role #>> '{}' = '' THEN @schema@.roleless(f.m)
             WHEN json_typeof(f.id) <> 'string' THEN 'id must be a string'
             WHEN f.token_count !~ '^\d{1,9}$' THEN 'token_count must be a whole number, 0 or more'
             WHEN json_typeof(f.tool_call_id) <> 'string' THEN 'tool_call_id must be a string'
             WHEN json_typeof(f.content) NOT IN ('string', 'array') THEN 'content must be a string, an array of parts or null'
             WHEN f.bad_part THEN 'content: a part must be a string or an object with a type that is a string'
             WHEN json_typeof(f.tool_calls) <> 'array' THEN 'tool_calls must be an array'
             WHEN f.bad_call THEN 'tool_calls: a call must be an object with an id that is a string'
             WHEN cardinality(f.call_ids) > 32767 THEN format('tool_calls: at most 32767 calls, not %s', cardinality(f.call_ids))
             -- encoding/json reads 10,000 levels, and a message is read within others.
             WHEN octet_length(f.body) > 19800 AND octet_length(f.body) - octet_length(replace(replace(f.body, '[', ''), '{', '')) > 9900
                 AND @schema@.json_depth(f.body) > 9900 THEN 'nested deeper than 9900 levels'
             ELSE coalesce(
                 CASE WHEN num_nonnulls(f.call_part, f.result_part, f.parts, f."toolInvocations", f.contents) > 0
                     THEN @schema@.foreign_message(f.m, f.role #>> '{}', CASE WHEN f.call_ids IS NULL THEN f.call_part END,
                         CASE WHEN f.tool_call_id IS NULL THEN f.result_part END) END,
                 CASE WHEN f.role #>> '{}' IN ('user', 'assistant') AND f.call_ids IS NULL
                         AND (f.content IS NULL AND (f.role #>> '{}' = 'user' OR f.m->'content' IS NULL) OR json_typeof(f.content) = 'array' AND json_array_length(f.content) = 0)
                         AND NOT @schema@.says_otherwise(f.m)
                     THEN 'content: missing; want a text, parts or tool_calls' END,
                 -- Most messages need no call of a function.
                 CASE WHEN f.odd_call OR NOT (f.role #>> '{}' IN ('system', 'developer', 'user', 'assistant') OR f.role #>> '{}' = 'tool' AND f.tool_call_id #>> '{}' <> '') IS TRUE
                     THEN @schema@.unusable(f.role, f.tool_call_id, f.tool_calls) END) END,
        num_nonnulls(f.anthropic, f.claude_code, f.codex, f.is_compact_summary, f.is_error, f.is_meta, f.parent_id, f.pi, f.responses, f.sharegpt) > 0
            OR f.tool_calls::text ~ '"(anthropic|pi|responses|sharegpt)"' IS true
    FROM (
        SELECT e.*, c.created,
            coalesce(parts.media, 0) AS media, coalesce(parts.media_octets, 0) AS media_octets, parts.bad AS bad_part,
            parts.call_part, parts.result_part,
            -- A call from before tools has no id, and its result, of the role function, none either.
            CASE WHEN calls.ids IS NULL AND json_typeof(e.function_call) = 'object' AND e.role #>> '{}' = 'assistant' THEN '{""}' ELSE calls.ids END AS call_ids,
            calls.bad AS bad_call, calls.odd AS odd_call,
            CASE json_typeof(e.content) WHEN 'string' THEN e.content #>> '{}' ~ b.letter ELSE coalesce(parts.has_text, false) END AS has_text,
            coalesce(parts.has_reasoning, false) OR r.beside IS NOT NULL AS has_reasoning,
            coalesce(parts.signed, false) OR coalesce(r.beside ~ b.signature, false) AS signed,
            -- The message without its envelope, its fields otherwise untouched and in their order.
            CASE WHEN num_nonnulls(e.id, e.created_at, e.token_count, e.token_counter, e.source_id) = 0
                    AND NOT (e.m::text LIKE '%null%' AND e.m::text ~ '"(id|created_at|token_count|token_counter|source_id)"\s*:\s*null')
                THEN e.m::text ELSE
                (SELECT '{' || string_agg(to_json(k.key)::text || ':' || k.value::text, ',' ORDER BY k.n) || '}'
                 FROM json_each(e.m) WITH ORDINALITY k(key, value, n)
                 WHERE k.key NOT IN ('id', 'token_count', 'token_counter', 'source_id')
                    AND (k.key <> 'created_at' OR c.created IS NULL AND json_typeof(k.value) <> 'null')) END AS body
        FROM ROWS FROM (json_array_elements(p),
                json_to_recordset(p) AS (id json, role json, name json, content json, tool_calls json, function_call json, tool_call_id json,
                    reasoning json, reasoning_content json, reasoning_text json, reasoning_details json, reasoning_items json, reasoning_opaque json, reasoning_signature json,
                    thinking json, thinking_blocks json, thinking_signature json, redacted_thinking json, codex_reasoning_items json, encrypted_content json, thought_signature json,
                    parts json, contents json, "toolInvocations" json,
                    anthropic json, claude_code json, codex json, is_compact_summary json, is_error json, is_meta json, parent_id json, pi json, responses json, sharegpt json,
                    created_at text, token_count text, token_counter text, source_id text))
            WITH ORDINALITY AS e(m, id, role, name, content, tool_calls, function_call, tool_call_id,
                    reasoning, reasoning_content, reasoning_text, reasoning_details, reasoning_items, reasoning_opaque, reasoning_signature,
                    thinking, thinking_blocks, thinking_signature, redacted_thinking, codex_reasoning_items, encrypted_content, thought_signature,
                    parts, contents, "toolInvocations", anthropic, claude_code, codex, is_compact_summary, is_error, is_meta, parent_id, pi, responses, sharegpt, created_at, token_count, token_counter, source_id, ord)
        -- letter: something other than what Go calls white space. filled: a string, array or object that holds something.
        -- signature: a key with a signature or encrypted data, as in chat. call: a part that is a call or a result, as in chat.
        CROSS JOIN (VALUES ('[^\t\n\v\f\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]',
                '^\s*("[^"]|[\[{]\s*[^\s\]}])',
                '"[A-Za-z_]*([sS]ignature|[eE]ncrypted_?[cC]ontent|[dD]ata|opaque|redacted_thinking)"[ \t\n\r]*:[ \t\n\r]*"[^"]',
                '^(tool-|(dynamic-tool|tool_?([uU]se|[cC]all(_output)?|[rR]equest|[rR]esult|[rR]esponse|output)|function_?([cC]all(_output)?|[rR]esult|[rR]esponse))$)')) b(letter, filled, signature, call)
        CROSS JOIN LATERAL (SELECT CASE WHEN e.created_at IS NOT NULL THEN @schema@.parse_time(e.created_at) END AS created OFFSET 0) c
        -- beside: the reasoning that is not in the content.
        CROSS JOIN LATERAL (SELECT CASE WHEN num_nonnulls(e.reasoning, e.reasoning_content, e.reasoning_text, e.reasoning_details, e.reasoning_items, e.reasoning_opaque, e.reasoning_signature,
                    e.thinking, e.thinking_blocks, e.thinking_signature, e.redacted_thinking, e.codex_reasoning_items, e.encrypted_content, e.thought_signature) > 0 THEN
                (SELECT string_agg('"' || k.key || '":' || k.value, ' ') FROM unnest(@schema@.reasoning_keys(), ARRAY[e.reasoning, e.reasoning_content, e.reasoning_text, e.reasoning_details, e.reasoning_items, e.reasoning_opaque, e.reasoning_signature,
                    e.thinking, e.thinking_blocks, e.thinking_signature, e.redacted_thinking, e.codex_reasoning_items, e.encrypted_content, e.thought_signature]) k(key, value)
                 WHERE k.value::text ~ b.filled) END AS beside OFFSET 0) r
        LEFT JOIN LATERAL (
            SELECT bool_or(CASE json_typeof(x.p) WHEN 'string' THEN x.p #>> '{}' ~ b.letter
                    WHEN 'object' THEN json_typeof(x.said) = 'string' AND x.said #>> '{}' ~ b.letter END) AS has_text,
                bool_or(x.type = ANY (@schema@.reasoning_types())) AS has_reasoning,
                bool_or(x.type = ANY (@schema@.reasoning_types()) AND x.p::text ~ b.signature) AS signed,
                count(*) FILTER (WHERE x.media) AS media, sum(octet_length(x.p::text)) FILTER (WHERE x.media) AS media_octets,
                bool_or(x.bad) AS bad,
                max(CASE WHEN x.type ~ b.call AND x.type !~ '[rR]esult|[rR]esponse|_output' THEN x.type WHEN x.type = '' AND x.p->'toolUse' IS NOT NULL THEN 'toolUse' END) AS call_part,
                max(CASE WHEN x.type ~ b.call AND x.type ~ '[rR]esult|[rR]esponse|_output' THEN x.type WHEN x.type = '' AND x.p->'toolResult' IS NOT NULL THEN 'toolResult' END)
                    AS result_part
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
                    OR json_typeof(CASE WHEN json_typeof(o.c) = 'object' THEN o.c->'id' END) NOT IN ('string', 'null')) AS bad,
                -- other than with an id and a named function, as most have
                bool_or((o.c->>'id' <> '' AND json_typeof(o.c->'function'->'name') = 'string' AND o.c->'function'->>'name' <> '') IS NOT true) AS odd
            FROM json_array_elements(CASE json_typeof(e.tool_calls) WHEN 'array' THEN e.tool_calls END) o(c)) calls ON true
        OFFSET 0   -- or the body is made anew wherever it is named
    ) f
$$;

-- The same for the one message that most appends have: of the user or the agent, with a text and neither calls nor reasoning.
-- Null for another one, also for one with a fault: parse_messages says which. A test compares both.
CREATE OR REPLACE FUNCTION @schema@.parse_plain(m json, p_key text) RETURNS @schema@.parsed_message LANGUAGE plpgsql STABLE AS $$
DECLARE
    f         record;
    v_created timestamptz;
    v_body    text := m;
BEGIN
    IF json_typeof(m) <> 'object' OR octet_length(v_body) > 19800 THEN   -- a long one may nest deeply
        RETURN NULL;
    END IF;
    SELECT * INTO f FROM json_to_record(m) AS x(id json, role json, name json, content json, tool_calls json, function_call json, tool_call_id json,
        reasoning json, reasoning_content json, reasoning_text json, reasoning_details json, reasoning_items json, reasoning_opaque json, reasoning_signature json,
        thinking json, thinking_blocks json, thinking_signature json, redacted_thinking json, codex_reasoning_items json, encrypted_content json, thought_signature json,
        parts json, contents json, "toolInvocations" json,
        anthropic json, claude_code json, codex json, is_compact_summary json, is_error json, is_meta json, parent_id json, pi json, responses json, sharegpt json,
        created_at text, token_count text, token_counter text, source_id text);
    IF (json_typeof(f.content) = 'string' AND json_typeof(f.role) = 'string' AND f.role #>> '{}' IN ('user', 'assistant')
            AND num_nonnulls(f.tool_calls, f.function_call, f.tool_call_id,
                f.reasoning, f.reasoning_content, f.reasoning_text, f.reasoning_details, f.reasoning_items, f.reasoning_opaque, f.reasoning_signature,
                f.thinking, f.thinking_blocks, f.thinking_signature, f.redacted_thinking, f.codex_reasoning_items, f.encrypted_content, f.thought_signature,
                f.parts, f.contents, f."toolInvocations") = 0
            AND coalesce(json_typeof(f.id), 'string') = 'string' AND octet_length(coalesce(f.id #>> '{}', p_key, '')) <= 1000 AND coalesce(f.token_count, '0') ~ '^\d{1,9}$') IS NOT true THEN
        RETURN NULL;
    END IF;
    v_created := CASE WHEN f.created_at IS NOT NULL THEN @schema@.parse_time(f.created_at) END;
    IF num_nonnulls(f.id, f.created_at, f.token_count, f.token_counter, f.source_id) > 0
            OR v_body LIKE '%null%' AND v_body ~ '"(id|created_at|token_count|token_counter|source_id)"\s*:\s*null' THEN
        v_body := (SELECT '{' || string_agg(to_json(k.key)::text || ':' || k.value::text, ',' ORDER BY k.n) || '}'
            FROM json_each(m) WITH ORDINALITY k(key, value, n)
            WHERE k.key NOT IN ('id', 'token_count', 'token_counter', 'source_id')
                AND (k.key <> 'created_at' OR v_created IS NULL AND json_typeof(k.value) <> 'null'));
    END IF;
    RETURN ROW(1, coalesce(f.id #>> '{}', p_key || '#1'), f.role #>> '{}', CASE WHEN json_typeof(f.name) = 'string' THEN f.name #>> '{}' END,
        f.source_id, NULL, NULL, coalesce(f.token_count::int, (octet_length(v_body) + 2) / 3),
        CASE WHEN f.token_count IS NULL THEN 'bytes/3' ELSE coalesce(f.token_counter, 'application') END,
        (f.content #>> '{}' ~ '[^\t\n\v\f\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]')::int
            + 16 * (f.token_count IS NULL OR @schema@.estimates(f.token_counter))::int,
        false, v_created, v_body, NULL, num_nonnulls(f.anthropic, f.claude_code, f.codex, f.is_compact_summary, f.is_error, f.is_meta, f.parent_id, f.pi, f.responses, f.sharegpt) > 0)::@schema@.parsed_message;
END $$;
