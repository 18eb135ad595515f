-- Whether an automatic run has something to look at.
CREATE OR REPLACE FUNCTION @schema@.is_due(s @schema@.sessions) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT s.state = 'active' AND s.last_source_seq > s.hold_seq AND coalesce(
        s.suspect_seq IS NOT NULL
        OR coalesce(s.reported_prompt_tokens + s.tokens_since_report, @schema@.estimated_tokens(s),
                    s.live_tokens + s.live_estimated_tokens * s.estimate_margin) > s.due_tokens
        OR s.messages_since_run >= s.due_messages
        OR s.turns_since_run >= s.due_turns, false)
$$;

-- A model's name as thresholds have it: lower case, without its provider ("openai/GPT-4o").
CREATE OR REPLACE FUNCTION @schema@.model_key(model text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT lower(regexp_replace(coalesce(model, ''), '^.*/', ''))
$$;

-- Make the session row if there is none, lock it, return it.
CREATE OR REPLACE FUNCTION @schema@.lock_session(p_tenant text, p_session text, p_model text, p_create boolean)
RETURNS @schema@.sessions LANGUAGE plpgsql AS $$
DECLARE
    s @schema@.sessions;
    v_tenant text := coalesce(nullif(p_tenant, ''), 'default');
BEGIN
    SELECT * INTO s FROM @schema@.sessions WHERE tenant = v_tenant AND id = p_session FOR NO KEY UPDATE;
    IF FOUND THEN RETURN s; END IF;
    IF coalesce(p_session, '') = '' THEN
        RAISE EXCEPTION 'session: an empty id is not allowed' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF NOT p_create THEN
        RAISE EXCEPTION 'session % of tenant % does not exist', p_session, v_tenant USING ERRCODE = 'no_data_found';
    END IF;
    INSERT INTO @schema@.sessions (tenant, id, model, due_tokens, estimate_margin, policy_hash)
    SELECT v_tenant, p_session, coalesce(p_model, ''), t.due_tokens, coalesce(t.estimate_margin, 0), coalesce(t.policy_hash, '')
    FROM (SELECT) one LEFT JOIN LATERAL (
        SELECT * FROM @schema@.thresholds WHERE starts_with(@schema@.model_key(p_model), model_prefix)
        ORDER BY length(model_prefix) DESC LIMIT 1) t ON true
    ON CONFLICT (tenant, id) DO NOTHING;
    SELECT * INTO s FROM @schema@.sessions WHERE tenant = v_tenant AND id = p_session FOR NO KEY UPDATE;
    RETURN s;
END $$;
