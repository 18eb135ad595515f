-- +goose Up

-- What the archiver for a disk budget (scheduler.disk_budget) has done: see functions/archive.sql. Safe while workers and
-- schedulers of the version before run.

-- +goose StatementBegin
CREATE TABLE @schema@.disk_passes (
    one      boolean PRIMARY KEY DEFAULT true CHECK (one),
    run      bigint NOT NULL,                     -- how far it has come, in the order of runs
    words    bigint NOT NULL,                     -- what message_body took when it last deleted rows of it, in bytes
    freed    bigint NOT NULL,                     -- of these rows, in bytes, what was not used again until then
    moved_at timestamptz NOT NULL DEFAULT now()
);
-- +goose StatementEnd

-- Rows that were archived are room for others once a vacuum has passed; by default one comes when a fifth of a table is dead.
-- +goose StatementBegin
DO $$
DECLARE
    t regclass;
BEGIN
    FOR t IN SELECT oid FROM pg_class WHERE relkind = 'r' AND (oid = '@schema@.message_body'::regclass
        OR oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = '@schema@.message_body'::regclass)) LOOP
        EXECUTE format('ALTER TABLE %s SET (autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02)', t);
    END LOOP;
END $$;
-- +goose StatementEnd
