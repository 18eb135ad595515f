-- +goose Up

-- Safe while workers of the version before run.

-- The messages whose words were erased. Their rows stay, and in the place of each body is one that says so.
-- +goose StatementBegin
ALTER TABLE @schema@.sessions ADD COLUMN erased int8multirange NOT NULL DEFAULT '{}';
-- +goose StatementEnd

-- Who had what erased, and why: one row a command.
-- +goose StatementBegin
CREATE TABLE @schema@.erasures (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant       text NOT NULL,
    session      text,                        -- null: all sessions of the tenant
    ids          text[],                      -- of messages; null: all of the session
    note         text NOT NULL CHECK (note <> ''),
    requested_by text NOT NULL DEFAULT '',
    requested_at timestamptz NOT NULL DEFAULT now(),
    -- Of a tenant, nothing is erased before a second command confirms it.
    confirmed_by text,
    confirmed_at timestamptz,
    last_sid     bigint NOT NULL DEFAULT 0,   -- of a tenant: the sessions up to this one are erased
    ended_at     timestamptz,
    -- What was erased; of a tenant before it is confirmed, what there was.
    sessions     bigint NOT NULL DEFAULT 0,   -- with those that have copies, as forks do
    messages     bigint NOT NULL DEFAULT 0,
    derived      bigint NOT NULL DEFAULT 0,   -- summaries and replacements
    answers      bigint NOT NULL DEFAULT 0    -- stored answers of models
);
-- +goose StatementEnd

-- The view of an erased session is the same set of messages with other words, so what was planned on it is not to be applied.
-- +goose StatementBegin
ALTER TABLE @schema@.runs DROP CONSTRAINT runs_kind_check,
    ADD CONSTRAINT runs_kind_check CHECK (kind IN ('compact', 'repair', 'undo', 'replace', 'erase'));
-- +goose StatementEnd

-- The planner's statistics keep samples of a column's values, of which none here are of use to it. A change of the type, to
-- the same one, forgets those that there are.
-- +goose StatementBegin
ALTER TABLE @schema@.summary_calls ALTER COLUMN answer SET STATISTICS 0, ALTER COLUMN answer TYPE text;
-- +goose StatementEnd
