-- What the calls of models for a tenant, or for all with an empty one, have cost in the last hour and day, in millionths of
-- the unit that prices are in, how many of the hour's there are, with what tokens, and how many of the day's have estimated tokens, as the
-- server reported none. A call that is under way counts, its cost does not. An hour and a day are up to a minute longer.
-- Calls of a time that is yet to come do not count: the clock was set back.
CREATE OR REPLACE FUNCTION @schema@.spending(p_tenant text, OUT calls bigint, OUT tokens bigint, OUT hour bigint, OUT day bigint, OUT estimated bigint) LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_from timestamptz := @schema@.spending_summed_to();   -- a value, for the planner
BEGIN
    WITH c AS (
        SELECT m.minute > now() - interval '61 minutes' AS late, m.calls, m.tokens, m.micros, m.estimated
        FROM @schema@.spending_minutes m WHERE m.tenant = p_tenant AND m.minute > now() - interval '1441 minutes' AND m.minute <= now()
        UNION ALL SELECT c.ended_at > now() - interval '1 hour', 1, c.input_tokens + c.output_tokens, c.cost_micros, (c.estimated > 0)::int
        FROM @schema@.summary_calls c LEFT JOIN @schema@.sessions s ON s.sid = c.sid
        WHERE c.ended_at >= v_from AND c.ended_at <= now() + interval '1 minute' AND c.attempts > 0 AND p_tenant IN ('', coalesce(c.tenant, s.tenant))
        UNION ALL SELECT true, 1, 0, 0, 0 FROM @schema@.summary_calls c LEFT JOIN @schema@.sessions s ON s.sid = c.sid
        WHERE c.state = 'asked' AND p_tenant IN ('', coalesce(c.tenant, s.tenant)))
    SELECT coalesce(sum(c.calls) FILTER (WHERE late), 0), coalesce(sum(c.tokens) FILTER (WHERE late), 0),
        coalesce(sum(c.micros) FILTER (WHERE late), 0), coalesce(sum(c.micros), 0), coalesce(sum(c.estimated), 0) INTO calls, tokens, hour, day, estimated FROM c;
END $$;

-- The calls from then on, and of a day at most, are not summed up yet.
CREATE OR REPLACE FUNCTION @schema@.spending_summed_to() RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT greatest((SELECT m.minute FROM @schema@.spending_minutes m WHERE m.tenant = '' AND m.minute <= now() ORDER BY m.minute DESC LIMIT 1) + interval '1 minute', now() - interval '1 day')
$$;

-- Sums up the calls of the minutes that have passed, but for the last, in which a call may have ended whose transaction has
-- not, and forgets the minutes before the last day. Any number of callers may do it.
CREATE OR REPLACE FUNCTION @schema@.sum_spending() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_from timestamptz := @schema@.spending_summed_to();
    v_n    bigint;
BEGIN
    DELETE FROM @schema@.spending_minutes WHERE minute < now() - interval '25 hours';
    INSERT INTO @schema@.spending_minutes (tenant, minute, calls, tokens, micros, estimated)
    SELECT coalesce(x.tenant, ''), x.minute, count(*), sum(c.input_tokens + c.output_tokens), sum(c.cost_micros), count(*) FILTER (WHERE c.estimated > 0)
    FROM @schema@.summary_calls c LEFT JOIN @schema@.sessions s ON s.sid = c.sid
        CROSS JOIN LATERAL (SELECT date_trunc('minute', c.ended_at, 'UTC') AS minute, coalesce(c.tenant, s.tenant) AS tenant) x
    WHERE c.ended_at >= v_from AND c.ended_at < date_trunc('minute', now() - interval '1 minute', 'UTC') AND c.attempts > 0
    GROUP BY GROUPING SETS ((x.tenant, x.minute), (x.minute))
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS v_n = ROW_COUNT;
    RETURN v_n;
END $$;

-- Whether a limit of a tenant, or that of all together, is reached, by all databases of a fleet.
CREATE OR REPLACE FUNCTION @schema@.spending_limited(p_tenant text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM @schema@.spending_limits l CROSS JOIN LATERAL @schema@.spending(l.tenant) x CROSS JOIN LATERAL @schema@.spent_elsewhere(l.tenant) e
        WHERE l.tenant IN ('', p_tenant) AND coalesce(l.calls_per_hour, l.tokens_per_hour, l.micros_per_hour, l.micros_per_day) IS NOT NULL
            AND (x.calls + e.calls >= l.calls_per_hour OR x.tokens + e.tokens >= l.tokens_per_hour OR x.hour + e.hour >= l.micros_per_hour OR x.day + e.day >= l.micros_per_day))
$$;

