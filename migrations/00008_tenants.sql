-- +goose Up

-- Safe while workers run. `compactor undo` of the version before fails from here on.

-- Logins that belong to one tenant: their connections reach no other. This table is the security
-- boundary, as no role but its owner can write it.
-- +goose StatementBegin
CREATE TABLE @schema@.tenant_bindings (
    role   text PRIMARY KEY,                     -- the login, as session_user has it
    tenant text NOT NULL CHECK (tenant <> '')
);
-- +goose StatementEnd

-- It has the tenant and the session as arguments now.
DROP FUNCTION IF EXISTS @schema@.undo_run(bigint, boolean, text);
