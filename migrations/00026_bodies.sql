-- +goose Up

-- The words of messages apart from what planning reads, so that archiving, purging and erasing them rewrites nothing else.
-- Stop the workers, the schedulers and the applications' writes before: functions of the version before know no other
-- place for a body. The table is written anew, under a lock that readers wait for too: count with the time of a VACUUM
-- FULL of it, and with as much free disk as it takes.
-- +goose StatementBegin
CREATE TABLE @schema@.message_body (
    sid  bigint NOT NULL,        -- no references, which cost a batch a sixth of its time: the row of message_log has them
    seq  bigint NOT NULL,
    body text NOT NULL,          -- the message as received, as JSON text
    PRIMARY KEY (sid, seq)
) WITH (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 100000,
        autovacuum_analyze_scale_factor = 0.02);
-- +goose StatementEnd

INSERT INTO @schema@.message_body SELECT sid, seq, body FROM @schema@.message_log ORDER BY sid, seq;

DROP VIEW IF EXISTS @schema@.messages;   -- it is made with the functions
-- Null in rows from before this column, of which the digest covers the body itself.
-- +goose StatementBegin
ALTER TABLE @schema@.message_log DROP COLUMN body, ADD COLUMN body_digest bytea;
-- +goose StatementEnd
DROP FUNCTION IF EXISTS @schema@.message_digest(@schema@.message_log);
-- Gives the space of the bodies back.
CLUSTER @schema@.message_log USING message_log_pkey;
ALTER TABLE @schema@.message_log SET WITHOUT CLUSTER;
