-- +goose Up

-- Signed and encrypted reasoning stays in the view only where everything before it is as it
-- was when it was written (I15). Safe while workers of the version before run.
-- +goose StatementBegin
ALTER TABLE @schema@.sessions
    -- The messages without their signed reasoning in the view. The rows of others in these ranges hold none.
    ADD COLUMN reasoning_out   int8multirange NOT NULL DEFAULT '{}',
    -- Since this seq reasoning_out is exact, as all runs since then knew the model to bind reasoning.
    -- Null: the last run knew that it does not, or was one of a version before this.
    ADD COLUMN reasoning_since bigint,
    -- The last seq that a run saw which waits for the end of a tool loop: what came later makes the session due again.
    ADD COLUMN loop_seq        bigint;
-- +goose StatementEnd
-- +goose StatementBegin
ALTER TABLE @schema@.sessions ALTER COLUMN reasoning_since SET DEFAULT 0;
-- +goose StatementEnd

-- What a run did to it: reasoning_out is reasoning_before + reasoning_taken then, for an undo
-- the reasoning_before of the run that it undoes + reasoning_taken.
-- +goose StatementBegin
ALTER TABLE @schema@.runs ADD COLUMN reasoning_before int8multirange, ADD COLUMN reasoning_taken int8multirange;
-- +goose StatementEnd

-- The part of token_count that signed reasoning takes. Null where there is none, and in rows from
-- before this column.
-- +goose StatementBegin
ALTER TABLE @schema@.message_log ADD COLUMN reasoning_tokens int;
-- +goose StatementEnd

-- +goose StatementBegin
ALTER TABLE @schema@.thresholds ADD COLUMN free_reasoning boolean NOT NULL DEFAULT false;
-- +goose StatementEnd
