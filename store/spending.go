package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// SpendingLimit bounds the calls of models for a tenant, or for all together with an empty
// one. Nil fields are no limits. Costs are in millionths of the unit that prices are in.
type SpendingLimit struct {
	Tenant        string    `json:"tenant"`
	MicrosPerHour *int64    `json:"cost_micros_per_hour"`
	MicrosPerDay  *int64    `json:"cost_micros_per_day"`
	CallsPerHour  *int64    `json:"calls_per_hour"`
	Note          string    `json:"note"`
	ChangedBy     string    `json:"changed_by"`
	ChangedAt     time.Time `json:"changed_at"`
}

// Spending is a limit, and what was spent in the last hour and day.
type Spending struct {
	SpendingLimit

	Calls int64 `json:"calls_in_hour"`
	Hour  int64 `json:"cost_micros_in_hour"`
	Day   int64 `json:"cost_micros_in_day"`
}

// Reached reports whether one of the limits is reached.
func (s Spending) Reached() bool {
	over := func(spent int64, limit *int64) bool { return limit != nil && spent >= *limit }
	return over(s.Calls, s.CallsPerHour) || over(s.Hour, s.MicrosPerHour) || over(s.Day, s.MicrosPerDay)
}

// Spending returns the limits of a tenant, or all with an empty one, by tenant. It reads the
// calls of a day.
func (s *Store) Spending(ctx context.Context, tenant string) ([]Spending, error) {
	const query = `SELECT tenant, micros_per_hour, micros_per_day, calls_per_hour, note, changed_by, changed_at, calls, hour, day FROM compactor.spending_of($1)`
	return queryRows(ctx, s, "spending", pgx.RowToStructByPos[Spending], query, tenant)
}

// LimitSpending sets the limits of a tenant, in place of those that it had; without any, it
// takes them away. ErrNotFound: there are none. Once a limit is reached, runs that no
// operator requested ask no model: AskSummary returns ErrSpendingLimit. Calls under way
// then may exceed it.
func (s *Store) LimitSpending(ctx context.Context, l SpendingLimit) error {
	const query = `SELECT compactor.limit_spending($1, $2, $3, $4, $5, $6)`
	_, err := s.pool.Exec(ctx, s.q(query), l.Tenant, l.MicrosPerHour, l.MicrosPerDay, l.CallsPerHour, l.Note, l.ChangedBy)
	return wrap("limit spending", err)
}
