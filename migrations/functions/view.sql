-- Ranges that hold a view and that can be read one by one: its own or, of one in many pieces, those with gaps of up to 16
-- messages closed. Reading and passing over 16 messages costs what the look-up of a range does.
CREATE OR REPLACE FUNCTION @schema@.spans(p_live int8multirange) RETURNS int8multirange LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF pg_column_size(p_live) < 1000 THEN   -- about 50 ranges
        RETURN p_live;
    END IF;
    RETURN (SELECT range_agg(int8range(lower(x), upper(x) + 16)) FROM unnest(p_live) x);
END $$;

-- The assistant messages of one batch of calls as one message, as chat.Merge has it.
CREATE OR REPLACE FUNCTION @schema@.merged_message(p_bodies text[]) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    WITH v AS (
        SELECT k.key, k.value, m.n, k.i, json_typeof(k.value) AS kind, first_value(json_typeof(k.value)) OVER (PARTITION BY k.key ORDER BY m.n) AS first
        FROM unnest(p_bodies) WITH ORDINALITY m(body, n) CROSS JOIN LATERAL json_each(m.body::json) WITH ORDINALITY k(key, value, i)
        WHERE json_typeof(k.value) <> 'null' AND k.value::text <> '""'
    ), k AS (
        SELECT key, min(n * 100000 + i) AS place, CASE
            WHEN key = 'content' AND bool_and(kind = 'string') OR min(first) = 'string' AND key IN ('reasoning', 'reasoning_content', 'reasoning_text', 'thinking')
                THEN to_json(string_agg(value #>> '{}', E'\n\n' ORDER BY n) FILTER (WHERE kind = 'string'))::text
            WHEN key = 'content' OR min(first) = 'array' THEN '[' || (SELECT coalesce(string_agg(e, ','), '') FROM (
                SELECT coalesce(x.e::text, '{"type":"text","text":' || w.value::text || '}') AS e
                FROM v w LEFT JOIN LATERAL json_array_elements(CASE w.kind WHEN 'array' THEN w.value END) WITH ORDINALITY x(e, j) ON true
                WHERE w.key = v.key AND (x.e IS NOT NULL OR w.kind = 'string' AND w.key = 'content') ORDER BY w.n, x.j) y) || ']'
            ELSE (array_agg(value::text ORDER BY n))[1] END AS value
        FROM v GROUP BY key)
    SELECT '{"role":"assistant","content":' || coalesce((SELECT value FROM k WHERE key = 'content'), 'null')
        || coalesce((SELECT string_agg(',' || to_json(key)::text || ':' || value, '' ORDER BY place) FROM k WHERE key NOT IN ('role', 'content')), '') || '}'
$$;

-- The messages of a view with their words, in no order; p_whole says that the spans (see spans) hold nothing else. Costs what the view holds, not what the log holds: OFFSET 0 keeps the
-- planner on the ranges. Callers set off nested loops and hash joins: words and metadata of a range are merged; the planner, which knows
-- no range, would read all words for each message.
CREATE OR REPLACE FUNCTION @schema@.view_words(p_sid bigint, p_live int8multirange, p_out int8multirange, p_spans int8multirange, p_whole boolean)
RETURNS TABLE (seq bigint, id text, kind "char", role text, body text, token_count int, created_at timestamptz, source_id text, "position" bigint)
LANGUAGE sql STABLE ROWS 200 AS $$
    SELECT m.seq, m.id, m.kind, m.role, CASE WHEN m.bare THEN @schema@.without_reasoning(m.body) ELSE m.body END,
        m.token_count - CASE WHEN m.bare THEN m.reasoning_tokens ELSE 0 END, CASE WHEN m.flags & 128 = 0 THEN m.created_at END, m.source_id, m.position
    FROM unnest(p_spans) r(x)
    CROSS JOIN LATERAL (SELECT l.seq, l.id, l.kind, l.role, l.token_count, l.reasoning_tokens, l.created_at, l.source_id, l.position, l.role_code, l.calls, l.flags,
            b.body, @schema@.signed_reasoning(l.flags) AND p_out @> l.seq AS bare
        FROM @schema@.message_log l LEFT JOIN (SELECT w.seq, w.body FROM @schema@.message_body w
            WHERE w.sid = p_sid AND w.seq >= lower(r.x) AND w.seq < coalesce(upper(r.x), 9223372036854775807) ORDER BY w.seq OFFSET 0) b ON b.seq = l.seq
        WHERE l.sid = p_sid AND l.seq >= lower(r.x) AND l.seq < coalesce(upper(r.x), 9223372036854775807) AND (p_whole OR p_live @> l.seq) OFFSET 0) m
    WHERE NOT (m.bare AND @schema@.reasoning_only(m.role_code, m.calls, m.flags))
$$;

-- The history a model is given: the included messages with summaries and replacements in place. Parallel calls that were
-- said in several messages are one, with the first one's seq and id, unless p_merge is false.
DROP FUNCTION IF EXISTS @schema@.view(text, text);   -- here, so that no caller finds none: functions are installed in one transaction
CREATE OR REPLACE FUNCTION @schema@.view(p_tenant text, p_session text, p_merge boolean DEFAULT true)
RETURNS TABLE (seq bigint, id text, kind text, role text, message json, token_count int, created_at timestamptz, source_id text)
LANGUAGE plpgsql STABLE ROWS 200 SET jit = off SET enable_nestloop = off SET enable_hashjoin = off SET enable_mergejoin = on
    SET work_mem = '32MB' SET plan_cache_mode = 'force_generic_plan' AS $$
DECLARE   -- not LANGUAGE sql, which would plan this again in each call
    v_tenant text := @schema@.tenant_of(p_tenant);
    v_sid    bigint;
    v_live   int8multirange;   -- in memory: a long one is stored out of line, compressed, and would be read again for each message
    v_out    int8multirange;
    v_spans  int8multirange;
    v_whole  boolean;
    v_twice  boolean;
    v_parallel boolean;
BEGIN
    SELECT s.sid, s.live + '{}', s.reasoning_out + '{}', s.repeated_ids, s.parallel INTO v_sid, v_live, v_out, v_twice, v_parallel FROM @schema@.sessions s WHERE s.tenant = v_tenant AND s.id = p_session;
    IF v_parallel AND p_merge THEN
        RETURN QUERY SELECT v.seq, v.id, v.kind, v.role, v.message, v.token_count, v.created_at, v.source_id FROM @schema@.merged_view(p_tenant, p_session) v;
        RETURN;
    END IF;
    IF v_twice THEN
        RETURN QUERY SELECT * FROM @schema@.view_distinct(v_sid, v_live, v_out);
        RETURN;
    END IF;
    v_spans := @schema@.spans(v_live);
    v_whole := v_spans = v_live;
    RETURN QUERY SELECT m.seq, m.id, CASE m.kind WHEN 'm' THEN 'source' WHEN 's' THEN 'summary' ELSE 'replacement' END,
           m.role, m.body::json, m.token_count, m.created_at, m.source_id
    FROM @schema@.view_words(v_sid, v_live, v_out, v_spans, v_whole) m
    ORDER BY m.position, (m.kind <> 's'), (m.kind = 'm' AND m.position <> m.seq), m.seq;
END $$;

-- The messages of the view alone, as the text of a JSON array, with the revision, the last seq, and whether messages may have
-- keys of formats: in less than half of the time, as nothing of each message is made a row of a result and read as JSON. No
-- row for a session that does not exist.
CREATE OR REPLACE FUNCTION @schema@.view_text(p_tenant text, p_session text, OUT revision bigint, OUT last_seq bigint, OUT format_keys boolean, OUT messages text)
RETURNS SETOF record LANGUAGE plpgsql STABLE ROWS 1 SET jit = off SET enable_nestloop = off SET enable_hashjoin = off SET enable_mergejoin = on
    SET work_mem = '32MB' SET plan_cache_mode = 'force_generic_plan' AS $$
DECLARE
    v_tenant text := @schema@.tenant_of(p_tenant);
    v_sid    bigint;
    v_live   int8multirange;
    v_out    int8multirange;
    v_spans  int8multirange;
    v_whole  boolean;
    v_rows   boolean;
BEGIN
    SELECT s.sid, s.live + '{}', s.reasoning_out + '{}', s.repeated_ids OR s.parallel, s.revision, s.last_seq, coalesce(s.format_keys, true)
    INTO v_sid, v_live, v_out, v_rows, revision, last_seq, format_keys FROM @schema@.sessions s WHERE s.tenant = v_tenant AND s.id = p_session;
    IF v_sid IS NULL THEN
        RETURN;
    ELSIF v_rows THEN
        SELECT string_agg(v.message::text, ',') INTO messages FROM @schema@.view(p_tenant, p_session) v;
    ELSE
        v_spans := @schema@.spans(v_live);
        v_whole := v_spans = v_live;
        SELECT string_agg(m.body, ',' ORDER BY m.position, (m.kind <> 's'), (m.kind = 'm' AND m.position <> m.seq), m.seq) INTO messages
        FROM @schema@.view_words(v_sid, v_live, v_out, v_spans, v_whole) m;
    END IF;
    messages := '[' || coalesce(messages, '') || ']';
    RETURN NEXT;
END $$;

-- The view with parallel calls as one message, and the seqs of what each message is made of.
CREATE OR REPLACE FUNCTION @schema@.merged_view(p_tenant text, p_session text)
RETURNS TABLE (seq bigint, id text, kind text, role text, message json, token_count int, created_at timestamptz, source_id text, seqs bigint[])
LANGUAGE plpgsql STABLE ROWS 200 SET jit = off AS $$
DECLARE
    v_sid bigint := (SELECT s.sid FROM @schema@.sessions s WHERE s.tenant = @schema@.tenant_of(p_tenant) AND s.id = p_session);
BEGIN
    -- A batch are calls behind one another, and what reasoning stands between them.
    RETURN QUERY SELECT (array_agg(g.seq ORDER BY g.n))[1], (array_agg(g.id ORDER BY g.n))[1], (array_agg(g.kind ORDER BY g.n))[1], min(g.role),
            CASE WHEN count(*) = 1 THEN min(g.message::text) ELSE @schema@.merged_message(array_agg(g.message::text ORDER BY g.n)) END::json,
            sum(g.token_count)::int, (array_agg(g.created_at ORDER BY g.n))[1], (array_agg(g.source_id ORDER BY g.n))[1],
            array_agg(g.seq ORDER BY g.n)
        FROM (SELECT b.*, CASE WHEN b.n BETWEEN b.first AND max(b.n) FILTER (WHERE b.calls) OVER (PARTITION BY b.run, b.batch) THEN b.first ELSE b.n END AS at
            FROM (SELECT c.*, min(c.n) FILTER (WHERE c.calls) OVER (PARTITION BY c.run, c.batch) AS first
                FROM (SELECT r.*, count(*) FILTER (WHERE r.calls AND NOT r.parallel) OVER (PARTITION BY r.run ORDER BY r.n) AS batch
                    FROM (SELECT v.*, l.calls > 0 AND l.role_code = 'a' AS calls, l.flags & 256 > 0 AS parallel,
                            count(*) FILTER (WHERE l.role_code <> 'a' OR l.calls = 0 AND NOT @schema@.reasoning_only(l.role_code, l.calls, l.flags)) OVER (ORDER BY v.n) AS run
                        FROM @schema@.view(p_tenant, p_session, false) WITH ORDINALITY v(seq, id, kind, role, message, token_count, created_at, source_id, n)
                        CROSS JOIN LATERAL (SELECT * FROM @schema@.message_log m WHERE m.sid = v_sid AND m.seq = v.seq OFFSET 0) l) r) c) b) g
        GROUP BY g.at ORDER BY g.at;
END $$;

-- Whether a body is that of the message as which the view gives out the batch of calls that begins with a message.
CREATE OR REPLACE FUNCTION @schema@.is_merged(s @schema@.sessions, p_seq bigint, p_body text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT s.parallel AND EXISTS (SELECT FROM @schema@.merged_view(s.tenant, s.id) v
        WHERE v.seq = p_seq AND cardinality(v.seqs) > 1 AND @schema@.same_message(v.message::text, p_body))
$$;

-- The revision of that view, null for a session that does not exist. Within one statement both are of one moment.
CREATE OR REPLACE FUNCTION @schema@.view_revision(p_tenant text, p_session text) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_tenant text := @schema@.tenant_of(p_tenant);
BEGIN
    RETURN (SELECT revision FROM @schema@.sessions WHERE tenant = v_tenant AND id = p_session);
END $$;

-- Whether what a reader has seen of the view of a revision, up to the message p_seen (null: all of it), stands otherwise in the
-- view of now: a run, an undo or a replacement has changed something before its end, so that a provider's cache or thread that
-- was begun with it is of no use. A run that was undone changes nothing. Null for a session that does not exist.
CREATE OR REPLACE FUNCTION @schema@.prefix_changed(p_tenant text, p_session text, p_revision bigint, p_seen bigint DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_tenant text := @schema@.tenant_of(p_tenant);
    s        @schema@.sessions;
    r        @schema@.runs;   -- that ended the revision
    v_seen   bigint;
BEGIN
    SELECT * INTO s FROM @schema@.sessions t WHERE t.tenant = v_tenant AND t.id = p_session;
    IF NOT FOUND THEN RETURN NULL; END IF;
    IF p_revision = s.revision THEN RETURN false; END IF;
    SELECT * INTO r FROM @schema@.runs t WHERE t.sid = s.sid AND t.revision = p_revision + 1 AND t.status = 'applied';
    IF NOT FOUND THEN RETURN true; END IF;   -- not one of this session
    v_seen := least(p_seen, r.applied_seq);   -- which passes over null
    RETURN @schema@.first_change(s.sid, r.live_before, s.live, v_seen) IS NOT NULL
        -- What stands before, but was written later: summaries, replacements, and messages of a replace_view.
        OR EXISTS (SELECT FROM unnest(s.live) x CROSS JOIN LATERAL (SELECT m.seq, m.position FROM @schema@.message_log m
            WHERE m.sid = s.sid AND m.seq >= greatest(lower(x), v_seen + 1) AND m.seq < coalesce(upper(x), 9223372036854775807) OFFSET 0) m
            WHERE m.position <> m.seq AND m.position <= v_seen)
        OR NOT isempty((r.reasoning_before - s.reasoning_out + (s.reasoning_out - r.reasoning_before)) * s.live * int8multirange(int8range(1, v_seen + 1)))
        OR EXISTS (SELECT FROM @schema@.runs t WHERE t.sid = s.sid AND t.kind = 'erase' AND t.revision > p_revision AND t.status = 'applied');
END $$;

-- The view in one row, as replace_view takes it: the revision, the last seq, and the messages as a JSON
-- array with their ids. No row for a session that does not exist.
CREATE OR REPLACE FUNCTION @schema@.view_with_revision(p_tenant text, p_session text, OUT revision bigint, OUT seen bigint, OUT messages json)
RETURNS SETOF record LANGUAGE sql STABLE ROWS 1 AS $$
    SELECT s.revision, s.last_seq,
        (SELECT '[' || coalesce(string_agg('{"id":' || to_json(v.id) || ',' || substr(v.message::text, 2), ',' ORDER BY n), '') || ']'
         FROM @schema@.view(p_tenant, p_session) WITH ORDINALITY v(seq, id, kind, role, message, token_count, created_at, source_id, n))::json
    FROM @schema@.sessions s WHERE s.tenant = (SELECT @schema@.tenant_of(p_tenant)) AND s.id = p_session
$$;

-- The messages of a session with these seqs, without their words, with why each is, or is not, in the view. No join of messages with reasons: what is out
-- is sorted with its reasons, and each message is then looked up by its key (OFFSET 0), so that the cost grows with the seqs and
-- the runs alone, whatever the planner knows of the session. A function, as a view cannot set jit off: the planner takes it to be dear, and
-- compiling it takes a hundred times as long as executing it. ROWS keeps what it thinks of queries of the view below jit_above_cost.
CREATE OR REPLACE FUNCTION @schema@.message_states(p_sid bigint, p_seqs int8multirange)
RETURNS TABLE (seq bigint, id text, kind "char", role text, name text, source_id text, token_count int, reasoning_tokens int, counter text, created_at timestamptz,
    "position" bigint, run bigint, summary_of int8multirange, included boolean, reason text, excluded_by bigint, summary_seq bigint, summary_id text,
    bare boolean, bared_by bigint, pinned boolean, archived boolean)
LANGUAGE plpgsql STABLE ROWS 100 SET jit = off SET plan_cache_mode = 'force_generic_plan' AS $$
DECLARE
    s       @schema@.sessions;
    v_bound text := @schema@.binding();
    v_live  int8multirange;   -- in memory: a long one is stored out of line, compressed, and would be read again for each message
    v_bared int8multirange;
BEGIN
    -- Roles call this for the view, and so may call it by themselves.
    SELECT * INTO s FROM @schema@.sessions t WHERE t.sid = p_sid;
    IF s.tenant IS DISTINCT FROM coalesce(v_bound, s.tenant) THEN
        RAISE EXCEPTION 'this connection is bound to tenant % and reaches no other', v_bound USING ERRCODE = 'insufficient_privilege';
    END IF;
    v_live := s.live * p_seqs;
    s.pinned := s.pinned + '{}';
    s.archived := s.archived + '{}';
    v_bared := s.reasoning_out * v_live;
    RETURN QUERY SELECT m.seq, m.id, m.kind, m.role, m.name, m.source_id, m.token_count, m.reasoning_tokens, m.counter,
        CASE WHEN m.flags & 128 = 0 THEN m.created_at END, m.position, m.run, m.summary_of, m.included, m.reason, m.excluded_by, m.summary_seq, y.id,
        m.bare, m.bared_by, s.pinned @> m.seq, s.archived @> m.seq
    FROM (
        SELECT m.*, true AS included, NULL::text AS reason, NULL::bigint AS excluded_by, NULL::bigint AS summary_seq,
            false AS bare, NULL::bigint AS bared_by
        FROM unnest(v_live - v_bared) r(x) CROSS JOIN LATERAL (SELECT * FROM @schema@.message_log l
            WHERE l.sid = p_sid AND l.seq >= lower(r.x) AND l.seq < coalesce(upper(r.x), 9223372036854775807) OFFSET 0) m
        UNION ALL   -- without its reasoning (see signed_reasoning), or, where it holds nothing else (reasoning_only), out
        SELECT m.*, NOT g.gone, CASE WHEN g.gone THEN 'stale_reasoning' END, CASE WHEN g.gone THEN x.run END, NULL,
            g.bare AND NOT g.gone, CASE WHEN g.bare AND NOT g.gone THEN x.run END
        FROM (SELECT DISTINCT ON (o.seq) o.* FROM (
                SELECT q.seq, r.id AS run, r.revision
                FROM @schema@.runs r CROSS JOIN LATERAL unnest(r.reasoning_taken * p_seqs) u(x) CROSS JOIN LATERAL generate_series(lower(u.x), upper(u.x) - 1) q(seq)
                WHERE r.sid = p_sid AND r.in_force AND NOT isempty(v_bared) AND v_bared @> q.seq
                UNION ALL
                SELECT q.seq, NULL, 0
                FROM unnest(v_bared) u(x) CROSS JOIN LATERAL generate_series(lower(u.x), upper(u.x) - 1) q(seq)) o
            ORDER BY o.seq, o.revision DESC) x
        CROSS JOIN LATERAL (SELECT * FROM @schema@.message_log l WHERE l.sid = p_sid AND l.seq = x.seq OFFSET 0) m
        CROSS JOIN LATERAL (SELECT m.flags & 66 = 2 AS bare, m.flags & 71 = 2 AND m.role_code = 'a' AND m.calls = 0 AS gone) g
        UNION ALL
        SELECT m.*, false, x.reason, x.run, x.summary_seq, false, NULL
        FROM (SELECT DISTINCT ON (o.seq) o.* FROM (
                SELECT q.seq, e.reason, e.run, e.summary_seq, r.revision
                FROM @schema@.exclusions e JOIN @schema@.runs r ON r.id = e.run
                CROSS JOIN LATERAL unnest(e.seqs * p_seqs) u(x) CROSS JOIN LATERAL generate_series(lower(u.x), upper(u.x) - 1) q(seq)
                WHERE e.sid = p_sid AND r.in_force AND NOT v_live @> q.seq
                UNION ALL
                SELECT q.seq, NULL, NULL, NULL, 0
                FROM unnest(int8multirange(int8range(1, s.last_seq + 1)) * p_seqs - v_live) u(x)
                CROSS JOIN LATERAL generate_series(lower(u.x), upper(u.x) - 1) q(seq)) o
            ORDER BY o.seq, o.revision DESC) x
        CROSS JOIN LATERAL (SELECT * FROM @schema@.message_log l WHERE l.sid = p_sid AND l.seq = x.seq OFFSET 0) m) m
    LEFT JOIN LATERAL (SELECT l.id FROM @schema@.message_log l WHERE l.sid = p_sid AND l.seq = m.summary_seq OFFSET 0) y ON true;
END $$;

-- These messages with their words, without the reasoning that is not in the view.
-- Those of the connection's tenant alone, behind a barrier, so that no condition of a query sees others before.
CREATE OR REPLACE VIEW @schema@.messages WITH (security_barrier) AS
SELECT s.tenant, s.id AS session, m.seq, m.id,
    CASE m.kind WHEN 'm' THEN 'source' WHEN 's' THEN 'summary' ELSE 'replacement' END AS kind,
    m.role, m.name, m.source_id, b.body::json->>'content' AS content, b.body::json AS message,
    m.token_count - CASE WHEN m.bare THEN m.reasoning_tokens ELSE 0 END AS token_count,
    m.counter AS token_counter, m.created_at, m.position, m.run,
    m.included, NOT m.included AS excluded,
    m.reason AS exclude_reason, m.excluded_by, m.summary_seq AS summarized_by_seq, m.summary_id AS summarized_by,
    m.summary_of, m.pinned, m.bared_by AS reasoning_excluded_by,
    m.archived
FROM @schema@.sessions s CROSS JOIN LATERAL @schema@.message_states(s.sid, '{[1,)}') m
-- Looked up by queries alone that select it.
CROSS JOIN LATERAL (SELECT (SELECT w.body FROM @schema@.message_body w WHERE w.sid = s.sid AND w.seq = m.seq) AS body) w
CROSS JOIN LATERAL (SELECT CASE WHEN m.bare THEN @schema@.without_reasoning(w.body) ELSE w.body END AS body) b
WHERE s.tenant = coalesce((SELECT @schema@.bound_tenant()), s.tenant);
DROP FUNCTION IF EXISTS @schema@.message_states(bigint);

-- The same of the messages with these seqs, in the order of the view, with their words as text.
CREATE OR REPLACE FUNCTION @schema@.messages_among(p_tenant text, p_session text, p_seqs int8multirange)
RETURNS TABLE (seq bigint, id text, kind text, body text, role text, token_count int, counter text, created_at timestamptz, source_id text, included boolean,
    reason text, excluded_by bigint, summarized_by text, pinned boolean, summary_of int8multirange, bared_by bigint)
LANGUAGE plpgsql STABLE ROWS 100 SET jit = off AS $$
DECLARE
    v_tenant text := @schema@.tenant_of(p_tenant);
    v_sid    bigint := (SELECT s.sid FROM @schema@.sessions s WHERE s.tenant = v_tenant AND s.id = p_session);
BEGIN
    IF v_sid IS NULL THEN RETURN; END IF;
    RETURN QUERY SELECT m.seq, m.id, CASE m.kind WHEN 'm' THEN 'source' WHEN 's' THEN 'summary' ELSE 'replacement' END,
        CASE WHEN m.bare THEN @schema@.without_reasoning(b.body) ELSE b.body END, m.role,
        m.token_count - CASE WHEN m.bare THEN m.reasoning_tokens ELSE 0 END, m.counter, m.created_at, m.source_id, m.included,
        m.reason, m.excluded_by, m.summary_id, m.pinned, m.summary_of, m.bared_by
    FROM @schema@.message_states(v_sid, p_seqs) m
    LEFT JOIN LATERAL (SELECT w.body FROM @schema@.message_body w WHERE w.sid = v_sid AND w.seq = m.seq OFFSET 0) b ON true
    ORDER BY m.position, (m.kind <> 's'), (m.kind = 'm' AND m.position <> m.seq), m.seq;
END $$;

-- The seqs of the next messages of a session with a role and of some kinds (null: any), between two others, in ascending order or the newest
-- first: at most p_rows, of p_tokens tokens and one message more, among the next 10,000. upto is the last that was looked at, null
-- for none, and more says that there are others beyond.
CREATE OR REPLACE FUNCTION @schema@.messages_page(p_tenant text, p_session text, p_after bigint, p_before bigint, p_newest boolean, p_role text, p_kinds text[],
    p_rows bigint, p_tokens bigint, OUT seqs int8multirange, OUT upto bigint, OUT more boolean)
LANGUAGE plpgsql STABLE SET jit = off AS $$
DECLARE
    v_tenant text := @schema@.tenant_of(p_tenant);
    v_sid    bigint := (SELECT s.sid FROM @schema@.sessions s WHERE s.tenant = v_tenant AND s.id = p_session);
BEGIN
    IF v_sid IS NULL THEN
        RAISE EXCEPTION 'session % does not exist', p_session USING ERRCODE = 'no_data_found';
    END IF;
    WITH next AS (
        SELECT x.seq, x.token_count, (p_role IS NULL OR x.role = p_role)
            AND (p_kinds IS NULL OR CASE x.kind WHEN 'm' THEN 'source' WHEN 's' THEN 'summary' ELSE 'replacement' END = ANY(p_kinds)) AS fits
        FROM ((SELECT * FROM @schema@.message_log l WHERE l.sid = v_sid AND l.seq > p_after AND l.seq < p_before AND NOT p_newest ORDER BY l.seq LIMIT 10000)
            UNION ALL (SELECT * FROM @schema@.message_log l WHERE l.sid = v_sid AND l.seq > p_after AND l.seq < p_before AND p_newest ORDER BY l.seq DESC LIMIT 10000)) x
    ), summed AS (
        SELECT n.seq, n.fits, count(*) FILTER (WHERE n.fits) OVER w AS rows, coalesce(sum(n.token_count) FILTER (WHERE n.fits) OVER w, 0) - CASE WHEN n.fits THEN n.token_count ELSE 0 END AS tokens
        FROM next n WINDOW w AS (ORDER BY CASE WHEN p_newest THEN -n.seq ELSE n.seq END)
    )
    SELECT coalesce(range_agg(int8range(u.seq, u.seq + 1)) FILTER (WHERE u.fits), '{}'), CASE WHEN p_newest THEN min(u.seq) ELSE max(u.seq) END INTO seqs, upto
    FROM summed u WHERE u.rows <= p_rows AND u.tokens <= p_tokens;
    more := upto IS NOT NULL AND EXISTS (SELECT FROM @schema@.message_log l WHERE l.sid = v_sid
        AND l.seq > CASE WHEN p_newest THEN p_after ELSE upto END AND l.seq < CASE WHEN p_newest THEN upto ELSE p_before END);
END $$;

-- The messages with the calls that the results with these seqs answer, in the order of their seqs: for each result, the nearest of the p_back
-- messages before it that has a call of its id.
CREATE OR REPLACE FUNCTION @schema@.calls_of(p_tenant text, p_session text, p_results int8multirange, p_back bigint)
RETURNS TABLE (result bigint, call bigint, token_count bigint)
LANGUAGE plpgsql STABLE ROWS 100 SET jit = off AS $$
DECLARE
    v_tenant text := @schema@.tenant_of(p_tenant);
    v_sid    bigint := (SELECT s.sid FROM @schema@.sessions s WHERE s.tenant = v_tenant AND s.id = p_session);
BEGIN
    IF v_sid IS NULL THEN RETURN; END IF;
    RETURN QUERY SELECT m.seq, c.seq, c.token_count::bigint
    FROM unnest(p_results) r(x)
    CROSS JOIN LATERAL (SELECT l.seq, l.tool_call_id FROM @schema@.message_log l
        WHERE l.sid = v_sid AND l.seq >= lower(r.x) AND l.seq < upper(r.x) AND l.tool_call_id IS NOT NULL OFFSET 0) m
    CROSS JOIN LATERAL (SELECT l.seq, l.token_count FROM @schema@.message_log l
        WHERE l.sid = v_sid AND l.seq >= m.seq - p_back AND l.seq < m.seq AND m.tool_call_id = ANY (l.call_ids) ORDER BY l.seq DESC LIMIT 1) c
    ORDER BY c.seq, m.seq;
END $$;
