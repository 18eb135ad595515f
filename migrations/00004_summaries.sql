-- +goose Up

-- What models were asked for summaries, and what they answered: one row a call. An answer is
-- here before anything is done with it, under the hash of everything that shaped it, so that
-- it is paid for once; and what was paid is here whatever became of the run.
-- +goose StatementBegin
CREATE TABLE @schema@.summary_calls (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key              text NOT NULL,
    sid              bigint NOT NULL REFERENCES @schema@.sessions,
    run              bigint NOT NULL REFERENCES @schema@.runs,
    fence            bigint NOT NULL,
    -- asked: no answer yet. rejected: answered, but not with a summary. lost: whoever asked died.
    -- forgotten: answered, too long ago for anybody to want the words.
    state            text NOT NULL CHECK (state IN ('asked', 'answered', 'rejected', 'failed', 'lost', 'forgotten')),
    code             text,                   -- why it was rejected or failed
    rejected_in      bigint,                 -- the run that found it to be no summary
    prompt_hash      text NOT NULL,
    model            text,
    finish_reason    text,
    answer           text,
    attempts         int NOT NULL DEFAULT 0, -- requests that were sent for it
    input_tokens     bigint NOT NULL DEFAULT 0,
    cached_tokens    bigint NOT NULL DEFAULT 0,
    output_tokens    bigint NOT NULL DEFAULT 0,
    reasoning_tokens bigint NOT NULL DEFAULT 0,
    cost_micros      bigint NOT NULL DEFAULT 0,
    took_us          bigint,
    asked_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at         timestamptz,
    CHECK ((state = 'asked') = (ended_at IS NULL)),
    CHECK (state NOT IN ('rejected', 'failed') OR code IS NOT NULL)
);
-- +goose StatementEnd

-- One answer a key, or one question on its way.
CREATE UNIQUE INDEX summary_calls_key ON @schema@.summary_calls (key) WHERE state IN ('asked', 'answered');
CREATE INDEX summary_calls_old ON @schema@.summary_calls (ended_at) WHERE answer IS NOT NULL;
CREATE INDEX summary_calls_run ON @schema@.summary_calls (run);

-- A model that failed is left alone for a while, by all workers.
-- +goose StatementBegin
CREATE TABLE @schema@.model_cooldowns (
    model  text PRIMARY KEY,
    until  timestamptz NOT NULL,
    code   text NOT NULL,
    set_at timestamptz NOT NULL DEFAULT now()
);
-- +goose StatementEnd
