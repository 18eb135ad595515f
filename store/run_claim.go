package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/chat"
)

// RunID identifies a run.
type RunID = int64

// Session holds the columns of a session that planning reads.
type Session struct {
	SID                  int64
	Key                  Key
	Model                string
	Live, Pinned         chat.Ranges
	Unholdable           chat.Ranges // pinned, but known to fit into no valid view
	Revision             int64
	LastSeq              chat.Seq
	LastSourceSeq        chat.Seq
	LiveMessages         int64
	LiveTokens           chat.Tokens
	LiveEstimatedTokens  chat.Tokens
	ReportedPromptTokens *chat.Tokens
	TokensSinceReport    chat.Tokens
	Line                 Line // of the session's model and tenant
	DecisionFingerprint  string
	HoldSeq              chat.Seq
	IneffectiveRuns      int
	CoolingDown          bool // by the database's clock
	// HoldCode is the guard that set the cooldown, empty after a run that gained nothing.
	HoldCode    string
	LowGainRuns int // automatic runs in a row that saved little
	// ToolsOpen reports that tool calls wait for results, or results for the agent's answer.
	ToolsOpen      bool
	CallsOpen      bool // tool calls at the end of the log wait for results
	ServiceManaged bool // by its label
	// NewTokens, NewMessages and NewTurns count appends since the last run that changed the view.
	NewTokens             chat.Tokens
	NewMessages, NewTurns int64
	// Signals are the reports of the application, as bits, and NewSignals those that no run has
	// seen.
	Signals, NewSignals int
	// Idle is the time since the last message, Age since the session began, and SinceRun since
	// a run changed its view; Timed reports that one of them has made it due.
	Idle, Age, SinceRun time.Duration

	Timed bool
	// Policy is the name of the session's policy; PolicyVersion is the version in force, 0
	// for the policy of the configuration, and PolicyTenant the tenant that it is for.
	Policy        string
	PolicyVersion int
	PolicyTenant  string
	PolicyHash    string // of the session's thresholds
	// ReasoningOut are the messages in the view without their signed reasoning.
	// ReasoningKnown reports that the rest of it is valid for a model that binds it; if not,
	// Apply takes out all of it.
	ReasoningOut   chat.Ranges
	ReasoningKnown bool
	// Awaiting are the messages that append has left out of the view until a run gives them a
	// form that can be in it: results without their call, calls with some of their results.
	Awaiting chat.Ranges
}

// Claim is a run that this worker has claimed or only loaded, with the snapshot to plan
// on.
type Claim struct {
	Run      RunID
	Fence    int64 // 0: loaded, not claimed
	Orphaned bool  // loaded, and its lease has expired: claim it
	Trigger  string
	Options  Options
	// OptionsError is set if the options cannot be read: the run can only be finished.
	OptionsError error
	// Paused reports that an operator has paused the session, and the run is not forced.
	Paused   bool
	QueuedAt time.Time
	Snoozes  int
	Failures int
	Session  Session
	// View holds the metadata of the view, in view order.
	View []chat.Meta
	// Awaiting holds the metadata of Session.Awaiting, in view order.
	Awaiting []chat.Meta
	// SinceWrite is the time, at the load, since the session of an event run became due by a
	// write; nil for other runs.
	SinceWrite *time.Duration
	// Traceparent is the trace context of the request of the run, or of the latest write with one
	// before it, in the form of W3C; empty for none.
	Traceparent string
}

