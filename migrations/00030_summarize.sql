-- +goose Up

-- A large sweep asks autovacuum to summarize more ranges than it takes note of, and each that it does not is a line of the
-- log with the whole statement. A vacuum summarizes them as well, and the newest ones are what is asked for.
ALTER INDEX @schema@.runs_ended SET (autosummarize = off);
ALTER INDEX @schema@.summary_calls_ended SET (autosummarize = off);
