-- Sweeps and bulk recompactions stop when too many of their latest runs fail. These are the rules for both.

-- How many runs of a sweep or of a bulk recompaction, the other being null, have ended, and how many of these failed, would
-- have made the view larger or got no summary.
CREATE OR REPLACE FUNCTION @schema@.run_ends(p_sweep bigint, p_bulk bigint, OUT ended bigint, OUT bad bigint) LANGUAGE sql STABLE AS $$
    SELECT coalesce(sum(n), 0)::bigint, coalesce(sum(n) FILTER (WHERE status = 'failed' OR outcome IN ('no_summary', 'would_grow')), 0)::bigint
    FROM (SELECT status, outcome, count(*) AS n FROM @schema@.runs WHERE sweep = p_sweep GROUP BY 1, 2
        UNION ALL SELECT status, outcome, count(*) FROM @schema@.runs WHERE bulk = p_bulk GROUP BY 1, 2) r
    WHERE status IN ('applied', 'skipped', 'failed')
$$;

-- Whether more of the runs that ended since the last look than a share ended badly; null for fewer than a hundred, which say
-- nothing.
CREATE OR REPLACE FUNCTION @schema@.too_many_bad(p_ended bigint, p_bad bigint, p_share real) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN p_ended >= 100 THEN p_bad > p_share * p_ended END
$$;

-- The number of queued runs at which to look again. The looks are a tenth of the runs apart, so that all of them together
-- cost what counting the runs costs, some times over.
CREATE OR REPLACE FUNCTION @schema@.next_look(p_queued bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT p_queued + greatest(100, p_queued / 10)
$$;
