-- +goose Up

-- Safe while workers of the version before run: they know nothing of guards. Writers wait while the sessions are checked
-- once, about a second for each million of them.

-- A session is quarantined until there is a message or another policy, and service_managed, as another service manages
-- its history, until it has other labels or another policy.
-- +goose StatementBegin
ALTER TABLE @schema@.sessions
    DROP CONSTRAINT sessions_state_check, ADD CONSTRAINT sessions_state_check CHECK (state IN ('active', 'quarantined', 'service_managed')),
    ADD COLUMN hold_code     text,                            -- the guard that set cooldown_until; null: a run that gained nothing
    ADD COLUMN awaits_answer boolean NOT NULL DEFAULT false,  -- loop_seq waits for the agent's answer, too
    ADD COLUMN low_gain_runs int NOT NULL DEFAULT 0;          -- the latest automatic runs in a row that saved little
-- +goose StatementEnd
