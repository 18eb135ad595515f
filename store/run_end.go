package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Ledger holds the columns of the runs table that an ended run fills in.
type Ledger struct {
	Kind           string  `json:"kind"`
	Outcome        string  `json:"outcome"`
	Worker         string  `json:"worker"`
	PolicyHash     *string `json:"policy_hash"`
	Policy         string  `json:"policy,omitempty"`
	PolicyVersion  *int    `json:"policy_version,omitempty"` // 0: that of the configuration
	Fired          string  `json:"fired,omitempty"`          // the policy's trigger that held; empty for none
	ErrorCode      *string `json:"error_code,omitempty"`
	Error          *string `json:"error,omitempty"`
	Steps          any     `json:"steps,omitempty"`
	MessagesBefore int64   `json:"messages_before"`
	MessagesAfter  int64   `json:"messages_after"`
	TokensBefore   int64   `json:"tokens_before"`
	TokensAfter    int64   `json:"tokens_after"`
	Utilization    float64 `json:"utilization"`
	PlanMicros     int64   `json:"plan_us"`
	TotalMicros    int64   `json:"total_us"`
}

// PostRunState holds the columns of a session that an ended run sets.
type PostRunState struct {
	// Model is that of the thresholds below, which are not set if the session has another
	// one by now; nil sets them anyway.
	Model *string `json:"model,omitempty"`
	// BaseHash is the PolicyHash that the session had when the run was loaded. If it has
	// another one by now, the thresholds below are not set either; empty sets them anyway.
	BaseHash  string      `json:"base_hash,omitempty"`
	DueTokens chat.Tokens `json:"due_tokens"`
	Counts
	// Checked keeps the session from being due by these bounds before its next write: a run
	// has found that no trigger holds.
	Checked bool `json:"checked,omitempty"`
	// SeenSignals are events that the run has seen: they do not make the session due again.
	SeenSignals int `json:"seen_signals,omitempty"`
	// SeenTime reports that the run has seen that the time of a trigger has passed: that does
	// not make the session due again.
	SeenTime bool `json:"seen_time"`
	// CheckSeconds is the number of seconds until the next such time; 0 for none.
	CheckSeconds   float64 `json:"check_seconds,omitempty"`
	EstimateMargin float64 `json:"estimate_margin"`
	PolicyHash     string  `json:"fleet_hash"`
	// DecisionFingerprint is a hash of the run's inputs. An automatic run that computes
	// the same one has nothing to decide.
	DecisionFingerprint string  `json:"decision_fingerprint"`
	CooldownSeconds     float64 `json:"cooldown_seconds,omitempty"`
	Ineffective         bool    `json:"ineffective,omitempty"`
	// Unholdable are pinned messages that no valid view can hold as they are, in addition
	// to those of the session. They no longer make it due.
	Unholdable chat.Ranges `json:"-"`
	// AwaitsLoop makes the session due when the open tool loop has ended, and with
	// AwaitsAnswer, when the agent has answered the last message.
	AwaitsLoop   bool `json:"awaits_loop,omitempty"`
	AwaitsAnswer bool `json:"awaits_answer,omitempty"`
	// HoldCode is the guard that holds the session for CooldownSeconds. Unlike after other
	// cooldowns, the scheduler looks at the session again although no message has come.
	HoldCode string `json:"hold_code,omitempty"`
	// State is StateQuarantined, with a reason, or StateServiceManaged; empty keeps the state.
	// A quarantine is not set if messages have come since the snapshot.
	State            string `json:"state,omitempty"`
	QuarantineReason string `json:"quarantine_reason,omitempty"`
	// LowGain reports whether an applied run saved little; nil does not count.
	LowGain *bool `json:"low_gain,omitempty"`
}

// The states of sessions that automatic runs leave alone.
const (
	StateQuarantined    = "quarantined"     // until there is a new message or another policy
	StateServiceManaged = "service_managed" // until there are other labels or another policy
)

// Delta holds the changes of a snapshot's live counters by exclusions and inclusions. The
// database counts additions and reasoning that leaves.
type Delta struct {
	DeltaMessages  int64 `json:"d_messages"`
	DeltaTokens    int64 `json:"d_tokens"`
	DeltaEstimated int64 `json:"d_estimated"`
}

