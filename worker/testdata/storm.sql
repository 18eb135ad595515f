-- What a storm must leave behind, computed from the log and the ledger alone: no function of the
-- schema is called. Each check is a query that returns the number of violations and one of them.

-- check: the log of a session has no gap
SELECT count(*), min(s.tenant || '/' || s.id) FROM @schema@.sessions s CROSS JOIN LATERAL (
    SELECT count(*) AS n, coalesce(min(seq), 1) AS first, coalesce(max(seq), 0) AS last FROM @schema@.message_log m WHERE m.sid = s.sid) l
WHERE (l.n, l.first, l.last) IS DISTINCT FROM (s.last_seq, 1::bigint, s.last_seq);

-- check: counters of the log are its sums
SELECT count(*), min(s.tenant || '/' || s.id) FROM @schema@.sessions s CROSS JOIN LATERAL (
    SELECT count(*) AS messages, count(*) FILTER (WHERE role = 'user') AS turns, coalesce(sum(token_count), 0) AS tokens,
        coalesce(max(seq), 0) AS last FROM @schema@.message_log m WHERE m.sid = s.sid AND kind = 'm') l
WHERE (s.messages, s.turns, s.total_tokens, s.last_source_seq) IS DISTINCT FROM (l.messages, l.turns, l.tokens::bigint, l.last);

-- check: counters of the view are the sums of what is in it
SELECT count(*), min(s.tenant || '/' || s.id) FROM @schema@.sessions s CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE NOT gone) AS messages, coalesce(sum(tokens) FILTER (WHERE NOT gone), 0) AS tokens,
        coalesce(sum(tokens) FILTER (WHERE NOT gone AND flags & 16 > 0), 0) AS estimated
    FROM (SELECT m.flags, bare AND role = 'assistant' AND calls = 0 AND flags & 7 = 2 AS gone,   -- text 1, reasoning 2, media 4
            token_count - CASE WHEN bare THEN reasoning_tokens ELSE 0 END AS tokens
        FROM (SELECT *, flags & 66 = 2 AND s.reasoning_out @> seq AS bare FROM @schema@.message_log   -- 64: not signed
            WHERE sid = s.sid AND s.live @> seq) m) m) v
WHERE (s.live_messages, s.live_tokens, s.live_estimated_tokens) IS DISTINCT FROM (v.messages, v.tokens::bigint, v.estimated::bigint);

-- check: cumulative tokens are those of the sources up to a message
SELECT count(*), min(sid || '#' || seq) FROM (
    SELECT sid, seq, cumulative_tokens, sum(CASE WHEN kind = 'm' THEN token_count ELSE 0 END) OVER (PARTITION BY sid ORDER BY seq) AS total
    FROM @schema@.message_log) m
WHERE cumulative_tokens <> total;

-- check: each applied run makes the next view of its session
SELECT count(*), min(id::text) FROM (
    SELECT r.*, row_number() OVER w AS n, lag(r.id) OVER w AS head, coalesce(lag(r.live_after) OVER w, '{[1,)}') AS view
    FROM @schema@.runs r WHERE r.status = 'applied' WINDOW w AS (PARTITION BY r.sid ORDER BY r.revision)) r
WHERE (r.revision, r.base_run, r.live_before) IS DISTINCT FROM (r.n, r.head, r.view);

-- check: the view of a session is that of its last run
SELECT count(*), min(s.tenant || '/' || s.id) FROM @schema@.sessions s CROSS JOIN LATERAL (
    SELECT count(*) AS views, (array_agg(id ORDER BY revision DESC))[1] AS head,
        coalesce((array_agg(live_after ORDER BY revision DESC))[1], '{[1,)}') AS live
    FROM @schema@.runs r WHERE r.sid = s.sid AND r.status = 'applied') r
WHERE (s.revision, s.head_run, s.live) IS DISTINCT FROM (r.views, r.head, r.live);

-- check: a run takes out of the view what its exclusions name, and nothing else
SELECT count(*), min(r.id::text) FROM @schema@.runs r CROSS JOIN LATERAL (
    SELECT coalesce(range_agg(x), '{}') AS seqs FROM @schema@.exclusions e, unnest(e.seqs) x WHERE e.run = r.id) e
