-- The text of a message: that of its parts, if it has parts.
CREATE OR REPLACE FUNCTION @schema@.message_text(m jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE jsonb_typeof(m->'content') WHEN 'array' THEN coalesce((SELECT string_agg(p->>'text', E'\n\n') FROM jsonb_array_elements(m->'content') p), '')
        ELSE coalesce(m->>'content', '') END
$$;

-- The view of a session as an attached table needs it, parallel calls apart: row is the key of the row that a message came from, null
-- for one that no row has, that of an erased one by its id; origin is the id of the message that a replacement stands for, at the place in the log. kind is source, bare for
-- one without its signed reasoning, replacement or summary. Where all are sources, messages are read with p_bodies alone.
CREATE OR REPLACE FUNCTION @schema@.attached_view(p_tenant text, p_session text, p_bodies boolean DEFAULT true)
RETURNS TABLE (n bigint, id text, kind text, "row" text, origin text, at bigint, covers int8multirange, message json)
LANGUAGE plpgsql STABLE ROWS 200 SET jit = off SET enable_mergejoin = off SET plan_cache_mode = 'force_generic_plan' AS $$
#variable_conflict use_column
BEGIN   -- not LANGUAGE sql, which would plan this again in each call
    RETURN QUERY WITH r AS MATERIALIZED (
        SELECT v.seq, v.position, v.kind, l.id, coalesce(l.source_id, substring(l.id FROM '^(.*)#[0-9]+@[0-9]+$')) AS source_id, l.summary_of, s.erased @> v.seq AS erased, @schema@.signed_reasoning(l.flags) AND s.reasoning_out @> v.seq AS bare
        FROM (SELECT t.sid, t.live, t.reasoning_out, t.erased FROM @schema@.sessions t WHERE t.tenant = (SELECT @schema@.tenant_of(p_tenant)) AND t.id = p_session) s
        CROSS JOIN LATERAL @schema@.view_rows(s.sid, s.live, s.reasoning_out) v
        CROSS JOIN LATERAL (SELECT m.id, m.source_id, m.summary_of, m.flags, m.sid FROM @schema@.message_log m WHERE m.sid = s.sid AND m.seq = v.seq OFFSET 0) l)
    SELECT row_number() OVER w, r.id, CASE WHEN r.kind = 's' THEN 'summary' WHEN r.kind <> 'm' OR r.erased THEN 'replacement' WHEN r.bare THEN 'bare' ELSE 'source' END,
        CASE r.kind WHEN 'm' THEN r.source_id ELSE o.source_id END, CASE r.kind WHEN 'm' THEN r.id ELSE o.id END, r.position, r.summary_of, v.message
    FROM r
    LEFT JOIN (SELECT f.seq, f.message FROM @schema@.view(p_tenant, p_session, false) f WHERE p_bodies OR (SELECT bool_or(c.kind <> 'm' OR c.bare OR c.erased) FROM r c)) v ON v.seq = r.seq
    LEFT JOIN LATERAL (SELECT m.id, m.source_id FROM @schema@.sessions t JOIN @schema@.message_log m ON m.sid = t.sid
        WHERE r.kind = 'i' AND t.tenant = (SELECT @schema@.tenant_of(p_tenant)) AND t.id = p_session AND m.seq = lower(r.summary_of) OFFSET 0) o ON true
    WINDOW w AS (ORDER BY r.position, (r.kind <> 's'), (r.kind = 'm' AND r.position <> r.seq), r.seq)
    ORDER BY 1;
END $$;

-- The parts of a row of which some messages are in the view, or say something else: c has ids, those of the row's messages, elements,
-- which of them each part belongs to, and messages, those in the view. A call and its result are one part, in p_inner of it or in the part
-- itself. For a summary (fresh), one part with its text.
CREATE OR REPLACE FUNCTION @schema@.encode_parts(p_parts jsonb, c jsonb, p_inner text, p_result text, p_input text) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN c ? 'fresh' THEN jsonb_build_array(jsonb_build_object('type', 'text', 'text', @schema@.message_text(c->'messages'->0->'message')))
        ELSE (SELECT coalesce(jsonb_agg(CASE
                WHEN p.call IS NULL AND p.said->>'kind' = 'replacement' AND p.part->>'type' = 'text' THEN p.part || jsonb_build_object('text', @schema@.message_text(p.said->'message'))
                WHEN p.call IS NULL OR p.answer IS NULL AND p.said->>'kind' <> 'replacement' THEN p.part
                WHEN p_inner IS NULL THEN p.part || p.changed ELSE p.part || jsonb_build_object(p_inner, p.call || p.changed) END ORDER BY p.n), '[]')
            FROM (SELECT q.*, CASE WHEN q.answer IS NULL THEN '{}' ELSE jsonb_build_object(p_result, @schema@.message_text(q.answer)) END
                    || CASE WHEN q.said->>'kind' <> 'replacement' THEN '{}' ELSE coalesce((SELECT jsonb_build_object(p_input, (t->'function'->>'arguments')::jsonb)
                        FROM jsonb_array_elements(q.said->'message'->'tool_calls') t WHERE t->>'id' = q.call->>'toolCallId'), '{}') END AS changed
            FROM (SELECT e.part, e.n, k.call, said, (SELECT a->'message' FROM jsonb_array_elements(c->'messages') a
                    WHERE a->'message'->>'tool_call_id' = k.call->>'toolCallId' AND a->>'kind' = 'replacement' LIMIT 1) AS answer,
                    row_number() OVER (PARTITION BY said->>'id', k.call IS NULL AND e.part->>'type' = 'text' ORDER BY e.n) AS nth
                FROM jsonb_array_elements(p_parts) WITH ORDINALITY e(part, n)
                CROSS JOIN LATERAL (SELECT CASE WHEN y.x ? 'toolCallId' THEN y.x END AS call FROM (SELECT CASE WHEN p_inner IS NULL THEN e.part ELSE e.part->p_inner END AS x) y) k
                JOIN jsonb_array_elements(c->'messages') said ON said->>'id' = c->'ids'->>((c->'elements'->>(e.n::int - 1))::int - 1)) q) p
            WHERE NOT (p.call IS NULL AND p.part->>'type' = 'text' AND p.said->>'kind' = 'replacement' AND p.nth > 1)
                AND NOT (p.said->>'kind' = 'bare' AND p.part->>'type' = 'reasoning')) END
$$;

-- The same for the steps of a turn in Laravel's AI SDK, which have their calls with the results in a list.
CREATE OR REPLACE FUNCTION @schema@.encode_steps(p_steps jsonb, c jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN c ? 'fresh' OR jsonb_typeof(p_steps) <> 'array' THEN '[]'
        ELSE (SELECT coalesce(jsonb_agg(e.step
                || CASE WHEN said->>'kind' = 'replacement' THEN jsonb_build_object('content', @schema@.message_text(said->'message')) ELSE '{}' END
                || CASE WHEN jsonb_typeof(e.step->'tool_calls') <> 'array' THEN '{}' ELSE jsonb_build_object('tool_calls', (SELECT coalesce(jsonb_agg(
                    t || coalesce((SELECT jsonb_build_object('result', @schema@.message_text(a->'message')) FROM jsonb_array_elements(c->'messages') a
                        WHERE a->>'kind' = 'replacement' AND a->'message'->>'tool_call_id' = t->>'id' LIMIT 1), '{}')), '[]') FROM jsonb_array_elements(e.step->'tool_calls') t)) END
                ORDER BY e.n), '[]')
            FROM jsonb_array_elements(p_steps) WITH ORDINALITY e(step, n)
            JOIN jsonb_array_elements(c->'messages') said ON said->>'id' = c->'ids'->>((c->'elements'->>(e.n::int - 1))::int - 1)) END
$$;