-- Limits what is spent on a tenant, or on all together with an empty one, and how many of its runs start in a second, in
-- place of the limits that it had; nulls throughout take them away. A connection that is bound to the tenant replaces and takes
-- away those alone that such a one has set.
CREATE OR REPLACE FUNCTION @schema@.limit_spending(p_tenant text, p_micros_per_hour bigint, p_micros_per_day bigint, p_calls_per_hour bigint,
    p_note text DEFAULT '', p_requested_by text DEFAULT '', p_tokens_per_hour bigint DEFAULT NULL, p_runs_per_second double precision DEFAULT NULL)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_tenant text := @schema@.scope_of(p_tenant);
    v_bound  boolean := @schema@.binding() IS NOT NULL;
BEGIN
    IF coalesce(p_micros_per_hour, p_micros_per_day, p_calls_per_hour, p_tokens_per_hour, p_runs_per_second) IS NOT NULL THEN
        PERFORM @schema@.refuse_long('the tenant', v_tenant);
        INSERT INTO @schema@.spending_limits AS l (tenant, micros_per_hour, micros_per_day, calls_per_hour, tokens_per_hour, runs_per_second, note, changed_by, by_tenant)
        VALUES (v_tenant, p_micros_per_hour, p_micros_per_day, p_calls_per_hour, p_tokens_per_hour, p_runs_per_second, coalesce(p_note, ''), coalesce(p_requested_by, ''), v_bound)
        ON CONFLICT (tenant) DO UPDATE SET micros_per_hour = excluded.micros_per_hour, micros_per_day = excluded.micros_per_day,
            calls_per_hour = excluded.calls_per_hour, tokens_per_hour = excluded.tokens_per_hour, runs_per_second = excluded.runs_per_second,
            full_at = now(), note = excluded.note, changed_by = excluded.changed_by, changed_at = now(), by_tenant = v_bound WHERE l.by_tenant OR NOT v_bound;
        IF NOT FOUND THEN
            PERFORM @schema@.refuse_others('the limit', v_tenant);
        END IF;
        PERFORM @schema@.note_action(p_requested_by, 'limit.set', v_tenant, concat_ws(', ', 'cost_micros_per_hour ' || p_micros_per_hour, 'cost_micros_per_day ' || p_micros_per_day,
            'calls_per_hour ' || p_calls_per_hour, 'tokens_per_hour ' || p_tokens_per_hour, 'runs_per_second ' || p_runs_per_second), p_note);
        RETURN;
    END IF;
    DELETE FROM @schema@.spending_limits l WHERE l.tenant = v_tenant RETURNING v_bound AND NOT l.by_tenant INTO v_bound;
    IF v_bound THEN
        PERFORM @schema@.refuse_others('the limit', v_tenant);
    ELSIF NOT FOUND THEN
        RAISE EXCEPTION 'there is no limit of tenant %', coalesce(nullif(v_tenant, ''), '(all)') USING ERRCODE = 'no_data_found';
    END IF;
    PERFORM @schema@.note_action(p_requested_by, 'limit.clear', v_tenant, '', p_note);
END $$;

-- The limits of a tenant and of all together, or all limits with an empty one, what was spent and how many runs started in the
-- last second in all databases of a fleet, and what waits here for the limit of runs of the tenant, and of the calls here in the last day those with estimated tokens. A connection that is bound to a tenant sees its own.
CREATE OR REPLACE FUNCTION @schema@.spending_of(p_tenant text) RETURNS TABLE (tenant text, micros_per_hour bigint, micros_per_day bigint,
    calls_per_hour bigint, tokens_per_hour bigint, runs_per_second double precision, note text, changed_by text, changed_at timestamptz,
    calls bigint, tokens bigint, hour bigint, day bigint, started double precision, throttled bigint, estimated bigint) LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_tenant text := @schema@.scope_of(p_tenant);
BEGIN
    RETURN QUERY SELECT l.tenant, l.micros_per_hour, l.micros_per_day, l.calls_per_hour, l.tokens_per_hour, l.runs_per_second, l.note, l.changed_by, l.changed_at,
        x.calls + e.calls, x.tokens + e.tokens, x.hour + e.hour, x.day + e.day,
        coalesce(least(greatest(1, l.runs_per_second), round((l.runs_per_second * greatest(0, extract(epoch FROM @schema@.full_at_of(l) - now())))::numeric, 1)), 0)::double precision,
        (SELECT count(*) FROM @schema@.throttled h WHERE h.tenant = l.tenant), x.estimated
        FROM @schema@.spending_limits l CROSS JOIN LATERAL @schema@.spending(l.tenant) x CROSS JOIN LATERAL @schema@.spent_elsewhere(l.tenant) e
        WHERE v_tenant IN ('', l.tenant) OR l.tenant = '' AND @schema@.binding() IS NULL ORDER BY 1;
END $$;
