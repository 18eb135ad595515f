-- +goose Up

-- Safe while workers of the version before run. Set limits when they are gone: they take a refusal for an empty answer.

-- What calls of models may cost before automatic and requested runs ask none: see functions/spending.sql.
-- +goose StatementBegin
CREATE TABLE @schema@.spending_limits (
    tenant         text PRIMARY KEY,                   -- empty: all together
    micros_per_hour bigint CHECK (micros_per_hour >= 0), -- millionths of the unit that prices are in; null: no limit
    micros_per_day  bigint CHECK (micros_per_day >= 0),
    calls_per_hour  bigint CHECK (calls_per_hour >= 0),
    note           text NOT NULL DEFAULT '',
    changed_by     text NOT NULL DEFAULT '',
    changed_at     timestamptz NOT NULL DEFAULT now(),
    CHECK (coalesce(micros_per_hour, micros_per_day, calls_per_hour) IS NOT NULL)
);
-- +goose StatementEnd
