-- A model is about to be asked about messages of a tenant that are in no session. code: ask (with the id of the call that may be
-- made) | answered (it was paid for before) | rejected (the answer is stored, and was no summary) | waiting (another caller has
-- asked, less than p_patience ago) | limited (see spending.sql).
CREATE OR REPLACE FUNCTION @schema@.ask_stateless(p_tenant text, p_key text, p_prompt_hash text, p_patience interval,
    OUT code text, OUT call @schema@.summary_calls) LANGUAGE plpgsql AS $$
DECLARE
    v_tenant text := @schema@.tenant_of(p_tenant);
BEGIN
    SELECT * INTO call FROM @schema@.summary_calls c WHERE c.key = p_key AND c.state IN ('asked', 'answered') AND c.tenant = v_tenant FOR NO KEY UPDATE;
    IF call.state = 'answered' THEN
        code := 'answered'; RETURN;
    ELSIF call.asked_at > clock_timestamp() - p_patience THEN
        code := 'waiting'; RETURN;
    END IF;
    UPDATE @schema@.summary_calls SET state = 'lost', ended_at = clock_timestamp() WHERE id = call.id;
    SELECT * INTO call FROM @schema@.summary_calls c WHERE c.key = p_key AND c.state = 'rejected' AND c.tenant = v_tenant AND c.answer IS NOT NULL ORDER BY id DESC LIMIT 1;
    IF FOUND THEN
        code := 'rejected'; RETURN;
    END IF;
    IF EXISTS (SELECT FROM @schema@.spending_limits) AND @schema@.spending_limited(v_tenant) THEN
        code := 'limited'; RETURN;
    END IF;
    INSERT INTO @schema@.summary_calls (key, tenant, fence, state, prompt_hash) VALUES (p_key, v_tenant, 0, 'asked', p_prompt_hash)
    ON CONFLICT (key) WHERE state IN ('asked', 'answered') DO NOTHING RETURNING * INTO call;
    code := CASE WHEN call.id IS NULL THEN 'waiting' ELSE 'ask' END;
END $$;

-- The secret under which items for clients are sealed.
CREATE OR REPLACE FUNCTION @schema@.item_secret() RETURNS bytea LANGUAGE sql STABLE AS $$
    SELECT secret FROM @schema@.item_secrets
$$;
