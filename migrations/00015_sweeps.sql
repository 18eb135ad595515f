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

-- By trigger, so that many requests of applications do not keep a run of an operator waiting.
DROP INDEX @schema@.runs_deliver;
CREATE INDEX runs_deliver ON @schema@.runs (trigger, deliver_at) WHERE status = 'queued';

-- A sweep is an object of operators: see functions/sweep.sql.
-- +goose StatementBegin
ALTER TABLE @schema@.sweeps
    ADD COLUMN status       text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'paused', 'done', 'cancelled', 'stopped')),
    ADD COLUMN reason       text NOT NULL DEFAULT '',     -- why it has its status: a code, or the note of an operator
    ADD COLUMN changed_by   text NOT NULL DEFAULT '',     -- who gave it its status; empty for the scheduler
    ADD COLUMN changed_at   timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN tenant       text NOT NULL DEFAULT '',     -- the only one that it goes over; empty for all
    ADD COLUMN requested_by text NOT NULL DEFAULT '',
    ADD COLUMN note         text NOT NULL DEFAULT '',     -- of who requested it
    ADD COLUMN window_end   timestamptz,                  -- it stops then; null: never
    ADD COLUMN due          bigint,                       -- sessions that were due when it began; null: it has not begun
    ADD COLUMN left_out     bigint NOT NULL DEFAULT 0,    -- sessions with a run of their own, or paused
    ADD COLUMN worked       interval NOT NULL DEFAULT '0', -- how long it was open, up to changed_at
    ADD COLUMN stop_share   real NOT NULL DEFAULT 0.5,    -- it stops if more of its latest runs than this failed
    ADD COLUMN check_at     bigint NOT NULL DEFAULT 100,  -- number of queued runs at which that is looked at again, …
    ADD COLUMN checked      bigint NOT NULL DEFAULT 0,    -- … how many had ended at the last look, …
    ADD COLUMN checked_bad  bigint NOT NULL DEFAULT 0,    -- … and how many of these had failed
    DROP COLUMN cursor_sid;
-- +goose StatementEnd
UPDATE @schema@.sweeps SET status = 'done', due = queued, changed_at = ended_at, worked = ended_at - started_at WHERE ended_at IS NOT NULL;
CREATE INDEX runs_sweep ON @schema@.runs (sweep, status, outcome) WHERE sweep IS NOT NULL;

-- How far a sweep is with each tenant. Rows go when the sweep ends for good.
-- +goose StatementBegin
CREATE TABLE @schema@.sweep_tenants (
    sweep      bigint NOT NULL REFERENCES @schema@.sweeps,
    tenant     text NOT NULL,
    due        bigint NOT NULL,             -- sessions that were due when the sweep began
    seen       bigint NOT NULL DEFAULT 0,   -- sessions that it has passed
    cursor_sid bigint NOT NULL DEFAULT 0,
    turn       bigint NOT NULL DEFAULT 0,   -- pages that the tenant had a share of
    passed     boolean NOT NULL DEFAULT false,
    PRIMARY KEY (sweep, tenant)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
-- +goose StatementEnd
CREATE INDEX sweep_tenants_turn ON @schema@.sweep_tenants (sweep, turn, tenant) WHERE NOT passed;
CREATE INDEX sessions_due_of_tenant ON @schema@.sessions (tenant, sid) WHERE due;

-- What operators have paused, and had: see functions/pause.sql. An empty tenant or model stands for all.
-- +goose StatementBegin
CREATE TABLE @schema@.pauses (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant       text NOT NULL,
    model        text NOT NULL,             -- a prefix, in lower case
    note         text NOT NULL,
    requested_by text NOT NULL,
    paused_at    timestamptz NOT NULL DEFAULT now(),
    resumed_at   timestamptz,
    resumed_by   text
);
-- +goose StatementEnd
CREATE UNIQUE INDEX pauses_one ON @schema@.pauses (tenant, model) WHERE resumed_at IS NULL;
