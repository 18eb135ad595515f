package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/chat"
)

// RunID names a run in the ledger.
type RunID = int64

// Triggers: who asked for a run.
const (
	TriggerNightly     = "nightly"
	TriggerEvent       = "event"
	TriggerOperator    = "operator"
	TriggerApplication = "application"
)

// Options are what a caller asks of one run. The zero value asks for what the
// policy says. Stored with the run as JSON.
type Options struct {
	// From is what an operator's run plans over: "log" (as if nothing were in
	// force, the default for operators) or "view".
	From string `json:"from,omitempty"`
	// Pipeline replaces the policy's.
	Pipeline []Step `json:"pipeline,omitempty"`
	// Focus is what a summary should keep.
	Focus string `json:"focus,omitempty"`
	// DryRun plans and records, and applies nothing.
	DryRun bool `json:"dry_run,omitempty"`
	// AllowGrowth applies a result that gains less than the policy's minimum, or nothing.
	AllowGrowth bool `json:"allow_growth,omitempty"`
}

// Step is one strategy of a pipeline with its parameters.
type Step struct {
	Strategy string         `json:"strategy"`
	Params   map[string]any `json:"params,omitempty"`
}

// Session is what planning needs to know of one.
type Session struct {
	SID                  int64
	Key                  Key
	Model                string
	Live, Pinned         chat.Ranges
	Revision             int64
	LastSeq              chat.Seq
	LastSourceSeq        chat.Seq
	LiveMessages         int64
	LiveTokens           chat.Tokens
	LiveEstimatedTokens  chat.Tokens
	ReportedPromptTokens *chat.Tokens
	TokensSinceReport    chat.Tokens
	SuspectSeq           chat.Seq // 0: none
	Due                  bool
	DecisionFingerprint  string
	HoldSeq              chat.Seq
	IneffectiveRuns      int
	CoolingDown          bool // by the database's clock
}

// Claim is a run taken by this worker, or only looked at, with the snapshot it
// will plan on.
type Claim struct {
	Run      RunID
	Fence    int64 // 0: looked at, not claimed
	Orphaned bool  // looked at, and left behind by a worker that is gone: claim it
	Trigger  string
	Options  Options
	QueuedAt time.Time
	Attempts int
	Snoozes  int
	Failures int
	Session  Session
	// View is the metadata of the view, in view order.
	View []chat.Meta
}

const (
	queryRun = `
		SELECT r.status, r.trigger, coalesce(r.options, '{}')::text, r.queued_at, r.attempts, r.snoozes, r.failures,
			coalesce(r.lease_until < now(), true),
			EXISTS (SELECT FROM compactor.runs o WHERE o.sid = r.sid AND o.status = 'running' AND o.id <> r.id AND o.lease_until >= now()),
			s.sid, s.tenant, s.id, s.model, s.live::text, s.pinned::text, s.revision, s.last_seq, s.last_source_seq,
			s.live_messages, s.live_tokens, s.live_estimated_tokens, s.reported_prompt_tokens, s.tokens_since_report,
			coalesce(s.suspect_seq, 0), s.due, coalesce(s.decision_fingerprint, ''), s.hold_seq, s.ineffective_runs, coalesce(s.cooldown_until > now(), false)
		FROM compactor.runs r JOIN compactor.sessions s ON s.sid = r.sid WHERE r.id = $1`
	// Index-only: OFFSET 0 keeps the planner on the ranges of the view.
	queryClaimView = `
		SELECT m.seq, m.position, m.token_count, m.calls, m.flags, m.role_code, m.kind
		FROM compactor.runs r JOIN compactor.sessions s ON s.sid = r.sid CROSS JOIN LATERAL unnest(s.live) x
		CROSS JOIN LATERAL (SELECT l.seq, l.position, l.token_count, l.calls, l.flags, l.role_code, l.kind
			FROM compactor.message_log l
			WHERE l.sid = s.sid AND l.seq >= lower(x) AND l.seq < coalesce(upper(x), 9223372036854775807) OFFSET 0) m
		WHERE r.id = $1`
)

// Load looks at a run and its session's view without claiming it, in one round
// trip: enough for a run that only needs metadata, as its end is checked against
// the run's status and the session's revision anyway. The result has no Fence.
// ErrNotFound: the run is done, is being worked on, or never was. ErrBusy: a live
// worker has this session; try later.
func (s *Store) Load(ctx context.Context, run RunID) (*Claim, error) {
	c, err := s.loads.Do(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("load run %d: %w", run, err)
	}
	return c, nil
}

func (s *Store) loadBatch(ctx context.Context, calls []*pendingCall[RunID, *Claim]) {
	var batch pgx.Batch
	for _, c := range calls {
		batch.Queue(s.q(queryRun), c.in)
		batch.Queue(s.q(queryClaimView), c.in)
	}
	results := s.pool.SendBatch(ctx, &batch)
	defer func() { _ = results.Close() }()
	for _, c := range calls {
		c.out, c.err = readClaim(results, &Claim{Run: c.in})
	}
}

