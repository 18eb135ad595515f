-- A claimed run is about to ask a model. code: ask (with the id of the call that it may make) |
-- answered (it was paid for before) | rejected (this run has had that answer, and it was no summary) |
-- fenced (another worker has the run) | limited (it may not be asked now: see spending.sql; runs of operators may). Only one run of a session is running, so a question that is
-- still open was left behind by a worker that died.
CREATE OR REPLACE FUNCTION @schema@.ask_summary(p_run bigint, p_fence bigint, p_key text, p_prompt_hash text,
    OUT code text, OUT call @schema@.summary_calls) LANGUAGE plpgsql AS $$
DECLARE
    v_sid     bigint;
    v_trigger text;
    v_erased  bigint;
BEGIN
    SELECT sid, trigger, last_erasure INTO v_sid, v_trigger, v_erased FROM @schema@.runs WHERE id = p_run AND status = 'running' AND fence = p_fence FOR KEY SHARE;
    IF NOT FOUND THEN
        code := 'fenced'; RETURN;
    END IF;
    -- An erasure that saw the run before it was claimed has not taken it back, and the run may have read the words before they
    -- were gone: that erasure is waited for, and the run begins again. One that comes later ends the call.
    PERFORM FROM @schema@.sessions WHERE sid = v_sid FOR SHARE;
    IF EXISTS (SELECT FROM @schema@.runs e WHERE e.sid = v_sid AND e.kind = 'erase' AND e.id > coalesce(v_erased, 0)) THEN
        PERFORM @schema@.take_back(v_sid, p_fence);
        code := 'fenced'; RETURN;
    END IF;
    SELECT * INTO call FROM @schema@.summary_calls c WHERE c.key = p_key AND c.state IN ('asked', 'answered') FOR NO KEY UPDATE;
    IF call.state = 'answered' THEN
        code := 'answered'; RETURN;
    END IF;
    UPDATE @schema@.summary_calls SET state = 'lost', ended_at = clock_timestamp() WHERE id = call.id;
    SELECT * INTO call FROM @schema@.summary_calls c WHERE c.key = p_key AND c.rejected_in = p_run AND c.state = 'rejected' ORDER BY id DESC LIMIT 1;
    IF FOUND THEN
        code := 'rejected'; RETURN;
    END IF;
    IF v_trigger <> 'operator' AND EXISTS (SELECT FROM @schema@.spending_limits)
        AND @schema@.spending_limited((SELECT tenant FROM @schema@.sessions WHERE sid = v_sid)) THEN
        code := 'limited'; RETURN;
    END IF;
    INSERT INTO @schema@.summary_calls (key, sid, run, fence, state, prompt_hash)
    VALUES (p_key, v_sid, p_run, p_fence, 'asked', p_prompt_hash) RETURNING * INTO call;
    code := 'ask';
END $$;

-- Takes the run of a session that is under way, or only the claim p_fence of it, back from its worker: it is executed again.
CREATE OR REPLACE FUNCTION @schema@.take_back(p_sid bigint, p_fence bigint DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE @schema@.runs SET status = 'queued', lease_until = NULL, fence = fence + 1, deliver_at = now(), waiting_since = now()
    WHERE sid = p_sid AND status = 'running' AND fence = coalesce(p_fence, fence);
END $$;