// Change is a plan to apply and the snapshot that it was made on.
type Change struct {
	Plan chat.Plan
	// SnapshotSeq is the last seq of the snapshot; later messages are not changed.
	SnapshotSeq chat.Seq
	Revision    int64
	// Pinned holds the pins of the snapshot. A plan may exclude them to repair the view;
	// one that excludes a message pinned since is stale.
	Pinned chat.Ranges
	// FreeReasoning reports that the session's model accepts signed reasoning whatever
	// precedes it. Otherwise the reasoning of messages appended since the snapshot leaves the
	// view, as that of Plan.DropReasoning does.
	FreeReasoning bool
	Delta
	Ledger       Ledger
	PostRunState PostRunState
}

// wireAddition is an addition in the JSON argument of end_run.
type wireAddition struct {
	Kind     string          `json:"kind"`
	Position chat.Seq        `json:"position"`
	Tokens   chat.Tokens     `json:"token_count"`
	Calls    int             `json:"calls"`
	Flags    chat.Flags      `json:"flags"`
	RoleCode string          `json:"role_code"`
	Counter  string          `json:"counter"`
	Covers   string          `json:"covers"`
	Message  json.RawMessage `json:"message"`
}

// endRecord is the JSON of the ledger and the session's state in the arguments of end_run.
type endRecord struct {
	Ledger
	*PostRunState
	Delta
	Pinned     string `json:"pinned"`
	Unholdable string `json:"unholdable"`
	// FreeReasoning and ReasoningOut are those of the change.
	FreeReasoning bool   `json:"free_reasoning"`
	ReasoningOut  string `json:"reasoning_out"`
}

// endRunArgs is the argument list of the SQL function end_run.
type endRunArgs struct {
	run, fence        int64
	status            string
	revision          int64
	snapshot          chat.Seq
	reasons, seqs     []string
	by                []*int
	exclude, include  chat.Ranges
	additions, record []byte
	wait              bool // for the session's lock
}

// codeLocked is the code of end_run if another transaction holds a lock.
const codeLocked = "locked"

// end ends a run as part of a batch or, if its session is locked, alone and later.
func (s *Store) end(ctx context.Context, run RunID, fence int64, e endRunArgs) (appended chat.Ranges, err error) {
	e.run, e.fence = run, fence
	answer, err := s.ends.Do(ctx, e)
	if err == nil && answer.code == codeLocked {
		e.wait = true
		answer, err = s.lateEnds.Do(ctx, e)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("end run %d: %w", run, err)
	case answer.code == codeLocked:
		return nil, fmt.Errorf("end run %d: its row is locked: %w", run, ErrBusy)
	case answer.code == "stale":
		return nil, fmt.Errorf("end run %d: %w", run, ErrStale)
	case answer.code != "ended":
		return nil, fmt.Errorf("end run %d: another worker has it, or it has ended: %w", run, ErrNotApplicable)
	}
	s.ended.add(run)
	return answer.appended, nil
}

// endRunResult is the result of end_run.
type endRunResult struct {
	code     string
	appended chat.Ranges
}

// endBatch ends runs in one transaction. If one fails, the transaction rolls back and
// each is tried alone. Only a call that is alone may wait for a lock: the transaction
// holds those of all its sessions.
func (s *Store) endBatch(ctx context.Context, calls []*pendingCall[endRunArgs, endRunResult]) {
	if err := s.endAll(ctx, calls); err == nil || len(calls) == 1 {
		return
	}
	for i := range calls {
		_ = s.endAll(ctx, calls[i:i+1]) // the call has its error
	}
}

// endRunQuery returns a call of end_run, whose row has the fields of endRunResult.
func (s *Store) endRunQuery(e endRunArgs) (sql string, args []any) {
	const query = `
		SELECT code, coalesce(appended, '{}')::text
		FROM compactor.end_run($1, $2, $3, $4, $5, $6, $7::text[]::int8multirange[], $8, $9, $10, $11, $12, $13)`
	var additions any
	if e.additions != nil {
		additions = string(e.additions)
	}
	return s.q(query), []any{
		e.run, e.fence, e.status, e.revision, e.snapshot, e.reasons, e.seqs, e.by,
		e.exclude.String(), e.include.String(), additions, string(e.record), e.wait,
	}
}

