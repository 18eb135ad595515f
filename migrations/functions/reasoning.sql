-- Providers bind signed and encrypted reasoning to everything before it. The view holds it only where that is as it was
-- when the reasoning was written (I15): sessions.reasoning_out has the messages that are in the view without theirs.

-- The flags are those of chat.Flags: 2 reasoning, 64 none of it is signed.
CREATE OR REPLACE FUNCTION @schema@.signed_reasoning(p_flags smallint) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT p_flags & 66 = 2
$$;

-- A message without its reasoning, as chat.Message.WithoutReasoning has it.
CREATE OR REPLACE FUNCTION @schema@.without_reasoning(p_body text) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT '{' || coalesce(string_agg(to_json(k.key)::text || ':' || CASE WHEN k.key = 'content' AND json_typeof(k.value) = 'array' THEN
        coalesce((SELECT '[' || string_agg(p::text, ',' ORDER BY i) || ']' FROM json_array_elements(k.value) WITH ORDINALITY e(p, i)
            WHERE json_typeof(p) <> 'object' OR NOT coalesce(p->>'type', '') = ANY (@schema@.reasoning_types())), 'null')
        ELSE k.value::text END, ',' ORDER BY k.n), '') || '}'
    FROM json_each(p_body::json) WITH ORDINALITY k(key, value, n)
    WHERE NOT k.key = ANY (@schema@.reasoning_keys())
$$;

-- The keys of a message that hold reasoning, as chat.ReasoningKeys has them.
CREATE OR REPLACE FUNCTION @schema@.reasoning_keys() RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT '{reasoning,reasoning_content,reasoning_text,reasoning_details,reasoning_items,reasoning_opaque,reasoning_signature,thinking,thinking_blocks,thinking_signature,redacted_thinking,codex_reasoning_items,encrypted_content,thought_signature}'::text[]
$$;

-- The types of content parts that are reasoning.
CREATE OR REPLACE FUNCTION @schema@.reasoning_types() RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT '{thinking,redacted_thinking,reasoning,reasoning_text,summary_text}'::text[]
$$;

-- The part of a message's count that its reasoning takes, by its share of the bytes: who counted the message counted it whole.
CREATE OR REPLACE FUNCTION @schema@.reasoning_tokens(p_body text, p_tokens int) RETURNS int LANGUAGE sql IMMUTABLE AS $$
    SELECT (p_tokens::bigint * greatest(0, octet_length(p_body) - octet_length(@schema@.without_reasoning(p_body))) / octet_length(p_body))::int
$$;

-- The metadata of a view. What is left of a message without its reasoning has neither its flags nor its tokens; a
-- message of which nothing is left is not in the view. Costs what the view holds: OFFSET 0 keeps the planner on the ranges.
CREATE OR REPLACE FUNCTION @schema@.view_rows(p_sid bigint, p_live int8multirange, p_out int8multirange)
RETURNS TABLE (seq bigint, "position" bigint, token_count int, calls smallint, flags smallint, role_code "char", kind "char", reasoning_tokens int)
LANGUAGE sql STABLE ROWS 200 AS $$
    SELECT l.seq, l.position, CASE WHEN l.bare THEN l.token_count - l.reasoning ELSE l.token_count END, l.calls,
        CASE WHEN l.bare THEN l.flags - 2::smallint ELSE l.flags END, l.role_code, l.kind, CASE WHEN l.bare THEN 0 ELSE l.reasoning END
    FROM unnest(p_live) x CROSS JOIN LATERAL (
        SELECT m.seq, m.position, m.token_count, m.calls, m.flags, m.role_code, m.kind,
            @schema@.signed_reasoning(m.flags) AND p_out @> m.seq AS bare,
            coalesce(m.reasoning_tokens, 0) AS reasoning
        FROM @schema@.message_log m
        WHERE m.sid = p_sid AND m.seq >= lower(x) AND m.seq < coalesce(upper(x), 9223372036854775807) OFFSET 0) l
    WHERE NOT (l.bare AND @schema@.reasoning_only(l.role_code, l.calls, l.flags))
$$;

-- What signed reasoning takes of a part of a view: the messages that hold nothing else, and the tokens.
CREATE OR REPLACE FUNCTION @schema@.reasoning_in(p_sid bigint, p_live int8multirange, OUT messages bigint, OUT tokens bigint, OUT estimated bigint)
LANGUAGE sql STABLE AS $$
    SELECT count(*) FILTER (WHERE alone), coalesce(sum(size), 0), coalesce(sum(size) FILTER (WHERE flags & 16 > 0), 0)
    FROM (SELECT flags, @schema@.reasoning_only(role_code, calls, flags) AS alone,
              CASE WHEN @schema@.reasoning_only(role_code, calls, flags) THEN token_count ELSE reasoning_tokens END AS size
          FROM @schema@.view_rows(p_sid, p_live, '{}') WHERE @schema@.signed_reasoning(flags)) r
$$;

-- The messages whose reasoning leaves a view that has changed at a position, as chat.StaleReasoning has them.
CREATE OR REPLACE FUNCTION @schema@.stale_reasoning(p_sid bigint, p_live int8multirange, p_from bigint) RETURNS int8multirange LANGUAGE sql STABLE AS $$
    SELECT coalesce(range_agg(int8range(first, last + 1)), '{}') FROM (
        SELECT min(seq) AS first, max(seq) AS last FROM (
            SELECT r.seq, r.position >= p_from AS stale, count(*) FILTER (WHERE r.position < p_from) OVER (ORDER BY r.seq) AS kept
            FROM @schema@.view_rows(p_sid, p_live, '{}') r WHERE @schema@.signed_reasoning(r.flags)) s
        WHERE stale GROUP BY kept) g
