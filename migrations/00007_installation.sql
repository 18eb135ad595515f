-- +goose Up

-- Distinguishes this schema, in the names of its queues, from one of the same name that was
-- dropped or is elsewhere. A copy of the database has the same row: see store.Installation.
-- +goose StatementBegin
CREATE TABLE @schema@.installation (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    id       uuid NOT NULL DEFAULT gen_random_uuid()
);
-- +goose StatementEnd
INSERT INTO @schema@.installation DEFAULT VALUES;
