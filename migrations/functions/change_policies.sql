-- Refuses a connection that is bound to a tenant what concerns all of them.
CREATE OR REPLACE FUNCTION @schema@.refuse_bound() RETURNS void LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF @schema@.binding() IS NOT NULL THEN
        RAISE EXCEPTION 'this connection is bound to tenant % and cannot change what concerns others, too', @schema@.binding() USING ERRCODE = 'insufficient_privilege';
    END IF;
END $$;

-- Sets the thresholds of a policy: [{model_prefix, due_tokens, estimate_margin, free_reasoning, and those of store.Counts}]. Sessions follow by
-- refresh_policies, if they are others than before. p_version is the version that they are for, 0 for the policy of the
-- configuration; if another one is in force by now, nothing happens.
CREATE OR REPLACE FUNCTION @schema@.save_thresholds(p_policy text, p_version int, p_hash text, p_thresholds json) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    h          @schema@.policy_heads;
    v_revision bigint;
    v_former   bigint;
BEGIN
    IF p_thresholds IS NULL THEN
        RAISE EXCEPTION 'save_thresholds: thresholds of policy % are missing', p_policy USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM FROM @schema@.policy_refresh FOR UPDATE;   -- changes of policies are one after the other
    SELECT * INTO h FROM @schema@.policy_heads WHERE name = p_policy;
    IF coalesce(h.version, 0) <> p_version OR h.name IS NULL AND p_policy <> 'default' THEN
        RETURN;
    END IF;
    SELECT CASE WHEN t.revision <= r.reached THEN t.revision ELSE t.former END INTO v_former
    FROM @schema@.thresholds t, @schema@.policy_refresh r WHERE t.policy = p_policy LIMIT 1;
    WITH new AS MATERIALIZED (
        SELECT t.model_prefix, t.due_tokens, t.estimate_margin, p_hash AS policy_hash, coalesce(t.free_reasoning, false) AS free_reasoning, h.tenant,
            t.due_messages, t.due_turns, t.due_new_tokens, t.due_live_messages, t.due_signals, t.due_idle, t.due_idle_tokens,
            t.due_age, t.due_since_run
        FROM json_to_recordset(p_thresholds) AS t(model_prefix text, due_tokens bigint, estimate_margin real, free_reasoning boolean,
            due_messages bigint, due_turns bigint, due_new_tokens bigint, due_live_messages bigint, due_signals int, due_idle bigint, due_idle_tokens bigint,
            due_age bigint, due_since_run bigint)
    ), gone AS (
        DELETE FROM @schema@.thresholds o WHERE o.policy = p_policy AND o.model_prefix NOT IN (SELECT model_prefix FROM new) RETURNING 1
    ), set AS (
        INSERT INTO @schema@.thresholds AS o (policy, model_prefix, due_tokens, estimate_margin, policy_hash, free_reasoning, tenant,
            due_messages, due_turns, due_new_tokens, due_live_messages, due_signals, due_idle, due_idle_tokens, due_age, due_since_run)
        SELECT p_policy, n.model_prefix, n.due_tokens, n.estimate_margin, n.policy_hash, n.free_reasoning, n.tenant,
            n.due_messages, n.due_turns, n.due_new_tokens, n.due_live_messages, n.due_signals, n.due_idle, n.due_idle_tokens,
            n.due_age, n.due_since_run FROM new n
        ON CONFLICT (policy, model_prefix) DO UPDATE SET due_tokens = excluded.due_tokens, estimate_margin = excluded.estimate_margin,
            policy_hash = excluded.policy_hash, free_reasoning = excluded.free_reasoning, tenant = excluded.tenant,
            due_messages = excluded.due_messages, due_turns = excluded.due_turns, due_new_tokens = excluded.due_new_tokens,
            due_live_messages = excluded.due_live_messages, due_signals = excluded.due_signals,
            due_idle = excluded.due_idle, due_idle_tokens = excluded.due_idle_tokens,
            due_age = excluded.due_age, due_since_run = excluded.due_since_run
        WHERE (o.due_tokens, o.estimate_margin, o.policy_hash, o.free_reasoning, o.tenant)
            IS DISTINCT FROM (excluded.due_tokens, excluded.estimate_margin, excluded.policy_hash, excluded.free_reasoning, excluded.tenant) RETURNING 1)
    UPDATE @schema@.policy_refresh SET wanted = wanted + 1, changed_at = now()
    WHERE EXISTS (SELECT FROM gone) OR EXISTS (SELECT FROM set) RETURNING wanted INTO v_revision;
    IF FOUND THEN
        UPDATE @schema@.thresholds SET revision = v_revision, former = coalesce(v_former, 0) WHERE policy = p_policy;
    END IF;
END $$;

-- Puts versions of policies in force, all or none: [{name, expect, version, spec, hash, match, note, extends,
-- base_hash, given, fleet_hash, thresholds}].
-- expect is the version in force that the caller has seen, 0 for none; another one is an error. With a spec a version is
-- added, with a version that one comes back, with neither the policy is disabled. Returns the versions now in force.
CREATE OR REPLACE FUNCTION @schema@.change_policies(p_changes json, p_by text) RETURNS TABLE (policy text, in_force int)
LANGUAGE plpgsql AS $$
DECLARE
    c record;
    v @schema@.policy_versions;
