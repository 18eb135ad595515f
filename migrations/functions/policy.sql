-- Whether the name of a model, whole or as model_names has it, begins with a prefix. One with a slash is for the models
-- of a provider.
CREATE OR REPLACE FUNCTION @schema@.model_has_prefix(p_model text, p_prefix text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT EXISTS (SELECT FROM unnest(@schema@.model_names(coalesce(p_model, ''))) WITH ORDINALITY n(name, i)
        WHERE starts_with(name, p_prefix) AND (i > 1 OR strpos(p_prefix, '/') > 0))
$$;

-- The name of a session's policy: its override, or else the most specific of those whose match it has (of several, the
-- one with more keys, the longer model prefix, the first name), or else default. An override that is disabled, or for
-- another tenant, is none.
CREATE OR REPLACE FUNCTION @schema@.policy_of(p_tenant text, p_model text, p_labels jsonb, p_override text) RETURNS text
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_name text;
BEGIN
    IF p_override = 'default' THEN
        RETURN p_override;
    END IF;
    SELECT h.name INTO v_name FROM @schema@.policy_heads h
    WHERE h.name = p_override AND coalesce(h.tenant, p_tenant) = p_tenant;
    IF NOT FOUND THEN
        SELECT h.name INTO v_name FROM @schema@.policy_heads h
        WHERE h.keys > 0 AND coalesce(h.tenant, p_tenant) = p_tenant AND p_labels @> h.labels
            AND (h.model_prefix IS NULL OR @schema@.model_has_prefix(p_model, h.model_prefix))
        ORDER BY h.keys DESC, length(h.model_prefix) DESC NULLS LAST, h.name COLLATE "C" LIMIT 1;
    END IF;
    RETURN coalesce(v_name, 'default');
END $$;

-- The thresholds of a policy for a model: those of the longest prefix of its first name that has one, or no row before
-- the first policy. A prefix with a slash is for the models of a provider. A policy without any has those of default: no
-- scheduler can read it.
CREATE OR REPLACE FUNCTION @schema@.thresholds_of(p_policy text, p_model text) RETURNS SETOF @schema@.thresholds LANGUAGE sql STABLE ROWS 1 AS $$
    WITH m AS MATERIALIZED (SELECT @schema@.model_names(coalesce(p_model, '')) AS names)
    SELECT t.* FROM m CROSS JOIN @schema@.thresholds t
        CROSS JOIN LATERAL (SELECT CASE WHEN model_prefix = '' THEN 5 WHEN starts_with(names[1], model_prefix) AND strpos(model_prefix, '/') > 0 THEN 1
            WHEN starts_with(names[2], model_prefix) THEN 2 WHEN starts_with(names[3], model_prefix) THEN 3
            WHEN starts_with(names[4], model_prefix) THEN 4 END AS name) x
    WHERE t.policy IN (p_policy, 'default') AND name IS NOT NULL
    ORDER BY t.policy <> p_policy, name, length(model_prefix) DESC LIMIT 1
$$;

