-- The provider's own count of the prompt that held the view up to p_seq (null: all of it). It decides when the session
-- is due, and teaches how large prompts of other sessions of the tenant with that model are.
-- Returns false, and changes nothing, for a prompt from before the last compaction. One up to the very
-- message that the compaction saw last counts as such: it was most likely on its way meanwhile.
-- A prompt far above what the view and a start's worth of instructions can hold counts, with a warning to the caller: the
-- sum of several requests, say. Other sessions do not learn from it (learn_usage).
--
-- What was read from the provider's cache and written to it, and why it was missed, is summed up for p_revision, that of the
-- view in the prompt, by default the present one; nothing is without effect then but the count.
DROP FUNCTION IF EXISTS @schema@.report_usage(text, text, bigint, bigint);
CREATE OR REPLACE FUNCTION @schema@.report_usage(p_tenant text, p_session text, p_prompt_tokens bigint, p_seq bigint DEFAULT NULL,
    p_cached_tokens bigint DEFAULT NULL, p_written_tokens bigint DEFAULT NULL, p_miss_reason text DEFAULT NULL, p_revision bigint DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    s @schema@.sessions;
    v_was boolean;
    v_old boolean;
BEGIN
    IF p_prompt_tokens IS NULL OR p_prompt_tokens NOT BETWEEN 0 AND 999999999 THEN
        RAISE EXCEPTION 'report_usage: prompt_tokens must be 0 to 999999999, not %', p_prompt_tokens USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF coalesce(p_cached_tokens, 0) NOT BETWEEN 0 AND p_prompt_tokens OR coalesce(p_written_tokens, 0) NOT BETWEEN 0 AND p_prompt_tokens THEN
        RAISE EXCEPTION 'report_usage: cached_tokens and written_tokens must be 0 to the % of the prompt, not % and %', p_prompt_tokens,
            coalesce(p_cached_tokens, 0), coalesce(p_written_tokens, 0) USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM @schema@.refuse_long('the reason of the cache miss', p_miss_reason, 1000);
    s := @schema@.lock_session(p_tenant, p_session, NULL, false);
    IF p_revision NOT BETWEEN 0 AND s.revision THEN
        RAISE EXCEPTION 'report_usage: session % is at revision %, not %', s.id, s.revision, p_revision USING ERRCODE = 'invalid_parameter_value';
    END IF;
    v_old := coalesce(p_seq <= (SELECT r.applied_seq FROM @schema@.runs r WHERE r.id = s.head_run), false) OR coalesce(p_revision < s.revision, false);
    IF num_nonnulls(p_cached_tokens, p_written_tokens, p_miss_reason) > 0 AND (p_revision IS NOT NULL OR NOT v_old) THEN
        INSERT INTO @schema@.cache_usage AS c (sid, revision, reports, prompt_tokens, cached_tokens, written_tokens, miss_reason)
        VALUES (s.sid, coalesce(p_revision, s.revision), 1, p_prompt_tokens, coalesce(p_cached_tokens, 0), coalesce(p_written_tokens, 0), nullif(p_miss_reason, ''))
        ON CONFLICT (sid, revision) DO UPDATE SET reports = c.reports + 1, prompt_tokens = c.prompt_tokens + EXCLUDED.prompt_tokens,
            cached_tokens = c.cached_tokens + EXCLUDED.cached_tokens, written_tokens = c.written_tokens + EXCLUDED.written_tokens,
            miss_reason = coalesce(EXCLUDED.miss_reason, c.miss_reason), last_at = now();
    END IF;
    IF v_old THEN
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