$$;

-- The position of the first message that is in one view and not in the other, up to a seq.
CREATE OR REPLACE FUNCTION @schema@.first_change(p_sid bigint, p_before int8multirange, p_after int8multirange, p_last bigint)
RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT min(r.position)
    FROM @schema@.view_rows(p_sid, (p_before - p_after + (p_after - p_before)) * int8multirange(int8range(1, p_last + 1)), '{}') r
$$;

-- The position up to which an open tool loop holds the view as it is, as chat.OpenReasoning has it: that of its last
-- message with signed reasoning, which the provider wants back. Null for none.
CREATE OR REPLACE FUNCTION @schema@.open_reasoning(s @schema@.sessions) RETURNS bigint LANGUAGE sql STABLE AS $$
    WITH v AS MATERIALIZED (SELECT * FROM @schema@.view_rows(s.sid, s.live, s.reasoning_out)
    ), last AS (
        SELECT role_code, calls FROM v WHERE role_code <> 't' AND NOT @schema@.reasoning_only(role_code, calls, flags)
        ORDER BY position DESC, (kind = 's'), (kind = 'm' AND position <> seq) DESC, seq DESC LIMIT 1)
    SELECT max(position) FROM v
    WHERE @schema@.signed_reasoning(flags) AND EXISTS (SELECT FROM last WHERE role_code = 'a' AND calls > 0)
        AND position > (SELECT coalesce(max(position), 0) FROM v WHERE role_code = 'u' AND kind <> 's')
$$;

-- Refuses a change of the view from a position on while an open tool loop holds it.
CREATE OR REPLACE FUNCTION @schema@.refuse_in_open_loop(s @schema@.sessions, p_from bigint) RETURNS void LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF s.reasoning_since IS NOT NULL AND p_from <= @schema@.open_reasoning(s) THEN
        RAISE EXCEPTION 'session % has an open tool loop with signed reasoning: nothing before it can change until it has ended', s.id
            USING ERRCODE = 'object_in_use';
    END IF;
END $$;

-- Whether the model of a session accepts signed reasoning whatever precedes it. Runs of workers and histories decide themselves.
CREATE OR REPLACE FUNCTION @schema@.free_reasoning(s @schema@.sessions) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT t.free_reasoning FROM @schema@.thresholds_of(s.policy, s.model) t), false)
$$;

-- append for what was written on the view of a revision: the signed reasoning of an answer that was asked for before a
-- run, and comes after it, is not valid on the new view. append takes what it gets as written on the present one. A revision that
-- the session has not had yet is an error, the same as for replace_view: it is of another session or of a lost database.
CREATE OR REPLACE FUNCTION @schema@.append_on(p_tenant text, p_session text, p_revision bigint, p_messages json, p_model text DEFAULT NULL,
    p_key text DEFAULT NULL)
RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    s      @schema@.sessions;
    v_then bigint;
    v_seqs bigint[];
    v_gone int8multirange;
    v      record;
BEGIN
    s := @schema@.lock_session(p_tenant, p_session, p_model, true);
    v_then := s.revision;
    IF p_revision > v_then THEN
        RAISE EXCEPTION 'session % is at revision %, not % yet: read the view again', s.id, v_then, p_revision USING ERRCODE = 'serialization_failure';
    END IF;
    v_seqs := @schema@.append(p_tenant, p_session, p_messages, p_model, p_key);
    IF p_revision = v_then OR s.reasoning_since IS NULL THEN
        RETURN v_seqs;
    END IF;
    v_gone := @schema@.stale_reasoning(s.sid, s.live, s.last_seq + 1);
    SELECT * INTO s FROM @schema@.sessions WHERE sid = s.sid;   -- append may have repaired the view
    v_gone := v_gone - s.reasoning_out;
    SELECT * INTO v FROM @schema@.reasoning_in(s.sid, s.live * v_gone);
    UPDATE @schema@.sessions SET reasoning_out = reasoning_out + v_gone, live_messages = live_messages - v.messages,
        live_tokens = live_tokens - v.tokens, live_estimated_tokens = live_estimated_tokens - v.estimated WHERE sid = s.sid;
    UPDATE @schema@.runs SET reasoning_taken = reasoning_taken + v_gone WHERE id = s.head_run;
    RETURN v_seqs;
END $$;

-- For literals and parameters without a type, and for jsonb: see append.
CREATE OR REPLACE FUNCTION @schema@.append_on(p_tenant text, p_session text, p_revision bigint, p_messages text, p_model text DEFAULT NULL,
    p_key text DEFAULT NULL)
RETURNS bigint[] LANGUAGE sql AS $$ SELECT @schema@.append_on(p_tenant, p_session, p_revision, p_messages::json, p_model, p_key) $$;

CREATE OR REPLACE FUNCTION @schema@.append_on(p_tenant text, p_session text, p_revision bigint, p_messages jsonb, p_model text DEFAULT NULL,
    p_key text DEFAULT NULL)
RETURNS bigint[] LANGUAGE sql AS $$ SELECT @schema@.append_on(p_tenant, p_session, p_revision, p_messages::json, p_model, p_key) $$;
