-- +goose Up

-- Runs that changed nothing are deleted after a time (scheduler.keep_runs). One that changed a view explains it, and stays: a
-- trigger sees to that, where a reference of the exclusions did, which cost each compaction a look-up and each deleted run
-- a scan of all of them. Safe while workers and schedulers of the version before run.
-- The locks come in the order in which writers take them.
LOCK TABLE @schema@.sweeps, @schema@.bulk_operations, @schema@.runs, @schema@.exclusions, @schema@.policies IN ACCESS EXCLUSIVE MODE;
ALTER TABLE @schema@.exclusions DROP CONSTRAINT IF EXISTS exclusions_run_fkey;
-- These rows are never deleted, and the functions name rows that they have; the look-ups took a tenth of a truncation.
ALTER TABLE @schema@.runs DROP CONSTRAINT IF EXISTS runs_sweep_fkey, DROP CONSTRAINT IF EXISTS runs_policy_hash_fkey, DROP CONSTRAINT IF EXISTS runs_bulk_fkey;
CREATE TRIGGER keep_applied BEFORE DELETE ON @schema@.runs FOR EACH ROW WHEN (OLD.status = 'applied') EXECUTE FUNCTION @schema@.refuse_change();
CREATE INDEX runs_without_effect ON @schema@.runs (ended_at, id) WHERE status IN ('skipped', 'failed');
CREATE INDEX bulk_refusals_run ON @schema@.bulk_refusals (run);