WHERE r.status = 'applied' AND r.kind <> 'undo' AND (NOT (r.live_before - r.live_after) <@ e.seqs OR e.seqs && r.live_after
    OR e.seqs && int8multirange(int8range(r.applied_seq + 1, NULL)) OR (r.live_after - r.live_before) && int8multirange(int8range(r.applied_seq + 1, NULL)));

-- check: an undo brings back the view before the run, with what was said since
SELECT count(*), min(u.id::text) FROM @schema@.runs u JOIN @schema@.runs r ON r.id = u.undoes
WHERE u.status = 'applied' AND u.kind = 'undo' AND (u.sid <> r.sid OR u.restores IS DISTINCT FROM r.base_run
    OR u.live_after <> r.live_before - coalesce((SELECT range_agg(x) FROM @schema@.runs t, unnest(t.appended) x
        WHERE t.sid = u.sid AND t.revision >= r.revision AND t.revision < u.revision), '{}'));

-- check: exclusions belong to applied runs of their session
SELECT count(*), min(e.run::text) FROM @schema@.exclusions e LEFT JOIN @schema@.runs r ON r.id = e.run
WHERE (r.sid, r.status) IS DISTINCT FROM (e.sid, 'applied') OR r.kind = 'undo';

-- check: what a run wrote is what its ledger row names
SELECT count(*), min(coalesce(r.id, w.run)::text) FROM @schema@.runs r FULL JOIN (
    SELECT run, min(sid) AS sid, range_agg(int8range(seq, seq + 1)) AS seqs, bool_or(kind = 'm') AS said
    FROM @schema@.message_log WHERE run IS NOT NULL GROUP BY run) w ON w.run = r.id AND w.sid = r.sid
WHERE r.id IS NULL OR w.said OR coalesce(w.seqs, '{}') <> coalesce(r.appended, '{}');

-- check: what was said has no run, and what a run wrote has one
SELECT count(*), min(sid || '#' || seq) FROM @schema@.message_log WHERE (kind = 'm') <> (run IS NULL);

-- check: runs in force are those on the line of the present view
WITH RECURSIVE line AS (
    SELECT head_run AS id FROM @schema@.sessions WHERE head_run IS NOT NULL
    UNION ALL SELECT CASE r.kind WHEN 'undo' THEN r.restores ELSE r.base_run END FROM line l JOIN @schema@.runs r ON r.id = l.id)
SELECT count(*), min(r.id::text) FROM @schema@.runs r LEFT JOIN line l ON l.id = r.id WHERE r.in_force <> (l.id IS NOT NULL);

-- check: a message that is out of the view is explained by the last run in force that excluded it
WITH RECURSIVE line AS (
    SELECT head_run AS id FROM @schema@.sessions WHERE head_run IS NOT NULL
    UNION ALL SELECT CASE r.kind WHEN 'undo' THEN r.restores ELSE r.base_run END FROM line l JOIN @schema@.runs r ON r.id = l.id),
reasons AS (
    SELECT DISTINCT ON (e.sid, q.seq) e.sid, q.seq, e.run, e.reason, e.summary_seq
    FROM line JOIN @schema@.runs r ON r.id = line.id JOIN @schema@.exclusions e ON e.run = r.id
    CROSS JOIN LATERAL unnest(e.seqs) x CROSS JOIN LATERAL generate_series(lower(x), upper(x) - 1) q(seq)
    ORDER BY e.sid, q.seq, r.revision DESC),
seen AS MATERIALIZED (SELECT * FROM @schema@.messages)
SELECT count(*), min(s.tenant || '/' || s.id || '#' || m.seq)
FROM @schema@.message_log m JOIN @schema@.sessions s ON s.sid = m.sid
LEFT JOIN reasons x ON x.sid = m.sid AND x.seq = m.seq
LEFT JOIN @schema@.message_log y ON y.sid = m.sid AND y.seq = x.summary_seq
LEFT JOIN seen v ON v.tenant = s.tenant AND v.session = s.id AND v.seq = m.seq
WHERE v.seq IS NULL OR v.included <> (s.live @> m.seq)   -- no message of the storm holds reasoning alone
    OR v.included AND (v.excluded_by, v.exclude_reason, v.summarized_by) IS DISTINCT FROM (NULL::bigint, NULL::text, NULL::text)
    OR NOT v.included AND m.kind = 'm' AND (x.run IS NULL OR (v.excluded_by, v.exclude_reason, v.summarized_by) IS DISTINCT FROM (x.run, x.reason, y.id));

