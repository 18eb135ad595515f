-- +goose Up

-- Safe while workers and schedulers of the version before run. Writers wait while the sessions are read once for the index,
-- about a second for each million of them.

-- What holds sessions back: see functions/held_back.sql and functions/clock.sql.
-- +goose StatementBegin
ALTER TABLE @schema@.sessions
    ADD COLUMN IF NOT EXISTS due_since timestamptz;   -- of those that are due; null: since before this migration
-- +goose StatementEnd
-- Those that are not due as something waits. None of these columns changes with an append, so the index does not end HOT updates.
CREATE INDEX IF NOT EXISTS sessions_waiting ON @schema@.sessions (tenant, sid) WHERE state <> 'active' OR hold_seq > 0 OR loop_seq IS NOT NULL;

ALTER TABLE @schema@.sweeps ADD COLUMN IF NOT EXISTS released boolean NOT NULL DEFAULT false;   -- what was due when it ended does not wait any more

-- What the leader knows of the other processes, and of the clock of the database.
-- +goose StatementBegin
ALTER TABLE @schema@.leader
    ADD COLUMN IF NOT EXISTS renewed_at         timestamptz,                    -- when the lease was taken or renewed last
    ADD COLUMN IF NOT EXISTS queue_away_since   timestamptz,                    -- Redis does not answer it
    ADD COLUMN IF NOT EXISTS workers_away_since timestamptz,                    -- no worker serves the queues
    ADD COLUMN IF NOT EXISTS clock_back         interval NOT NULL DEFAULT '0',  -- the clock was set back by so much, …
    ADD COLUMN IF NOT EXISTS clock_sid          bigint NOT NULL DEFAULT 0;      -- … and times are corrected up to this session
-- +goose StatementEnd
