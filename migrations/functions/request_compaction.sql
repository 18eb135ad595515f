-- Asks for a compaction of one session and returns the run. A queued run of the same trigger is
-- returned instead of a second one, if it asks for the same; asking for something else meanwhile
-- is an error. The relay rings for it in Redis; a caller who has Redis at hand may do so first.
--
-- options: from (log | view), pipeline ([{strategy, params}]), focus, dry_run, allow_growth.
CREATE OR REPLACE FUNCTION @schema@.request_compaction(p_tenant text, p_session text, p_options jsonb DEFAULT '{}',
    p_requested_by text DEFAULT '', p_trigger text DEFAULT 'application')
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    s @schema@.sessions;
    v record;
BEGIN
    IF p_trigger NOT IN ('application', 'operator') THEN
        RAISE EXCEPTION 'request_compaction: trigger % is not one of application, operator', p_trigger
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    s := @schema@.lock_session(p_tenant, p_session, NULL, false);
    SELECT id, options INTO v FROM @schema@.runs WHERE sid = s.sid AND trigger = p_trigger AND status = 'queued';
    IF FOUND THEN
        IF v.options = coalesce(p_options, '{}') THEN RETURN v.id; END IF;
        RAISE EXCEPTION 'session %: run % is queued already with other options', s.id, v.id USING ERRCODE = 'object_in_use';
    END IF;
    INSERT INTO @schema@.runs (sid, trigger, requested_by, options)
    VALUES (s.sid, p_trigger, coalesce(p_requested_by, ''), coalesce(p_options, '{}')) RETURNING id INTO v;
    RETURN v.id;
END $$;
