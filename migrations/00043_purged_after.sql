-- +goose Up

-- Safe while workers run: a new column without a default changes no row.

-- The age at which the policy wanted the words of a segment gone when they were purged: what says that a purge was one.
-- Segments that were purged before this column are taken as they are.
-- +goose StatementBegin
ALTER TABLE @schema@.archive_segments ADD COLUMN purged_after interval;
-- +goose StatementEnd
UPDATE @schema@.archive_segments SET purged_after = '0' WHERE purged_at IS NOT NULL;
