-- +goose Up

-- Types and tables. Functions, views, triggers, rights and row-level security are in functions/, which `migrate up`
-- installs after the numbered files.

-- Messages are an append-only log. The set of ranges in sessions.live says which of them the model gets (the view).
-- A compaction writes ranges, never rows of messages.

CREATE TABLE @schema@.sessions (
    sid                    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant                 text NOT NULL DEFAULT 'default',
    id                     text NOT NULL,
    model                  text NOT NULL DEFAULT '',
    labels                 jsonb NOT NULL DEFAULT '{}',
    metadata               jsonb NOT NULL DEFAULT '{}',
    parent                 bigint REFERENCES @schema@.sessions,   -- of the same tenant: functions/children.sql
    created_at             timestamptz NOT NULL DEFAULT now(),

    -- quarantined until there is a new message or another policy. service_managed, as another service keeps the
    -- history, until there are other labels or another policy.
    state                  text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'quarantined', 'service_managed')),
    quarantine_reason      text,
    -- Reported by the application (report_state), as bits: 1 closed, 2 overflow, 4 needs_follow_up, 8 has_pending_input.
    signals                int NOT NULL DEFAULT 0,
    new_signals            int NOT NULL DEFAULT 0,      -- those that no run has read

    -- The view: seqs of the log that are in it. Open-ended, so that an append changes nothing here.
    live                   int8multirange NOT NULL DEFAULT '{[1,)}' CHECK (upper_inf(live)),
    pinned                 int8multirange NOT NULL DEFAULT '{}',
    unholdable             int8multirange NOT NULL DEFAULT '{}', -- pinned, but in no valid view, such as a result without its call
    revision               bigint NOT NULL DEFAULT 0,   -- counts the views; run n turns view n-1 into view n
    head_run               bigint,                      -- the run that made the present view
    view_changed_at        timestamptz,                 -- by a run; null: by none yet
    tail_start_seq         bigint NOT NULL DEFAULT 1,   -- first seq of the last range of live
    -- Messages whose signed reasoning is not in the view. Rows of other messages in these ranges hold none.
    reasoning_out          int8multirange NOT NULL DEFAULT '{}',
    -- reasoning_out is exact from this seq on, as all runs since then knew that the model binds reasoning to the messages
    -- before it. Null: the last run knew that it does not.
    reasoning_since        bigint DEFAULT 0,
    repeated_ids           boolean NOT NULL DEFAULT false, -- a message has two calls with one id: the view gives them different ones
    parallel               boolean NOT NULL DEFAULT false, -- calls are batches of several messages (chat.Parallel), which the view merges
    suspect_seq            bigint,                      -- the view may be invalid since this seq

    -- Messages whose content is not in message_body.
    erased                 int8multirange NOT NULL DEFAULT '{}', -- replaced by a body that says so; the rows stay
    archived               int8multirange NOT NULL DEFAULT '{}', -- in archive_segments
    restored_at            timestamptz,                 -- the archiver skips the session for a day

    -- Counters, updated in the transaction of every write.
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
    reported_prompt_tokens bigint,                      -- the provider's own count
    tokens_since_report    bigint NOT NULL DEFAULT 0,   -- the stored counts of the messages after it
    last_message_at        timestamptz,

    -- Tool calls at the end of the log: append needs them to pair the next result.
    open_calls             text[] NOT NULL DEFAULT '{}',
    open_answered          boolean NOT NULL DEFAULT false,
    open_pending           boolean NOT NULL DEFAULT false,

    -- Thresholds are written by the policy layer, so that SQL only compares: a copy of a row of thresholds, which is
    -- renewed at the next write if its revision is another one (functions/policy.sql).
    policy                 text NOT NULL DEFAULT 'default',
    policy_override        text,                        -- named by the application or an operator
    policy_hash            text NOT NULL DEFAULT '',
    thresholds_revision    bigint NOT NULL DEFAULT 0,
    estimate_margin        real NOT NULL DEFAULT 0,
    due_tokens             bigint,
    due_messages           bigint,
    due_turns              bigint,
    due_new_tokens         bigint,                      -- of tokens_since_run
    due_live_messages      bigint,
    due_signals            int NOT NULL DEFAULT 0,
    -- A trigger that waits for the session to be idle for so many seconds, with a context above so many tokens: the
    -- scheduler checks it then (check_times). An append sets next_check_at only where there is none.
    due_idle               bigint,
    due_idle_tokens        bigint,
    due_age                bigint,                      -- seconds since created_at, and
    due_since_run          bigint,                      -- since view_changed_at: from then on due_idle_tokens counts as due_tokens
    next_check_at          timestamptz,
    timed                  boolean NOT NULL DEFAULT false, -- due by such a check
    checked_seq            bigint,                      -- a run found that no trigger holds: thresholds count for later messages

    -- The stored boolean is the only one of these that is indexed: an index on a number that changes ends HOT updates.
    due                    boolean NOT NULL DEFAULT false,
    due_since              timestamptz,

    -- Written by runs. They hold back the next one.
    decision_fingerprint   text,                        -- of the input of the last run's decision
    hold_seq               bigint NOT NULL DEFAULT 0,   -- after an undo, automatic runs wait for a source beyond it
    loop_seq               bigint,                      -- the last seq that a run read which waits for the end of a tool loop
    awaits_answer          boolean NOT NULL DEFAULT false, -- loop_seq waits for the agent's answer, too
    cooldown_until         timestamptz,
    hold_code              text,                        -- the guard that set cooldown_until; null: a run that gained nothing
    ineffective_runs       int NOT NULL DEFAULT 0,
    low_gain_runs          int NOT NULL DEFAULT 0,      -- the latest automatic runs in a row that saved little
    UNIQUE (tenant, id),
    CONSTRAINT sessions_archived_check CHECK (isempty(archived) OR NOT live && archived)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);

