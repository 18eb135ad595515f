-- +goose Up
-- Keys of the HTTP API: functions/api_keys.sql.
CREATE TABLE @schema@.api_keys (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name         text NOT NULL CHECK (name <> ''),        -- that its requests are recorded with
    prefix       text NOT NULL,                           -- the beginning of the key, which lists show
    hash         bytea NOT NULL UNIQUE,                   -- SHA-256 of the key
    scope        text NOT NULL CHECK (scope IN ('read', 'append', 'operate', 'admin')),
    tenant       text CHECK (tenant <> ''),               -- null: all
    note         text NOT NULL DEFAULT '',
    created_by   text NOT NULL DEFAULT '',
    created_at   timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz,
    revoked_at   timestamptz,
    revoked_by   text NOT NULL DEFAULT '',
    last_used_at timestamptz,                             -- to the minute
    output       text NOT NULL DEFAULT 'messages' CHECK (output IN ('messages', 'item')) -- of /v1/responses/compact
);
CREATE UNIQUE INDEX api_keys_name ON @schema@.api_keys (coalesce(tenant, ''), name) WHERE revoked_at IS NULL;

-- What providers reported about their caches of the prompts of a view: functions/report_usage.sql.
CREATE TABLE @schema@.cache_usage (
    sid            bigint NOT NULL REFERENCES @schema@.sessions,
    revision       bigint NOT NULL,                       -- of the view that was sent
    reports        bigint NOT NULL,
    prompt_tokens  bigint NOT NULL,                       -- sums of these reports
    cached_tokens  bigint NOT NULL,                       -- read from the cache
    written_tokens bigint NOT NULL,                       -- written to it
    miss_reason    text,                                  -- the last one
    last_at        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (sid, revision)
);

-- Lists of a tenant's sessions, in the order of their creation.
CREATE INDEX sessions_of_tenant ON @schema@.sessions (tenant, sid);

-- What operators did that no other table has: functions/audit_log.sql.
CREATE TABLE @schema@.operator_actions (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    done_at timestamptz NOT NULL DEFAULT now(),
    done_by text NOT NULL DEFAULT '',
    action  text NOT NULL,
    tenant  text NOT NULL DEFAULT '',                     -- empty: all
    session text,
    object  text NOT NULL DEFAULT '',
    note    text NOT NULL DEFAULT ''
);
CREATE INDEX operator_actions_done ON @schema@.operator_actions (done_at, id);
CREATE INDEX operator_actions_tenant ON @schema@.operator_actions (tenant, done_at, id);
-- For audit_log, the newest first. It stops runs from being queued until it is built.
CREATE INDEX runs_of_operators ON @schema@.runs (queued_at, id) WHERE trigger = 'operator' AND requested_by <> '';

-- Whether a connection that is bound to the tenant has set it. Such a connection changes and ends no other.
ALTER TABLE @schema@.spending_limits ADD COLUMN by_tenant boolean NOT NULL DEFAULT false;
ALTER TABLE @schema@.pauses ADD COLUMN by_tenant boolean NOT NULL DEFAULT false;

-- They have an argument more.
DROP FUNCTION IF EXISTS @schema@.cancel_bulk(text, bigint);
DROP FUNCTION IF EXISTS @schema@.decides(text, text, text, bigint, bigint);
DROP FUNCTION IF EXISTS @schema@.resume_bulk_compact(bigint);

-- Calls of models for messages that are in no session have a tenant in place of a session and a run: functions/stateless.sql.
ALTER TABLE @schema@.summary_calls ALTER sid DROP NOT NULL, ALTER run DROP NOT NULL, ADD tenant text CHECK (tenant <> ''),
    ADD CHECK (num_nulls(sid, run) = CASE WHEN tenant IS NULL THEN 0 ELSE 2 END);
CREATE INDEX summary_calls_no_summary ON @schema@.summary_calls (key) WHERE state = 'rejected' AND tenant IS NOT NULL;
CREATE INDEX summary_calls_alone ON @schema@.summary_calls (asked_at) WHERE state = 'asked' AND tenant IS NOT NULL;

-- Seals what clients keep for this installation and send back: item_secret() reads it.
CREATE TABLE @schema@.item_secrets (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    secret   bytea NOT NULL DEFAULT sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))
);
INSERT INTO @schema@.item_secrets DEFAULT VALUES;

-- The last erasure of the session that was there when the run was claimed: ask_summary compares it.
ALTER TABLE @schema@.runs ADD COLUMN last_erasure bigint;
CREATE INDEX runs_of_erasures ON @schema@.runs (sid, id) WHERE kind = 'erase';

-- How often an agent looked up messages that the run had taken out of its view.
ALTER TABLE @schema@.runs ADD COLUMN looked_up bigint NOT NULL DEFAULT 0;

-- Whether a message has keys that the readers of package formats keep for their formats, which the HTTP API takes out of views.
-- Null, not known, for sessions of before.
ALTER TABLE @schema@.sessions ADD COLUMN format_keys boolean;
ALTER TABLE @schema@.sessions ALTER format_keys SET DEFAULT false;
ALTER TYPE @schema@.parsed_message ADD ATTRIBUTE format_keys boolean;
