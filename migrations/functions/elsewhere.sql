-- Limits over the databases of a fleet. Each database holds its limits for itself, and a scheduler tells it about once a
-- second what the others have used: of models as sums that are added to its own, of runs as starts that its own limit pays
-- for, too. So each start counts in every database, and all together start no more than the limit allows in the long run.

-- What is used here of limits that another database has: of those in p_models also of models.
CREATE OR REPLACE FUNCTION @schema@.limited_use(p_tenants text[], p_models text[])
RETURNS TABLE (tenant text, started bigint, calls bigint, tokens bigint, hour bigint, day bigint) LANGUAGE plpgsql STABLE AS $$
BEGIN
    PERFORM @schema@.refuse_bound();
    RETURN QUERY SELECT t.tenant, coalesce(l.started, 0), coalesce(x.calls, 0), coalesce(x.tokens, 0), coalesce(x.hour, 0), coalesce(x.day, 0)
        FROM unnest(p_tenants) t(tenant) LEFT JOIN @schema@.spending_limits l ON l.tenant = t.tenant
            LEFT JOIN (SELECT m.tenant, s.* FROM unnest(p_models) m(tenant) CROSS JOIN LATERAL @schema@.spending(m.tenant) s) x ON x.tenant = t.tenant;
END $$;

-- Counts what another database has used: p_use is what limited_use returned there. Starts count from the second reading on,
-- and where the last one is half a minute old or older, its database was away and this one is the first again. Rows that
-- stay as they are are written every ten seconds.
CREATE OR REPLACE FUNCTION @schema@.count_elsewhere(p_installation text, p_database text, p_use jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM @schema@.refuse_bound();
    PERFORM FROM @schema@.used_elsewhere e WHERE e.installation = p_installation ORDER BY e.tenant FOR NO KEY UPDATE; -- of two callers, the second sees what the first did
    WITH u AS MATERIALIZED (
        SELECT u.*, e.read_at AS last_read, (e.started, e.calls, e.tokens, e.hour, e.day, e.database) = (u.started, u.calls, u.tokens, u.hour, u.day, p_database) AS same,
            CASE WHEN e.read_at > now() - interval '30 seconds' THEN u.started - e.started ELSE 0 END AS n
        FROM jsonb_to_recordset(p_use) u(tenant text, started bigint, calls bigint, tokens bigint, hour bigint, day bigint)
            LEFT JOIN @schema@.used_elsewhere e ON e.tenant = u.tenant AND e.installation = p_installation),
    started AS (UPDATE @schema@.spending_limits l SET full_at = greatest(@schema@.full_at_of(l), now()) + make_interval(secs => k.n / l.runs_per_second)
        FROM (SELECT k.tenant, u.n FROM @schema@.spending_limits k JOIN u USING (tenant) WHERE u.n > 0 AND k.runs_per_second IS NOT NULL
            ORDER BY k.tenant FOR NO KEY UPDATE OF k) k
        WHERE l.tenant = k.tenant)
    INSERT INTO @schema@.used_elsewhere AS e (tenant, installation, database, started, calls, tokens, hour, day, read_at)
    SELECT u.tenant, p_installation, p_database, u.started, u.calls, u.tokens, u.hour, u.day, now() FROM u
    WHERE (u.same AND u.last_read > now() - interval '10 seconds') IS NOT true
    ON CONFLICT (tenant, installation) DO UPDATE SET database = excluded.database, started = excluded.started, calls = excluded.calls,
        tokens = excluded.tokens, hour = excluded.hour, day = excluded.day, read_at = excluded.read_at;
    DELETE FROM @schema@.used_elsewhere WHERE read_at < now() - interval '25 hours';
END $$;

-- What the other databases have used of models in the last hour and day, as far as it is known: where one has been away, what
-- it had used before for as long as that may count.
CREATE OR REPLACE FUNCTION @schema@.spent_elsewhere(p_tenant text, OUT calls bigint, OUT tokens bigint, OUT hour bigint, OUT day bigint) LANGUAGE sql STABLE AS $$
    SELECT coalesce(sum(e.calls) FILTER (WHERE e.read_at > now() - interval '1 hour'), 0), coalesce(sum(e.tokens) FILTER (WHERE e.read_at > now() - interval '1 hour'), 0),
        coalesce(sum(e.hour) FILTER (WHERE e.read_at > now() - interval '1 hour'), 0), coalesce(sum(e.day) FILTER (WHERE e.read_at > now() - interval '1 day'), 0)
    FROM @schema@.used_elsewhere e WHERE e.tenant = p_tenant
$$;
