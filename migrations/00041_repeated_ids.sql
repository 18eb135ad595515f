-- +goose Up

-- Sessions with a message of which two calls have one id: the view gives them different ones. Safe while workers run; it reads
-- the metadata of the messages once, and locks the few sessions that it finds.
ALTER TABLE @schema@.sessions ADD COLUMN repeated_ids boolean NOT NULL DEFAULT false;
UPDATE @schema@.sessions SET repeated_ids = true WHERE sid IN (
    SELECT m.sid FROM @schema@.message_log m
    WHERE m.calls > 1 AND m.kind = 'm' AND cardinality(m.call_ids) > (SELECT count(DISTINCT c) FROM unnest(m.call_ids) c));