// Claim takes a run for lease and loads its session's view, in one round trip.
// ErrNotFound: the run is done, or never was. ErrBusy: a live worker has this
// session; try later. At most one claim of a session is live at a time, and a
// claim past its lease loses its fence to the next.
func (s *Store) Claim(ctx context.Context, run RunID, worker string, lease time.Duration) (*Claim, error) {
	const query = `SELECT code, coalesce(fence, 0) FROM compactor.claim_run($1, $2, $3)`
	var batch pgx.Batch
	batch.Queue(s.q(query), run, worker, lease)
	batch.Queue(s.q(queryRun), run)
	batch.Queue(s.q(queryClaimView), run)
	results := s.pool.SendBatch(ctx, &batch)
	c := &Claim{Run: run}
	var code string
	err := mapError(results.QueryRow().Scan(&code, &c.Fence))
	switch {
	case err != nil:
	case code == "gone":
		err = ErrNotFound
	case code == "busy":
		err = ErrBusy
	default:
		c, err = readClaim(results, c)
	}
	if cerr := results.Close(); err == nil {
		err = mapError(cerr)
	}
	if err != nil {
		return nil, fmt.Errorf("claim run %d: %w", run, err)
	}
	return c, nil
}

// readClaim reads the answers to queryRun and queryClaimView, both of them whatever
// they say.
func readClaim(results pgx.BatchResults, c *Claim) (*Claim, error) {
	err := readRun(results.QueryRow(), c)
	rows, qerr := results.Query()
	if qerr != nil {
		return nil, mapError(qerr)
	}
	if err != nil {
		rows.Close()
		return nil, err
	}
	// The session row was read a moment before: what was appended between the two is not of this snapshot.
	c.View, err = collectMetas(rows, int(c.Session.LiveMessages), c.Session.LastSeq)
	return c, mapError(err)
}

func readRun(row pgx.Row, c *Claim) error {
	var status, options, live, pinned string
	var expired, otherRuns bool
	v := &c.Session
	err := row.Scan(&status, &c.Trigger, &options, &c.QueuedAt, &c.Attempts, &c.Snoozes, &c.Failures,
		&expired, &otherRuns,
		&v.SID, &v.Key.Tenant, &v.Key.Session, &v.Model, &live, &pinned, &v.Revision, &v.LastSeq, &v.LastSourceSeq,
		&v.LiveMessages, &v.LiveTokens, &v.LiveEstimatedTokens, &v.ReportedPromptTokens, &v.TokensSinceReport,
		&v.SuspectSeq, &v.Due, &v.DecisionFingerprint, &v.HoldSeq, &v.IneffectiveRuns, &v.CoolingDown)
	switch {
	case err != nil:
		return mapError(err)
	case c.Fence > 0:
	case status == "running" && expired:
		c.Orphaned = true
	case status != "queued":
		return ErrNotFound
	case otherRuns:
		return ErrBusy
	}
	if v.Live, err = chat.ParseRanges(live); err != nil {
		return err
	}
	if v.Pinned, err = chat.ParseRanges(pinned); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(options), &c.Options); err != nil {
		return fmt.Errorf("options: %w: %w", ErrInvalid, err)
	}
	return nil
}

// Log returns the metadata of every source message up to a seq, in log order: what an
// operator's run from the log plans on.
func (s *Store) Log(ctx context.Context, sid int64, upTo chat.Seq) ([]chat.Meta, error) {
	const query = `
		SELECT seq, position, token_count, calls, flags, role_code, kind FROM compactor.message_log
		WHERE sid = $1 AND seq <= $2 AND kind = 'm' ORDER BY seq`
	rows, err := s.pool.Query(ctx, s.q(query), sid, upTo)
	if err != nil {
		return nil, wrap("load log", err)
	}
	metas, err := collectMetas(rows, 0, upTo)
	return metas, wrap("load log", err)
}

// Messages reads the content of messages. The result holds every seq asked for.
func (s *Store) Messages(ctx context.Context, sid int64, seqs []chat.Seq) (map[chat.Seq]*chat.Message, error) {
	const query = `SELECT seq, id, body, coalesce(source_id, ''), created_at FROM compactor.message_log WHERE sid = $1 AND seq = ANY($2::bigint[])`
	rows, err := s.pool.Query(ctx, s.q(query), sid, seqs)
	if err != nil {
		return nil, wrap("load messages", err)
	}
	out := make(map[chat.Seq]*chat.Message, len(seqs))
	var m Stored
	var id, body, source string
	var created time.Time
	_, err = pgx.ForEachRow(rows, []any{&m.Seq, &id, &body, &source, &created}, func() error {
		msg := Stored{Seq: m.Seq}
		out[m.Seq] = &msg.Message
		return msg.fill(id, body, source, created)
	})
	if err != nil {
		return nil, wrap("load messages", err)
	}
	if len(out) < len(seqs) {
		return nil, fmt.Errorf("load messages: %d of %d are not there: %w", len(seqs)-len(out), len(seqs), ErrNotFound)
	}
	return out, nil
}

