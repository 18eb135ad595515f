-- +goose Up

-- Messages are an append-only log; what the model sees of it is the set of
-- ranges in sessions.live. A compaction writes ranges, never message rows.

-- +goose StatementBegin
CREATE TABLE @schema@.sessions (
    sid                    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant                 text NOT NULL DEFAULT 'default',
    id                     text NOT NULL,
    model                  text NOT NULL DEFAULT '',
    labels                 jsonb NOT NULL DEFAULT '{}',
    metadata               jsonb NOT NULL DEFAULT '{}',
    state                  text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'quarantined')),
    quarantine_reason      text,

    -- The view: seqs of the log that are in it. Open-ended, so an append changes nothing here.
    live                   int8multirange NOT NULL DEFAULT '{[1,)}' CHECK (upper_inf(live)),
    pinned                 int8multirange NOT NULL DEFAULT '{}',
    revision               bigint NOT NULL DEFAULT 0,   -- counts the views; run n turns view n-1 into view n
    head_run               bigint,                      -- the run that made the present view
    tail_start_seq         bigint NOT NULL DEFAULT 1,   -- first seq of the last range of live

    -- Counters, kept in the transaction of every write.
    last_seq               bigint NOT NULL DEFAULT 0,
    last_source_seq        bigint NOT NULL DEFAULT 0,
    messages               bigint NOT NULL DEFAULT 0,   -- source messages
    turns                  bigint NOT NULL DEFAULT 0,   -- user messages
    total_tokens           bigint NOT NULL DEFAULT 0,   -- cumulative_tokens of the last source
    live_messages          bigint NOT NULL DEFAULT 0,
    live_tokens            bigint NOT NULL DEFAULT 0,
    live_estimated_tokens  bigint NOT NULL DEFAULT 0,   -- the part of live_tokens that is estimated
    messages_since_run     bigint NOT NULL DEFAULT 0,
    tokens_since_run       bigint NOT NULL DEFAULT 0,
    turns_since_run        bigint NOT NULL DEFAULT 0,
    reported_prompt_tokens bigint,                      -- the provider's own count, …
    tokens_since_report    bigint NOT NULL DEFAULT 0,   -- … and the stored counts behind it
    last_message_at        timestamptz,

    -- Tool calls at the end of the log: what append needs to pair the next result.
    open_calls             text[] NOT NULL DEFAULT '{}',
    open_answered          boolean NOT NULL DEFAULT false,
    open_pending           boolean NOT NULL DEFAULT false,
    suspect_seq            bigint,                      -- the view may be invalid since this seq

    -- Thresholds are written by the policy layer, so that SQL only compares. The stored
    -- boolean is the only indexed one: an index on a changing number ends HOT updates.
    due_tokens             bigint,
    due_messages           bigint,
    due_turns              bigint,
    estimate_margin        real NOT NULL DEFAULT 0,
    policy_hash            text NOT NULL DEFAULT '',
    due                    boolean NOT NULL DEFAULT false,
    settled                text,                        -- fingerprint of what the last run decided on
    hold_seq               bigint NOT NULL DEFAULT 0,   -- after an undo, automatic runs wait for a source beyond it
    ineffective_runs       int NOT NULL DEFAULT 0,
    cooldown_until         timestamptz,
    created_at             timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant, id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
-- +goose StatementEnd

CREATE INDEX sessions_due ON @schema@.sessions (sid) WHERE due;

-- The primary key carries what planning reads, all of fixed width, so that a plan is an
-- index-only scan. No index may name anything that changes; nothing here changes.
-- +goose StatementBegin
CREATE TABLE @schema@.message_log (
    sid               bigint NOT NULL REFERENCES @schema@.sessions,
    seq               bigint NOT NULL,
    position          bigint NOT NULL,        -- order in the view
    cumulative_tokens bigint NOT NULL,        -- of the source messages up to this one
    token_count       int NOT NULL,
    calls             smallint NOT NULL,      -- tool calls the message makes
    flags             smallint NOT NULL,      -- chat.Flags
    role_code         "char" NOT NULL,        -- s u a t d, or o for another role
    kind              "char" NOT NULL CHECK (kind IN ('m', 's', 'i')), -- message, summary, stand-in
    id                text NOT NULL,
    role              text NOT NULL,
    name              text,
    call_ids          text[],
    tool_call_id      text,
    source_id         text,
    counter           text NOT NULL,
    summary_of        int8multirange,
    run               bigint,
    created_at        timestamptz NOT NULL,
    body              text NOT NULL,          -- the message as received, as JSON text
    PRIMARY KEY (sid, seq) INCLUDE (position, cumulative_tokens, token_count, calls, flags, role_code, kind),
    CHECK ((kind = 'm') = (summary_of IS NULL))
) WITH (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 100000,
        autovacuum_analyze_scale_factor = 0.02);
-- +goose StatementEnd

CREATE UNIQUE INDEX message_log_id ON @schema@.message_log (sid, id);

