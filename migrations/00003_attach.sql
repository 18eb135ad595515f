-- +goose Up

-- Tables of applications whose rows are brought into the log (package store/attach). What belongs to one of them is in a schema of
-- its own: the triggers' functions, notes, the map from rows to messages, and the view.
CREATE TABLE @schema@.attachments (
    name        text PRIMARY KEY,
    in_schema   text NOT NULL UNIQUE,
    spec        jsonb NOT NULL,                -- attach.Spec
    created_at  timestamptz NOT NULL DEFAULT now(),
    created_by  text NOT NULL DEFAULT session_user
);
