-- The labels that policies match for a session with these of its own: those of its parent, and of the parents of that, for
-- each key that it has not. No line is longer than a hundred (see set_parent).
CREATE OR REPLACE FUNCTION @schema@.effective_labels(p_labels jsonb, p_parent bigint) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
    v record;
BEGIN
    FOR i IN 1..100 LOOP
        EXIT WHEN p_parent IS NULL;
        SELECT s.labels, s.parent INTO v FROM @schema@.sessions s WHERE s.sid = p_parent;
        p_labels := v.labels || p_labels;
        p_parent := v.parent;
    END LOOP;
    RETURN p_labels;
END $$;

-- The same of a session, by its name; null for one that does not exist.
CREATE OR REPLACE FUNCTION @schema@.labels_of(p_tenant text, p_session text) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_tenant text := @schema@.tenant_of(p_tenant);
BEGIN
    RETURN (SELECT @schema@.effective_labels(s.labels, s.parent) FROM @schema@.sessions s WHERE s.tenant = v_tenant AND s.id = p_session);
END $$;

-- Has the sessions below one follow its labels: by refresh_policies, page by page, so that no writer of them waits.
CREATE OR REPLACE FUNCTION @schema@.refresh_children(p_sid bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM @schema@.sessions WHERE parent = p_sid) THEN
        UPDATE @schema@.policy_refresh SET wanted = wanted + 1, changed_at = now();
    END IF;
END $$;

-- The sessions above one, the nearest first. Ends where the line is a circle.
CREATE OR REPLACE FUNCTION @schema@.ancestors(p_parent bigint) RETURNS SETOF bigint LANGUAGE sql STABLE AS $$
    WITH RECURSIVE up AS (
        SELECT s.sid, s.parent FROM @schema@.sessions s WHERE s.sid = p_parent
        UNION SELECT s.sid, s.parent FROM up JOIN @schema@.sessions s ON s.sid = up.parent)
    SELECT sid FROM up
$$;

-- Makes a session the child of another one of its tenant, from now on; null or an empty name takes that back. A session that
-- does not exist is created, so that it has its policy before its first message. A line of parents has a hundred sessions
-- at most, and no circle.
CREATE OR REPLACE FUNCTION @schema@.set_parent(p_tenant text, p_session text, p_parent text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    s        @schema@.sessions;
    v_parent bigint;
    v_above  bigint[] := '{}';
    v_below  int := 1;
BEGIN
    s := @schema@.lock_session(p_tenant, p_session, NULL, true);
    IF p_parent <> '' THEN
        -- Who changes the labels of the parent, or its parent, sees this child or waits for it.
        SELECT sid INTO v_parent FROM @schema@.sessions WHERE tenant = s.tenant AND id = p_parent FOR SHARE;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'session % of tenant % does not exist', p_parent, s.tenant USING ERRCODE = 'no_data_found';
        END IF;
    END IF;
    IF s.parent IS NOT DISTINCT FROM v_parent THEN
        RETURN;
    END IF;
    IF v_parent IS NOT NULL THEN
        -- A session without children closes no circle, and while it is locked it gets none. Others do this one after another.
        IF EXISTS (SELECT FROM @schema@.sessions WHERE parent = s.sid) THEN
            PERFORM pg_advisory_xact_lock('@schema@.sessions'::regclass::oid::int, hashtext(s.tenant));
            WITH RECURSIVE down AS (
                SELECT s.sid, 1 AS n
                UNION ALL SELECT c.sid, n + 1 FROM down JOIN @schema@.sessions c ON c.parent = down.sid WHERE n <= 100)
            SELECT max(n) INTO v_below FROM down;
        END IF;
        v_above := ARRAY(SELECT @schema@.ancestors(v_parent));
        IF v_parent = s.sid OR s.sid = ANY(v_above) THEN
            RAISE EXCEPTION 'session % cannot be the child of %, which is % or below it', s.id, p_parent, s.id USING ERRCODE = 'invalid_parameter_value';
        ELSIF cardinality(v_above) + v_below > 100 THEN
            RAISE EXCEPTION 'session % cannot be the child of %: a line of parents has at most 100 sessions', s.id, p_parent USING ERRCODE = 'invalid_parameter_value';
        END IF;
    END IF;
    s.parent := v_parent;
    UPDATE @schema@.sessions SET parent = v_parent WHERE sid = s.sid;
    PERFORM @schema@.use_policy(s);
    PERFORM @schema@.refresh_children(s.sid);
    PERFORM @schema@.note_change('session.parent', s, p_parent);
END $$;
