-- Whether automatic and requested runs of a session are held back: by a pause of everything, of its tenant, of its model, of
-- its policy, or of several of these together. Every statement that queues, delivers or loads runs asks for it, so a pause is in
-- force with the transaction that made it.
CREATE OR REPLACE FUNCTION @schema@.paused(p_tenant text, p_model text, p_policy text DEFAULT '') RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM @schema@.pauses p WHERE p.resumed_at IS NULL AND p.tenant IN ('', p_tenant)
        AND p.policy IN ('', p_policy) AND (p.model = '' OR EXISTS (SELECT FROM unnest(@schema@.model_names(p_model)) n WHERE starts_with(n, p.model))))
$$;

-- The pauses that hold back the runs of a session.
CREATE OR REPLACE FUNCTION @schema@.pauses_of(p_tenant text, p_session text) RETURNS SETOF @schema@.pauses LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_tenant text := @schema@.tenant_of(p_tenant);
BEGIN
    RETURN QUERY SELECT p.* FROM @schema@.pauses p LEFT JOIN @schema@.sessions s ON s.tenant = v_tenant AND s.id = p_session
        WHERE p.resumed_at IS NULL AND p.tenant IN ('', v_tenant) AND (p.policy = '' OR p.policy = s.policy)
            AND (p.model = '' OR EXISTS (SELECT FROM unnest(@schema@.model_names(s.model)) n WHERE starts_with(n, p.model)))
        ORDER BY p.id;
END $$;

-- Pauses all runs of a tenant, of a model, by a prefix of its name, and of a policy; an empty one stands for all. Pausing what
-- is paused replaces the note. A connection that is bound to a tenant replaces and ends those alone that such a one has made.
CREATE OR REPLACE FUNCTION @schema@.pause_runs(p_tenant text, p_model text, p_note text DEFAULT '', p_requested_by text DEFAULT '',
    p_policy text DEFAULT '')
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_tenant text := @schema@.scope_of(p_tenant);
    v_id     bigint;
BEGIN
    -- A policy of another tenant is none.
    IF p_policy NOT IN ('', 'default') AND NOT EXISTS (SELECT FROM @schema@.policy_heads h
            WHERE h.name = p_policy AND (v_tenant = '' OR coalesce(h.tenant, v_tenant) = v_tenant)) THEN
        RAISE EXCEPTION 'no policy % is in force', p_policy USING ERRCODE = 'no_data_found';
    END IF;
    PERFORM @schema@.refuse_long('the tenant', v_tenant), @schema@.refuse_long('the model', p_model, 200);
    INSERT INTO @schema@.pauses AS p (tenant, model, note, requested_by, policy, by_tenant)
    VALUES (v_tenant, lower(btrim(coalesce(p_model, ''))), coalesce(p_note, ''), coalesce(p_requested_by, ''), coalesce(p_policy, ''), @schema@.binding() IS NOT NULL)
    ON CONFLICT (tenant, model, policy) WHERE resumed_at IS NULL DO UPDATE
        SET note = excluded.note, requested_by = excluded.requested_by, by_tenant = excluded.by_tenant WHERE p.by_tenant OR NOT excluded.by_tenant
    RETURNING id INTO v_id;
    IF v_id IS NULL THEN
        PERFORM @schema@.refuse_others('a pause', v_tenant);
    END IF;
    PERFORM @schema@.note_action(p_requested_by, 'pause.create', v_tenant, v_id::text, p_note);
    RETURN v_id;
END $$;

-- Refuses, to a connection that is bound to a tenant, to change or end what an operator of all tenants has set for it.
CREATE OR REPLACE FUNCTION @schema@.refuse_others(p_what text, p_tenant text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% of tenant % was set by an operator of all tenants: only such a one changes or ends it', p_what, p_tenant USING ERRCODE = 'insufficient_privilege';
END $$;

-- Ends a pause of exactly this tenant, model and policy, and returns it. What is still paused otherwise stays so. The runs that it
-- held are delivered now.
CREATE OR REPLACE FUNCTION @schema@.resume_runs(p_tenant text, p_model text, p_requested_by text DEFAULT '', p_policy text DEFAULT '')
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_tenant text := @schema@.scope_of(p_tenant);
    v_model  text := lower(btrim(coalesce(p_model, '')));
    v_id     bigint;
    v_own    boolean;
BEGIN
    UPDATE @schema@.pauses SET resumed_at = now(), resumed_by = coalesce(p_requested_by, '')
    WHERE resumed_at IS NULL AND tenant = v_tenant AND model = v_model AND policy = coalesce(p_policy, '') RETURNING id, by_tenant INTO v_id, v_own;
    IF v_id IS NULL THEN
        RAISE EXCEPTION 'there is no pause of tenant %, model % and policy %', coalesce(nullif(v_tenant, ''), '(all)'),
            coalesce(nullif(v_model, ''), '(all)'), coalesce(nullif(p_policy, ''), '(all)') USING ERRCODE = 'no_data_found';
    ELSIF NOT v_own AND @schema@.binding() IS NOT NULL THEN
        PERFORM @schema@.refuse_others('the pause', v_tenant);
    END IF;
    PERFORM @schema@.note_action(p_requested_by, 'pause.end', v_tenant, v_id::text, '');
    UPDATE @schema@.runs r SET deliver_at = now(), waiting_since = now(), error_code = NULL
    FROM @schema@.sessions s
    WHERE r.status = 'queued' AND r.error_code = 'paused' AND s.sid = r.sid AND v_tenant IN ('', s.tenant) AND NOT @schema@.paused(s.tenant, s.model, s.policy);
    UPDATE @schema@.outbox SET first_at = now(), last_at = now() WHERE last_at > now();   -- the relay holds what is paused still
    RETURN v_id;
END $$;