const (
	queryRun = `SELECT ` + selectRun + ` FROM compactor.runs r JOIN compactor.sessions s ON s.sid = r.sid
		` + joinPolicy + joinCalibration + ` WHERE r.id = $1`
	selectRun = `r.status, r.trigger, coalesce(r.options, '{}')::text, r.queued_at, clock_timestamp() - r.written_at, coalesce(r.traceparent, ''), r.snoozes, r.failures,
			` + leaseIsOver + `,
			EXISTS (SELECT FROM compactor.runs o WHERE o.sid = r.sid AND o.status = 'running' AND o.id <> r.id
				AND o.lease_until >= now() AND o.lease_until <= now() + interval '61 minutes'),
			` + isPaused + `, ` + selectSession
	// leaseIsOver has the expression of the SQL function lease_is_over, which readers may not
	// call, for a run r.
	leaseIsOver = `coalesce(r.lease_until < now() OR r.lease_until > now() + interval '61 minutes', true)`
	// selectSession has the columns of a Session, of a session s with its policy h and the
	// calibration c of its model.
	selectSession = `s.sid, s.tenant, s.id, s.model, s.live::text, s.pinned::text, s.unholdable::text,
			s.revision, s.last_seq, s.last_source_seq, s.live_messages, s.live_tokens, s.live_estimated_tokens, s.reported_prompt_tokens, s.tokens_since_report,
			coalesce(s.decision_fingerprint, ''), s.hold_seq, s.ineffective_runs, coalesce(s.cooldown_until > now(), false),
			coalesce(s.hold_code, ''), s.low_gain_runs, cardinality(s.open_calls) > 0 OR s.open_answered,
			cardinality(s.open_calls) > 0, coalesce(s.labels->>'service_managed' = 'true', false),
			s.tokens_since_run, s.messages_since_run, s.turns_since_run, s.signals, s.new_signals,
			greatest(clock_timestamp() - coalesce(s.last_message_at, s.created_at), '0'), greatest(clock_timestamp() - s.created_at, '0'),
			greatest(clock_timestamp() - coalesce(s.view_changed_at, s.created_at), '0'), s.timed,
			coalesce(c.overhead, 0), coalesce(c.scale, 0), s.reasoning_out::text, s.reasoning_since IS NOT NULL OR s.revision = 0,
			coalesce(h.name, 'default'), coalesce(h.version, 0), coalesce(h.tenant, ''),
			CASE WHEN s.suspect_seq IS NULL THEN '{}' ELSE compactor.awaiting_repair(s) END::text,
			CASE WHEN ` + followsPolicy + ` THEN s.policy_hash ELSE (compactor.shown_session(s.tenant, s.id)).policy_hash END`
	// followsPolicy reports whether a session s has the thresholds in force. Other sessions get
	// them with their next write; shown_session returns them before that.
	followsPolicy = `s.thresholds_revision =
			coalesce((SELECT f.revision FROM compactor.thresholds f WHERE f.policy = s.policy AND f.model_prefix = ''), 0)`
	joinPolicy = `LEFT JOIN LATERAL (SELECT * FROM compactor.policy_heads p
			WHERE p.name IN (s.policy, 'default') AND coalesce(p.tenant, s.tenant) = s.tenant ORDER BY p.name = s.policy DESC LIMIT 1) h ON true `

	queryClaimView = selectMetas + ` FROM compactor.runs r JOIN compactor.sessions s ON s.sid = r.sid ` + joinView + ` WHERE r.id = $1`

	selectMetas = `SELECT m.seq, m.position, m.token_count, m.calls, m.flags, m.role_code, m.kind`
	// joinView joins the metadata m of the view of a session s, for withReasoning to complete.
	// It is an index-only scan: OFFSET 0 makes the planner scan by the ranges of the view.
	joinView = `
		CROSS JOIN LATERAL unnest(s.live) x ` + joinRange
	// joinRange joins the metadata m of the messages of a session s in a range x.
	joinRange = `
		CROSS JOIN LATERAL (SELECT l.seq, l.position, l.token_count, l.calls, l.flags, l.role_code, l.kind
			FROM compactor.message_log l
			WHERE l.sid = s.sid AND l.seq >= lower(x) AND l.seq < coalesce(upper(x), 9223372036854775807) OFFSET 0) m`
)

// Load reads a run and its session's view in one round trip, without claiming: enough
// for a run that needs metadata alone, because Apply and Finish check the run's status
// and the session's revision. The result has no Fence. ErrNotFound: the run has ended,
// is claimed, or does not exist. ErrBusy: a worker holds the session; try later.
func (s Worker) Load(ctx context.Context, run RunID) (*Claim, error) {
	c, err := s.loads.Do(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("load run %d: %w", run, err)
	}
	return c, nil
}

// loadBatch executes calls of Load in one round trip.
func (s Worker) loadBatch(ctx context.Context, calls []*pendingCall[RunID, *Claim]) {
	var batch pgx.Batch
	for _, c := range calls {
		batch.Queue(s.q(queryRun), c.in)
		batch.Queue(s.q(queryClaimView), c.in)
	}
	results := s.pool.SendBatch(ctx, &batch)
	for _, c := range calls {
		c.out, c.err = readClaim(results, &Claim{Run: c.in})
	}
	_ = results.Close()
	for _, c := range calls {
		if c.err == nil {
			c.err = s.completeView(ctx, c.out)
		}
	}
}

