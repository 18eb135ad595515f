-- The provider's own count of the prompt that held the view up to p_seq (null: all of it). It decides when the session
-- is due, and teaches how large prompts of other sessions of the tenant with that model are.
-- Returns false, and changes nothing, for a prompt from before the last compaction. One up to the very
-- message that the compaction saw last counts as such: it was most likely on its way meanwhile.
-- A prompt far above what the view and a start's worth of instructions can hold counts, with a warning to the caller: the
-- sum of several requests, say. Other sessions do not learn from it (learn_usage).
CREATE OR REPLACE FUNCTION @schema@.report_usage(p_tenant text, p_session text, p_prompt_tokens bigint, p_seq bigint DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    s @schema@.sessions;
    v_was boolean;
BEGIN
    IF p_prompt_tokens IS NULL OR p_prompt_tokens NOT BETWEEN 0 AND 999999999 THEN
        RAISE EXCEPTION 'report_usage: prompt_tokens must be 0 to 999999999, not %', p_prompt_tokens USING ERRCODE = 'invalid_parameter_value';
    END IF;
    s := @schema@.lock_session(p_tenant, p_session, NULL, false);
    IF p_seq <= (SELECT r.applied_seq FROM @schema@.runs r WHERE r.id = s.head_run) THEN
        RETURN false;
    END IF;
    v_was := s.due;
    s.reported_prompt_tokens := p_prompt_tokens;
    s.tokens_since_report := coalesce((SELECT sum(m.token_count) FROM @schema@.message_log m
        WHERE m.sid = s.sid AND m.seq > p_seq AND m.kind = 'm'), 0);
    IF p_prompt_tokens > s.due_tokens + 3 * s.live_tokens THEN
        RAISE WARNING 'report_usage: session %: % prompt tokens are far above the % of its view', s.id, p_prompt_tokens, s.live_tokens
            USING HINT = 'Report the prompt tokens of one request, as the provider counted them.';
    END IF;
    PERFORM @schema@.learn_usage(s, p_prompt_tokens, s.live_tokens - s.tokens_since_report);
    s.checked_seq := NULL;
    s.due := @schema@.is_due(s);
    UPDATE @schema@.sessions SET reported_prompt_tokens = s.reported_prompt_tokens, checked_seq = NULL,
        tokens_since_report = s.tokens_since_report, due = s.due WHERE sid = s.sid;
    IF s.due AND NOT v_was THEN
        INSERT INTO @schema@.outbox AS o (sid, tenant) VALUES (s.sid, s.tenant) ON CONFLICT (sid) DO UPDATE SET gen = o.gen + 1, last_at = now();
    END IF;
    RETURN true;
END $$;
