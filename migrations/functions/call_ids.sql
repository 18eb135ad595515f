-- Some servers give all parallel calls of a message one id, which no provider takes back. The view gives them different ones, and
-- their results the same, in order, as package formats does; the log has what was said.

-- Whether an id is there twice.
CREATE OR REPLACE FUNCTION @schema@.repeats(p_ids text[]) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT cardinality(p_ids) > 1 AND cardinality(p_ids) > (SELECT count(DISTINCT i) FROM unnest(p_ids) i)
$$;

-- The ids of a message's calls.
CREATE OR REPLACE FUNCTION @schema@.ids_of_calls(p_body text) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT array_agg(coalesce(c->>'id', '') ORDER BY i) FROM json_array_elements(CASE json_typeof(p_body::json->'tool_calls') WHEN 'array' THEN p_body::json->'tool_calls' END)
        WITH ORDINALITY e(c, i)
$$;

-- A message with other ids of its calls (p_calls) or of the call that it answers (p_call); null changes nothing.
CREATE OR REPLACE FUNCTION @schema@.with_call_ids(p_body text, p_calls text[], p_call text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT '{' || string_agg(to_json(k.key)::text || ':' || CASE
        WHEN k.key = 'tool_call_id' AND p_call IS NOT NULL THEN to_json(p_call)::text
        WHEN k.key = 'tool_calls' AND p_calls IS NOT NULL THEN (SELECT '[' || string_agg((SELECT '{' || string_agg(to_json(f.key)::text || ':'
                || CASE f.key WHEN 'id' THEN to_json(p_calls[e.i])::text ELSE f.value::text END, ',' ORDER BY f.n) || '}'
            FROM json_each(e.c) WITH ORDINALITY f(key, value, n)), ',' ORDER BY e.i) || ']' FROM json_array_elements(k.value) WITH ORDINALITY e(c, i))
        ELSE k.value::text END, ',' ORDER BY k.n) || '}'
    FROM json_each(p_body::json) WITH ORDINALITY k(key, value, n)
$$;

-- A message as the view has given it out, b, with the ids of the message that was said, a; null if they are others. The view puts a
-- number behind an id.
CREATE OR REPLACE FUNCTION @schema@.with_said_ids(a text, b text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT @schema@.with_call_ids(b, s.said, s.answers)
    FROM (SELECT @schema@.ids_of_calls(a) AS said, @schema@.ids_of_calls(b) AS given, a::json->>'tool_call_id' AS answers, b::json->>'tool_call_id' AS answers_given) s
    WHERE cardinality(s.said) = cardinality(s.given) AND @schema@.repeats(s.said)
            AND NOT EXISTS (SELECT FROM unnest(s.said, s.given) i(said, given) WHERE i.given <> i.said AND regexp_replace(i.given, '_\d+$', '') <> i.said)
        OR s.said IS NULL AND s.given IS NULL AND regexp_replace(s.answers_given, '_\d+$', '') = s.answers
$$;

-- The rows of view for a session of which a message repeats an id.
CREATE OR REPLACE FUNCTION @schema@.view_distinct(p_sid bigint, p_live int8multirange, p_out int8multirange)
RETURNS TABLE (seq bigint, id text, kind text, role text, message json, token_count int, created_at timestamptz, source_id text)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    r       record;
    v_taken text[];     -- ids of the session
    v_last  jsonb := '{}';     -- the last number behind an id
    v_old   text[];     -- ids of the last calls without a result, and what they became
    v_new   text[];
    v_ids   text[];     -- those of a message, and what they become
    v_told  text[];
    v_ended boolean := true;   -- a result has come since the last calls
    v_body  text;
    v_id    text;
    i       int;
    n       int;
BEGIN
    SELECT array_agg(DISTINCT c) INTO v_taken FROM @schema@.view_rows(p_sid, p_live, p_out) v
    CROSS JOIN LATERAL (SELECT m.call_ids FROM @schema@.message_log m WHERE m.sid = p_sid AND m.seq = v.seq OFFSET 0) l CROSS JOIN LATERAL unnest(l.call_ids) c WHERE v.calls > 0;
    FOR r IN SELECT l.seq, l.id, l.kind, l.role, v.role_code, v.calls, v.token_count, CASE WHEN l.flags & 128 = 0 THEN l.created_at END AS created_at, l.source_id,
            CASE WHEN @schema@.signed_reasoning(l.flags) AND p_out @> l.seq THEN @schema@.without_reasoning(b.body) ELSE b.body END AS body
        FROM @schema@.view_rows(p_sid, p_live, p_out) v CROSS JOIN LATERAL (SELECT * FROM @schema@.message_log m WHERE m.sid = p_sid AND m.seq = v.seq OFFSET 0) l
        LEFT JOIN LATERAL (SELECT m.body FROM @schema@.message_body m WHERE m.sid = p_sid AND m.seq = v.seq OFFSET 0) b ON true
        ORDER BY v.position, (v.kind <> 's'), (v.kind = 'm' AND v.position <> v.seq), v.seq
    LOOP
        v_body := r.body;
        IF r.role_code = 'a' AND r.calls > 0 THEN
            IF v_ended THEN
                v_old := '{}';
                v_new := '{}';
                v_ended := false;
            END IF;
            v_ids := @schema@.ids_of_calls(v_body);
            v_told := v_ids;
            FOR i IN 1 .. coalesce(cardinality(v_ids), 0) LOOP
                CONTINUE WHEN v_ids[i] <> '' AND NOT v_ids[i] = ANY (v_new || v_told[:i - 1]);
                v_id := coalesce(nullif(v_ids[i], ''), 'call');
                n := coalesce((v_last->>v_id)::int, 1) + 1;
                WHILE v_id || '_' || n = ANY (v_taken) LOOP n := n + 1; END LOOP;
                v_told[i] := v_id || '_' || n;
                v_taken := v_taken || v_told[i];
                v_last := v_last || jsonb_build_object(v_id, n);
            END LOOP;
            IF v_told <> v_ids THEN
                v_body := @schema@.with_call_ids(v_body, v_told, NULL);
            END IF;
            v_old := v_old || v_ids;
            v_new := v_new || v_told;
        ELSIF r.role_code = 't' THEN
            v_ended := true;
            i := array_position(v_old, v_body::json->>'tool_call_id');
            IF i IS NOT NULL THEN
                IF v_new[i] <> v_old[i] THEN
                    v_body := @schema@.with_call_ids(v_body, NULL, v_new[i]);
                END IF;
                v_old := v_old[:i - 1] || v_old[i + 1:];
                v_new := v_new[:i - 1] || v_new[i + 1:];
            END IF;
        END IF;
        RETURN QUERY SELECT r.seq, r.id, CASE r.kind WHEN 'm' THEN 'source' WHEN 's' THEN 'summary' ELSE 'replacement' END, r.role, v_body::json,
            r.token_count, r.created_at, r.source_id;
    END LOOP;
END $$;
