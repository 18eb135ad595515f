-- +goose Up

-- What the functions that follow need. Until `migrate up` has installed them, calls of append fail as
-- unknown: applications repeat them.

-- append takes an idempotency key in place of positions, which only replace_view gives.
DROP FUNCTION IF EXISTS @schema@.append(text, text, json, text, bigint[]);
DROP FUNCTION IF EXISTS @schema@.parse_messages(json);

-- The strategies that workers have registered, with the names of their parameters. Rows stay: a request
-- is checked against all that any worker has known, and a worker that does not know a strategy ends the
-- run as invalid_options.
-- +goose StatementBegin
CREATE TABLE @schema@.strategies (
    name          text PRIMARY KEY,
    params        text[] NOT NULL,
    registered_at timestamptz NOT NULL DEFAULT now()
);
-- +goose StatementEnd

-- Values that were accepted before they were checked: a count that overflows with the next message, and
-- a time that Go cannot write as JSON.
UPDATE @schema@.sessions SET reported_prompt_tokens = NULL, tokens_since_report = 0 WHERE reported_prompt_tokens > 999999999;
UPDATE @schema@.sessions SET last_message_at = created_at
WHERE last_message_at < '0001-01-01 00:00:00+00' OR last_message_at >= '10000-01-01 00:00:00+00';
