-- Why options of a run are refused, or null. They are those of the Go type store.Options; a strategy is
-- one that a worker has registered, as long as any has.
CREATE OR REPLACE FUNCTION @schema@.invalid_options(p jsonb) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE jsonb_typeof(p) WHEN 'object' THEN (
        SELECT string_agg(fault, '; ' ORDER BY key, n) FROM (
            SELECT key, 0 AS n, CASE
                WHEN key NOT IN ('from', 'pipeline', 'focus', 'dry_run', 'allow_growth', 'force', 'summary')
                    THEN format('unknown key %s, want from, pipeline, focus, dry_run, allow_growth, force or summary', key)
                WHEN key = 'from' AND value NOT IN ('"log"', '"view"', '""') THEN 'from must be "log" or "view"'
                WHEN key IN ('dry_run', 'allow_growth', 'force') AND jsonb_typeof(value) <> 'boolean' THEN key || ' must be true or false'
                WHEN key = 'focus' AND (jsonb_typeof(value) <> 'string' OR length(value #>> '{}') > 1000)
                    THEN 'focus must be a string of at most 1000 characters'
                WHEN key = 'summary' AND (jsonb_typeof(value) <> 'object' OR value - '{text,author,note}'::text[] <> '{}'
                    OR jsonb_typeof(value->'text') IS DISTINCT FROM 'string' OR length(value::text) > 400000)
                    THEN 'summary must be {"text": …, "author": …, "note": …} of at most 400000 characters'
                WHEN key = 'pipeline' AND (jsonb_typeof(value) <> 'array' OR jsonb_array_length(value) > 100)
                    THEN 'pipeline must be an array of at most 100 steps' END AS fault
            FROM jsonb_each(p)
            UNION ALL
            SELECT 'pipeline', n, format('pipeline step %s: ', n) || CASE
                WHEN jsonb_typeof(step) <> 'object' OR jsonb_typeof(step->'strategy') IS DISTINCT FROM 'string' OR step - '{strategy,params}'::text[] <> '{}'
                    OR coalesce(jsonb_typeof(step->'params'), 'object') <> 'object' THEN 'must be {"strategy": NAME, "params": {…}}'
                WHEN k.known IS NULL THEN NULL
                WHEN NOT k.known ? (step->>'strategy') THEN
                    format('unknown strategy %s, want one of %s', step->>'strategy', (SELECT string_agg(name, ', ' ORDER BY name) FROM @schema@.strategies))
                ELSE (SELECT format('strategy %s has no parameter %s', step->>'strategy', string_agg(param, ', '))
                      FROM jsonb_object_keys(step->'params') param WHERE NOT k.known->(step->>'strategy') ? param HAVING count(*) > 0) END
            FROM jsonb_array_elements(CASE jsonb_typeof(p->'pipeline') WHEN 'array' THEN p->'pipeline' END) WITH ORDINALITY x(step, n),
                (SELECT jsonb_object_agg(name, params) AS known FROM @schema@.strategies) k) f)
    ELSE 'must be an object, not ' || jsonb_typeof(p) END
$$;

-- Asks for a compaction of one session and returns the run. A queued run of the same trigger is
-- returned instead of a second one, if it asks for the same; asking for something else meanwhile
-- is an error. The relay rings for it in Redis; a caller who has Redis at hand may do so first.
--
-- options: from (log | view), pipeline ([{strategy, params}]), focus, dry_run, allow_growth, and an operator's force, with
-- which the run is executed although its session is paused (from a connection that is bound to a tenant: by that tenant), and summary ({text, author, note}), which takes the place of a model's.
--
-- The trigger operator is for logins that may undo runs, too: its runs are held up by no limit of what models cost or of runs
-- that start.
CREATE OR REPLACE FUNCTION @schema@.request_compaction(p_tenant text, p_session text, p_options jsonb DEFAULT '{}',
    p_requested_by text DEFAULT '', p_trigger text DEFAULT 'application')
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    s @schema@.sessions;
    v record;
    v_bad text;
BEGIN
    IF p_trigger IS NULL OR p_trigger NOT IN ('application', 'operator') THEN
        RAISE EXCEPTION 'request_compaction: trigger % is not one of application, operator', p_trigger
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF p_trigger = 'operator' AND NOT EXISTS (SELECT FROM pg_roles r, pg_proc p
        WHERE p.pronamespace = '@schema@'::regnamespace AND p.proname = 'undo_run' AND pg_has_role(session_user, r.oid, 'MEMBER') AND has_function_privilege(r.oid, p.oid, 'EXECUTE')) THEN
        RAISE EXCEPTION 'request_compaction: the trigger operator is for members of the role operator' USING ERRCODE = 'insufficient_privilege';
    END IF;
    p_options := coalesce(p_options, '{}');
    v_bad := @schema@.invalid_options(p_options);
    IF v_bad IS NOT NULL THEN
        RAISE EXCEPTION 'request_compaction: options: %', left(v_bad, 1000) USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF p_options ?| '{force,summary}' AND p_trigger <> 'operator' THEN
        RAISE EXCEPTION 'request_compaction: options: % is for the trigger operator', CASE WHEN p_options ? 'force' THEN 'force' ELSE 'summary' END
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    s := @schema@.lock_session(p_tenant, p_session, NULL, false);
    IF p_options->'force' = 'true' AND @schema@.binding() IS NOT NULL AND EXISTS (SELECT FROM @schema@.pauses_of(p_tenant, p_session) p WHERE p.tenant = '' OR NOT p.by_tenant) THEN
        RAISE EXCEPTION 'session % is paused by an operator of all tenants: only such a one forces its runs', s.id USING ERRCODE = 'insufficient_privilege';
    END IF;
    LOOP
        -- A run that came back from a worker may ask for something else; only of requests that none has taken is there one.
        SELECT id, options INTO v FROM @schema@.runs
        WHERE sid = s.sid AND trigger = p_trigger AND status = 'queued' AND (options = p_options OR attempts = 0)
        ORDER BY options = p_options DESC LIMIT 1;
        IF v.options = p_options THEN RETURN v.id; END IF;
        IF v.id IS NOT NULL THEN
            RAISE EXCEPTION 'session %: run % is queued already with other options', s.id, v.id USING ERRCODE = 'object_in_use';
        END IF;
        -- A worker that gives a run back without an attempt does not lock the session.
        INSERT INTO @schema@.runs (sid, turn_of, trigger, requested_by, options)
        VALUES (s.sid, CASE p_trigger WHEN 'application' THEN s.tenant ELSE '' END, p_trigger, coalesce(p_requested_by, ''), p_options)
        ON CONFLICT DO NOTHING RETURNING id INTO v;
        IF FOUND THEN RETURN v.id; END IF;
    END LOOP;
END $$;
