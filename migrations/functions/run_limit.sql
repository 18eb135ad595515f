-- The limits of runs per second. Where runs are taken from Postgres for Redis, as many start of a tenant as its limit
-- allows, and of all together as theirs does. Runs of operators always start, and a repeated delivery is no start. The rest
-- stays: sessions of a sweep or a bulk recompaction behind its cursor; what the limit of all holds back where it is, in the
-- outbox or among the queued runs; what that of its tenant does in throttled, so that the work of others is found without it.

-- How many runs may start now, of each tenant with a limit, and of all with an empty one: at most those of a second, at least one.
CREATE OR REPLACE FUNCTION @schema@.startable_runs() RETURNS TABLE (tenant text, most bigint) LANGUAGE sql STABLE AS $$
    SELECT l.tenant, greatest(0, floor(greatest(1, l.runs_per_second) - l.runs_per_second * greatest(0, extract(epoch FROM @schema@.full_at_of(l) - now()))))::bigint
    FROM @schema@.spending_limits l WHERE l.runs_per_second IS NOT NULL
$$;

-- startable_runs for those who start runs: no two callers see the same ones as startable. The limits stay locked, in one order,
-- until the end of the transaction, so it comes before other locks.
CREATE OR REPLACE FUNCTION @schema@.claim_startable_runs() RETURNS TABLE (tenant text, most bigint) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM @schema@.spending_limits l WHERE l.runs_per_second IS NOT NULL ORDER BY l.tenant FOR NO KEY UPDATE;
    RETURN QUERY SELECT * FROM @schema@.startable_runs();
END $$;

-- Counts runs that start, by the tenant of each. The limits are locked in one order, whatever the order of the tenants.
CREATE OR REPLACE FUNCTION @schema@.count_started_runs(p_tenants text[]) RETURNS void LANGUAGE sql AS $$
    UPDATE @schema@.spending_limits l SET full_at = greatest(@schema@.full_at_of(l), now()) + make_interval(secs => x.n / l.runs_per_second), started = l.started + x.n
    FROM (SELECT coalesce(t, '') AS tenant, count(*) AS n FROM unnest(p_tenants) t GROUP BY GROUPING SETS ((t), ())) x
        JOIN (SELECT k.tenant FROM @schema@.spending_limits k WHERE k.tenant = '' OR k.tenant = ANY(p_tenants) ORDER BY k.tenant FOR NO KEY UPDATE) k USING (tenant)
    WHERE l.tenant = x.tenant AND l.runs_per_second IS NOT NULL AND x.n > 0
$$;

-- Gives what waits for the limit of its tenant back to the relay, the longest first, as far as runs may start now, and all
-- of tenants without a limit. Returns how much that is. A session that is locked waits for a later call: the insert into the
-- outbox would wait for the transaction of its writer, and those of all the other sessions with it.
CREATE OR REPLACE FUNCTION @schema@.release_throttled() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_n bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM @schema@.throttled) THEN
        RETURN 0;
    END IF;
    WITH RECURSIVE tenants AS (
        SELECT min(h.tenant) AS tenant FROM @schema@.throttled h
        UNION ALL SELECT (SELECT min(h.tenant) FROM @schema@.throttled h WHERE h.tenant > t.tenant) FROM tenants t WHERE t.tenant IS NOT NULL),
    released AS (DELETE FROM @schema@.throttled t USING (
            SELECT x.sid, x.run FROM tenants n LEFT JOIN @schema@.startable_runs() a ON a.tenant = n.tenant
            CROSS JOIN LATERAL (SELECT h.sid, h.run FROM @schema@.throttled h
                CROSS JOIN LATERAL (SELECT FROM @schema@.sessions s WHERE s.sid = h.sid FOR NO KEY UPDATE SKIP LOCKED) s
                WHERE h.tenant = n.tenant ORDER BY h.since LIMIT coalesce(a.most, 1000)) x) x
        WHERE t.sid = x.sid AND t.run = x.run RETURNING t.sid, t.run, t.tenant, t.since, t.traceparent),
    events AS (INSERT INTO @schema@.outbox AS o (sid, tenant, first_at, last_at, traceparent)
        SELECT sid, tenant, since, since, traceparent FROM released WHERE run = 0
        ON CONFLICT (sid) DO UPDATE SET gen = o.gen + 1, first_at = least(o.first_at, excluded.first_at)),
    requests AS (UPDATE @schema@.runs r SET deliver_at = x.since, waiting_since = now(), error_code = NULL FROM released x
        WHERE r.id = x.run AND r.status = 'queued' AND r.deliver_at = 'infinity')
    SELECT count(*) INTO v_n FROM released;
    RETURN v_n;
END $$;
