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
