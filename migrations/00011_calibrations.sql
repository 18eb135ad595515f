-- +goose Up

-- What providers counted for prompts (report_usage), beside what is stored for the messages in them.
-- See functions/calibration.sql. Safe while workers of the version before run.
-- +goose StatementBegin
CREATE TABLE @schema@.calibrations (
    tenant     text NOT NULL,
    model      text NOT NULL,              -- as model_key has it
    counted    bigint[] NOT NULL,          -- of the latest reports, the newest first: the stored counts, …
    reported   bigint[] NOT NULL,          -- … and the provider's
    reports    bigint NOT NULL,            -- all that were learned from
    overhead   bigint,                     -- a prompt has overhead + scale * counted tokens; null: too few reports
    scale      double precision,
    deviation  real,                       -- the median relative deviation of the latest reports from that
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, model)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
-- +goose StatementEnd
