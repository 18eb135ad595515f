package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// The reasons for which due sessions do not run, as the SQL function held_back returns them.
// Outcomes of runs and guards have the names that they have in the ledger.
const (
	HeldNoLeader     = "no_leader"     // no scheduler holds the lease
	HeldRedisAway    = "redis_away"    // the leader cannot reach Redis
	HeldNoWorker     = "no_worker"     // no worker serves the queues
	HeldWorkerGone   = "worker_gone"   // the lease of the worker is over
	HeldOpenSweep    = "open_sweep"    // a sweep is yet to come to them
	HeldPausedSweep  = "paused_sweep"  // the same, and it is paused
	HeldStoppedSweep = "stopped_sweep" // they were due when a sweep was stopped or cancelled
	HeldModelDown    = "model_down"    // they got no summary, and a model is in cooldown
	HeldPostponed    = "postponed"     // an attempt failed and is repeated
	HeldFailed       = "failed"        // the last run failed for good
	CodeReadBudget   = "read_budget"   // the messages of the run do not fit into worker.read_budget
)

// HeldReasons are all reasons, each with its meaning: failures first, and then those that
// last longest.
var HeldReasons = []struct{ Reason, Text string }{
	{HeldNoLeader, "no scheduler holds the lease, so nothing is queued"},
	{HeldRedisAway, "the scheduler cannot reach Redis, so no worker hears of a run"},
	{HeldNoWorker, "no worker serves the queues of this installation"},
	{HeldWorkerGone, "the lease of the worker of the run is over"},
	{HeldModelDown, "no summary was to be had, and models are in cooldown"},
	{HeldFailed, "the last run failed"},
	{HeldPostponed, "an attempt failed and is repeated"},
	{CodeReadBudget, "no worker had room for the messages of the run (worker.read_budget)"},
	{StateQuarantined, "automatic runs leave it alone, as what must stay is above the start"},
	{StateServiceManaged, "another service manages its history, by its policy or its label"},
	{CodePaused, "paused by an operator"},
	{"waiting_after_undo", "undone by an operator; waiting for a new message"},
	{"not_triggered", "a trigger waits for the agent's answer to the last message"},
	{"mid_turn", "the agent has not answered the last message yet"},
	{"open_tool_loop", "a tool loop is open; its signed reasoning or the policy waits"},
	{"spending_limit", "no model is asked: see compactor limit list"},
	{"cooldown", "too soon after a run that gained too little or got no summary"},
	{"min_interval", "too soon after the last automatic run"},
	{"max_per_hour", "no more automatic runs in this hour"},
	{"max_per_day", "no more automatic runs within 24 hours"},
	{HeldStoppedSweep, "was due when a sweep was stopped or cancelled"},
	{HeldPausedSweep, "left to a sweep that is paused"},
	{HeldOpenSweep, "left to a sweep that is yet to come to it"},
	{CodeRunLimit, "a limit of runs per second"},
	{"unchanged", "a run has seen all messages"},
}

// heldIndex returns the place of a reason among HeldReasons.
func heldIndex(reason string) int {
	return slices.IndexFunc(HeldReasons, func(r struct{ Reason, Text string }) bool { return r.Reason == reason })
}

// sortHeld sorts the reasons of one session.
func sortHeld(held []Held) {
	slices.SortStableFunc(held, func(a, b Held) int { return heldIndex(a.Reason) - heldIndex(b.Reason) })
}

// Held is a reason for which due sessions do not run.
type Held struct {
	Reason   string `json:"reason"`
	Sessions int64  `json:"sessions"`
	// Since is the beginning of the first, and Until the end of the last at the latest; nil if
	// it is not known or has none.
	Since *time.Time `json:"since,omitempty"`
	Until *time.Time `json:"until,omitempty"`
	// EndsBy is the command that ends it, or the event that does so without one.
	EndsBy string `json:"ends_by"`
	Detail string `json:"detail,omitempty"`
	// Decided reports that an operator, an application or a policy wants it so.
	Decided bool `json:"decided"`
	// ID is the number of the pause or of the sweep.
	ID *int64 `json:"id,omitempty"`
	// Seconds have passed since Since, and SecondsLeft are left, by the clock of the database.
	Seconds     float64  `json:"seconds,omitempty"`
	SecondsLeft *float64 `json:"seconds_left,omitempty"`
}

// Meaning returns the meaning of the reason.
func (h Held) Meaning() string {
	if i := heldIndex(h.Reason); i >= 0 {
		return HeldReasons[i].Text
	}
	return h.Reason
}

// Due reports whether the sessions that the reason holds back are due, which those that wait for something need not be.
func (h Held) Due() bool { return !slices.Contains(waitReasons, h.Reason) }

// Text returns the reason in a line.
func (h Held) Text() string { return cmp.Or(h.Detail, h.Meaning()) }

const queryHeld = `SELECT reason, sessions, since, until, ends_by, detail, decided, id,
		coalesce(greatest(extract(epoch FROM now() - since), 0), 0)::float8,
		CASE WHEN until IS NOT NULL THEN greatest(extract(epoch FROM until - now()), 0)::float8 END FROM compactor.held_back`

// HeldBack returns the reasons that hold back due sessions of a tenant, or of all with an empty
// one: failures first, and then those that hold most sessions. It reads the due sessions.
func (s Operator) HeldBack(ctx context.Context, tenant string) ([]Held, error) {
	return queryRows(ctx, s.Store, "held back", pgx.RowToStructByPos[Held], queryHeld+`($1)`, tenant)
}

// HeldBySweep returns the sessions that a sweep holds back; nil for none.
func (s Operator) HeldBySweep(ctx context.Context, sweep int64) (*Held, error) {
	held, err := s.HeldBack(ctx, "")
	for _, h := range held {
		if h.ID != nil && *h.ID == sweep && h.Reason != CodePaused {
			return &h, err
		}
	}
	return nil, err
}
