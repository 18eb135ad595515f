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
    last_used_at timestamptz                              -- to the minute
);
CREATE UNIQUE INDEX api_keys_name ON @schema@.api_keys (coalesce(tenant, ''), name) WHERE revoked_at IS NULL;

-- Lists of a tenant's sessions, in the order of their creation.
CREATE INDEX sessions_of_tenant ON @schema@.sessions (tenant, sid);

-- How often an agent looked up messages that the run had taken out of its view.
ALTER TABLE @schema@.runs ADD COLUMN looked_up bigint NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE @schema@.runs DROP COLUMN looked_up;
DROP INDEX @schema@.sessions_of_tenant;
DROP TABLE @schema@.api_keys;
