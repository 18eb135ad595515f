-- +goose Up

-- The function has another argument, which those who call it without leave at its default: safe while schedulers of the
-- version before run.
DROP FUNCTION IF EXISTS @schema@.purge_archive(interval, text[], int);
