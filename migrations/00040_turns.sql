-- +goose Up

-- Safe while workers and schedulers of the version before run, but they and all who append wait for it: runs and outbox are locked
-- while two indexes are built over runs. That reads the table twice: a second per million runs (780 MB) in memory, and longer
-- where they come from a disk.

-- Tenants take turns in the outbox and among the requests of applications: see the function turns in store/turns.go. Rows
-- without a tenant, of transactions of the version before, have a turn of their own.
-- The locks come in the order in which writers take them.
LOCK TABLE @schema@.runs, @schema@.outbox IN ACCESS EXCLUSIVE MODE;
ALTER TABLE @schema@.outbox ADD COLUMN IF NOT EXISTS tenant text NOT NULL DEFAULT '';
UPDATE @schema@.outbox o SET tenant = s.tenant FROM @schema@.sessions s WHERE s.sid = o.sid;
CREATE INDEX IF NOT EXISTS outbox_turns ON @schema@.outbox (tenant, first_at);

-- The tenant of a request of an application, whose turn it takes.
ALTER TABLE @schema@.runs ADD COLUMN IF NOT EXISTS turn_of text NOT NULL DEFAULT '';
UPDATE @schema@.runs r SET turn_of = s.tenant FROM @schema@.sessions s WHERE s.sid = r.sid AND r.status = 'queued' AND r.trigger = 'application';
CREATE INDEX IF NOT EXISTS runs_requested ON @schema@.runs (turn_of, deliver_at) WHERE status = 'queued' AND trigger = 'application';

-- Whether a session has a run: the relay asks it of each row.
CREATE INDEX IF NOT EXISTS runs_active ON @schema@.runs (sid) WHERE status IN ('queued', 'running');

-- What a version of a policy inherits: from which policy, the hash of what that one said, and the settings that the version
-- gives by itself; empty in versions from before this.
-- +goose StatementBegin
ALTER TABLE @schema@.policy_versions
    ADD COLUMN IF NOT EXISTS extends   text NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS base_hash text NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS given     jsonb NOT NULL DEFAULT '[]';
-- +goose StatementEnd