-- No index has a column that an append changes, which would end HOT updates.
CREATE INDEX sessions_due ON @schema@.sessions (sid) WHERE due;
CREATE INDEX sessions_due_of_tenant ON @schema@.sessions (tenant, sid) WHERE due;
CREATE INDEX sessions_next_check ON @schema@.sessions (next_check_at) WHERE next_check_at IS NOT NULL;
CREATE INDEX sessions_parent ON @schema@.sessions (parent, sid) WHERE parent IS NOT NULL;
CREATE INDEX sessions_waiting ON @schema@.sessions (tenant, sid) WHERE state <> 'active' OR hold_seq > 0 OR loop_seq IS NOT NULL;

-- The primary key includes what planning reads, all of fixed width, so that a plan is an index-only scan.
CREATE TABLE @schema@.message_log (
    sid               bigint NOT NULL REFERENCES @schema@.sessions,
    seq               bigint NOT NULL,
    position          bigint NOT NULL,        -- order in the view
    cumulative_tokens bigint NOT NULL,        -- of the source messages up to this one
    token_count       int NOT NULL,
    calls             smallint NOT NULL,      -- tool calls of the message
    flags             smallint NOT NULL,      -- chat.Flags
    role_code         "char" NOT NULL,        -- s u a t d, or o for another role
    kind              "char" NOT NULL CHECK (kind IN ('m', 's', 'i')), -- message, summary, replacement
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
    reasoning_tokens  int,                    -- the part of token_count that signed reasoning takes; null where there is none
    digest            bytea NOT NULL,         -- of the message as it was stored: message_digest, set by a trigger
    body_digest       bytea NOT NULL,
    PRIMARY KEY (sid, seq) INCLUDE (position, cumulative_tokens, token_count, calls, flags, role_code, kind),
    CHECK ((kind = 'm') = (summary_of IS NULL))
) WITH (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 100000,
        autovacuum_analyze_scale_factor = 0.02);
CREATE UNIQUE INDEX message_log_id ON @schema@.message_log (sid, id);

-- The content of messages, apart from the columns that planning reads, so that archiving, purging and erasing rewrite
-- nothing else. No references, which cost a batch a sixth of its time: the row of message_log has them.
-- Archived rows leave space once a vacuum has passed; by default one comes when a fifth of a table is dead.
CREATE TABLE @schema@.message_body (
    sid  bigint NOT NULL,
    seq  bigint NOT NULL,
    body text NOT NULL,          -- the message as received, as JSON text
    PRIMARY KEY (sid, seq)
) WITH (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 100000,
        autovacuum_analyze_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02);

-- The content of messages that have long been out of the view, in compressed segments: functions/archive.sql.
CREATE TABLE @schema@.archive_segments (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sid          bigint NOT NULL,
    seqs         int8multirange NOT NULL CHECK (NOT isempty(seqs)), -- whose content is here alone
    held         int8multirange NOT NULL,                           -- whose content data has: those restored since, too
    codec        text NOT NULL CHECK (codec = 'zstd'),              -- of bodies, each after its seq and its length as uvarints
    raw_bytes    bigint NOT NULL,
    checksum     bytea NOT NULL,                                    -- SHA-256 of data
    digests      bytea[],                                           -- said_digest of the messages, in the order of held
    data         bytea,                                             -- null once it was purged
    created_at   timestamptz NOT NULL DEFAULT now(),
    purged_at    timestamptz,
    purged_after interval,                                          -- the age at which the policy had it purged
    CHECK ((data IS NULL) = (purged_at IS NOT NULL))
);
ALTER TABLE @schema@.archive_segments ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE INDEX archive_segments_session ON @schema@.archive_segments (sid);
CREATE INDEX archive_segments_created ON @schema@.archive_segments (created_at) WHERE data IS NOT NULL;

-- The last run that the archiver has read, by the age from which on it takes messages.
CREATE TABLE @schema@.archive_cursors (
    after interval PRIMARY KEY,
    run   bigint NOT NULL
);