-- Policies by content: a run names the hash of the one it worked under.
-- +goose StatementBegin
CREATE TABLE @schema@.policies (
    hash       text PRIMARY KEY,
    spec       jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
-- +goose StatementEnd

-- What a new session starts with, by the longest prefix of its model's name ('' matches all).
-- +goose StatementBegin
CREATE TABLE @schema@.thresholds (
    model_prefix    text PRIMARY KEY,
    due_tokens      bigint NOT NULL,
    estimate_margin real NOT NULL,
    policy_hash     text NOT NULL
);
-- +goose StatementEnd

-- One sweep is one pass over the fleet; its cursor lets a restarted one go on.
-- +goose StatementBegin
CREATE TABLE @schema@.sweeps (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    entry      text NOT NULL,
    slot       timestamptz NOT NULL,
    cursor_sid bigint NOT NULL DEFAULT 0,
    queued     bigint NOT NULL DEFAULT 0,
    started_at timestamptz NOT NULL DEFAULT now(),
    ended_at   timestamptz,
    UNIQUE (entry, slot)
);
-- +goose StatementEnd

-- The ledger: every run of every session, and the line of the session's views.
-- +goose StatementBegin
CREATE TABLE @schema@.runs (
    id                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sid               bigint NOT NULL REFERENCES @schema@.sessions,
    trigger           text NOT NULL CHECK (trigger IN ('nightly', 'event', 'operator', 'application')),
    kind              text NOT NULL DEFAULT 'compact' CHECK (kind IN ('compact', 'repair', 'undo', 'replace')),
    requested_by      text NOT NULL DEFAULT '',
    options           jsonb,
    sweep             bigint REFERENCES @schema@.sweeps,
    policy_hash       text REFERENCES @schema@.policies,
    status            text NOT NULL DEFAULT 'queued' CHECK (status IN ('queued', 'running', 'applied', 'skipped', 'failed')),
    outcome           text,
    error_code        text,
    error             text CHECK (length(error) <= 500),

    -- Delivery. Redis is a doorbell: a queued run past deliver_at is rung for again.
    delivery          int NOT NULL DEFAULT 0,
    deliver_at        timestamptz NOT NULL DEFAULT now(),
    attempts          int NOT NULL DEFAULT 0,
    snoozes           int NOT NULL DEFAULT 0,
    failures          int NOT NULL DEFAULT 0,
    fence             bigint NOT NULL DEFAULT 0,
    lease_until       timestamptz,
    worker            text,
    queued_at         timestamptz NOT NULL DEFAULT now(),
    started_at        timestamptz,
    ended_at          timestamptz,

    -- What an applied run did to the view.
    in_force          boolean NOT NULL DEFAULT false,
    revision          bigint,
    base_run          bigint,                 -- the head when it was applied
    undoes            bigint,                 -- kind undo: the run it took back, …
    restores          bigint,                 -- … and the run whose view came back (null: the first view)
    snapshot_seq      bigint,
    snapshot_revision bigint,
    applied_seq       bigint,                 -- last_seq before the run's own rows
    live_before       int8multirange,
    live_after        int8multirange,
    appended          int8multirange,
    steps             jsonb,
    messages_before   bigint,
    messages_after    bigint,
    tokens_before     bigint,
    tokens_after      bigint,
    utilization       real,
    plan_us           bigint,
    total_us          bigint,
    CHECK (status <> 'applied' OR (revision IS NOT NULL AND live_before IS NOT NULL AND live_after IS NOT NULL)),
    CHECK (status IN ('queued', 'running') OR outcome IS NOT NULL)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
-- +goose StatementEnd

CREATE UNIQUE INDEX runs_one_running ON @schema@.runs (sid) WHERE status = 'running';
CREATE UNIQUE INDEX runs_one_queued ON @schema@.runs (sid, trigger) WHERE status = 'queued';
CREATE INDEX runs_deliver ON @schema@.runs (deliver_at) WHERE status = 'queued';
CREATE INDEX runs_session ON @schema@.runs (sid, id);

-- Why a message is not in the view: the latest run in force that named it. Never changed.
-- +goose StatementBegin
CREATE TABLE @schema@.exclusions (
    run         bigint NOT NULL REFERENCES @schema@.runs,
    sid         bigint NOT NULL,
    reason      text NOT NULL,
    seqs        int8multirange NOT NULL CHECK (NOT isempty(seqs)),
    summary_seq bigint,
    FOREIGN KEY (sid, summary_seq) REFERENCES @schema@.message_log
);
-- +goose StatementEnd

CREATE INDEX exclusions_session ON @schema@.exclusions (sid, run);

-- One row per session that became due by a write. The relay takes no lock across Redis:
-- it deletes only the generation it saw.
-- +goose StatementBegin
CREATE TABLE @schema@.outbox (
    sid      bigint PRIMARY KEY REFERENCES @schema@.sessions,
    gen      bigint NOT NULL DEFAULT 1,
    first_at timestamptz NOT NULL DEFAULT now(),
    last_at  timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TABLE @schema@.cron_slots (
    entry    text NOT NULL,
    slot     timestamptz NOT NULL,
    fired_by text NOT NULL,
    fired_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (entry, slot)
);
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TABLE @schema@.leader (
    role       text PRIMARY KEY,
    holder     text NOT NULL,
    fence      bigint NOT NULL DEFAULT 1,
    expires_at timestamptz NOT NULL
);
-- +goose StatementEnd

-- The database itself refuses to change what was said.
-- +goose StatementBegin
CREATE FUNCTION @schema@.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%.% is append-only: % refused', TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'restrict_violation',
              HINT = 'Compaction writes ranges of the session, never message rows.';
END $$;
-- +goose StatementEnd

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON @schema@.message_log
    FOR EACH STATEMENT EXECUTE FUNCTION @schema@.refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON @schema@.exclusions
    FOR EACH STATEMENT EXECUTE FUNCTION @schema@.refuse_change();
