-- +goose Up

-- Safe while workers run. An undo of many runs is an object of operators: it goes on where it was interrupted, and what
-- it did stays known. See functions/bulk_undo.sql.
-- +goose StatementBegin
CREATE TABLE @schema@.bulk_undos (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant       text NOT NULL,                -- empty for all
    filter       jsonb NOT NULL,               -- see matching_runs
    cascade      boolean NOT NULL,             -- later runs of a session go with the one that matches
    note         text NOT NULL DEFAULT '',
    requested_by text NOT NULL DEFAULT '',
    requested_at timestamptz NOT NULL DEFAULT now(),
    status       text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'done', 'cancelled')),
    ended_at     timestamptz,
    first_run    bigint NOT NULL,              -- the runs from next_run down to this one are still to be looked at
    next_run     bigint NOT NULL,
    matched      bigint NOT NULL,              -- runs at the beginning
    undone       bigint NOT NULL DEFAULT 0,
    refused      bigint NOT NULL DEFAULT 0
);
-- +goose StatementEnd

-- The runs that stayed in force, and why.
-- +goose StatementBegin
CREATE TABLE @schema@.bulk_undo_refusals (
    bulk_undo bigint NOT NULL REFERENCES @schema@.bulk_undos,
    run       bigint NOT NULL REFERENCES @schema@.runs,
    sid       bigint NOT NULL,   -- of the run; no reference, which would wait for who holds the session
    code      text NOT NULL,
    PRIMARY KEY (bulk_undo, run)
);
-- +goose StatementEnd
