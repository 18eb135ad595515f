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

-- Children that were reported as closed, until their parents are told: see functions/report_state.sql. No reference to the
-- parent, which has one from the child.
-- +goose StatementBegin
CREATE TABLE @schema@.closed_children (
    parent bigint NOT NULL,
    sid    bigint NOT NULL REFERENCES @schema@.sessions,
    PRIMARY KEY (parent, sid)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
-- +goose StatementEnd
