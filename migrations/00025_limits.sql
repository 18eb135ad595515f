-- +goose Up

-- Safe while workers and schedulers of the version before run: they start runs without a look at the limits of runs.

-- What the models may be asked for in an hour, and how many runs may start in a second: see functions/spending.sql and
-- functions/run_limit.sql.
-- +goose StatementBegin
ALTER TABLE @schema@.spending_limits
    ADD COLUMN tokens_per_hour bigint CHECK (tokens_per_hour >= 0),
    ADD COLUMN runs_per_second double precision CHECK (runs_per_second > 0 AND runs_per_second <= 1e6),
    ADD COLUMN full_at         timestamptz NOT NULL DEFAULT now(), -- from then on, the runs of a second may start at once
    DROP CONSTRAINT spending_limits_check,
    ADD CHECK (coalesce(micros_per_hour, micros_per_day, calls_per_hour, tokens_per_hour, runs_per_second) IS NOT NULL);
-- +goose StatementEnd
DROP FUNCTION IF EXISTS @schema@.limit_spending(text, bigint, bigint, bigint, text, text);
DROP FUNCTION IF EXISTS @schema@.spending_of(text);
DROP FUNCTION IF EXISTS @schema@.spending(text);

-- What waits for the limit of runs of its tenant.
-- +goose StatementBegin
CREATE TABLE @schema@.throttled (
    sid    bigint NOT NULL,             -- no reference, which would wait for who holds the session
    run    bigint NOT NULL DEFAULT 0,   -- that an application requested; 0: an event, whose run is not queued yet
    tenant text NOT NULL,
    since  timestamptz NOT NULL,
    PRIMARY KEY (sid, run)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
-- +goose StatementEnd
CREATE INDEX throttled_tenant ON @schema@.throttled (tenant, since);

-- What calls of models used in a minute that has passed, by tenant, and of all together with an empty one: so that a look
-- at a limit reads these and the calls of the last minutes, and not those of a day. A scheduler sums them up.
-- +goose StatementBegin
CREATE TABLE @schema@.spending_minutes (
    tenant text NOT NULL,
    minute timestamptz NOT NULL,
    calls  bigint NOT NULL,
    tokens bigint NOT NULL,
    micros bigint NOT NULL,
    PRIMARY KEY (tenant, minute) INCLUDE (calls, tokens, micros)
);
-- +goose StatementEnd
CREATE INDEX summary_calls_spent ON @schema@.summary_calls (ended_at) WHERE attempts > 0;

DROP FUNCTION IF EXISTS @schema@.fire_tick(text, timestamptz, text, text, text, timestamptz, text, boolean, boolean);

-- A bulk recompaction whose runs fail stops, as a sweep does: see functions/failures.sql.
-- +goose StatementBegin
ALTER TABLE @schema@.bulk_operations
    ADD COLUMN stop_share  real NOT NULL DEFAULT 0.5,    -- it stops if more of its latest runs than this failed
    ADD COLUMN check_at    bigint NOT NULL DEFAULT 100,  -- number of queued runs at which that is looked at again, …
    ADD COLUMN checked     bigint NOT NULL DEFAULT 0,    -- … how many had ended at the last look, …
    ADD COLUMN checked_bad bigint NOT NULL DEFAULT 0,    -- … and how many of these had failed
    DROP CONSTRAINT bulk_undos_status_check,
    ADD CHECK (status IN ('open', 'done', 'cancelled', 'stopped'));
-- +goose StatementEnd
DROP FUNCTION IF EXISTS @schema@.start_bulk(text, text, jsonb, boolean, jsonb, text, text);
DROP FUNCTION IF EXISTS @schema@.sweep_ends(bigint);
