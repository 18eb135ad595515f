-- +goose Up

-- Named policies. Until `migrate up` has installed the functions that follow, calls of append that create a session or
-- change its model fail as unknown: applications repeat them. Workers of the version before run sessions of named
-- policies under that of their configuration, and its schedulers log that they cannot refresh thresholds.

-- What was applied, never changed: a change is another version.
-- +goose StatementBegin
CREATE TABLE @schema@.policy_versions (
    name       text NOT NULL CHECK (name ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
    version    int NOT NULL,
    hash       text NOT NULL,               -- of the spec
    spec       jsonb NOT NULL,              -- as policy.Spec writes it
    match      jsonb NOT NULL DEFAULT '{}', -- tenant, model (a prefix) and labels, which a session must have
    note       text NOT NULL DEFAULT '',
    created_by text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    tenant     text GENERATED ALWAYS AS (match->>'tenant') STORED,
    PRIMARY KEY (name, version)
);
-- +goose StatementEnd
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON @schema@.policy_versions
    FOR EACH STATEMENT EXECUTE FUNCTION @schema@.refuse_change();

-- The version in force of each policy; one that is disabled has no row. The match is that of the version, as sessions
-- are compared with it: see policy_of.
-- +goose StatementBegin
CREATE TABLE @schema@.policy_heads (
    name         text PRIMARY KEY,
    version      int NOT NULL,
    keys         int NOT NULL,   -- in the match
    tenant       text,
    model_prefix text,           -- in lower case
    labels       jsonb NOT NULL,
    FOREIGN KEY (name, version) REFERENCES @schema@.policy_versions
);
-- +goose StatementEnd

-- Who put which version in force; null: the policy was disabled.
-- +goose StatementBegin
CREATE TABLE @schema@.policy_changes (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text NOT NULL,
    version    int,
    changed_by text NOT NULL DEFAULT '',
    changed_at timestamptz NOT NULL DEFAULT now(),
    tenant     text
);
-- +goose StatementEnd

-- How far the sessions follow the policies: see refresh_policies.
-- +goose StatementBegin
CREATE TABLE @schema@.policy_refresh (
    only_row    boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    wanted      bigint NOT NULL DEFAULT 1,     -- counts the changes of policies
    revision    bigint NOT NULL DEFAULT 0,     -- the wanted of the present pass
    reached     bigint NOT NULL DEFAULT 0,     -- all sessions follow the policies of this one
    cursor_sid  bigint NOT NULL DEFAULT 0,     -- the pass has seen the sessions up to this one, …
    last_sid    bigint NOT NULL DEFAULT 0,     -- … of those up to this one
    skipped_sid bigint,                        -- the first that another transaction held
    older       text[] NOT NULL DEFAULT '{}',   -- transactions that may create sessions under the policies before
    final       boolean NOT NULL DEFAULT false, -- none of them was left when the pass began
    changed     bigint NOT NULL DEFAULT 0,     -- sessions, by all passes of the revision
    changed_at  timestamptz NOT NULL DEFAULT now(),
    reached_at  timestamptz
) WITH (fillfactor = 50);
-- +goose StatementEnd
INSERT INTO @schema@.policy_refresh DEFAULT VALUES;

-- +goose StatementBegin
ALTER TABLE @schema@.sessions
    ADD COLUMN policy          text NOT NULL DEFAULT 'default',
    ADD COLUMN policy_override text;   -- named by the application or an operator
-- +goose StatementEnd

-- +goose StatementBegin
ALTER TABLE @schema@.runs ADD COLUMN policy text, ADD COLUMN policy_version int;   -- 0: that of the configuration
-- +goose StatementEnd

-- +goose StatementBegin
ALTER TABLE @schema@.thresholds
    ADD COLUMN policy text NOT NULL DEFAULT 'default', ADD COLUMN tenant text,
    DROP CONSTRAINT thresholds_pkey, ADD PRIMARY KEY (policy, model_prefix);
-- +goose StatementEnd

-- Policies by content are those of one tenant, or of all.
ALTER TABLE @schema@.policies ADD COLUMN tenant text;

DROP FUNCTION IF EXISTS @schema@.thresholds_of(text);
DROP FUNCTION IF EXISTS @schema@.use_model(@schema@.sessions, text);
DROP FUNCTION IF EXISTS @schema@.free_reasoning(text);
DROP FUNCTION IF EXISTS @schema@.refresh_thresholds(bigint, int);
