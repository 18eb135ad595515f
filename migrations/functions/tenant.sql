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
-- constant, which costs its plans nothing.
--
-- What differs from that, with the statements that set it, in their order. p_new: as in rights_amiss.
CREATE OR REPLACE FUNCTION @schema@.fences_amiss(p_new boolean) RETURNS TABLE (object text, stored text, want text, statement text) LANGUAGE sql STABLE SET jit = off AS $$
    WITH fenced AS (
        SELECT c.oid, c.oid::regclass::text AS name, c.relrowsecurity AS enabled,
            CASE WHEN c.relname IN ('sessions', 'calibrations', 'erasures', 'operator_actions', 'pauses', 'spending_limits', 'spending_minutes', 'sweeps', 'sweep_tenants', 'throttled', 'used_elsewhere') THEN 'tenant = coalesce((SELECT @schema@.bound_tenant()), tenant)'
                WHEN c.relname = 'api_keys' THEN 'coalesce(tenant, '''') = coalesce((SELECT @schema@.bound_tenant()), tenant, '''')'   -- those of all are not the tenant's
                WHEN a.attname = 'tenant' THEN 'tenant IS NULL OR tenant = coalesce((SELECT @schema@.bound_tenant()), tenant)'
                ELSE CASE WHEN c.relname = 'summary_calls' THEN 'tenant = (SELECT @schema@.bound_tenant()) OR ' ELSE '' END   -- of no session
                    || format('(SELECT @schema@.bound_tenant()) IS NULL OR EXISTS (SELECT FROM @schema@.sessions s WHERE s.sid = %I.sid'
                    || ' AND s.tenant = (SELECT @schema@.bound_tenant()))', c.relname) END AS visible
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND NOT a.attisdropped
            AND a.attname = CASE WHEN c.relname IN ('api_keys', 'bulk_operations', 'calibrations', 'erasures', 'operator_actions', 'pauses', 'policies', 'policy_changes', 'policy_heads', 'policy_versions', 'spending_limits', 'spending_minutes', 'sweeps', 'sweep_tenants', 'thresholds', 'throttled', 'used_elsewhere')
                THEN 'tenant' ELSE 'sid' END
        WHERE c.relnamespace = '@schema@'::regnamespace AND c.relkind IN ('r', 'p')
    ), wanted AS (
        SELECT f.*, 'tenant' AS policy, 0::oid AS role, 'PUBLIC' AS role_name, f.visible AS condition, '%bound_tenant()%' AS shown FROM fenced f
        UNION ALL
        SELECT f.*, 'worker', r.oid, quote_ident(rolname), 'true', 'true' FROM fenced f JOIN pg_roles r ON r.rolname = '@schema@_worker'
            AND (p_new OR has_schema_privilege(r.oid, '@schema@', 'USAGE'))
    )
    SELECT 'policy ' || w.policy || ' on table ' || w.name, CASE WHEN p.oid IS NULL THEN 'missing' ELSE 'of another condition' END, 'as installed',
        CASE WHEN p.oid IS NULL THEN '' ELSE format('DROP POLICY %I ON %s; ', w.policy, w.name) END
            || format('CREATE POLICY %I ON %s TO %s USING (%s)', w.policy, w.name, w.role_name, w.condition)
    FROM wanted w LEFT JOIN pg_policy p ON p.polrelid = w.oid AND p.polname = w.policy
    WHERE (p.polcmd = '*' AND p.polpermissive AND p.polroles = ARRAY[w.role] AND pg_get_expr(p.polqual, p.polrelid) LIKE w.shown) IS NOT TRUE
    UNION ALL   -- one more lets rows through: those for roles of others are left
    SELECT format('policy %I on table %s', p.polname, f.name), 'one that lets more rows through', 'none', format('DROP POLICY %I ON %s', p.polname, f.name)
    FROM fenced f JOIN pg_policy p ON p.polrelid = f.oid
    WHERE p.polpermissive AND NOT EXISTS (SELECT FROM wanted w WHERE w.oid = f.oid AND w.policy = p.polname)
        AND EXISTS (SELECT FROM unnest(p.polroles) r WHERE r = 0
            OR r IN (SELECT oid FROM pg_roles WHERE rolname IN ('@schema@_application', '@schema@_reader', '@schema@_operator', '@schema@_worker')))
    UNION ALL
    SELECT 'row-level security of table ' || f.name, 'off', 'on', format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', f.name) FROM fenced f WHERE NOT f.enabled
    ORDER BY 1, 2
$$;

-- Sets what fences_amiss returns. Each statement is a transaction of its own, as each needs a lock that writers wait for.
CREATE OR REPLACE PROCEDURE @schema@.fence_tables() LANGUAGE plpgsql AS $$
DECLARE
    v_statement text;
BEGIN
    FOR v_statement IN SELECT statement FROM @schema@.fences_amiss(true) LOOP
        EXECUTE v_statement;
        COMMIT;
    END LOOP;
END $$;
