-- +goose Up

-- Safe while workers and schedulers of the version before run. See functions/schedule.sql.

-- What became of a tick, and why it was fired. sweep is the one that it started, or that stands for it.
-- +goose StatementBegin
ALTER TABLE @schema@.cron_ticks
    ADD COLUMN outcome text NOT NULL DEFAULT 'fired' CHECK (outcome IN ('fired', 'coalesced', 'overlap', 'paused', 'missed')),
    ADD COLUMN source  text NOT NULL DEFAULT 'schedule' CHECK (source IN ('schedule', 'operator', 'backfill')),
    ADD COLUMN sweep   bigint;
-- +goose StatementEnd

UPDATE @schema@.cron_ticks t SET sweep = w.id FROM @schema@.sweeps w WHERE w.entry = t.entry AND w.tick = t.tick;

-- Whether a stop of the sweep for its failures pauses the schedule.
ALTER TABLE @schema@.sweeps ADD COLUMN pause_schedule boolean NOT NULL DEFAULT false;

-- The schedules that operators, or failures, have paused, and had.
-- +goose StatementBegin
CREATE TABLE @schema@.schedule_pauses (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    schedule     text NOT NULL,
    note         text NOT NULL,
    requested_by text NOT NULL,             -- empty for the scheduler
    paused_at    timestamptz NOT NULL DEFAULT now(),
    resumed_at   timestamptz,
    resumed_by   text
);
-- +goose StatementEnd
CREATE UNIQUE INDEX schedule_pauses_one ON @schema@.schedule_pauses (schedule) WHERE resumed_at IS NULL;