-- The same of the archiver for a disk budget (scheduler.disk_budget).
CREATE TABLE @schema@.disk_passes (
    one      boolean PRIMARY KEY DEFAULT true CHECK (one),
    run      bigint NOT NULL,
    words    bigint NOT NULL,                     -- bytes of message_body when rows of it were last deleted
    freed    bigint NOT NULL,                     -- bytes of these rows that were not used again until then
    moved_at timestamptz NOT NULL DEFAULT now()
);

-- Which messages of a session are copies of another's: written by fork and never changed, as an erasure follows the
-- content by it. No references: it holds where a session of a line is gone.
CREATE TABLE @schema@.forked_from (
    sid    bigint NOT NULL,
    parent bigint NOT NULL,
    seqs   int8multirange NOT NULL,   -- the same in both
    PRIMARY KEY (sid, parent)
);
CREATE INDEX forked_from_parent ON @schema@.forked_from (parent);

-- Erasures: who had which messages erased, and why. One row a command.
CREATE TABLE @schema@.erasures (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant       text NOT NULL,
    session      text,                        -- null: all sessions of the tenant
    ids          text[],                      -- of messages; null: all of the session
    note         text NOT NULL CHECK (note <> ''),
    requested_by text NOT NULL DEFAULT '',
    requested_at timestamptz NOT NULL DEFAULT now(),
    -- Of a tenant, nothing is erased before a second command confirms it.
    confirmed_by text,
    confirmed_at timestamptz,
    last_sid     bigint NOT NULL DEFAULT 0,   -- of a tenant: the sessions up to this one are erased
    ended_at     timestamptz,
    -- Counts of what was erased; of a tenant before it is confirmed, of what there was.
    sessions     bigint NOT NULL DEFAULT 0,   -- with those that have copies, as forks do
    messages     bigint NOT NULL DEFAULT 0,
    derived      bigint NOT NULL DEFAULT 0,   -- summaries and replacements
    answers      bigint NOT NULL DEFAULT 0,   -- stored answers of models
    sids         bigint[] NOT NULL DEFAULT '{}',
    repeats      jsonb NOT NULL DEFAULT '[]'  -- messages that repeat the content or may do so: {session, message, by, holds, erased}
);

