-- +goose Up

-- Safe while workers run: new columns without a default change no row.

-- What a message was when it was stored, as message_digest has it. Messages from before this column have none: a
-- digest that is computed later proves nothing about the time before it.
-- +goose StatementBegin
ALTER TABLE @schema@.message_log ADD COLUMN digest bytea;
-- +goose StatementEnd

-- What an applied run brought back into the view. With live_before and the exclusions it gives live_after. Null in rows
-- from before this column, and for an undo, whose view follows from the run that it undoes.
-- +goose StatementBegin
ALTER TABLE @schema@.runs ADD COLUMN included int8multirange;
-- +goose StatementEnd

-- Something that a check of a session has found: a column of one of its rows.
CREATE TYPE @schema@.finding AS (
    kind text,        -- session | message | run | exclusion
    at bigint,        -- null | the seq | the run | the run of the exclusion
    field text,       -- the column, or what else is not as it should be
    stored text, want text,
    derived boolean); -- want follows from log and ledger, so mend_session sets it
