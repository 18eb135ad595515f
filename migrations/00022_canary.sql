-- +goose Up

-- Safe while workers and schedulers of the version before run: they know of no sweep with a canary.

-- +goose StatementBegin
ALTER TABLE @schema@.sweeps
    ADD COLUMN canary_share double precision CHECK (canary_share > 0 AND canary_share <= 1), -- of the due sessions, which come first; null: none
    ADD COLUMN canary       bigint; -- their number, until all of their runs have ended and the rest may follow
-- +goose StatementEnd
DROP FUNCTION IF EXISTS @schema@.start_sweep(text, interval, text, text, real);
