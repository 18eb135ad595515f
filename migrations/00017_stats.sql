-- +goose Up

-- Safe while workers run: ends of runs and of calls of models wait while the indexes are built, about a second for each
-- million of runs.

-- What ended lately. Rows end about in the order in which they lie in the table, so a summary of each range of pages
-- suffices: of two million runs it takes 2 MB (a B-tree 43 MB), and the last hour of them 12 ms (without an index 940 ms).
-- +goose StatementBegin
CREATE INDEX runs_ended ON @schema@.runs USING brin (ended_at timestamptz_minmax_multi_ops) WITH (pages_per_range = 16, autosummarize = on);
-- +goose StatementEnd
-- +goose StatementBegin
CREATE INDEX summary_calls_ended ON @schema@.summary_calls USING brin (ended_at timestamptz_minmax_multi_ops) WITH (pages_per_range = 16, autosummarize = on);
-- +goose StatementEnd

-- When the session of an event run became due: since then somebody waits for it.
-- +goose StatementBegin
ALTER TABLE @schema@.runs ADD COLUMN written_at timestamptz;
-- +goose StatementEnd
