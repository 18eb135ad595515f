-- Whether the named counter only estimates, as chat.Estimates has it.
CREATE OR REPLACE FUNCTION @schema@.estimates(counter text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(counter IN ('bytes/3', 'chars/4') OR counter LIKE '%*%', false)
$$;

-- Whether an automatic run has something to look at.
CREATE OR REPLACE FUNCTION @schema@.is_due(s @schema@.sessions) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT s.state = 'active' AND s.last_source_seq > s.hold_seq AND coalesce(
        s.suspect_seq > coalesce(s.loop_seq, -1)
        OR s.last_source_seq > s.loop_seq AND cardinality(s.open_calls) = 0 AND NOT s.open_answered AND (NOT s.awaits_answer OR @schema@.is_answered(s))
        OR s.timed
        OR (s.checked_seq IS NULL OR s.last_source_seq > s.checked_seq) AND (
            coalesce(s.reported_prompt_tokens + s.tokens_since_report, @schema@.estimated_tokens(s),
                     s.live_tokens + s.live_estimated_tokens * s.estimate_margin) > s.due_tokens
            OR s.messages_since_run >= s.due_messages
            OR s.turns_since_run >= s.due_turns
            OR s.tokens_since_run >= s.due_new_tokens
            OR s.live_messages >= s.due_live_messages
            OR s.new_signals & s.due_signals <> 0), false)
$$;

-- Notes since when a session is due. An applied run that leaves it due begins anew: see end_run.
CREATE OR REPLACE FUNCTION @schema@.note_due() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.due_since := now();
    RETURN NEW;
END $$;

-- Whether the last message is neither the user's nor reasoning that an answer follows. Only for sessions that wait for it.
CREATE OR REPLACE FUNCTION @schema@.is_answered(s @schema@.sessions) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT m.role_code <> 'u' AND NOT @schema@.reasoning_only(m.role_code, m.calls, m.flags)
        FROM @schema@.message_log m WHERE m.sid = s.sid AND m.seq = s.last_source_seq);
END $$;

-- The first time after p_after that a trigger of the session's policy waits for; null for none.
CREATE OR REPLACE FUNCTION @schema@.next_time(s @schema@.sessions, p_after timestamptz) RETURNS timestamptz LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_idle timestamptz := s.last_message_at + make_interval(secs => s.due_idle);
    v_age  timestamptz := s.created_at + make_interval(secs => s.due_age);
    v_run  timestamptz := coalesce(s.view_changed_at, s.created_at) + make_interval(secs => s.due_since_run);
BEGIN
    RETURN least(CASE WHEN v_idle > p_after THEN v_idle END, CASE WHEN v_age > p_after THEN v_age END, CASE WHEN v_run > p_after THEN v_run END);
END $$;

-- A model's name as thresholds have it: lower case, without its provider ("openai/GPT-4o").
CREATE OR REPLACE FUNCTION @schema@.model_key(model text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT lower(regexp_replace(coalesce(model, ''), '^.*/', ''))
$$;

-- The names by which thresholds may list a model, in the order in which to try them: whole, without its provider and
-- without Bedrock's region and vendor ("us.anthropic.claude-…"), behind a colon ("ft:gpt-4o:…"), and with the vendor.
-- text.ModelNames in Go returns the same.
CREATE OR REPLACE FUNCTION @schema@.model_names(model text) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT ARRAY[lower(btrim(model)), regexp_replace(key, '^([a-z-]+\.)+', ''), substr(key, nullif(strpos(key, ':'), 0) + 1), key]
    FROM (SELECT @schema@.model_key(btrim(model)) AS key) k
$$;

-- Refuses what is too long: ids, keys and names of tenants have at most 1,024 bytes, so that two of them fit into a row of
-- an index.
CREATE OR REPLACE FUNCTION @schema@.refuse_long(p_what text, p_value text, p_most int DEFAULT 1024) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF octet_length(p_value) > p_most THEN
        RAISE EXCEPTION '% is too long: % bytes, at most % are allowed (%…)', p_what, octet_length(p_value), p_most, left(p_value, 40)
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
END $$;

-- The model of a locked session from now on, with the policy that it then has.
CREATE OR REPLACE FUNCTION @schema@.use_model(s @schema@.sessions, p_model text) RETURNS @schema@.sessions LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(p_model, '') IN ('', s.model) THEN
        RETURN s;
    END IF;
    PERFORM @schema@.refuse_long('the model', p_model, 200);
    s.model := p_model;
    RETURN @schema@.use_policy(s);
END $$;

-- Make the session row if there is none (p_create), with p_model for its model, lock it, return it, under the thresholds in force.
CREATE OR REPLACE FUNCTION @schema@.lock_session(p_tenant text, p_session text, p_model text, p_create boolean)
RETURNS @schema@.sessions LANGUAGE plpgsql AS $$
DECLARE
    s @schema@.sessions;
    v_tenant text := @schema@.tenant_of(p_tenant);
BEGIN
    -- With the thresholds in force (see in_force).
    SELECT * INTO s FROM @schema@.sessions t WHERE t.tenant = v_tenant AND t.id = p_session
        AND t.thresholds_revision = coalesce((SELECT h.revision FROM @schema@.thresholds h WHERE h.policy = t.policy AND h.model_prefix = ''), 0) FOR NO KEY UPDATE;
    IF FOUND AND current_setting('transaction_isolation') = 'read committed' THEN
        RETURN s;
    END IF;
    IF s.sid IS NULL THEN
        SELECT * INTO s FROM @schema@.sessions WHERE tenant = v_tenant AND id = p_session FOR NO KEY UPDATE;
    END IF;
    IF s.sid IS NULL THEN
        IF coalesce(p_session, '') = '' THEN
            RAISE EXCEPTION 'session: an empty id is not allowed' USING ERRCODE = 'invalid_parameter_value';
        END IF;
        IF NOT p_create THEN
            RAISE EXCEPTION 'session % of tenant % does not exist', p_session, v_tenant USING ERRCODE = 'no_data_found';
        END IF;
        PERFORM @schema@.refuse_long('the tenant', v_tenant), @schema@.refuse_long('the id of the session', p_session), @schema@.refuse_long('the model', p_model, 200);
        INSERT INTO @schema@.sessions (tenant, id, model, policy, due_tokens, estimate_margin, policy_hash, thresholds_revision,
            due_messages, due_turns, due_new_tokens, due_live_messages, due_signals, due_idle, due_idle_tokens, due_age, due_since_run)
        SELECT v_tenant, p_session, coalesce(p_model, ''), p.name, t.due_tokens, coalesce(t.estimate_margin, 0), coalesce(t.policy_hash, ''), coalesce(t.revision, 0),
            t.due_messages, t.due_turns, t.due_new_tokens, t.due_live_messages, coalesce(t.due_signals, 0), t.due_idle, t.due_idle_tokens,
            t.due_age, t.due_since_run
        FROM @schema@.policy_of(v_tenant, coalesce(p_model, ''), '{}', NULL) p(name) LEFT JOIN LATERAL @schema@.thresholds_of(p.name, p_model) t ON true
        ON CONFLICT (tenant, id) DO NOTHING;
        SELECT * INTO s FROM @schema@.sessions WHERE tenant = v_tenant AND id = p_session FOR NO KEY UPDATE;
    END IF;
    RETURN @schema@.follow_policy(s);
END $$;