-- The session as it is under a policy with thresholds.
CREATE OR REPLACE FUNCTION @schema@.with_thresholds(s @schema@.sessions, p_policy text, t @schema@.thresholds) RETURNS @schema@.sessions
LANGUAGE plpgsql STABLE AS $$
BEGIN
    -- What a guard of another policy holds is free again, and so is who may have lost the label that held it.
    IF s.state = 'service_managed' OR s.policy <> p_policy OR s.policy_hash <> coalesce(t.policy_hash, '') THEN
        s.state := 'active';
        s.quarantine_reason := NULL;
        IF s.hold_code IS NOT NULL THEN
            s.cooldown_until := NULL;
            s.hold_code := NULL;
        END IF;
    END IF;
    s.policy := p_policy;
    s.due_tokens := t.due_tokens;
    s.due_messages := t.due_messages;
    s.due_turns := t.due_turns;
    s.due_new_tokens := t.due_new_tokens;
    s.due_live_messages := t.due_live_messages;
    s.due_signals := coalesce(t.due_signals, 0);
    s.checked_seq := NULL;
    IF (s.due_idle, s.due_age, s.due_since_run) IS DISTINCT FROM (t.due_idle, t.due_age, t.due_since_run)
        OR num_nonnulls(t.due_age, t.due_since_run) > 0 THEN   -- which have lowered due_tokens if their time has come
        s.due_idle := t.due_idle;
        s.due_age := t.due_age;
        s.due_since_run := t.due_since_run;
        s.next_check_at := @schema@.next_time(s, '-infinity');
        s.timed := false;
    END IF;
    s.due_idle_tokens := t.due_idle_tokens;
    s.estimate_margin := coalesce(t.estimate_margin, 0);
    s.policy_hash := coalesce(t.policy_hash, '');
    s.thresholds_revision := coalesce(t.revision, 0);
    s.loop_seq := NULL;   -- the model may not bind reasoning any more
    s.awaits_answer := false;
    s.due := @schema@.is_due(s);
    RETURN s;
END $$;

