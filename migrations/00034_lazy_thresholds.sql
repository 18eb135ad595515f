-- +goose Up

-- Safe while workers and schedulers of the version before run: they call functions, which are new.

-- Which change of policies set the thresholds (policy_refresh.wanted then), and of which one a session has a copy: with
-- another one it takes those in force at its next write (functions/policy.sql). No two policies share a number but 0,
-- which stands for the thresholds from before this migration.
-- +goose StatementBegin
ALTER TABLE @schema@.thresholds
    ADD COLUMN revision bigint NOT NULL DEFAULT 0,
    ADD COLUMN former   bigint NOT NULL DEFAULT 0;   -- the last one before that all sessions followed
-- +goose StatementEnd
ALTER TABLE @schema@.sessions ADD COLUMN thresholds_revision bigint NOT NULL DEFAULT 0;
