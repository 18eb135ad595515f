-- +goose Up

-- Safe while workers and schedulers of the version before run.

-- Which messages of a session are copies of another's: written by fork, and never changed, as an erasure follows the words by
-- it. Without references: it holds where a session of a line is gone.
-- +goose StatementBegin
CREATE TABLE @schema@.forked_from (
    sid    bigint NOT NULL,
    parent bigint NOT NULL,
    seqs   int8multirange NOT NULL,   -- the same in both
    PRIMARY KEY (sid, parent)
);
-- +goose StatementEnd
CREATE INDEX forked_from_parent ON @schema@.forked_from (parent);
-- The forks that there are follow with the functions (functions/fork.sql).

-- Whose words the data of a segment has: those that were restored since, too. Not known of earlier ones. digests are those of
-- what the messages say (functions/digest.sql), in the order of held.
-- +goose StatementBegin
ALTER TABLE @schema@.archive_segments ADD COLUMN held int8multirange NOT NULL DEFAULT '{[1,)}', ADD COLUMN digests bytea[];
-- +goose StatementEnd
DROP FUNCTION IF EXISTS @schema@.add_segment(bigint, int8multirange, bigint, bytea, bytea);   -- it has another argument, with a default

-- The sessions of an erasure, and what was found to repeat the words or may do so, as a list of {session, message, by, holds,
-- erased}.
ALTER TABLE @schema@.erasures ADD COLUMN sids bigint[] NOT NULL DEFAULT '{}', ADD COLUMN repeats jsonb NOT NULL DEFAULT '[]';
DROP FUNCTION IF EXISTS @schema@.erase(text, text, text[], text, text, boolean);
DROP FUNCTION IF EXISTS @schema@.copies_of(bigint, int8multirange, boolean);
DROP FUNCTION IF EXISTS @schema@.archived_copies(text, text, text[]);
DROP FUNCTION IF EXISTS @schema@.erase_rest(bigint);

-- Of a replacement of the view: the last message that it appended.
ALTER TABLE @schema@.runs ADD COLUMN said_until bigint;