// completeView completes the metadata of a claim's view.
func (s *Store) completeView(ctx context.Context, c *Claim) (err error) {
	sid, out := c.Session.SID, &c.Session.ReasoningOut
	c.View, err = s.withReasoning(ctx, s.pool, sid, c.View, out)
	if err == nil && len(c.Session.Awaiting) > 0 {
		const query = selectMetas + ` FROM compactor.message_log m WHERE m.sid = $1 AND $2::int8multirange @> m.seq`
		const op = "load messages that await a repair"
		c.Awaiting, err = s.metas(ctx, op, sid, out, c.Session.LastSeq, query, sid, c.Session.Awaiting.String())
	}
	return mapError(err)
}

// MaxFailures is the number of failures, of attempts and of workers that died, at which a
// run ends as failed.
const MaxFailures = 5

// Claim claims a run for the time of lease and loads its session's view, in one round
// trip. A session has at most one live claim; a claim after an expired lease invalidates
// the earlier fence and counts as a failure of the run that had it, which ends at
// MaxFailures and otherwise is claimed or returns to the queue. ErrNotFound: the run has
// ended or does not exist. ErrBusy: a worker holds the session; try later.
func (s Worker) Claim(ctx context.Context, run RunID, worker string, lease time.Duration) (*Claim, error) {
	const query = `SELECT code, coalesce(fence, 0) FROM compactor.claim_run($1, $2, $3, $4)`
	var batch pgx.Batch
	batch.Queue(s.q(query), run, worker, lease, MaxFailures)
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
	if err = cmp.Or(err, mapError(results.Close())); err == nil {
		err = s.completeView(ctx, c)
	}
	if err != nil {
		return nil, fmt.Errorf("claim run %d: %w", run, err)
	}
	return c, nil
}

// readClaim reads the results of queryRun and queryClaimView. It always consumes both.
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
	// LastSeq cuts off messages appended between the two queries.
	c.View, err = collectMetas(rows, int(c.Session.LiveMessages), c.Session.LastSeq)
	return c, mapError(err)
}

// readRun reads the result of queryRun and checks the run's status. Columns before those of
// selectRun go to first.
func readRun(row pgx.Row, c *Claim, first ...any) error {
	var r runState
	err := row.Scan(append(first, r.targets(c)...)...)
	switch {
	case err != nil:
		return mapError(err)
	case c.Fence > 0:
	case r.status == "running" && r.expired:
		c.Orphaned = true
	case r.status != "queued":
		return ErrNotFound
	case r.otherRuns:
		return ErrBusy
	}
	// An option of another version is not ignored, as it may restrict the run.
	in := json.NewDecoder(strings.NewReader(r.options))
	in.DisallowUnknownFields()
	if err := in.Decode(&c.Options); err != nil {
		c.Options, c.OptionsError = Options{}, fmt.Errorf("options: %w: %w", ErrInvalid, err)
	}
	c.Paused = c.Paused && !c.Options.Force
	return nil
}

// runState holds the columns of selectRun that decide whether a run can be executed.
type runState struct {
	status, options    string
	expired, otherRuns bool
}

// targets returns where to scan the columns of selectRun.
func (r *runState) targets(c *Claim) []any {
	v := &c.Session
	return []any{
		&r.status, &c.Trigger, &r.options, &c.QueuedAt, &c.SinceWrite, &c.Traceparent, &c.Snoozes, &c.Failures,
		&r.expired, &r.otherRuns, &c.Paused,
		&v.SID, &v.Key.Tenant, &v.Key.Session, &v.Model,
		rangesText{&v.Live},
		rangesText{&v.Pinned},
		rangesText{&v.Unholdable},
		&v.Revision, &v.LastSeq, &v.LastSourceSeq,
		&v.LiveMessages, &v.LiveTokens, &v.LiveEstimatedTokens, &v.ReportedPromptTokens, &v.TokensSinceReport,
		&v.DecisionFingerprint, &v.HoldSeq, &v.IneffectiveRuns, &v.CoolingDown, &v.HoldCode, &v.LowGainRuns,
		&v.ToolsOpen, &v.CallsOpen, &v.ServiceManaged, &v.NewTokens, &v.NewMessages, &v.NewTurns, &v.Signals, &v.NewSignals,
		&v.Idle, &v.Age, &v.SinceRun, &v.Timed, &v.Line.Overhead, &v.Line.Scale,
		rangesText{&v.ReasoningOut},
		&v.ReasoningKnown,
		&v.Policy, &v.PolicyVersion, &v.PolicyTenant,
		rangesText{&v.Awaiting},
		&v.PolicyHash,
	}
}

