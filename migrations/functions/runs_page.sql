-- The numbers of a page of runs, the newest first, and the last number that it has looked at, from which the next page goes on; null
-- where there is nothing older. At most p_most runs are looked at, so a page of a filter may have fewer than p_limit numbers, or none.
--
-- Runs of a session, and those of a tenant with few sessions, are found by these sessions, others by their numbers. A function
-- with the owner's rights, as under row-level security the runs of other tenants would be looked at without counting.
DROP FUNCTION IF EXISTS @schema@.runs_page(text, text, text, text, bigint, bigint, int, int);
CREATE OR REPLACE FUNCTION @schema@.runs_page(p_tenant text, p_session text, p_status text, p_outcome text, p_sweep bigint, p_before bigint, p_limit int,
    p_most int DEFAULT 20000, p_trigger text DEFAULT '', p_model text DEFAULT '', OUT ids bigint[], OUT next bigint)
LANGUAGE plpgsql STABLE SET plan_cache_mode = 'force_custom_plan' SET jit = off AS $$
DECLARE
    v_tenant  text := @schema@.scope_of(p_tenant);
    v_before  bigint := coalesce(nullif(p_before, 0), 9223372036854775807);
    v_few     CONSTANT int := 100;
    v_all     boolean := p_status = '' AND p_outcome = '' AND p_sweep = 0 AND p_trigger = '' AND p_model = '';   -- what is looked at is wanted
    v_each    int := CASE WHEN v_all THEN p_limit ELSE p_most END;
    v_sids    bigint[];
    v_upto    bigint;   -- all runs from it on were looked at
BEGIN
    IF p_session <> '' THEN
        v_sids := ARRAY(SELECT s.sid FROM @schema@.sessions s WHERE s.id = p_session AND (v_tenant = '' OR s.tenant = v_tenant));
    ELSIF v_tenant <> '' THEN
        v_sids := ARRAY(SELECT s.sid FROM @schema@.sessions s WHERE s.tenant = v_tenant LIMIT v_few + 1);
        IF cardinality(v_sids) > v_few THEN
            v_sids := NULL;
            v_each := p_most;   -- of them and others
        END IF;
    END IF;
    IF v_sids IS NULL THEN
        SELECT min(r.id), count(*) = v_each INTO v_upto, v_all FROM (SELECT l.id FROM @schema@.runs l WHERE l.id < v_before ORDER BY l.id DESC LIMIT v_each) r;
        next := CASE WHEN v_all THEN v_upto END;
        ids := ARRAY(SELECT r.id FROM @schema@.runs r WHERE r.id >= v_upto AND r.id < v_before
                AND (v_tenant = '' OR EXISTS (SELECT FROM @schema@.sessions s WHERE s.sid = r.sid AND s.tenant = v_tenant)) AND (p_status = '' OR r.status = p_status)
                AND (p_outcome = '' OR r.outcome = p_outcome) AND (p_sweep = 0 OR r.sweep = p_sweep) AND (p_trigger = '' OR r.trigger = p_trigger)
                AND (p_model = '' OR EXISTS (SELECT FROM @schema@.summary_calls c WHERE c.run = r.id AND c.model = p_model))
            ORDER BY r.id DESC LIMIT p_limit);
    ELSE
        v_each := greatest(CASE WHEN v_all THEN v_each ELSE v_each / greatest(1, cardinality(v_sids)) END, 1);
        WITH seen AS MATERIALIZED (
            SELECT r.* FROM unnest(v_sids) x CROSS JOIN LATERAL (SELECT l.id, l.sid, l.status, l.outcome, l.sweep, l.trigger FROM @schema@.runs l
                WHERE l.sid = x AND l.id < v_before ORDER BY l.id DESC LIMIT v_each) r
        ), upto AS (SELECT max(f.id) AS id FROM (SELECT min(r.id) AS id FROM seen r GROUP BY r.sid HAVING count(*) = v_each) f)
        SELECT u.id, ARRAY(SELECT r.id FROM seen r WHERE r.id >= coalesce(u.id, 0) AND (p_status = '' OR r.status = p_status)
            AND (p_outcome = '' OR r.outcome = p_outcome) AND (p_sweep = 0 OR r.sweep = p_sweep) AND (p_trigger = '' OR r.trigger = p_trigger)
            AND (p_model = '' OR EXISTS (SELECT FROM @schema@.summary_calls c WHERE c.run = r.id AND c.model = p_model)) ORDER BY r.id DESC LIMIT p_limit)
        INTO next, ids FROM upto u;
    END IF;
    IF cardinality(ids) = p_limit THEN
        next := ids[p_limit];
    END IF;
END $$;
