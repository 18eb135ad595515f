-- Stores a key by its hash. An empty tenant is the connection's, or all. The name is free again once its key is revoked.
CREATE OR REPLACE FUNCTION @schema@.create_key(p_name text, p_prefix text, p_hash bytea, p_scope text, p_tenant text, p_expires_at timestamptz DEFAULT NULL,
    p_note text DEFAULT '', p_created_by text DEFAULT '', p_output text DEFAULT '')
RETURNS SETOF @schema@.api_keys LANGUAGE plpgsql ROWS 1 AS $$
DECLARE
    v_tenant text := nullif(@schema@.scope_of(p_tenant), '');
BEGIN
    IF p_name !~ '^[[:alnum:]][[:alnum:]_.@-]{0,99}$' OR p_name ~ '^[0-9]+$' THEN   -- digits alone are an id
        RAISE EXCEPTION 'create_key: the name %: want letters, digits, _, ., @ and -, at most 100, and not digits alone', quote_literal(left(p_name, 100)) USING ERRCODE = 'invalid_parameter_value';
    ELSIF p_scope NOT IN ('read', 'append', 'operate', 'admin') THEN
        RAISE EXCEPTION 'create_key: the scope %: want read, append, operate or admin', quote_literal(left(p_scope, 100)) USING ERRCODE = 'invalid_parameter_value';
    ELSIF p_expires_at <= now() THEN
        RAISE EXCEPTION 'create_key: it would expire in the past' USING ERRCODE = 'invalid_parameter_value';
    ELSIF p_output NOT IN ('', 'messages', 'item') THEN
        RAISE EXCEPTION 'create_key: the output %: want messages or item', quote_literal(left(p_output, 100)) USING ERRCODE = 'invalid_parameter_value';
    ELSIF octet_length(p_hash) IS DISTINCT FROM 32 THEN
        RAISE EXCEPTION 'create_key: want a SHA-256 hash' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM @schema@.refuse_long('the tenant', v_tenant), @schema@.refuse_long('the note', p_note, 1000);
    RETURN QUERY INSERT INTO @schema@.api_keys (name, prefix, hash, scope, tenant, expires_at, note, created_by, output)
    VALUES (p_name, p_prefix, p_hash, p_scope, v_tenant, p_expires_at, coalesce(p_note, ''), coalesce(p_created_by, ''), coalesce(nullif(p_output, ''), 'messages'))
    ON CONFLICT (coalesce(tenant, ''), name) WHERE revoked_at IS NULL DO NOTHING RETURNING *;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'create_key: a key % exists', p_name USING ERRCODE = 'object_in_use', HINT = 'revoke or rotate it, or give another name';
    END IF;
END $$;

-- The key with a hash, if it is in force, and notes its use.
CREATE OR REPLACE FUNCTION @schema@.use_key(p_hash bytea) RETURNS SETOF @schema@.api_keys LANGUAGE plpgsql ROWS 1 AS $$
DECLARE
    k @schema@.api_keys;
BEGIN
    PERFORM @schema@.refuse_bound();   -- who serves tenants asks for the keys of any
    SELECT * INTO k FROM @schema@.api_keys a WHERE a.hash = p_hash AND a.revoked_at IS NULL AND (a.expires_at > now()) IS NOT FALSE;
    IF k.id IS NULL THEN
        RETURN;
    END IF;
    IF (k.last_used_at > now() - interval '1 minute') IS NOT TRUE THEN
        UPDATE @schema@.api_keys SET last_used_at = now() WHERE id = (SELECT a.id FROM @schema@.api_keys a WHERE a.id = k.id FOR NO KEY UPDATE SKIP LOCKED);
    END IF;
    RETURN NEXT k;
END $$;

-- A key that is not revoked by its id or else its name, of the connection's tenant or of any. An error if there is none, or several.
CREATE OR REPLACE FUNCTION @schema@.key_named(p_tenant text, p_key text) RETURNS @schema@.api_keys LANGUAGE plpgsql AS $$
DECLARE
    v_tenant text := @schema@.scope_of(p_tenant);
    v_found  @schema@.api_keys[];
BEGIN
    SELECT coalesce(array_agg(a) FILTER (WHERE p_key = a.id::text), array_agg(a)) INTO v_found FROM @schema@.api_keys a
    WHERE p_key IN (a.id::text, a.name) AND v_tenant IN ('', a.tenant) AND a.revoked_at IS NULL;
    IF cardinality(v_found) > 1 THEN
        RAISE EXCEPTION 'several keys are called %', p_key USING ERRCODE = 'invalid_parameter_value', HINT = 'give its id, or the tenant';
    ELSIF v_found IS NULL THEN
        RAISE EXCEPTION 'there is no key % in force', p_key USING ERRCODE = 'no_data_found';
    END IF;
    RETURN v_found[1];
END $$;

-- Revokes a key.
CREATE OR REPLACE FUNCTION @schema@.revoke_key(p_tenant text, p_key text, p_revoked_by text DEFAULT '') RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    k @schema@.api_keys := @schema@.key_named(p_tenant, p_key);
BEGIN
    UPDATE @schema@.api_keys SET revoked_at = now(), revoked_by = coalesce(p_revoked_by, '') WHERE id = k.id;
    RETURN k.id;
END $$;

-- Replaces a key by another one of the same name, scope and tenant. The old one is accepted for p_grace still.
CREATE OR REPLACE FUNCTION @schema@.rotate_key(p_tenant text, p_key text, p_prefix text, p_hash bytea, p_grace interval DEFAULT '0', p_by text DEFAULT '')
RETURNS SETOF @schema@.api_keys LANGUAGE plpgsql ROWS 1 AS $$
DECLARE
    k @schema@.api_keys := @schema@.key_named(p_tenant, p_key);
BEGIN
    IF p_grace NOT BETWEEN '0' AND interval '30 days' THEN
        RAISE EXCEPTION 'rotate_key: the grace %: want 0 to 30 days', p_grace USING ERRCODE = 'invalid_parameter_value';
    ELSIF k.expires_at <= now() THEN   -- the new one would be as well
        RAISE EXCEPTION 'there is no key % in force', p_key USING ERRCODE = 'no_data_found';
    END IF;
    UPDATE @schema@.api_keys SET name = left(name, 80) || '.' || id, expires_at = least(expires_at, now() + p_grace),
        revoked_at = CASE WHEN p_grace = '0' THEN now() END, revoked_by = CASE WHEN p_grace = '0' THEN coalesce(p_by, '') ELSE '' END
    WHERE id = k.id;
    RETURN QUERY INSERT INTO @schema@.api_keys (name, prefix, hash, scope, tenant, expires_at, note, created_by, output)
        VALUES (k.name, p_prefix, p_hash, k.scope, k.tenant, k.expires_at, k.note, coalesce(p_by, ''), k.output) RETURNING *;
END $$;