-- Stores the policies of locked sessions, with what they follow from.
CREATE OR REPLACE FUNCTION @schema@.save_policies(p @schema@.sessions[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN   -- not LANGUAGE sql, which would plan this again in each call
    UPDATE @schema@.sessions t SET model = s.model, labels = s.labels, policy_override = s.policy_override, policy = s.policy,
        due_tokens = s.due_tokens, estimate_margin = s.estimate_margin, policy_hash = s.policy_hash, thresholds_revision = s.thresholds_revision, loop_seq = NULL, awaits_answer = false, due = s.due,
        due_messages = s.due_messages, due_turns = s.due_turns, due_new_tokens = s.due_new_tokens, due_live_messages = s.due_live_messages,
        due_signals = s.due_signals, checked_seq = s.checked_seq, due_idle = s.due_idle, due_idle_tokens = s.due_idle_tokens,
        due_age = s.due_age, due_since_run = s.due_since_run, next_check_at = s.next_check_at, timed = s.timed,
        state = s.state, quarantine_reason = s.quarantine_reason, cooldown_until = s.cooldown_until, hold_code = s.hold_code
    FROM unnest(p) s WHERE t.sid = s.sid;
END $$;

-- The same, and wakes the runs of those that became due by it (p_wake).
CREATE OR REPLACE FUNCTION @schema@.save_and_wake(p @schema@.sessions[], p_wake bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM @schema@.save_policies(p);
    IF p_wake <> '{}' AND coalesce(current_setting('compactor.quiet', true), '') <> 'on' THEN
        INSERT INTO @schema@.outbox AS o (sid, tenant) SELECT n.sid, n.tenant FROM unnest(p) n WHERE n.sid = ANY(p_wake) ON CONFLICT (sid) DO UPDATE SET gen = o.gen + 1, last_at = now();
    END IF;
END $$;

-- Gives a locked session the policy that its model, labels and override now have, and stores all of these. A run on its
-- way does not change the thresholds (end_run).
CREATE OR REPLACE FUNCTION @schema@.use_policy(s @schema@.sessions) RETURNS @schema@.sessions LANGUAGE plpgsql AS $$
DECLARE
    v_policy text := @schema@.policy_of(s.tenant, s.model, @schema@.effective_labels(s.labels, s.parent), s.policy_override);
    v_was    boolean := s.due;
    t        @schema@.thresholds;
BEGIN
    SELECT * INTO t FROM @schema@.thresholds_of(v_policy, s.model);
    s := @schema@.with_thresholds(s, v_policy, t);
    PERFORM @schema@.save_and_wake(ARRAY[s], CASE WHEN s.due AND NOT v_was THEN ARRAY[s.sid] END);
    RETURN s;
END $$;

-- The session as it is under the thresholds in force, if it has a copy of others: refresh_policies leaves that to its next
-- write where nothing depends on it before. lock_session compares in the same way; 0 is before the first policy.
CREATE OR REPLACE FUNCTION @schema@.in_force(s @schema@.sessions) RETURNS @schema@.sessions LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_policy text;
    t        @schema@.thresholds;
BEGIN
    IF s.thresholds_revision = coalesce((SELECT h.revision FROM @schema@.thresholds h WHERE h.policy = s.policy AND h.model_prefix = ''), 0) THEN
        RETURN s;
    END IF;
    v_policy := @schema@.policy_of(s.tenant, s.model, @schema@.effective_labels(s.labels, s.parent), s.policy_override);
    SELECT * INTO t FROM @schema@.thresholds_of(v_policy, s.model);
    IF (s.policy, s.thresholds_revision) = (v_policy, coalesce(t.revision, 0)) THEN   -- those of default, for a policy without any
        RETURN s;
    END IF;
    RETURN @schema@.with_thresholds(s, v_policy, t);
END $$;

-- The same for what only reads: while refresh_policies is under way, sessions are shown as they are.
CREATE OR REPLACE FUNCTION @schema@.shown_session(p_tenant text, p_session text) RETURNS @schema@.sessions LANGUAGE plpgsql STABLE AS $$
DECLARE
    s        @schema@.sessions;
    v_tenant text := @schema@.tenant_of(p_tenant);
BEGIN
    SELECT * INTO s FROM @schema@.sessions WHERE tenant = v_tenant AND id = p_session;
    IF EXISTS (SELECT FROM @schema@.policy_refresh WHERE reached = wanted) THEN
        RETURN @schema@.in_force(s);
    END IF;
    RETURN s;
END $$;

-- The thresholds in force for each kind of sessions that are due, of a tenant or of all with an empty one.
CREATE OR REPLACE FUNCTION @schema@.thresholds_of_due(p_tenant text)
RETURNS TABLE (policy text, model text, revision bigint, due_tokens bigint, estimate_margin real, policy_hash text) LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_tenant text := @schema@.scope_of(p_tenant);
BEGIN
    RETURN QUERY SELECT k.policy, k.model, t.revision, t.due_tokens, t.estimate_margin, t.policy_hash
    FROM (SELECT DISTINCT s.policy, s.model FROM @schema@.sessions s WHERE s.due AND v_tenant IN ('', s.tenant)) k
    CROSS JOIN LATERAL @schema@.thresholds_of(k.policy, k.model) t;
END $$;

-- Gives a locked session the thresholds in force, and stores that. A transaction that sees the policies of its beginning
-- fails if they have changed since.
CREATE OR REPLACE FUNCTION @schema@.follow_policy(s @schema@.sessions) RETURNS @schema@.sessions LANGUAGE plpgsql AS $$
DECLARE
    n @schema@.sessions;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        PERFORM FROM @schema@.thresholds h WHERE h.policy = s.policy AND h.model_prefix = '' FOR SHARE;
    END IF;
    n := @schema@.in_force(s);
    IF (n.policy, n.thresholds_revision) <> (s.policy, s.thresholds_revision) THEN
        PERFORM @schema@.save_and_wake(ARRAY[n], CASE WHEN n.due AND NOT s.due THEN ARRAY[n.sid] END);
    END IF;
    RETURN n;
END $$;

-- The same for many locked sessions at once, in a transaction that is read committed: what they follow from is looked up once
-- for all of a kind.
CREATE OR REPLACE FUNCTION @schema@.follow_policies(p_sids bigint[]) RETURNS void LANGUAGE plpgsql SET jit = off AS $$
DECLARE
    v_new  @schema@.sessions[];
    v_wake bigint[];
BEGIN
    WITH differ AS MATERIALIZED (
        SELECT s, s.tenant, s.model, @schema@.effective_labels(s.labels, s.parent) AS labels, coalesce(s.policy_override, '') AS override FROM @schema@.sessions s
        WHERE s.sid = ANY (p_sids) AND s.thresholds_revision <> coalesce((SELECT h.revision FROM @schema@.thresholds h WHERE h.policy = s.policy AND h.model_prefix = ''), 0)
    ), kinds AS MATERIALIZED (
        SELECT k.*, n.name, h FROM (SELECT DISTINCT tenant, model, labels, override FROM differ) k
        CROSS JOIN LATERAL @schema@.policy_of(k.tenant, k.model, k.labels, k.override) n(name)
        LEFT JOIN LATERAL @schema@.thresholds_of(n.name, k.model) h ON true
    ), follow AS MATERIALIZED (
        SELECT (d.s).due AS was_due, @schema@.with_thresholds(d.s, k.name, k.h) AS s FROM differ d JOIN kinds k USING (tenant, model, labels, override)
        WHERE ((d.s).policy, (d.s).thresholds_revision) <> (k.name, coalesce((k.h).revision, 0)))
    SELECT array_agg(s), array_agg((s).sid) FILTER (WHERE (s).due AND NOT was_due) INTO v_new, v_wake FROM follow;
    IF v_new <> '{}' THEN
        PERFORM @schema@.save_and_wake(v_new, v_wake);
    END IF;
END $$;

-- The model of a session from now on, as a later append with another model would set it.
CREATE OR REPLACE FUNCTION @schema@.set_model(p_tenant text, p_session text, p_model text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    s @schema@.sessions;
BEGIN
    IF coalesce(p_model, '') = '' THEN
        RAISE EXCEPTION 'set_model: an empty model is not allowed' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    s := @schema@.lock_session(p_tenant, p_session, NULL, false);
    IF s.model <> p_model THEN
        PERFORM @schema@.use_model(s, p_model), @schema@.note_change('session.model', s, p_model);
    END IF;
END $$;

-- The labels of a session from now on, in place of those that it had: an object of strings, such as {"agent": "planner"}.
-- Policies match them, and for its children those that they have not themselves. A session that does not exist is created, so that it has its policy before its first message.
CREATE OR REPLACE FUNCTION @schema@.set_labels(p_tenant text, p_session text, p_labels jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    s @schema@.sessions;
BEGIN
    s := @schema@.lock_session(p_tenant, p_session, NULL, true);
    IF jsonb_typeof(p_labels) IS DISTINCT FROM 'object' OR octet_length(p_labels::text) > 4096
        OR EXISTS (SELECT FROM jsonb_each(p_labels) WHERE jsonb_typeof(value) <> 'string' OR key = '') THEN
        RAISE EXCEPTION 'set_labels: must be an object of strings with at most 4096 bytes, such as {"agent": "planner"}'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM @schema@.refuse_long('set_labels: the key of a label', key) FROM jsonb_object_keys(p_labels) key;
    IF s.labels <> p_labels THEN
        s.labels := p_labels;
        PERFORM @schema@.use_policy(s);
        PERFORM @schema@.refresh_children(s.sid);
        PERFORM @schema@.note_change('session.labels', s);
    END IF;
END $$;

-- Names the policy of a session, whatever it matches; null or an empty name takes that back.
CREATE OR REPLACE FUNCTION @schema@.set_policy(p_tenant text, p_session text, p_policy text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    s @schema@.sessions;
BEGIN
    s := @schema@.lock_session(p_tenant, p_session, NULL, false);
    p_policy := nullif(p_policy, '');
    -- A policy of another tenant is none.
    IF p_policy <> 'default' AND NOT EXISTS (SELECT FROM @schema@.policy_heads h WHERE h.name = p_policy AND coalesce(h.tenant, s.tenant) = s.tenant) THEN
        RAISE EXCEPTION 'set_policy: no policy % is in force', p_policy USING ERRCODE = 'no_data_found';
    END IF;
    IF s.policy_override IS DISTINCT FROM p_policy THEN
        s.policy_override := p_policy;
        PERFORM @schema@.use_policy(s);
        PERFORM @schema@.note_change('policy.assign', s, p_policy);
    END IF;
END $$;