BEGIN
    PERFORM @schema@.refuse_bound();
    IF p_changes IS NULL THEN
        RAISE EXCEPTION 'change_policies: changes are missing' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM FROM @schema@.policy_refresh FOR UPDATE;
    FOR c IN SELECT * FROM json_to_recordset(p_changes) AS t(name text, expect int, version int, spec jsonb, hash text, match jsonb, note text,
        extends text, base_hash text, given jsonb, fleet_hash text, thresholds json)
    LOOP
        policy := c.name;
        in_force := coalesce((SELECT h.version FROM @schema@.policy_heads h WHERE h.name = c.name), 0);
        IF in_force <> c.expect THEN
            RAISE EXCEPTION 'policy % is at version %, not %: it was changed meanwhile', c.name, in_force, c.expect USING ERRCODE = 'serialization_failure';
        END IF;
        IF c.spec IS NOT NULL THEN
            INSERT INTO @schema@.policy_versions (name, version, hash, spec, match, note, created_by, extends, base_hash, given)
            SELECT c.name, coalesce(max(p.version), 0) + 1, c.hash, c.spec, coalesce(c.match, '{}'), coalesce(c.note, ''), coalesce(p_by, ''),
                coalesce(c.extends, ''), coalesce(c.base_hash, ''), coalesce(c.given, '[]')
            FROM @schema@.policy_versions p WHERE p.name = c.name RETURNING * INTO v;
        ELSE
            SELECT * INTO v FROM @schema@.policy_versions p WHERE p.name = c.name AND p.version = coalesce(c.version, c.expect);
            IF NOT FOUND THEN
                RAISE EXCEPTION 'policy % has no version %', c.name, coalesce(c.version, c.expect) USING ERRCODE = 'no_data_found';
            END IF;
        END IF;
        DELETE FROM @schema@.policy_heads h WHERE h.name = c.name;
        IF c.spec IS NULL AND c.version IS NULL THEN
            in_force := NULL;
            DELETE FROM @schema@.thresholds t WHERE t.policy = c.name AND c.name <> 'default';   -- which a scheduler sets again
        ELSE
            in_force := v.version;
            INSERT INTO @schema@.policy_heads (name, version, keys, tenant, model_prefix, labels)
            SELECT v.name, v.version, (SELECT count(*) FROM jsonb_object_keys(v.match)), v.tenant, lower(v.match->>'model'), v.match - '{tenant,model}'::text[];
            PERFORM @schema@.save_thresholds(c.name, v.version, c.fleet_hash, coalesce(c.thresholds, '[]'));
        END IF;
        INSERT INTO @schema@.policy_changes (name, version, changed_by, tenant) VALUES (c.name, in_force, coalesce(p_by, ''), v.tenant);
        RETURN NEXT;
    END LOOP;
    UPDATE @schema@.policy_refresh SET wanted = wanted + 1, changed_at = now();
END $$;

-- What the policies, as they are now, change about the sessions that do not follow them yet: by the policy that they
-- have and the one that they get, how many there are, become due, and are due no longer. The policy is resolved once for
-- all sessions with the same tenant, model, labels and override.
CREATE OR REPLACE FUNCTION @schema@.policy_effect(OUT policy text, OUT becomes text, OUT sessions bigint, OUT due_now bigint, OUT not_due bigint)
RETURNS SETOF record LANGUAGE plpgsql STABLE SET jit = off AS $$
BEGIN
    PERFORM @schema@.refuse_bound();
    RETURN QUERY
    WITH kinds AS MATERIALIZED (
        SELECT k.*, p.name, coalesce(t.policy_hash, '') AS hash, coalesce(t.revision, 0) AS revision, t.former, t
        FROM (SELECT s.tenant, s.model, CASE WHEN s.parent IS NULL THEN s.labels ELSE @schema@.effective_labels(s.labels, s.parent) END AS labels, s.policy_override, s.policy AS was, s.policy_hash AS was_hash, s.thresholds_revision AS was_revision
            FROM @schema@.sessions s GROUP BY 1, 2, 3, 4, 5, 6, 7) k
        CROSS JOIN LATERAL @schema@.policy_of(k.tenant, k.model, k.labels, k.policy_override) p(name)
        LEFT JOIN LATERAL @schema@.thresholds_of(p.name, k.model) t ON true
    ), changed AS MATERIALIZED (   -- those of a change before follow, with their next write at the latest; what came and went meanwhile is none
        SELECT * FROM kinds k WHERE k.was <> k.name OR CASE WHEN k.was_revision = k.revision THEN k.was_hash <> k.hash
            ELSE k.revision > (SELECT reached FROM @schema@.policy_refresh) AND ((k.was_revision, k.was_hash) = (k.former, k.hash)) IS NOT true END
    ), after AS MATERIALIZED (
        SELECT s.policy AS was, s.due AS was_due, @schema@.with_thresholds(s, k.name, k.t) AS n
        FROM changed k JOIN @schema@.sessions s ON (s.tenant, s.model, CASE WHEN s.parent IS NULL THEN s.labels ELSE @schema@.effective_labels(s.labels, s.parent) END, s.policy, s.policy_hash, s.thresholds_revision)
                = (k.tenant, k.model, k.labels, k.was, k.was_hash, k.was_revision)
            AND coalesce(s.policy_override, '') = coalesce(k.policy_override, ''))
    SELECT a.was, (a.n).policy, count(*), count(*) FILTER (WHERE (a.n).due AND NOT a.was_due), count(*) FILTER (WHERE a.was_due AND NOT (a.n).due)
    FROM after a GROUP BY 1, 2 ORDER BY 1, 2;
END $$;
