-- +goose Up

-- Safe while workers of the version before run: they know nothing of guards and triggers. Until `migrate up` has installed
-- the functions that follow, calls of append that create a session fail as unknown: applications repeat them. Writers wait
-- while the sessions are checked once, about a second for each million of them.

-- A session is quarantined until there is a message or another policy, and service_managed, as another service manages
-- its history, until it has other labels or another policy.
-- +goose StatementBegin
ALTER TABLE @schema@.sessions
    DROP CONSTRAINT sessions_state_check, ADD CONSTRAINT sessions_state_check CHECK (state IN ('active', 'quarantined', 'service_managed')),
    ADD COLUMN hold_code         text,                            -- the guard that set cooldown_until; null: a run that gained nothing
    ADD COLUMN awaits_answer     boolean NOT NULL DEFAULT false,  -- loop_seq waits for the agent's answer, too
    ADD COLUMN low_gain_runs     int NOT NULL DEFAULT 0,          -- the latest automatic runs in a row that saved little
    -- Thresholds beside due_tokens, due_messages and due_turns.
    ADD COLUMN due_new_tokens    bigint,                          -- of tokens_since_run
    ADD COLUMN due_live_messages bigint,
    ADD COLUMN due_signals       int NOT NULL DEFAULT 0,
    ADD COLUMN checked_seq       bigint,                          -- a run found no trigger to hold: thresholds count for later messages
    -- A trigger that waits for the session to be idle for so many seconds, with a context above so many tokens: the
    -- scheduler looks at it then (check_times), and has it due by timed. Appends set next_check_at only if there is none.
    ADD COLUMN due_idle          bigint,
    ADD COLUMN due_idle_tokens   bigint,
    ADD COLUMN next_check_at     timestamptz,
    ADD COLUMN timed             boolean NOT NULL DEFAULT false,
    -- What the application reports (report_state), as bits: 1 closed, 2 overflow, 4 needs_follow_up, 8 has_pending_input; and
    -- those that no run has seen.
    ADD COLUMN signals           int NOT NULL DEFAULT 0,
    ADD COLUMN new_signals       int NOT NULL DEFAULT 0;
-- +goose StatementEnd
-- +goose StatementBegin
ALTER TABLE @schema@.thresholds
    ADD COLUMN due_messages bigint, ADD COLUMN due_turns bigint, ADD COLUMN due_new_tokens bigint, ADD COLUMN due_live_messages bigint,
    ADD COLUMN due_signals int, ADD COLUMN due_idle bigint, ADD COLUMN due_idle_tokens bigint;
-- +goose StatementEnd
CREATE INDEX sessions_next_check ON @schema@.sessions (next_check_at) WHERE next_check_at IS NOT NULL;
