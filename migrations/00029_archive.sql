-- +goose Up

-- The words of messages that have long been out of the view, in compressed segments: see functions/archive.sql. Safe while
-- workers and schedulers of the version before run, as long as no policy has words archived.

-- +goose StatementBegin
CREATE TABLE @schema@.archive_segments (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sid        bigint NOT NULL,
    seqs       int8multirange NOT NULL CHECK (NOT isempty(seqs)),   -- whose words are here alone
    codec      text NOT NULL CHECK (codec = 'zstd'),                -- of bodies, each behind its seq and its length as uvarints
    raw_bytes  bigint NOT NULL,
    checksum   bytea NOT NULL,                                      -- SHA-256 of data
    data       bytea,                                               -- null once it was purged
    created_at timestamptz NOT NULL DEFAULT now(),
    purged_at  timestamptz,
    CHECK ((data IS NULL) = (purged_at IS NOT NULL))
);
-- +goose StatementEnd
ALTER TABLE @schema@.archive_segments ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE INDEX archive_segments_session ON @schema@.archive_segments (sid);
CREATE INDEX archive_segments_created ON @schema@.archive_segments (created_at) WHERE data IS NOT NULL;

-- How far the archiver has come, by the age from which on it takes messages.
-- +goose StatementBegin
CREATE TABLE @schema@.archive_cursors (
    after interval PRIMARY KEY,
    run   bigint NOT NULL
);
-- +goose StatementEnd

-- +goose StatementBegin
ALTER TABLE @schema@.sessions
    ADD COLUMN archived    int8multirange NOT NULL DEFAULT '{}',   -- whose words are in no row of message_body
    ADD COLUMN restored_at timestamptz,                            -- the archiver leaves the session alone for a day
    ADD CONSTRAINT sessions_archived_check CHECK (isempty(archived) OR NOT live && archived) NOT VALID;
-- +goose StatementEnd

-- Deletes are looked at by another trigger now, which the functions make with this one.
-- +goose StatementBegin
DO $$
DECLARE
    t regclass;
BEGIN
    FOR t IN SELECT '@schema@.message_body'::regclass UNION ALL SELECT inhrelid FROM pg_inherits WHERE inhparent = '@schema@.message_body'::regclass LOOP
        EXECUTE format('DROP TRIGGER IF EXISTS append_only ON %s', t);
    END LOOP;
END $$;
-- +goose StatementEnd
