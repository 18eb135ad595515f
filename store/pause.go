package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// isPaused is the condition that the session s is paused. Without any pause it costs
	// nothing.
	isPaused = `(EXISTS (SELECT FROM compactor.pauses WHERE resumed_at IS NULL) AND compactor.paused(s.tenant, s.model, s.policy))`
	// hold is the interval at which deliveries of a paused session are tried again. Resuming
	// does not wait for that.
	hold = `interval '10 minutes'`
)

// CodePaused is the outcome of automatic runs, and the code of requested ones that wait,
// whose session is paused.
const CodePaused = "paused"

// PauseScope selects the sessions of a tenant, of models whose name begins with Model, and of a
// policy; an empty one stands for all.
type PauseScope struct {
	Tenant string `json:"tenant"`
	Model  string `json:"model"`
	Policy string `json:"policy"`
}

// Pause holds back all runs but forced ones of the sessions in its scope.
type Pause struct {
	ID int64 `json:"pause"`
	PauseScope
	Note        string    `json:"note"`
	RequestedBy string    `json:"requested_by"`
	PausedAt    time.Time `json:"paused_at"`
}

const selectPauses = `SELECT id, tenant, model, policy, note, requested_by, paused_at FROM `

// Pauses returns the pauses in force, the oldest first.
func (s Operator) Pauses(ctx context.Context) ([]Pause, error) {
	const query = selectPauses + `compactor.pauses WHERE resumed_at IS NULL AND (tenant = (SELECT compactor.bound_tenant())) IS NOT FALSE ORDER BY id`
	return queryRows(ctx, s.Store, "pauses", pgx.RowToStructByPos[Pause], query)
}

// PausesOf returns the pauses that hold back the runs of a session, the oldest first.
func (s Operator) PausesOf(ctx context.Context, k Key) ([]Pause, error) {
	const query = selectPauses + `compactor.pauses_of($1, $2)`
	return queryRows(ctx, s.Store, fmt.Sprintf("pauses of session %s", k), pgx.RowToStructByPos[Pause], query, k.tenant(), k.Session)
}

// Paused returns those of sessions, by their cursors, whose runs a pause holds back.
func (s Reader) Paused(ctx context.Context, sids []int64) (map[int64]bool, error) {
	const query = `SELECT s.sid FROM compactor.sessions s WHERE s.sid = ANY($1) AND EXISTS (SELECT FROM compactor.pauses_of(s.tenant, s.id))`
	found, err := queryRows(ctx, s.Store, "paused sessions", pgx.RowTo[int64], query, sids)
	out := make(map[int64]bool, len(found))
	for _, sid := range found {
		out[sid] = true
	}
	return out, err
}

// PauseRuns pauses the runs in a scope. It is in force when it returns: schedulers queue
// nothing more, workers end automatic runs as paused and leave requested ones in the queue.
// Runs that are being executed are not interrupted. ErrNotFound: no such policy is in force.
func (s Operator) PauseRuns(ctx context.Context, scope PauseScope, note, by string) error {
	const query = `SELECT compactor.pause_runs($1, $2, $3, $4, $5)`
	return execute(ctx, s.Store, "pause", query, scope.Tenant, scope.Model, note, by, scope.Policy)
}

// Holding is what a pause would hold back now.
type Holding struct {
	// Due counts the sessions in its scope that are due, among the first Looked ones; More that there are others.
	Due    int64 `json:"due"`
	Looked int64 `json:"looked_at"`
	More   bool  `json:"more"`
}

// maxHolding bounds the sessions that WouldHold looks at.
const maxHolding = 10_000

// WouldHold returns what a pause of a scope would hold back now.
func (s Reader) WouldHold(ctx context.Context, scope PauseScope) (h Holding, err error) {
	ofTenant := "$1 = ''"
	if scope.Tenant != "" {
		ofTenant = "s.tenant = $1" // by its index
	}
	query := `
		SELECT count(*) FILTER (WHERE $2 IN ('', d.policy) AND ($3 = ''
			OR EXISTS (SELECT FROM unnest(compactor.model_names(d.model)) n WHERE starts_with(n, lower(btrim($3)))))), count(*), count(*) = $4
		FROM (SELECT s.model, s.policy FROM compactor.sessions s WHERE s.due AND ` + ofTenant + ` ORDER BY s.sid LIMIT $4) d`
	return queryRow(ctx, s.Store, "sessions that a pause would hold", pgx.RowToStructByPos[Holding], query, scope.Tenant, scope.Policy, scope.Model, maxHolding)
}

// ResumeRuns ends the pause of exactly this scope. ErrNotFound: there is none.
func (s Operator) ResumeRuns(ctx context.Context, scope PauseScope, by string) error {
	const query = `SELECT compactor.resume_runs($1, $2, $3, $4)`
	return execute(ctx, s.Store, "resume", query, scope.Tenant, scope.Model, by, scope.Policy)
}

// EndPause ends a pause of a tenant, or with an empty one any, by its number. ErrNotFound: there is none.
func (s Operator) EndPause(ctx context.Context, tenant string, id int64, by string) error {
	pauses, err := s.Pauses(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(pauses, func(p Pause) bool { return p.ID == id && (tenant == "" || p.Tenant == tenant) })
	if i < 0 {
		return fmt.Errorf("pause %d: %w", id, ErrNotFound)
	}
	return s.ResumeRuns(ctx, pauses[i].PauseScope, by)
}
