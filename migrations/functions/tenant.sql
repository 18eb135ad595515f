-- The tenant that this connection is bound to, or null for none: that of its login in
-- tenant_bindings, otherwise the setting compactor.tenant. Any client can change a setting, so that
-- one guards trusted programs against mistakes and nothing against hostile SQL.
-- session_user is the login whatever SET ROLE says, and within functions of other owners too.
CREATE OR REPLACE FUNCTION @schema@.binding() RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
    RETURN coalesce((SELECT tenant FROM @schema@.tenant_bindings WHERE role = session_user),
        nullif(current_setting('compactor.tenant', true), ''));
END $$;

-- The same for views and policies, whose functions run with the rights of the reader.
CREATE OR REPLACE FUNCTION @schema@.bound_tenant() RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
    RETURN @schema@.binding();
END $$;

-- The tenant that an argument names: an empty one is the connection's, or default. Every function
-- with a tenant among its arguments calls this, so that a bound connection reaches no other. The
-- error is the same whether the session exists or not.
CREATE OR REPLACE FUNCTION @schema@.tenant_of(p_tenant text) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_bound  text := @schema@.binding();
    v_tenant text := coalesce(nullif(p_tenant, ''), v_bound, 'default');
BEGIN
    IF v_tenant <> v_bound THEN
        RAISE EXCEPTION 'this connection is bound to tenant % and reaches no other', v_bound USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN v_tenant;
END $$;

-- The same where an empty tenant stands for all of them: for a connection that is bound to one, it is that.
CREATE OR REPLACE FUNCTION @schema@.scope_of(p_tenant text) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN CASE WHEN coalesce(p_tenant, '') = '' AND @schema@.binding() IS NULL THEN '' ELSE @schema@.tenant_of(p_tenant) END;
END $$;

-- Row-level security for every table with rows of tenants: the second fence behind the functions and
-- the grants. The owner is exempt, so the functions are; and for the worker role the policies are a
-- constant, which costs its plans nothing. Each table is a transaction of its own, as each needs a
-- lock that writers wait for.
CREATE OR REPLACE PROCEDURE @schema@.fence_tables() LANGUAGE plpgsql AS $$
DECLARE
    t record;
BEGIN
    FOR t IN
        SELECT c.oid, c.oid::regclass AS name, c.relrowsecurity AS fenced, r.rolname AS worker,
            CASE WHEN c.relname IN ('sessions', 'calibrations', 'erasures', 'pauses', 'spending_limits', 'spending_minutes', 'sweeps', 'sweep_tenants', 'throttled', 'used_elsewhere') THEN 'tenant = coalesce((SELECT @schema@.bound_tenant()), tenant)'
                WHEN a.attname = 'tenant' THEN 'tenant IS NULL OR tenant = coalesce((SELECT @schema@.bound_tenant()), tenant)'
                ELSE format('(SELECT @schema@.bound_tenant()) IS NULL OR EXISTS (SELECT FROM @schema@.sessions s WHERE s.sid = %I.sid'
                    || ' AND s.tenant = (SELECT @schema@.bound_tenant()))', c.relname) END AS visible
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND NOT a.attisdropped
            AND a.attname = CASE WHEN c.relname IN ('bulk_operations', 'calibrations', 'erasures', 'pauses', 'policies', 'policy_changes', 'policy_heads', 'policy_versions', 'spending_limits', 'spending_minutes', 'sweeps', 'sweep_tenants', 'thresholds', 'throttled', 'used_elsewhere')
                THEN 'tenant' ELSE 'sid' END
        LEFT JOIN pg_roles r ON r.rolname = '@schema@_worker'
        WHERE c.relnamespace = '@schema@'::regnamespace AND c.relkind IN ('r', 'p')
    LOOP
        IF NOT t.fenced THEN
            EXECUTE format('CREATE POLICY tenant ON %s USING (%s)', t.name, t.visible);
            EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', t.name);
        END IF;
        IF t.worker IS NOT NULL AND NOT EXISTS (SELECT FROM pg_policy WHERE polrelid = t.oid AND polname = 'worker') THEN
            EXECUTE format('CREATE POLICY worker ON %s TO %I USING (true)', t.name, t.worker);
        END IF;
        COMMIT;
    END LOOP;
END $$;
