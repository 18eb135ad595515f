-- +goose Up

-- Safe while workers of the version before run: they leave the column empty.

-- The trigger of the policy that held when the run began; null without one.
ALTER TABLE @schema@.runs ADD COLUMN fired text;
