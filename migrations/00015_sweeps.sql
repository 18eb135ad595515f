-- +goose Up

-- Safe while workers of the version before run. Stop its schedulers first. It reads all due sessions once.

-- At most one automatic run of a session waits for its first attempt, whoever queued it: a sweep, the relay or the
-- reconciler. An application and an operator have one each, as before.
LOCK TABLE @schema@.runs IN SHARE ROW EXCLUSIVE MODE;
UPDATE @schema@.runs r SET status = 'skipped', outcome = 'superseded', ended_at = now()
WHERE status = 'queued' AND attempts = 0 AND trigger = 'nightly' AND EXISTS (
    SELECT FROM @schema@.runs e WHERE e.sid = r.sid AND e.status = 'queued' AND e.attempts = 0 AND e.trigger = 'event');
DROP INDEX @schema@.runs_one_queued;
CREATE UNIQUE INDEX runs_one_requested ON @schema@.runs (sid, trigger)
    WHERE status = 'queued' AND attempts = 0 AND trigger IN ('application', 'operator');
CREATE UNIQUE INDEX runs_one_automatic ON @schema@.runs (sid)
    WHERE status = 'queued' AND attempts = 0 AND trigger IN ('nightly', 'event');
