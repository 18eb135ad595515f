-- +goose Up

-- Safe while workers and schedulers of the version before run.

-- The outbox is empty most of the time, and each autovacuum would give its pages back to the file system. It locks out all
-- writers for that, and queries of replicas, and the next appends extend the table again.
ALTER TABLE @schema@.outbox SET (vacuum_truncate = false);
ALTER TABLE @schema@.throttled SET (vacuum_truncate = false);
