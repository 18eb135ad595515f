-- +goose Up

-- Safe while workers and schedulers of the version before run: what starts through them is not counted elsewhere.

-- What a limit is compared with beside the use of this database: see functions/elsewhere.sql.
ALTER TABLE @schema@.spending_limits ADD COLUMN started bigint NOT NULL DEFAULT 0; -- runs, since there is the limit

-- What the other databases of a fleet have used of the limits here, when a scheduler last read it there.
-- +goose StatementBegin
CREATE TABLE @schema@.used_elsewhere (
    tenant       text NOT NULL,
    installation text NOT NULL,    -- the other database, whatever its name …
    database     text NOT NULL,    -- … in the configuration is
    started      bigint NOT NULL,  -- as in its spending_limits
    calls        bigint NOT NULL,
    tokens       bigint NOT NULL,
    hour         bigint NOT NULL,
    day          bigint NOT NULL,
    read_at      timestamptz NOT NULL,
    PRIMARY KEY (tenant, installation)
) WITH (fillfactor = 50);
-- +goose StatementEnd
