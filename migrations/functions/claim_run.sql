-- A worker takes a run. code: claimed | gone (finished or unknown) | busy (a live worker has this session). Where the
-- lease of the run, or of another run of the session, has expired, that is a failure of it: it goes back to the queue,
-- this one to be claimed at once, or ends as lease_expired when it has failed p_failures times.
CREATE OR REPLACE FUNCTION @schema@.claim_run(p_run bigint, p_worker text, p_lease interval, p_failures int,
    OUT code text, OUT fence bigint)
LANGUAGE plpgsql AS $$
DECLARE
    r      @schema@.runs;
    v_dead @schema@.runs;
BEGIN
    -- A claim lost in a crash of the server is harmless: the run is queued again, and as fence tokens are random, no
    -- later claim gets the one that was lost.
    PERFORM set_config('synchronous_commit', 'off', true);
    SELECT * INTO r FROM @schema@.runs WHERE id = p_run FOR NO KEY UPDATE;
    IF NOT FOUND OR r.status NOT IN ('queued', 'running') THEN
        code := 'gone'; RETURN;
    END IF;
    SELECT * INTO v_dead FROM @schema@.runs WHERE sid = r.sid AND status = 'running';
    IF NOT @schema@.lease_is_over(v_dead.lease_until) THEN
        code := 'busy'; RETURN;
    ELSIF FOUND THEN
        UPDATE @schema@.runs SET failures = failures + 1, error_code = 'lease_expired', lease_until = NULL,
            error = left('worker ' || coalesce(worker, '') || ' did not extend its lease', 500),
            deliver_at = now(), waiting_since = now(),
            status = CASE WHEN failures + 1 < p_failures THEN 'queued' ELSE 'failed' END,
            outcome = CASE WHEN failures + 1 < p_failures THEN NULL ELSE 'lease_expired' END,
            ended_at = CASE WHEN failures + 1 < p_failures THEN NULL ELSE now() END
        WHERE id = v_dead.id AND status = 'running' AND @schema@.lease_is_over(lease_until) RETURNING * INTO v_dead;
        IF NOT FOUND THEN   -- it ended, or its worker came back, while we looked
            code := 'busy'; RETURN;
        ELSIF v_dead.id = p_run AND v_dead.status = 'failed' THEN
            code := 'gone'; RETURN;
        END IF;
    END IF;
    UPDATE @schema@.runs SET status = 'running', fence = runs.fence + 1 + (random() * 1e12)::bigint, lease_until = now() + p_lease,
        deliver_at = now(), worker = p_worker, attempts = attempts + 1, started_at = coalesce(started_at, now()),
        last_erasure = (SELECT max(e.id) FROM @schema@.runs e WHERE e.sid = r.sid AND e.kind = 'erase')   -- of words that the run does not read
    WHERE id = p_run RETURNING runs.fence INTO fence;
    code := 'claimed';
END $$;
