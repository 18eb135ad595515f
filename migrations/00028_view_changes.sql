-- +goose Up

-- Safe while workers and schedulers of the version before run.

-- What a run that only excludes messages does to its session: see functions/end_runs.sql. The fields have the names of
-- those in the arguments of end_run.
-- +goose StatementBegin
CREATE TYPE @schema@.view_change AS (
    run                  bigint,
    sid                  bigint,
    exclude              int8multirange,
    reasons              text[],
    seqs                 int8multirange[],
    d_messages           bigint,
    d_tokens             bigint,
    d_estimated          bigint,
    free_reasoning       boolean,
    low_gain             boolean,
    fleet_hash           text,
    decision_fingerprint text,
    estimate_margin      real,
    due_tokens           bigint,
    seen_signals         int,
    seen_time            boolean,
    due_messages         bigint,
    due_turns            bigint,
    due_new_tokens       bigint,
    due_live_messages    bigint,
    due_signals          int,
    check_seconds        double precision
);
-- +goose StatementEnd
DROP FUNCTION IF EXISTS @schema@.sweep_page(bigint, int, interval);
