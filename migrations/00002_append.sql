-- +goose Up

-- What append makes of one message before it looks at the session.
CREATE TYPE @schema@.parsed_message AS (
    ord bigint, id text, role text, name text, source_id text, tool_call_id text, call_ids text[], tokens int, counter text,
    flags smallint, reasoning_only boolean, created timestamptz, body text, fault text);

-- What appending to a session's log did, and what it leaves for the next call.
CREATE TYPE @schema@.appended AS (
    seqs bigint[], conflict text, n bigint, last_seq bigint, tokens bigint, estimated bigint, turns bigint, last_at timestamptz,
    fault boolean, open_calls text[], answered boolean, pending boolean);
