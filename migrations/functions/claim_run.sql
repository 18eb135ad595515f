-- A worker takes a run. code: claimed | gone (finished or unknown) | busy (a live worker has this
-- session). An expired lease is taken over: of this run by a new fence token, of another run of the
-- session by sending that one back to the queue (or ending it, where one is queued already).
CREATE OR REPLACE FUNCTION @schema@.claim_run(p_run bigint, p_worker text, p_lease interval, OUT code text, OUT fence bigint)
LANGUAGE plpgsql AS $$
DECLARE
    r       @schema@.runs;
    v_other @schema@.runs;
BEGIN
    -- A claim lost in a crash of the server is harmless: the run is simply queued again.
    PERFORM set_config('synchronous_commit', 'off', true);
    SELECT * INTO r FROM @schema@.runs WHERE id = p_run FOR NO KEY UPDATE;
    IF NOT FOUND OR r.status NOT IN ('queued', 'running') THEN
        code := 'gone'; RETURN;
    END IF;
    IF r.status = 'running' AND r.lease_until >= now() THEN
        code := 'busy'; RETURN;
    END IF;
    IF r.status = 'queued' THEN
        SELECT * INTO v_other FROM @schema@.runs WHERE sid = r.sid AND status = 'running';
        IF FOUND THEN
            IF v_other.lease_until >= now() THEN
                code := 'busy'; RETURN;
            END IF;
            UPDATE @schema@.runs SET fence = runs.fence + 1, lease_until = NULL,
                status = CASE WHEN queued_twin THEN 'failed' ELSE 'queued' END,
                outcome = CASE WHEN queued_twin THEN 'lease_expired' END,
                ended_at = CASE WHEN queued_twin THEN now() END, deliver_at = now()
            FROM (SELECT EXISTS (SELECT FROM @schema@.runs q WHERE q.sid = r.sid AND q.trigger = v_other.trigger
                                 AND q.status = 'queued') AS queued_twin) t
            WHERE id = v_other.id AND runs.status = 'running' AND runs.lease_until < now();
            IF NOT FOUND THEN   -- it ended or came back to life while we looked
                code := 'busy'; RETURN;
            END IF;
        END IF;
    END IF;
    UPDATE @schema@.runs SET status = 'running', fence = runs.fence + 1, lease_until = now() + p_lease, worker = p_worker,
        attempts = attempts + 1, started_at = coalesce(started_at, now())
    WHERE id = p_run RETURNING runs.fence INTO fence;
    code := 'claimed';
END $$;
