-- The history a model is given: the included messages with summaries and replacements in place.
-- Costs what the view holds, not what the log holds: OFFSET 0 keeps the planner on the ranges.
CREATE OR REPLACE FUNCTION @schema@.view(p_tenant text, p_session text)
RETURNS TABLE (seq bigint, id text, kind text, role text, message json, token_count int, created_at timestamptz, source_id text)
LANGUAGE sql STABLE ROWS 200 AS $$
    SELECT m.seq, m.id, CASE m.kind WHEN 'm' THEN 'source' WHEN 's' THEN 'summary' ELSE 'replacement' END,
           m.role, m.body::json, m.token_count, m.created_at, m.source_id
    FROM @schema@.sessions s CROSS JOIN LATERAL unnest(s.live) r(x)
    CROSS JOIN LATERAL (SELECT * FROM @schema@.message_log l
        WHERE l.sid = s.sid AND l.seq >= lower(r.x) AND l.seq < coalesce(upper(r.x), 9223372036854775807) OFFSET 0) m
    WHERE s.tenant = coalesce(nullif(p_tenant, ''), 'default') AND s.id = p_session
    ORDER BY m.position, (m.kind <> 's'), (m.kind = 'm' AND m.position <> m.seq), m.seq
$$;

-- Every message with why it is, or is not, in the view. Each message that is out is looked up once
-- for the whole session: asking message by message would be messages times runs.
CREATE OR REPLACE VIEW @schema@.messages AS
SELECT s.tenant, s.id AS session, m.seq, m.id,
    CASE m.kind WHEN 'm' THEN 'source' WHEN 's' THEN 'summary' ELSE 'replacement' END AS kind,
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
