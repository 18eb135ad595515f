-- The line reported = overhead + scale * counted through reports, the newest first, of a model whose sessions are
-- compacted above p_start. Robust, as some reports count something else (without what was cached, of another view) and
-- as the overhead, the definitions of tools most of all, jumps from one version of an application to the next:
--   scale     Theil-Sen: the median of the slopes between two reports. Those more than 8 apart are not compared, so
--             that few of the slopes are across a jump, nor those of about one size, which differ by noise alone: a
--             scale is used at the start, however small the prompts that taught it. 1 where nothing is left.
--   overhead  the median of what the scale leaves; that of the newest 7 alone where it is clearly another one.
-- Bounded, as reports may say anything: a scale of 0.5 to 3, and an overhead that leaves half of the start to messages.
CREATE OR REPLACE FUNCTION @schema@.fit_usage(p_counted bigint[], p_reported bigint[], p_start bigint,
    OUT overhead bigint, OUT scale double precision, OUT deviation double precision)
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_all    double precision;
    v_newest double precision;
    v_noise  double precision;
    v_few    int := cardinality(p_counted) / 10;
BEGIN
    SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY (q.r - p.r)::double precision / (q.c - p.c)) INTO scale
    FROM unnest(p_counted, p_reported) WITH ORDINALITY p(c, r, n)
    JOIN unnest(p_counted, p_reported) WITH ORDINALITY q(c, r, n) ON q.n > p.n AND q.n <= p.n + 8
        AND abs(q.c - p.c) >= greatest(p_start / 20, least(p.c, q.c) / 10, 1)
    -- A few of another size are not enough: each of their slopes would be by the same reports.
    WHERE (SELECT max(c) > 1.2 * min(c) FROM (SELECT c FROM unnest(p_counted) c ORDER BY c OFFSET v_few
        LIMIT cardinality(p_counted) - 2 * v_few) most);
    scale := round(least(3, greatest(0.5, coalesce(scale, 1)))::numeric, 4);
    SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY r - scale * c), percentile_cont(0.5) WITHIN GROUP (ORDER BY r - scale * c) FILTER (WHERE n <= 7)
    INTO v_all, v_newest FROM unnest(p_counted, p_reported) WITH ORDINALITY p(c, r, n);
    SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY abs(r - scale * c - v_newest))
    INTO v_noise FROM unnest(p_counted[:7], p_reported[:7]) p(c, r);
    overhead := least(p_start / 2, CASE WHEN abs(v_newest - v_all) > 4 * v_noise THEN v_newest ELSE v_all END);
    IF overhead < 0 THEN   -- a line through the origin instead
        overhead := 0;
        SELECT round(least(3, greatest(0.5, percentile_cont(0.5) WITHIN GROUP (ORDER BY r::double precision / c)))::numeric, 4)
        INTO scale FROM unnest(p_counted, p_reported) p(c, r);
    END IF;
    SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY abs(overhead + scale * c - r) / r)
    INTO deviation FROM unnest(p_counted, p_reported) p(c, r);
END $$;

-- Learns from a report of a prompt whose messages are counted with p_counted tokens. It never waits: of reports at
-- once for one tenant and model, others than the first are left out, and once 20 are there, all within a second but
-- one. So is a report that no line explains, and what comes before the first policy, whose start bounds the line.
CREATE OR REPLACE FUNCTION @schema@.learn_usage(s @schema@.sessions, p_reported bigint, p_counted bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    c       @schema@.calibrations;
    v_model text := @schema@.model_key(s.model);
    v_start bigint := (SELECT due_tokens FROM @schema@.thresholds_of(s.policy, s.model));
BEGIN
    IF v_start IS NULL OR p_counted <= 0 OR p_reported <= 0 OR p_reported < 0.5 * p_counted OR p_reported > v_start + 3 * p_counted
            OR octet_length(s.tenant || v_model) > 1000   -- longer ones may not fit into the index
            -- A stricter transaction could fail by another's report.
            OR current_setting('transaction_isolation') <> 'read committed'
            OR NOT pg_try_advisory_xact_lock(hashtextextended('@schema@.calibrations/' || v_model || '/' || s.tenant, 0)) THEN
        RETURN;
    END IF;
    SELECT * INTO c FROM @schema@.calibrations WHERE tenant = s.tenant AND model = v_model;
    IF cardinality(c.counted) >= 20 AND c.updated_at > clock_timestamp() - interval '1 second' THEN
        RETURN;
    END IF;
    c.counted := (p_counted || c.counted)[:20];
    c.reported := (p_reported || c.reported)[:20];
    SELECT f.* INTO c.overhead, c.scale, c.deviation FROM @schema@.fit_usage(c.counted, c.reported, v_start) f WHERE cardinality(c.counted) >= 5;
    INSERT INTO @schema@.calibrations AS t (tenant, model, counted, reported, reports, overhead, scale, deviation, updated_at)
    VALUES (s.tenant, v_model, c.counted, c.reported, 1, c.overhead, c.scale, c.deviation, clock_timestamp())
    ON CONFLICT (tenant, model) DO UPDATE SET counted = excluded.counted, reported = excluded.reported, reports = t.reports + 1,
        overhead = excluded.overhead, scale = excluded.scale, deviation = excluded.deviation, updated_at = excluded.updated_at;
END $$;

-- The size of the prompt of a session without a report, by the reports of others with its model; null where there are
-- too few.
CREATE OR REPLACE FUNCTION @schema@.estimated_tokens(s @schema@.sessions) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT c.overhead + ceil(c.scale * s.live_tokens)::bigint FROM @schema@.calibrations c
        WHERE c.tenant = s.tenant AND c.model = @schema@.model_key(s.model));
END $$;