// Requeue sends a run back: it is delivered again after delay. failed
// counts it as a failure, otherwise as a snooze. code says why. Where a run of
// the same trigger waits already, that one stands for both and this one ends as
// superseded.
func (s *Store) Requeue(ctx context.Context, run RunID, fence int64, delay time.Duration, failed bool, code, text string) error {
	const query = `
		UPDATE compactor.runs r SET status = CASE WHEN twin THEN 'skipped' ELSE 'queued' END,
			outcome = CASE WHEN twin THEN 'superseded' END, ended_at = CASE WHEN twin THEN now() END,
			lease_until = NULL, deliver_at = now() + $3, failures = failures + $4::int, snoozes = snoozes + 1 - $4::int,
			error_code = $5, error = nullif(left($6, 500), '')
		FROM (SELECT EXISTS (SELECT FROM compactor.runs me JOIN compactor.runs q ON q.sid = me.sid AND q.trigger = me.trigger
			AND q.status = 'queued' AND q.id <> me.id WHERE me.id = $1) AS twin) t
		WHERE id = $1 AND CASE WHEN $2 = 0 THEN status = 'queued' ELSE status = 'running' AND fence = $2 END`
	n := 0
	if failed {
		n = 1
	}
	tag, err := s.pool.Exec(ctx, s.q(query), run, fence, delay, n, code, text)
	if err != nil {
		return fmt.Errorf("requeue run %d: %w", run, mapError(err))
	}
	if tag.RowsAffected() == 0 {
		return fmt.Errorf("requeue run %d: another worker has it: %w", run, ErrNotApplicable)
	}
	return nil
}

// Snooze postpones a queued run nobody has claimed, because its session is busy.
// It reports how often that has happened.
func (s *Store) Snooze(ctx context.Context, run RunID, delay time.Duration, code string) (int, error) {
	const query = `
		UPDATE compactor.runs SET deliver_at = now() + $2, snoozes = snoozes + 1, error_code = $3
		WHERE id = $1 AND status = 'queued' RETURNING snoozes`
	var n int
	err := s.pool.QueryRow(ctx, s.q(query), run, delay, code).Scan(&n)
	return n, wrap("snooze", err)
}

// Abandon ends a queued run nobody has claimed.
func (s *Store) Abandon(ctx context.Context, run RunID, outcome string) error {
	_, err := s.pool.Exec(ctx, s.q(`UPDATE compactor.runs SET status = 'skipped', outcome = $2, ended_at = now()
		WHERE id = $1 AND status = 'queued'`), run, outcome)
	return wrap("abandon", err)
}

// Heartbeat prolongs the lease of a claimed run. ErrNotApplicable: it is lost.
func (s *Store) Heartbeat(ctx context.Context, run RunID, fence int64, lease time.Duration) error {
	tag, err := s.pool.Exec(ctx, s.q(`UPDATE compactor.runs SET lease_until = now() + $3
		WHERE id = $1 AND status = 'running' AND fence = $2`), run, fence, lease)
	if err != nil {
		return fmt.Errorf("heartbeat of run %d: %w", run, mapError(err))
	}
	if tag.RowsAffected() == 0 {
		return fmt.Errorf("heartbeat of run %d: %w", run, ErrNotApplicable)
	}
	return nil
}

// Request queues a run for a session. A queued run of the same trigger that asks
// for the same is returned instead; one that asks for something else is ErrInUse.
func (s *Store) Request(ctx context.Context, k Key, trigger, by string, o Options) (RunID, error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return 0, fmt.Errorf("request a compaction of session %s: %w: %w", k, ErrInvalid, err)
	}
	var run RunID
	const query = `SELECT compactor.request_compaction($1, $2, $3, $4, $5)`
	if err := s.pool.QueryRow(ctx, s.q(query), k.tenant(), k.Session, string(raw), by, trigger).Scan(&run); err != nil {
		return 0, fmt.Errorf("request a compaction of session %s: %w", k, mapError(err))
	}
	return run, nil
}

// Undo takes an applied run back: the view before it returns, with everything
// appended since. Later runs in force go with it when cascade is set; otherwise
// they are named in an ErrInUse. The undo is a run of its own, which is returned.
func (s *Store) Undo(ctx context.Context, run RunID, cascade bool, by string) (RunID, error) {
	var undo RunID
	const query = `SELECT compactor.undo_run($1, $2, $3)`
	if err := s.pool.QueryRow(ctx, s.q(query), run, cascade, by).Scan(&undo); err != nil {
		return 0, fmt.Errorf("undo: %w", mapError(err))
	}
	return undo, nil
}
