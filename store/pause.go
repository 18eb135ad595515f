package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// isPaused is the condition that the session s is paused. Without any pause it costs
	// nothing.
	isPaused = `(EXISTS (SELECT FROM compactor.pauses WHERE resumed_at IS NULL) AND compactor.paused(s.tenant, s.model))`
	// hold is how long what belongs to a paused session is put off before it is looked at
	// again. Resuming does not wait for that.
	hold = `interval '10 minutes'`
)

// CodePaused is the outcome of automatic runs, and the code of requested ones that wait,
// whose session is paused.
const CodePaused = "paused"

// Pause holds back all runs but forced ones of a tenant's sessions, or of those whose model
// begins with Model; an empty one stands for all.
type Pause struct {
	ID          int64     `json:"pause"`
	Tenant      string    `json:"tenant"`
	Model       string    `json:"model"`
	Note        string    `json:"note"`
	RequestedBy string    `json:"requested_by"`
	PausedAt    time.Time `json:"paused_at"`
}

const selectPauses = `SELECT id, tenant, model, note, requested_by, paused_at FROM `

// Pauses returns what is paused, the oldest first.
func (s *Store) Pauses(ctx context.Context) ([]Pause, error) {
	const query = selectPauses + `compactor.pauses WHERE resumed_at IS NULL ORDER BY id`
	return queryRows(ctx, s, "pauses", pgx.RowToStructByPos[Pause], query)
}

// PausesOf returns the pauses that hold back the runs of a session, the oldest first.
func (s *Store) PausesOf(ctx context.Context, k Key) ([]Pause, error) {
	const query = selectPauses + `compactor.pauses_of($1, $2)`
	return queryRows(ctx, s, fmt.Sprintf("pauses of session %s", k), pgx.RowToStructByPos[Pause], query, k.tenant(), k.Session)
}

// PauseRuns pauses the runs of a tenant and model; empty ones stand for all. It is in force
// when it returns: schedulers queue nothing more, workers end automatic runs as paused and
// leave requested ones in the queue. Runs that are being executed are not interrupted.
func (s *Store) PauseRuns(ctx context.Context, tenant, model, note, by string) error {
	_, err := s.pool.Exec(ctx, s.q(`SELECT compactor.pause_runs($1, $2, $3, $4)`), tenant, model, note, by)
	return wrap("pause", err)
}

// ResumeRuns ends the pause of exactly this tenant and model. ErrNotFound: there is none.
func (s *Store) ResumeRuns(ctx context.Context, tenant, model, by string) error {
	_, err := s.pool.Exec(ctx, s.q(`SELECT compactor.resume_runs($1, $2, $3)`), tenant, model, by)
	return wrap("resume", err)
}