-- check: what stands for messages exists, was written by the same run, and names them
SELECT count(*), min(e.run || ' -> ' || e.summary_seq) FROM @schema@.exclusions e
LEFT JOIN @schema@.message_log m ON m.sid = e.sid AND m.seq = e.summary_seq
WHERE e.summary_seq IS NOT NULL AND (m.seq IS NULL OR m.kind = 'm' OR m.run IS DISTINCT FROM e.run OR NOT e.seqs <@ m.summary_of);

-- check: a summary stands for messages before it
SELECT count(*), min(sid || '#' || seq) FROM @schema@.message_log
WHERE kind <> 'm' AND (isempty(summary_of) OR upper(summary_of) > seq);

-- check: ended runs have an outcome and a time, others have none
SELECT count(*), min(id::text) FROM @schema@.runs
WHERE (status IN ('applied', 'skipped', 'failed')) <> (outcome IS NOT NULL AND ended_at IS NOT NULL)
    OR (status = 'applied') <> (revision IS NOT NULL) OR in_force AND status <> 'applied';

-- check: a run that was planned ends the view that it was planned on
SELECT count(*), min(id::text) FROM @schema@.runs
WHERE status = 'applied' AND (snapshot_revision <> revision - 1 OR snapshot_seq > applied_seq);

-- check: an answer is stored once, and not one is awaited
SELECT count(*), min(key) FROM (SELECT key FROM @schema@.summary_calls GROUP BY key
    HAVING count(*) FILTER (WHERE state = 'answered') > 1 OR bool_or(state = 'asked')) c;

-- check: no text of another tenant or installation is in a session
SELECT count(*), min(s.tenant || '/' || s.id || '#' || m.seq) FROM @schema@.message_body m JOIN @schema@.sessions s ON s.sid = m.sid
WHERE EXISTS (SELECT FROM regexp_matches(m.body, 'OWNER_([a-z]+_[a-z]+)_', 'g') o WHERE o[1] <> '@schema@_' || s.tenant);

-- check: a sweep runs each session once
SELECT count(*), min(sweep || ' ' || sid) FROM (
    SELECT sweep, sid FROM @schema@.runs WHERE sweep IS NOT NULL GROUP BY 1, 2 HAVING count(*) > 1) r;

-- check: a bulk undo or recompaction counts what it did and what it left
SELECT count(*), min(b.id::text) FROM @schema@.bulk_operations b WHERE b.done + b.refused > b.matched AND b.kind = 'undo'
    OR b.refused <> (SELECT count(*) FROM @schema@.bulk_refusals f WHERE f.bulk = b.id)
    OR b.done <> (SELECT count(*) FROM @schema@.runs u WHERE CASE b.kind WHEN 'undo' THEN u.kind = 'undo' AND u.origin IS NULL AND u.requested_by = 'storm (bulk undo ' || b.id || ')'
        ELSE u.bulk = b.id END);

-- check: a bulk recompaction runs each session once
SELECT count(*), min(bulk || ' ' || sid) FROM (
    SELECT bulk, sid FROM @schema@.runs WHERE bulk IS NOT NULL GROUP BY 1, 2 HAVING count(*) > 1) r;

-- check: a bulk recompaction is open only as long as it has work
SELECT count(*), min(id::text) FROM @schema@.bulk_operations WHERE kind = 'compact' AND status = 'open';

-- check: a session has the policy that it matches
WITH RECURSIVE up AS (
    SELECT sid, labels, parent FROM @schema@.sessions
    UNION ALL SELECT up.sid, p.labels || up.labels, p.parent FROM up JOIN @schema@.sessions p ON p.sid = up.parent)
SELECT count(*), min(s.id) FROM @schema@.sessions s LEFT JOIN up ON up.sid = s.sid AND up.parent IS NULL WHERE up.sid IS NULL OR s.policy <> CASE WHEN up.labels->>'agent' = 'storm'
    AND EXISTS (SELECT FROM @schema@.policy_heads WHERE name = 'storm') THEN 'storm' ELSE 'default' END;

-- check: no pause is left
SELECT count(*), min(id::text) FROM @schema@.pauses WHERE resumed_at IS NULL;
