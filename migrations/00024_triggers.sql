-- +goose Up

-- Safe while workers of the version before run: they know nothing of the triggers that follow, and leave fired empty.

-- The trigger of the policy that held when the run began; null without one.
ALTER TABLE @schema@.runs ADD COLUMN fired text;

-- +goose StatementBegin
ALTER TABLE @schema@.sessions
    ADD COLUMN due_age         bigint,        -- seconds since created_at, and
    ADD COLUMN due_since_run   bigint,        -- since view_changed_at: from then on due_idle_tokens counts as due_tokens (check_times)
    ADD COLUMN view_changed_at timestamptz;   -- by a run; null: by none since this migration
-- +goose StatementEnd
ALTER TABLE @schema@.thresholds ADD COLUMN due_age bigint, ADD COLUMN due_since_run bigint;