// AppliedAges returns the ages of the latest automatic runs that changed a session's view, in
// ascending order: at most so many, of at most the given age. It leaves out runs that a fork has
// copied, and those of a future time, which a clock set back has left.
func (s Worker) AppliedAges(ctx context.Context, sid int64, runs int, age time.Duration) ([]time.Duration, error) {
	const query = `
		SELECT greatest(clock_timestamp() - ended_at, '0') FROM compactor.runs
		WHERE sid = $1 AND status = 'applied' AND trigger IN ('event', 'nightly') AND origin IS NULL
			AND ended_at > now() - $3::interval AND ended_at <= now() + interval '1 minute'
		ORDER BY id DESC LIMIT $2`
	ages, err := queryRows(ctx, s.Store, "read latest runs", pgx.RowTo[time.Duration], query, sid, runs, age)
	slices.Sort(ages)
	return ages, err
}

// Log returns the metadata of all source messages up to a seq, in log order, as the input
// of a run from the log: without those that the application has deleted.
func (s Worker) Log(ctx context.Context, sid int64, upTo chat.Seq) ([]chat.Meta, error) {
	const query = `
		SELECT seq, position, token_count, calls, flags, role_code, kind FROM compactor.message_log
		WHERE sid = $1 AND seq <= $2 AND kind = 'm' AND NOT (SELECT compactor.deleted_messages($1)) @> seq ORDER BY seq`
	return s.metas(ctx, "load log", sid, nil, upTo, query, sid, upTo)
}

// Bytes returns the size of the stored bodies of messages. Archived ones do not count.
func (s Worker) Bytes(ctx context.Context, sid int64, seqs chat.Ranges) (int64, error) {
	const query = `
		SELECT coalesce(sum(octet_length(b.body)), 0)::bigint FROM unnest($2::text::int8multirange) x
		JOIN compactor.message_body b ON b.sid = $1 AND b.seq >= lower(x) AND b.seq < coalesce(upper(x), 9223372036854775807)`
	return queryRow(ctx, s.Store, "size of messages", pgx.RowTo[int64], query, sid, seqs.String())
}

// Messages returns the content of messages by seq, without reasoning that has left the view.
// ErrNotFound: one of them is missing. ErrPurged: the content of one was purged.
func (s Worker) Messages(ctx context.Context, sid int64, seqs []chat.Seq) (map[chat.Seq]*chat.Message, error) {
	const query = `
		SELECT m.seq, m.id,
			coalesce(CASE WHEN m.flags & 66 = 2 AND s.reasoning_out @> m.seq THEN compactor.without_reasoning(b.body) ELSE b.body END, ''),
			coalesce(m.source_id, ''), coalesce(CASE WHEN m.flags & 128 = 0 THEN m.created_at END, '0001-01-01Z'),
			m.flags & 66 = 2 AND s.reasoning_out @> m.seq
		FROM compactor.sessions s JOIN compactor.message_log m ON m.sid = s.sid
		LEFT JOIN compactor.message_body b ON b.sid = s.sid AND b.seq = m.seq
		WHERE s.sid = $1 AND m.seq = ANY($2::bigint[])`
	rows, err := s.pool.Query(ctx, s.q(query), sid, seqs)
	if err != nil {
		return nil, wrap("load messages", err)
	}
	out := make(map[chat.Seq]*chat.Message, len(seqs))
	var archived []*Stored
	var seq chat.Seq
	var id, body, source string
	var created time.Time
	var bare bool
	bares := map[chat.Seq]bool{}
	_, err = pgx.ForEachRow(rows, []any{&seq, &id, &body, &source, &created, &bare}, func() error {
		m := &Stored{Seq: seq}
		out[seq] = &m.Message
		if body == "" {
			archived = append(archived, m)
			bares[seq] = bare
		}
		return m.fill(id, body, source, created)
	})
	if err != nil {
		return nil, wrap("load messages", err)
	}
	if len(out) < len(seqs) {
		return nil, fmt.Errorf("load messages: %d of %d are missing: %w", len(seqs)-len(out), len(seqs), ErrNotFound)
	}
	if len(archived) == 0 {
		return out, nil
	}
	k, err := s.keyOf(ctx, sid)
	if err != nil {
		return nil, err
	}
	purged, err := s.fillArchived(ctx, k, archived)
	if err != nil {
		return nil, err
	}
	for _, m := range archived {
		if purged.Has(m.Seq) {
			return nil, &Error{Kind: ErrPurged, Message: fmt.Sprintf("the words of message %d were purged, as the policy says", m.Seq)}
		}
		if bares[m.Seq] {
			m.Message = m.WithoutReasoning()
		}
	}
	return out, nil
}