-- Children that were reported as closed, until their parents are notified: functions/report_state.sql. No reference to the
-- parent, which has one from the child.
CREATE TABLE @schema@.closed_children (
    parent bigint NOT NULL,
    sid    bigint NOT NULL REFERENCES @schema@.sessions,
    PRIMARY KEY (parent, sid)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- The ledger: every run of every session, and the history of the session's views. No references to sweeps, policies and
-- bulk operations, whose rows are never deleted: the look-ups took a tenth of the time of a truncation.
-- Runs that changed nothing are deleted after a time (scheduler.keep_runs); one that changed a view explains it, and stays.
CREATE TABLE @schema@.runs (
    id                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sid               bigint NOT NULL REFERENCES @schema@.sessions,
    trigger           text NOT NULL CHECK (trigger IN ('nightly', 'event', 'operator', 'application', 'bulk')),
    kind              text NOT NULL DEFAULT 'compact' CHECK (kind IN ('compact', 'repair', 'undo', 'replace', 'erase')),
    requested_by      text NOT NULL DEFAULT '',
    options           jsonb,
    sweep             bigint,
    bulk              bigint,
    origin            bigint,                 -- the run of another session that this one is a copy of: functions/fork.sql
    policy            text,
    policy_version    int,                    -- 0: that of the configuration
    policy_hash       text,
    status            text NOT NULL DEFAULT 'queued' CHECK (status IN ('queued', 'running', 'applied', 'skipped', 'failed')),
    outcome           text,
    error_code        text,
    error             text CHECK (length(error) <= 500),
    fired             text,                   -- the trigger of the policy that held when the run began; null without one

    -- Delivery. Redis only announces runs: a queued run past deliver_at is announced again.
    delivery          int NOT NULL DEFAULT 0,
    deliver_at        timestamptz NOT NULL DEFAULT now(),
    turn_of           text NOT NULL DEFAULT '', -- the tenant of a request of an application, as tenants take turns
    attempts          int NOT NULL DEFAULT 0,
    snoozes           int NOT NULL DEFAULT 0,
    failures          int NOT NULL DEFAULT 0,
    fence             bigint NOT NULL DEFAULT 0,
    lease_until       timestamptz,
    worker            text,
    queued_at         timestamptz NOT NULL DEFAULT now(),
    waiting_since     timestamptz NOT NULL DEFAULT now(), -- for a worker: queued or last postponed then
    written_at        timestamptz,            -- when the session of an event run became due
    -- The W3C trace context of the request, or of the latest write with one: the setting compactor.traceparent.
    traceparent       text DEFAULT substring(current_setting('compactor.traceparent', true) from '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$'),
    started_at        timestamptz,
    ended_at          timestamptz,

    -- The change of the view by an applied run.
    in_force          boolean NOT NULL DEFAULT false,
    revision          bigint,
    base_run          bigint,                 -- the head when it was applied
    undoes            bigint,                 -- kind undo: the run that it undid
    restores          bigint,                 -- kind undo: the run whose view is in force again; null: the first view
    snapshot_seq      bigint,
    snapshot_revision bigint,
    applied_seq       bigint,                 -- last_seq before the run's own rows
    said_until        bigint,                 -- kind replace: the last message that it appended
    live_before       int8multirange,
    live_after        int8multirange,         -- live_before without the exclusions of the run, with included
    included          int8multirange,         -- brought back into the view; null for an undo, whose view follows from its run
    appended          int8multirange,
    -- reasoning_out is reasoning_before + reasoning_taken then; for an undo, the reasoning_before of the run that it
    -- undoes + reasoning_taken.
    reasoning_before  int8multirange,
    reasoning_taken   int8multirange,
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

CREATE INDEX runs_session ON @schema@.runs (sid, id);
CREATE INDEX runs_active ON @schema@.runs (sid) WHERE status IN ('queued', 'running');
CREATE UNIQUE INDEX runs_one_running ON @schema@.runs (sid) WHERE status = 'running';
-- Of the runs that no worker has taken yet, a session has one each for an application and an operator, and one automatic
-- run, whoever queued it. A run that a worker gave back may be beside a later request, which may ask for something else.
CREATE UNIQUE INDEX runs_one_requested ON @schema@.runs (sid, trigger)
    WHERE status = 'queued' AND attempts = 0 AND trigger IN ('application', 'operator');
CREATE UNIQUE INDEX runs_one_automatic ON @schema@.runs (sid)
    WHERE status = 'queued' AND attempts = 0 AND trigger IN ('nightly', 'event');
-- By trigger, so that many requests of applications do not keep a run of an operator waiting.
CREATE INDEX runs_deliver ON @schema@.runs (trigger, deliver_at) WHERE status = 'queued';
CREATE INDEX runs_requested ON @schema@.runs (turn_of, deliver_at) WHERE status = 'queued' AND trigger = 'application';
CREATE INDEX runs_sweep ON @schema@.runs (sweep, status, outcome) WHERE sweep IS NOT NULL;
CREATE INDEX runs_bulk ON @schema@.runs (bulk, status, outcome) WHERE bulk IS NOT NULL;
CREATE INDEX runs_without_effect ON @schema@.runs (ended_at, id) WHERE status IN ('skipped', 'failed');
-- Runs end about in the order in which they lie in the table, so a summary of each range of pages suffices: of two million
-- runs it takes 2 MB (a B-tree 43 MB), and the last hour of them 12 ms (without an index 940 ms). A vacuum summarizes new
-- ranges; with autosummarize, a large sweep would ask for more than autovacuum notes, each a line in the server's log.
CREATE INDEX runs_ended ON @schema@.runs USING brin (ended_at timestamptz_minmax_multi_ops) WITH (pages_per_range = 16, autosummarize = off);

-- Why a message is not in the view: the latest run in force that named it. Never changed. No reference to runs, which
-- would cost each compaction a look-up and each deleted run a scan.
CREATE TABLE @schema@.exclusions (
    run         bigint NOT NULL,
    sid         bigint NOT NULL,
    reason      text NOT NULL,
    seqs        int8multirange NOT NULL CHECK (NOT isempty(seqs)),
    summary_seq bigint,
    FOREIGN KEY (sid, summary_seq) REFERENCES @schema@.message_log
);
CREATE INDEX exclusions_session ON @schema@.exclusions (sid, run);

-- One row per session that became due by a write. The relay takes no lock while it waits for Redis: it deletes only the
-- generation that it read. The table is empty most of the time; each vacuum would give its pages back to the file
-- system, under a lock that all writers wait for (vacuum_truncate).
CREATE TABLE @schema@.outbox (
    sid      bigint PRIMARY KEY REFERENCES @schema@.sessions,
    tenant   text NOT NULL DEFAULT '',   -- tenants take turns: the function turns in store/turns.go
    gen      bigint NOT NULL DEFAULT 1,
    first_at timestamptz NOT NULL DEFAULT now(),
    last_at  timestamptz NOT NULL DEFAULT now(),
    traceparent text DEFAULT substring(current_setting('compactor.traceparent', true) from '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$')   -- for the run
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, vacuum_truncate = false);
CREATE INDEX outbox_turns ON @schema@.outbox (tenant, first_at);

-- Sessions and runs that wait for the limit of runs of their tenant.
CREATE TABLE @schema@.throttled (
    sid    bigint NOT NULL,             -- no reference, which would wait for the holder of the session's lock
    run    bigint NOT NULL DEFAULT 0,   -- that an application requested; 0: an event, whose run is not queued yet
    tenant text NOT NULL,
    since  timestamptz NOT NULL,
    traceparent text,                   -- of an event, from the outbox
    PRIMARY KEY (sid, run)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, vacuum_truncate = false);
CREATE INDEX throttled_tenant ON @schema@.throttled (tenant, since);

-- Requests to models for summaries, and their answers: one row a call. An answer is stored before anything is done with
-- it, under the hash of everything that shaped it, so that it is paid for once; and its cost is here whatever became of
-- the run.
CREATE TABLE @schema@.summary_calls (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key              text NOT NULL,
    sid              bigint NOT NULL REFERENCES @schema@.sessions,
    run              bigint NOT NULL REFERENCES @schema@.runs,
    fence            bigint NOT NULL,
    -- asked: no answer yet. rejected: answered, but not with a summary. lost: the worker that asked died.
    -- forgotten: answered so long ago that the answer was deleted.
    state            text NOT NULL CHECK (state IN ('asked', 'answered', 'rejected', 'failed', 'lost', 'forgotten')),
    code             text,                   -- why it was rejected or failed
    rejected_in      bigint,                 -- the run that found it to be no summary
    prompt_hash      text NOT NULL,
    model            text,
    finish_reason    text,
    answer           text,
    -- Answer of the model's server to the last attempt that failed: llm.ServerError.
    http_status      int,
    server_error     text,
    attempts         int NOT NULL DEFAULT 0, -- requests that were sent for it
    estimated        int NOT NULL DEFAULT 0, -- those of them whose tokens are estimated, as the server reported none
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
-- The planner's statistics would keep samples of the answers, which are of no use to it.
ALTER TABLE @schema@.summary_calls ALTER COLUMN answer SET STATISTICS 0;
-- One answer a key, or one question on its way.
CREATE UNIQUE INDEX summary_calls_key ON @schema@.summary_calls (key) WHERE state IN ('asked', 'answered');
CREATE INDEX summary_calls_old ON @schema@.summary_calls (ended_at) WHERE answer IS NOT NULL;
CREATE INDEX summary_calls_spent ON @schema@.summary_calls (ended_at) WHERE attempts > 0;
CREATE INDEX summary_calls_run ON @schema@.summary_calls (run);
CREATE INDEX summary_calls_asked ON @schema@.summary_calls (run) WHERE state = 'asked';
CREATE INDEX summary_calls_ended ON @schema@.summary_calls USING brin (ended_at timestamptz_minmax_multi_ops)
    WITH (pages_per_range = 16, autosummarize = off);   -- as runs_ended

-- A model that failed is not asked for a while, by any worker.
CREATE TABLE @schema@.model_cooldowns (
    model  text PRIMARY KEY,
    until  timestamptz NOT NULL,
    code   text NOT NULL,
    set_at timestamptz NOT NULL DEFAULT now()
);

-- Provider counts of prompts (report_usage), beside the stored counts of the messages in them: functions/calibration.sql.
CREATE TABLE @schema@.calibrations (
    tenant     text NOT NULL,
    model      text NOT NULL,              -- as model_key has it
    counted    bigint[] NOT NULL,          -- of the latest reports, the newest first: the stored counts
    reported   bigint[] NOT NULL,          -- and the provider's
    reports    bigint NOT NULL,            -- all that were learned from
    overhead   bigint,                     -- a prompt has overhead + scale * counted tokens; null: too few reports
    scale      double precision,
    deviation  real,                       -- the median relative deviation of the latest reports from that
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, model)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- Limits of runs and of calls of models: functions/spending.sql and functions/run_limit.sql.
CREATE TABLE @schema@.spending_limits (
    tenant          text PRIMARY KEY,                      -- empty: all together
    micros_per_hour bigint CHECK (micros_per_hour >= 0),   -- millionths of the unit that prices are in; null: no limit
    micros_per_day  bigint CHECK (micros_per_day >= 0),
    calls_per_hour  bigint CHECK (calls_per_hour >= 0),
    tokens_per_hour bigint CHECK (tokens_per_hour >= 0),
    runs_per_second double precision CHECK (runs_per_second > 0 AND runs_per_second <= 1e6),
    full_at         timestamptz NOT NULL DEFAULT now(),    -- from then on, the runs of a second may start at once
    started         bigint NOT NULL DEFAULT 0,             -- runs, since there is the limit
    note            text NOT NULL DEFAULT '',
    changed_by      text NOT NULL DEFAULT '',
    changed_at      timestamptz NOT NULL DEFAULT now(),
    CHECK (coalesce(micros_per_hour, micros_per_day, calls_per_hour, tokens_per_hour, runs_per_second) IS NOT NULL)
);

-- Use by calls of models in a minute that has passed, by tenant, and of all together with an empty one: a check of a limit
-- reads these and the calls of the last minutes, and not those of a day. A scheduler sums them up.
CREATE TABLE @schema@.spending_minutes (
    tenant    text NOT NULL,
    minute    timestamptz NOT NULL,
    calls     bigint NOT NULL,
    tokens    bigint NOT NULL,
    micros    bigint NOT NULL,
    estimated bigint NOT NULL DEFAULT 0,   -- calls whose tokens are estimated
    PRIMARY KEY (tenant, minute) INCLUDE (calls, tokens, micros)
);

-- Use of the limits by the other databases of a fleet, when a scheduler last read it there: functions/elsewhere.sql.
CREATE TABLE @schema@.used_elsewhere (
    tenant       text NOT NULL,
    installation text NOT NULL,    -- the other database, whatever its name in the configuration is
    database     text NOT NULL,    -- that name
    started      bigint NOT NULL,  -- as in its spending_limits
    calls        bigint NOT NULL,
    tokens       bigint NOT NULL,
    hour         bigint NOT NULL,
    day          bigint NOT NULL,
    read_at      timestamptz NOT NULL,
    PRIMARY KEY (tenant, installation)
) WITH (fillfactor = 50);

-- Policies by content: a run names the hash of the one in force when it ran. Of one tenant, or of all.
CREATE TABLE @schema@.policies (
    hash       text PRIMARY KEY,
    spec       jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    tenant     text
);

-- Named policies as they were applied, never changed: a change is another version.
CREATE TABLE @schema@.policy_versions (
    name       text NOT NULL CHECK (name ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
    version    int NOT NULL,
    hash       text NOT NULL,               -- of the spec
    spec       jsonb NOT NULL,              -- as policy.Spec writes it
    match      jsonb NOT NULL DEFAULT '{}', -- tenant, model (a prefix) and labels, which a session must have
    extends    text NOT NULL DEFAULT '',    -- the policy that it inherits from
    base_hash  text NOT NULL DEFAULT '',    -- the hash of that policy when this one was applied
    given      jsonb NOT NULL DEFAULT '[]', -- the settings that the version itself gives
    note       text NOT NULL DEFAULT '',
    created_by text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    tenant     text GENERATED ALWAYS AS (match->>'tenant') STORED,
    PRIMARY KEY (name, version)
);

-- The version in force of each policy; one that is disabled has no row. The match is that of the version, as sessions are
-- compared with it: policy_of.
CREATE TABLE @schema@.policy_heads (
    name         text PRIMARY KEY,
    version      int NOT NULL,
    keys         int NOT NULL,   -- in the match
    tenant       text,
    model_prefix text,           -- in lower case
    labels       jsonb NOT NULL,
    FOREIGN KEY (name, version) REFERENCES @schema@.policy_versions
);

-- Who put which version in force; null: the policy was disabled.
CREATE TABLE @schema@.policy_changes (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text NOT NULL,
    version    int,
    changed_by text NOT NULL DEFAULT '',
    changed_at timestamptz NOT NULL DEFAULT now(),
    tenant     text
);

-- Which sessions follow the policies by now: functions/refresh_policies.sql.
CREATE TABLE @schema@.policy_refresh (
    only_row    boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    wanted      bigint NOT NULL DEFAULT 1,      -- counts the changes of policies
    revision    bigint NOT NULL DEFAULT 0,      -- the wanted of the present pass
    reached     bigint NOT NULL DEFAULT 0,      -- all sessions follow the policies of this one
    cursor_sid  bigint NOT NULL DEFAULT 0,      -- the pass has read the sessions up to this one
    last_sid    bigint NOT NULL DEFAULT 0,      -- of those up to this one
    skipped_sid bigint,                         -- the first that another transaction held
    older       text[] NOT NULL DEFAULT '{}',   -- transactions that may create sessions under the policies before
    final       boolean NOT NULL DEFAULT false, -- none of them was left when the pass began
    changed     bigint NOT NULL DEFAULT 0,      -- sessions, by all passes of the revision
    changed_at  timestamptz NOT NULL DEFAULT now(),
    reached_at  timestamptz
) WITH (fillfactor = 50);
INSERT INTO @schema@.policy_refresh DEFAULT VALUES;

-- The thresholds of a policy, by the longest prefix of the model's name ('' matches all). Sessions have copies of them.
-- No two policies share a revision but 0.
CREATE TABLE @schema@.thresholds (
    policy            text NOT NULL DEFAULT 'default',
    model_prefix      text NOT NULL,
    tenant            text,
    policy_hash       text NOT NULL,
    revision          bigint NOT NULL DEFAULT 0,   -- policy_refresh.wanted when they were set
    former            bigint NOT NULL DEFAULT 0,   -- the revision before it that all sessions followed
    estimate_margin   real NOT NULL,
    free_reasoning    boolean NOT NULL DEFAULT false,
    due_tokens        bigint NOT NULL,
    due_messages      bigint,
    due_turns         bigint,
    due_new_tokens    bigint,
    due_live_messages bigint,
    due_signals       int,
    due_idle          bigint,
    due_idle_tokens   bigint,
    due_age           bigint,
    due_since_run     bigint,
    PRIMARY KEY (policy, model_prefix)
);

-- The strategies that workers have registered, with the names of their parameters. Rows stay: a request is checked
-- against all that any worker has known, and a worker that does not know a strategy ends the run as invalid_options.
CREATE TABLE @schema@.strategies (
    name          text PRIMARY KEY,
    params        text[] NOT NULL,
    registered_at timestamptz NOT NULL DEFAULT now()
);

-- A sweep is one pass over the due sessions of the fleet, which operators can pause and cancel: functions/sweep.sql.
CREATE TABLE @schema@.sweeps (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    entry          text NOT NULL,
    tick           timestamptz NOT NULL,
    tenant         text NOT NULL DEFAULT '',     -- the only one that it goes over; empty for all
    status         text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'paused', 'done', 'cancelled', 'stopped')),
    reason         text NOT NULL DEFAULT '',     -- why it has its status: a code, or the note of an operator
    changed_by     text NOT NULL DEFAULT '',     -- who gave it its status; empty for the scheduler
    changed_at     timestamptz NOT NULL DEFAULT now(),
    requested_by   text NOT NULL DEFAULT '',
    note           text NOT NULL DEFAULT '',     -- of the person who requested it
    started_at     timestamptz NOT NULL DEFAULT now(),
    window_end     timestamptz,                  -- it stops then; null: never
    ended_at       timestamptz,
    released       boolean NOT NULL DEFAULT false, -- sessions that were due when it ended do not wait any more
    worked         interval NOT NULL DEFAULT '0', -- how long it was open, up to changed_at
    due            bigint,                       -- sessions that were due when it began; null: it has not begun
    queued         bigint NOT NULL DEFAULT 0,
    left_out       bigint NOT NULL DEFAULT 0,    -- sessions with a run of their own, in a cooldown, or paused
    canary_share   double precision CHECK (canary_share > 0 AND canary_share <= 1), -- of the due sessions, which come first; null: none
    canary         bigint,                       -- their number, until all of their runs have ended and the rest may follow
    stop_share     real NOT NULL DEFAULT 0.5,    -- it stops if more of its latest runs than this failed
    check_at       bigint NOT NULL DEFAULT 100,  -- number of queued runs at which that is checked again
    checked        bigint NOT NULL DEFAULT 0,    -- how many had ended at the last check
    checked_bad    bigint NOT NULL DEFAULT 0,    -- how many of these had failed
    pause_schedule boolean NOT NULL DEFAULT false, -- a stop for failures pauses the schedule
    UNIQUE (entry, tick)
);

-- The position of a sweep with each tenant. Rows are deleted when the sweep ends for good.
CREATE TABLE @schema@.sweep_tenants (
    sweep      bigint NOT NULL REFERENCES @schema@.sweeps,
    tenant     text NOT NULL,
    due        bigint NOT NULL,             -- sessions that were due when the sweep began
    seen       bigint NOT NULL DEFAULT 0,   -- sessions that it has passed
    cursor_sid bigint NOT NULL DEFAULT 0,
    turn       bigint NOT NULL DEFAULT 0,   -- pages that the tenant had a share of
    passed     boolean NOT NULL DEFAULT false,
    PRIMARY KEY (sweep, tenant)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX sweep_tenants_turn ON @schema@.sweep_tenants (sweep, turn, tenant) WHERE NOT passed;

-- Fired ticks of schedules: functions/schedule.sql.
CREATE TABLE @schema@.cron_ticks (
    entry    text NOT NULL,
    tick     timestamptz NOT NULL,
    outcome  text NOT NULL DEFAULT 'fired' CHECK (outcome IN ('fired', 'coalesced', 'overlap', 'paused', 'missed')),
    source   text NOT NULL DEFAULT 'schedule' CHECK (source IN ('schedule', 'operator', 'backfill')),
    sweep    bigint,                        -- the one that it started, or that counts for it
    fired_by text NOT NULL,
    fired_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (entry, tick)
);

-- Pauses of schedules, by operators or for failures, with those that have ended.
CREATE TABLE @schema@.schedule_pauses (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    schedule     text NOT NULL,
    note         text NOT NULL,
    requested_by text NOT NULL,             -- empty for the scheduler
    paused_at    timestamptz NOT NULL DEFAULT now(),
    resumed_at   timestamptz,
    resumed_by   text
);
CREATE UNIQUE INDEX schedule_pauses_one ON @schema@.schedule_pauses (schedule) WHERE resumed_at IS NULL;

-- Pauses of runs by operators, with those that have ended: functions/pause.sql. An empty tenant, model or policy is all.
CREATE TABLE @schema@.pauses (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant       text NOT NULL,
    model        text NOT NULL,             -- a prefix, in lower case
    policy       text NOT NULL DEFAULT '',
    note         text NOT NULL,
    requested_by text NOT NULL,
    paused_at    timestamptz NOT NULL DEFAULT now(),
    resumed_at   timestamptz,
    resumed_by   text
);
CREATE UNIQUE INDEX pauses_one ON @schema@.pauses (tenant, model, policy) WHERE resumed_at IS NULL;

-- Undos of many runs and recompactions of many sessions, which continue after an interruption: functions/bulk.sql.
CREATE TABLE @schema@.bulk_operations (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind         text NOT NULL DEFAULT 'undo' CHECK (kind IN ('undo', 'compact')),
    tenant       text NOT NULL,                -- empty for all
    filter       jsonb NOT NULL,               -- see matching_runs
    options      jsonb NOT NULL DEFAULT '{}',  -- of the runs of a recompaction
    cascade      boolean NOT NULL,             -- later runs of a session are undone with the one that matches
    note         text NOT NULL DEFAULT '',
    requested_by text NOT NULL DEFAULT '',
    requested_at timestamptz NOT NULL DEFAULT now(),
    status       text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'done', 'cancelled', 'stopped')),
    ended_at     timestamptz,
    first_id     bigint NOT NULL,              -- runs, or the sids of a recompaction: those from next_id down to
    next_id      bigint NOT NULL,              -- first_id are still to be read
    matched      bigint NOT NULL,              -- at the beginning
    done         bigint NOT NULL DEFAULT 0,
    refused      bigint NOT NULL DEFAULT 0,
    stop_share   real NOT NULL DEFAULT 0.5,    -- the same as of a sweep
    check_at     bigint NOT NULL DEFAULT 100,
    checked      bigint NOT NULL DEFAULT 0,
    checked_bad  bigint NOT NULL DEFAULT 0
);

-- The runs that a bulk undo matched when it was started; later ones are not undone. No references, which cost each start
-- as much again.
CREATE TABLE @schema@.bulk_undo_runs (
    bulk bigint NOT NULL,
    run  bigint NOT NULL,
    sid  bigint NOT NULL,   -- of the run, for row-level security
    PRIMARY KEY (bulk, run)
);

-- The runs that stayed in force, and why; of a recompaction, the last run of each session that was left out.
CREATE TABLE @schema@.bulk_refusals (
    bulk bigint NOT NULL REFERENCES @schema@.bulk_operations,
    run  bigint NOT NULL REFERENCES @schema@.runs,
    sid  bigint NOT NULL,   -- of the run; no reference, which would wait for the holder of the session's lock
    code text NOT NULL,
    PRIMARY KEY (bulk, run)
);
CREATE INDEX bulk_refusals_run ON @schema@.bulk_refusals (run);

-- Leases: one process is the leader of a role.
CREATE TABLE @schema@.leader (
    role               text PRIMARY KEY,
    holder             text NOT NULL,
    fence              bigint NOT NULL DEFAULT 1,
    expires_at         timestamptz NOT NULL,
    renewed_at         timestamptz,                    -- when the lease was taken or renewed last
    queue_away_since   timestamptz,                    -- Redis does not answer the leader
    workers_away_since timestamptz,                    -- no worker serves the queues
    clock_back         interval NOT NULL DEFAULT '0',  -- the clock was set back by so much: functions/clock.sql
    clock_sid          bigint NOT NULL DEFAULT 0       -- times are corrected up to this session
);

-- Logins that belong to one tenant: their connections reach no other. This table is the security boundary, as no role but
-- its owner can write it.
CREATE TABLE @schema@.tenant_bindings (
    role   text PRIMARY KEY,                     -- the login, as session_user has it
    tenant text NOT NULL CHECK (tenant <> '')
);

-- Distinguishes this schema, in the names of its queues, from one of the same name that was dropped or is elsewhere. A copy
-- of the database has the same row: store.Installation.
CREATE TABLE @schema@.installation (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    id       uuid NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO @schema@.installation DEFAULT VALUES;

-- Which version of functions/ is installed.
CREATE TABLE @schema@.installed_functions (
    only_row     boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    hash         text NOT NULL,
    installed_at timestamptz NOT NULL DEFAULT now()
);

-- Types of the functions' arguments and results.

-- A message as append reads it, before it reads the session.
CREATE TYPE @schema@.parsed_message AS (
    ord bigint, id text, role text, name text, source_id text, tool_call_id text, call_ids text[], tokens int, counter text,
    flags smallint, reasoning_only boolean, created timestamptz, body text, fault text);

-- The result of an append to a session's log, and its state for the next call.
CREATE TYPE @schema@.appended AS (
    seqs bigint[], conflict text, n bigint, last_seq bigint, tokens bigint, estimated bigint, turns bigint, last_at timestamptz,
    fault boolean, open_calls text[], answered boolean, pending boolean);

-- The change by a run that only excludes messages: functions/end_runs.sql. The fields have the names of those in the
-- arguments of end_run.
CREATE TYPE @schema@.view_change AS (
    run                  bigint,
    sid                  bigint,
    exclude              int8multirange,
    reasons              text[],
    seqs                 int8multirange[],
    d_messages           bigint,
    d_tokens             bigint,
    d_estimated          bigint,
    free_reasoning       boolean,
    low_gain             boolean,
    fleet_hash           text,
    decision_fingerprint text,
    estimate_margin      real,
    due_tokens           bigint,
    seen_signals         int,
    seen_time            boolean,
    due_messages         bigint,
    due_turns            bigint,
    due_new_tokens       bigint,
    due_live_messages    bigint,
    due_signals          int,
    check_seconds        double precision
);

-- A finding of a check of a session: a column of one of its rows.
CREATE TYPE @schema@.finding AS (
    kind    text,      -- session | message | run | exclusion
    at      bigint,    -- null | the seq | the run | the run of the exclusion
    field   text,      -- the column, or another part that is not as it should be
    stored  text,
    want    text,
    derived boolean    -- want follows from log and ledger, so fix_session sets it
);
