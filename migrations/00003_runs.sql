-- +goose Up

-- The functions that this version added are in functions/.
SELECT 1;
