-- +goose Up

-- Safe while workers and schedulers of the version before run: they leave the columns as they are.

-- What the server of a model answered to the last attempt that failed: see llm.ServerError. And how many attempts of a call, or calls of
-- a minute, have estimated tokens, as the server reported none.
ALTER TABLE @schema@.summary_calls
    ADD COLUMN IF NOT EXISTS http_status  int,
    ADD COLUMN IF NOT EXISTS server_error text,
    ADD COLUMN IF NOT EXISTS estimated    int NOT NULL DEFAULT 0;
ALTER TABLE @schema@.spending_minutes ADD COLUMN IF NOT EXISTS estimated bigint NOT NULL DEFAULT 0;
DROP FUNCTION IF EXISTS @schema@.spending(text);      -- they return the estimated calls too
DROP FUNCTION IF EXISTS @schema@.spending_of(text);
