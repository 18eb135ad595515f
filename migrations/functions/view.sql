-- The history a model is given: the included messages with summaries and replacements in place.
-- Costs what the view holds, not what the log holds: OFFSET 0 keeps the planner on the ranges.
CREATE OR REPLACE FUNCTION @schema@.view(p_tenant text, p_session text)
RETURNS TABLE (seq bigint, id text, kind text, role text, message json, token_count int, created_at timestamptz, source_id text)
LANGUAGE sql STABLE ROWS 200 AS $$
    SELECT m.seq, m.id, CASE m.kind WHEN 'm' THEN 'source' WHEN 's' THEN 'summary' ELSE 'replacement' END,
           m.role, CASE WHEN m.bare THEN @schema@.without_reasoning(m.body) ELSE m.body END::json,
           CASE WHEN m.bare THEN m.token_count - coalesce(m.reasoning_tokens, @schema@.reasoning_tokens(m.body, m.token_count)) ELSE m.token_count END,
           m.created_at, m.source_id
    FROM @schema@.sessions s CROSS JOIN LATERAL unnest(s.live) r(x)
    CROSS JOIN LATERAL (SELECT *, @schema@.signed_reasoning(l.flags) AND s.reasoning_out @> l.seq AS bare FROM @schema@.message_log l
        WHERE l.sid = s.sid AND l.seq >= lower(r.x) AND l.seq < coalesce(upper(r.x), 9223372036854775807) OFFSET 0) m
    WHERE s.tenant = coalesce(nullif(p_tenant, ''), 'default') AND s.id = p_session
        AND NOT (m.bare AND @schema@.reasoning_only(m.role_code, m.calls, m.flags))
    ORDER BY m.position, (m.kind <> 's'), (m.kind = 'm' AND m.position <> m.seq), m.seq
$$;

-- Every message with why it is, or is not, in the view, and without the reasoning that is not. Each message that is out is looked up once
-- for the whole session: asking message by message would be messages times runs.
CREATE OR REPLACE VIEW @schema@.messages AS
SELECT s.tenant, s.id AS session, m.seq, m.id,
    CASE m.kind WHEN 'm' THEN 'source' WHEN 's' THEN 'summary' ELSE 'replacement' END AS kind,
    m.role, m.name, m.source_id, m.body::json->>'content' AS content, m.body::json AS message,
    m.token_count, m.counter AS token_counter, m.created_at, m.position, m.run,
    s.live @> m.seq AND NOT m.hidden AS included, NOT s.live @> m.seq OR m.hidden AS excluded,
    CASE WHEN m.hidden THEN 'stale_reasoning' ELSE m.reason END AS exclude_reason,
    CASE WHEN m.hidden THEN m.bared_by ELSE m.excluded_by END AS excluded_by, m.summary_seq AS summarized_by_seq, m.summarized_by,
    m.summary_of, s.pinned @> m.seq AS pinned, CASE WHEN NOT m.hidden THEN m.bared_by END AS reasoning_excluded_by
FROM @schema@.sessions s CROSS JOIN LATERAL (
    SELECT m.seq, m.id, m.kind, m.position, m.role, m.name, m.source_id, m.token_count, m.counter, m.created_at, m.run, m.summary_of,
        CASE WHEN b.bare AND NOT b.alone THEN @schema@.without_reasoning(m.body) ELSE m.body END AS body, b.bare AND b.alone AS hidden,
        CASE WHEN b.bare THEN (SELECT r.id FROM @schema@.runs r WHERE r.sid = s.sid AND r.in_force AND r.reasoning_taken @> m.seq
            ORDER BY r.revision DESC LIMIT 1) END AS bared_by,
        x.reason, x.run AS excluded_by, x.summary_seq, l.id AS summarized_by
    FROM @schema@.message_log m
    CROSS JOIN LATERAL (SELECT @schema@.signed_reasoning(m.flags) AND s.reasoning_out @> m.seq AND s.live @> m.seq AS bare,
        @schema@.reasoning_only(m.role_code, m.calls, m.flags) AS alone OFFSET 0) b
    LEFT JOIN (
        SELECT DISTINCT ON (q.seq) q.seq, e.reason, e.run, e.summary_seq
        FROM @schema@.exclusions e JOIN @schema@.runs r ON r.id = e.run
        CROSS JOIN LATERAL unnest(e.seqs * (int8multirange(int8range(1, NULL)) - s.live)) u(x)
        CROSS JOIN LATERAL generate_series(lower(u.x), upper(u.x) - 1) q(seq)
        WHERE e.sid = s.sid AND r.in_force
        ORDER BY q.seq, r.revision DESC) x ON x.seq = m.seq
    LEFT JOIN @schema@.message_log l ON l.sid = s.sid AND l.seq = x.summary_seq
    WHERE m.sid = s.sid) m;
