-- +goose Up

-- Safe while workers run, but for bulk undos of the version before, which fail from here on: `bulk-undo resume` of this
-- version goes on with them. Workers of the version before run a bulk recompaction as one that an application requested.

-- Bulk undos and bulk recompactions have a table. A recompaction looks at sessions: first_id and next_id are their sids.
ALTER TABLE @schema@.bulk_undos RENAME TO bulk_operations;
ALTER TABLE @schema@.bulk_operations RENAME first_run TO first_id;
ALTER TABLE @schema@.bulk_operations RENAME next_run TO next_id;
ALTER TABLE @schema@.bulk_operations RENAME undone TO done;
-- +goose StatementBegin
ALTER TABLE @schema@.bulk_operations
    ADD COLUMN kind text NOT NULL DEFAULT 'undo' CHECK (kind IN ('undo', 'compact')),
    ADD COLUMN options jsonb NOT NULL DEFAULT '{}';   -- of the runs of a recompaction
-- +goose StatementEnd
ALTER TABLE @schema@.bulk_undo_refusals RENAME TO bulk_refusals;
ALTER TABLE @schema@.bulk_refusals RENAME bulk_undo TO bulk;   -- of a recompaction, run is the last one of the session

ALTER TABLE @schema@.runs ADD COLUMN bulk bigint REFERENCES @schema@.bulk_operations;
-- +goose StatementBegin
ALTER TABLE @schema@.runs DROP CONSTRAINT runs_trigger_check,
    ADD CONSTRAINT runs_trigger_check CHECK (trigger IN ('nightly', 'event', 'operator', 'application', 'bulk')) NOT VALID;
-- +goose StatementEnd
ALTER TABLE @schema@.runs VALIDATE CONSTRAINT runs_trigger_check;
CREATE INDEX runs_bulk ON @schema@.runs (bulk, status, outcome) WHERE bulk IS NOT NULL;

DROP FUNCTION IF EXISTS @schema@.matching_runs(text, jsonb, bigint, bigint);
DROP FUNCTION IF EXISTS @schema@.preview_bulk_undo(text, jsonb);
DROP FUNCTION IF EXISTS @schema@.start_bulk_undo(text, jsonb, boolean, text, text);
DROP FUNCTION IF EXISTS @schema@.cancel_bulk_undo(bigint);

-- A pause may be one of a policy.
ALTER TABLE @schema@.pauses ADD COLUMN policy text NOT NULL DEFAULT '';   -- empty for all
DROP INDEX @schema@.pauses_one;
CREATE UNIQUE INDEX pauses_one ON @schema@.pauses (tenant, model, policy) WHERE resumed_at IS NULL;
-- They have the policy as another argument, which workers of the version before leave out.
DROP FUNCTION IF EXISTS @schema@.paused(text, text);
DROP FUNCTION IF EXISTS @schema@.pause_runs(text, text, text, text);
DROP FUNCTION IF EXISTS @schema@.resume_runs(text, text, text);

-- A session may be the child of another one of its tenant: see functions/children.sql. It seldom changes, so an index of it
-- does not end HOT updates.
ALTER TABLE @schema@.sessions ADD COLUMN parent bigint REFERENCES @schema@.sessions;
CREATE INDEX sessions_parent ON @schema@.sessions (parent, sid) WHERE parent IS NOT NULL;

-- The run of another session that this one is a copy of: see functions/fork.sql.
ALTER TABLE @schema@.runs ADD COLUMN origin bigint;
