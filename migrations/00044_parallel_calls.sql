-- +goose Up

-- Whether calls of the session are batches of several messages (chat.Parallel), which view gives out as one message.
ALTER TABLE @schema@.sessions ADD COLUMN parallel boolean NOT NULL DEFAULT false;
