-- +goose Up

-- Safe while workers run. fix_session has replaced it.
DROP FUNCTION IF EXISTS @schema@.mend_session(text, text);
