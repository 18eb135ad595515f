package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// The reasons for which due sessions do not run, as the SQL function held_back has them.
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
)

// HeldReasons are all reasons, with what each means.
var HeldReasons = []struct{ Reason, Text string }{
	{HeldNoLeader, "no scheduler leads"},
	{HeldRedisAway, "the scheduler cannot reach Redis"},
	{HeldNoWorker, "no worker serves the queues"},
	{HeldWorkerGone, "the worker of the run is gone"},
	{HeldModelDown, "no summary, and a model is in cooldown"},
	{HeldFailed, "the last run failed"},
	{HeldPostponed, "an attempt failed and is repeated"},
	{CodePaused, "paused by an operator"},
	{HeldOpenSweep, "a sweep is yet to come to them"},
	{HeldPausedSweep, "the sweep that is yet to come to them is paused"},
	{HeldStoppedSweep, "were due when a sweep was stopped or cancelled"},
	{CodeRunLimit, "a limit of runs per second"},
	{"spending_limit", "a limit of what models cost"},
	{"cooldown", "a run gained too little, or got no summary"},
	{"min_interval", "guard: too soon after the last run"},
	{"max_per_hour", "guard: no more runs in this hour"},
	{"max_per_day", "guard: no more runs within 24 hours"},
	{"quarantined", "guard: what must stay is above the start"},
	{"service_managed", "a service manages the history"},
	{"open_tool_loop", "a tool loop is open"},
	{"mid_turn", "the agent has not answered yet"},
	{"not_triggered", "a trigger waits for the agent's answer"},
	{"waiting_after_undo", "undone, until the next message"},
	{"unchanged", "a run has seen all messages"},
}

// Held is a reason for which due sessions do not run.
type Held struct {
	Reason   string `json:"reason"`
	Sessions int64  `json:"sessions"`
	// Since is the beginning of the first, and Until the end of the last at the latest; nil if
	// it is not known or has none.
	Since *time.Time `json:"since,omitempty"`
	Until *time.Time `json:"until,omitempty"`
	// EndsBy is the command that ends it, or what does so by itself.
	EndsBy string `json:"ends_by"`
	Detail string `json:"detail,omitempty"`
	// Decided reports that an operator, an application or a policy wants it so.
	Decided bool `json:"decided"`
	// ID is the number of the pause or of the sweep.
	ID *int64 `json:"id,omitempty"`
}

const queryHeld = `SELECT reason, sessions, since, until, ends_by, detail, decided, id FROM compactor.held_back`

// HeldBack returns what holds due sessions of a tenant back, or of all with an empty one: what
// nobody decided first, and then what holds most of them. It reads the sessions that are due.
func (s *Store) HeldBack(ctx context.Context, tenant string) ([]Held, error) {
	return queryRows(ctx, s, "held back", pgx.RowToStructByPos[Held], queryHeld+`($1)`, tenant)
}

// HeldBackSession returns what holds a session back. ErrNotFound names it.
func (s *Store) HeldBackSession(ctx context.Context, k Key) ([]Held, error) {
	return queryRows(ctx, s, fmt.Sprintf("session %s", k), pgx.RowToStructByPos[Held], queryHeld+`($1, $2)`, k.tenant(), k.Session)
}
