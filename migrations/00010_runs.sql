-- +goose Up

-- Safe while workers of an earlier version run: they can end their runs, and claim none until they are replaced.

-- Pinned messages that no valid view can hold as they are, such as a result without its call: a run has decided so.
-- +goose StatementBegin
ALTER TABLE @schema@.sessions ADD COLUMN unholdable int8multirange NOT NULL DEFAULT '{}';
-- +goose StatementEnd

-- Since when a queued run has waited for a worker: since it was queued or last postponed.
-- +goose StatementBegin
ALTER TABLE @schema@.runs ADD COLUMN waiting_since timestamptz NOT NULL DEFAULT now();
-- +goose StatementEnd

-- One request that no worker has taken yet for each session and trigger. A run that comes back from a worker stands
-- beside a request that was made meanwhile, and may ask for something else.
DROP INDEX @schema@.runs_one_queued;
CREATE UNIQUE INDEX runs_one_queued ON @schema@.runs (sid, trigger) WHERE status = 'queued' AND attempts = 0;

CREATE INDEX summary_calls_asked ON @schema@.summary_calls (run) WHERE state = 'asked';

DROP FUNCTION IF EXISTS @schema@.claim_run(bigint, text, interval);
DROP FUNCTION IF EXISTS @schema@.end_run(bigint, bigint, text, bigint, bigint, text[], int8multirange[], int[], int8multirange, int8multirange, json, json);

-- A report that runs had counted down to nothing, with what was appended since on top, says nothing any more.
UPDATE @schema@.sessions SET reported_prompt_tokens = NULL, tokens_since_report = 0 WHERE reported_prompt_tokens = 0;