// endAll ends runs in one transaction and returns its first error.
func (s *Store) endAll(ctx context.Context, calls []*pendingCall[endRunArgs, endRunResult]) error {
	var batch pgx.Batch
	for _, c := range calls {
		query, args := s.endRunQuery(c.in)
		batch.Queue(query, args...)
	}
	results := s.pool.SendBatch(ctx, &batch)
	var failed error
	for _, c := range calls {
		c.err = mapError(results.QueryRow().Scan(&c.out.code, rangesText{&c.out.appended}))
		failed = cmp.Or(failed, c.err)
	}
	// Close returns the error of the commit.
	if err := mapError(results.Close()); err != nil && failed == nil {
		failed = err
		for _, c := range calls {
			c.err = err
		}
	}
	return failed
}

// Apply writes a change in one transaction: additions, exclusions, the view, the
// counters, the ledger row and the notification. fence is the claim's, or 0 after Load.
// It returns the seqs of the additions. ErrNotApplicable: another worker has the run, or
// it has ended, as after a first Apply. ErrStale: the view or the pins changed since the
// snapshot; plan again.
func (s Worker) Apply(ctx context.Context, run RunID, fence int64, c Change) (appended chat.Ranges, err error) {
	e, err := c.endRunArgs()
	if err != nil {
		return nil, fmt.Errorf("apply run %d: %w", run, err)
	}
	if len(c.Plan.Include) == 0 {
		return s.end(ctx, run, fence, e)
	}
	k, err := s.keyOfRun(ctx, run)
	if err != nil {
		return nil, err
	}
	return restoring(ctx, s.Store, k, func() (chat.Ranges, error) { return s.end(ctx, run, fence, e) })
}

// endRunArgs returns the arguments of end_run.
func (c *Change) endRunArgs() (endRunArgs, error) {
	e := endRunArgs{
		status: StatusApplied, revision: c.Revision, snapshot: c.SnapshotSeq, exclude: c.Plan.Gone(), include: c.Plan.Include,
	}
	for _, x := range c.Plan.Exclude {
		e.reasons, e.seqs, e.by = append(e.reasons, x.Reason), append(e.seqs, x.Seqs.String()), append(e.by, nil)
	}
	wire := make([]wireAddition, 0, len(c.Plan.Additions))
	for i, a := range c.Plan.Additions {
		e.reasons, e.seqs, e.by = append(e.reasons, a.Reason), append(e.seqs, a.Covers.String()), append(e.by, &i)
		a.Message = a.Message.Body() // the database assigns the id
		chat.Sanitize(&a.Message)    // as Append does
		if chat.Estimates(a.Counter) {
			a.Flags |= chat.Estimated // as the SQL function append does
		}
		body, err := a.Message.MarshalJSON()
		if err != nil {
			return e, fmt.Errorf("addition %d: %w", i, err)
		}
		wire = append(wire, wireAddition{
			Kind: kindCode(a.Kind), Position: a.Position, Tokens: a.Tokens, Calls: len(a.Message.ToolCalls),
			Flags: a.Flags, RoleCode: roleCode(a.Message.Role), Counter: a.Counter,
			Covers: a.Covers.String(), Message: body,
		})
	}
	var err error
	if len(wire) > 0 {
		if e.additions, err = json.Marshal(wire); err != nil {
			return e, err
		}
	}
	e.record, err = json.Marshal(c.record())
	return e, err
}

// record returns the JSON argument of a change.
func (c *Change) record() endRecord {
	return endRecord{
		Ledger: c.Ledger, PostRunState: &c.PostRunState, Delta: c.Delta,
		Pinned: c.Pinned.String(), Unholdable: c.PostRunState.Unholdable.String(),
		FreeReasoning: c.FreeReasoning, ReasoningOut: c.Plan.DropReasoning.String(),
	}
}

// The statuses of runs that have ended: with a change of the view, or without one.
const (
	StatusApplied = "applied"
	StatusSkipped = "skipped"
	StatusFailed  = "failed"
)

// Finish ends a run without a change. If state is nil or the view has changed since the
// claim, the session keeps its thresholds and stays due. ErrNotApplicable: another
// worker has the run, or it has ended.
func (s Worker) Finish(ctx context.Context, c *Claim, status string, l Ledger, state *PostRunState) error {
	r := endRecord{Ledger: l, PostRunState: state, Pinned: "{}", Unholdable: "{}", ReasoningOut: "{}"}
	if state != nil {
		r.Unholdable = state.Unholdable.String()
	}
	record, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("finish run %d: %w", c.Run, err)
	}
	e := endRunArgs{status: status, revision: c.Session.Revision, snapshot: c.Session.LastSeq, record: record}
	_, err = s.end(ctx, c.Run, c.Fence, e)
	return err
}
