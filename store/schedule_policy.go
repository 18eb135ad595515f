package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// PolicyProgress is the progress of the sessions towards the last change of policies.
type PolicyProgress struct {
	// Revision counts the changes of policies; Reached is that of the last one that all
	// sessions follow.
	Revision int64 `json:"revision"`
	Reached  int64 `json:"reached"`
	// Pending reports whether sessions may be left that do not follow.
	Pending   bool       `json:"pending"`
	Percent   float64    `json:"percent"` // of the first pass over the sessions, and 99 during later ones, for few
	Changed   int64      `json:"changed"` // sessions, so far
	ChangedAt time.Time  `json:"changed_at"`
	ReachedAt *time.Time `json:"reached_at,omitempty"`
}

// PolicyProgress returns the progress of RefreshSessions. It reads one row.
func (s *Store) PolicyProgress(ctx context.Context) (PolicyProgress, error) {
	const query = `
		SELECT wanted, reached, reached < wanted OR reached_at < now() - interval '1 hour',
			CASE WHEN reached >= wanted THEN 100 WHEN revision < wanted THEN 0 WHEN last_sid = 0 THEN 99
				ELSE least(100, 100.0 * cursor_sid / last_sid) END::float8,
			CASE WHEN revision = wanted THEN changed ELSE 0 END, changed_at, reached_at
		FROM compactor.policy_refresh`
	return queryRow(ctx, s, "progress of policies", pgx.RowToStructByPos[PolicyProgress], query)
}

// The states of RefreshSessions.
const (
	RefreshIdle = "idle" // all sessions follow the policies
	RefreshPage = "page" // there are more
	RefreshPass = "pass" // a pass has ended, and another one is needed
	RefreshDone = "done" // this was the last page
)

// RefreshSessions gives up to limit sessions the policy and the thresholds that they should
// have, except locked ones, and returns their number and one of the states. It goes on where
// the last call, of any caller, has left off.
func (s Scheduler) RefreshSessions(ctx context.Context, limit int) (changed int, state string, err error) {
	const query = `SELECT changed, state FROM compactor.refresh_policies($1)`
	err = s.pool.QueryRow(ctx, s.q(query), limit).Scan(&changed, &state)
	return changed, state, wrap("refresh sessions", err)
}
