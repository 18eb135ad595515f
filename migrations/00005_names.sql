-- +goose Up

-- Names that operators and applications read become the standard terms: a rewritten message is a
-- replacement (was: stand_in), a cron time a tick (was: slot), and what the last run decided on a
-- decision fingerprint (was: settled). Stop the workers of an earlier version before this one.
-- +goose StatementBegin
ALTER TABLE @schema@.cron_slots RENAME TO cron_ticks;
-- +goose StatementEnd
-- +goose StatementBegin
ALTER TABLE @schema@.cron_ticks RENAME COLUMN slot TO tick;
-- +goose StatementEnd
-- +goose StatementBegin
ALTER TABLE @schema@.sweeps RENAME COLUMN slot TO tick;
-- +goose StatementEnd
-- +goose StatementBegin
ALTER TABLE @schema@.sessions RENAME COLUMN settled TO decision_fingerprint;
-- +goose StatementEnd

-- A function's text names columns without binding them, so each one that does is defined again.
-- +goose StatementBegin
DO $do$
DECLARE
    definition text;
BEGIN
    FOR definition IN
        SELECT pg_get_functiondef(p.oid) FROM pg_proc p
        WHERE p.pronamespace = '@schema@'::regnamespace AND p.prokind = 'f' AND p.prosrc ~ '\m(settled|stand_in)\M'
    LOOP
        EXECUTE regexp_replace(regexp_replace(definition, '\msettled\M', 'decision_fingerprint', 'g'), '\mstand_in\M', 'replacement', 'g');
    END LOOP;
    EXECUTE 'CREATE OR REPLACE VIEW @schema@.messages AS '
        || regexp_replace(pg_get_viewdef('@schema@.messages'::regclass), '\mstand_in\M', 'replacement', 'g');
END $do$;
-- +goose StatementEnd
