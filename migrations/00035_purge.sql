-- +goose Up

-- purge_archive gets another argument, with a default: safe while schedulers of the version before run.
DROP FUNCTION IF EXISTS @schema@.purge_archive(interval, text[], int);
