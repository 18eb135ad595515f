-- What the calls of models for a tenant, or for all with an empty one, have cost in the last hour and day, in millionths of
-- the unit that prices are in, and how many of the hour's there are. A call that is under way counts, its cost does not.
CREATE OR REPLACE FUNCTION @schema@.spending(p_tenant text, OUT calls bigint, OUT hour bigint, OUT day bigint) LANGUAGE sql STABLE AS $$
    WITH c AS (
        SELECT c.sid, c.cost_micros, c.ended_at > now() - interval '1 hour' AS late FROM @schema@.summary_calls c WHERE c.ended_at > now() - interval '1 day' AND c.attempts > 0
        UNION ALL SELECT c.sid, 0, true FROM @schema@.summary_calls c WHERE c.state = 'asked')
    SELECT count(*) FILTER (WHERE late), coalesce(sum(cost_micros) FILTER (WHERE late), 0)::bigint, coalesce(sum(cost_micros), 0)::bigint
    FROM c WHERE p_tenant = '' OR sid IN (SELECT s.sid FROM @schema@.sessions s WHERE s.tenant = p_tenant)
$$;

-- Whether a limit of a tenant, or that of all together, is reached.
CREATE OR REPLACE FUNCTION @schema@.spending_limited(p_tenant text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM @schema@.spending_limits l CROSS JOIN LATERAL @schema@.spending(l.tenant) x
        WHERE l.tenant IN ('', p_tenant) AND (x.calls >= l.calls_per_hour OR x.hour >= l.micros_per_hour OR x.day >= l.micros_per_day))
$$;

-- Limits what is spent on a tenant, or on all together with an empty one, in place of the limits that it had; nulls
-- throughout take them away.
CREATE OR REPLACE FUNCTION @schema@.limit_spending(p_tenant text, p_micros_per_hour bigint, p_micros_per_day bigint, p_calls_per_hour bigint,
    p_note text DEFAULT '', p_requested_by text DEFAULT '') RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_tenant text := @schema@.scope_of(p_tenant);
BEGIN
    IF coalesce(p_micros_per_hour, p_micros_per_day, p_calls_per_hour) IS NOT NULL THEN
        INSERT INTO @schema@.spending_limits AS l (tenant, micros_per_hour, micros_per_day, calls_per_hour, note, changed_by)
        VALUES (v_tenant, p_micros_per_hour, p_micros_per_day, p_calls_per_hour, coalesce(p_note, ''), coalesce(p_requested_by, ''))
        ON CONFLICT (tenant) DO UPDATE SET micros_per_hour = excluded.micros_per_hour, micros_per_day = excluded.micros_per_day,
            calls_per_hour = excluded.calls_per_hour, note = excluded.note, changed_by = excluded.changed_by, changed_at = now();
        RETURN;
    END IF;
    DELETE FROM @schema@.spending_limits WHERE tenant = v_tenant;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no limit of tenant %', coalesce(nullif(v_tenant, ''), '(all)') USING ERRCODE = 'no_data_found';
    END IF;
END $$;

-- The limits of a tenant, or all with an empty one, and what was spent.
CREATE OR REPLACE FUNCTION @schema@.spending_of(p_tenant text) RETURNS TABLE (tenant text, micros_per_hour bigint, micros_per_day bigint,
    calls_per_hour bigint, note text, changed_by text, changed_at timestamptz, calls bigint, hour bigint, day bigint) LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_tenant text := @schema@.scope_of(p_tenant);
BEGIN
    RETURN QUERY SELECT l.tenant, l.micros_per_hour, l.micros_per_day, l.calls_per_hour, l.note, l.changed_by, l.changed_at, x.calls, x.hour, x.day
        FROM @schema@.spending_limits l CROSS JOIN LATERAL @schema@.spending(l.tenant) x WHERE v_tenant IN ('', l.tenant) ORDER BY 1;
END $$;
