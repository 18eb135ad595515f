package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// CodeRunLimit is the code of requested runs that wait for a limit of runs per second.
const CodeRunLimit = "run_limit"

const (
	// notHeld is the condition that a queued run is not put off by a pause or a limit.
	notHeld = `(error_code IS NULL OR error_code NOT IN ('` + CodePaused + `', '` + CodeRunLimit + `'))`
	// startable claims the runs that may start. Without any limit of runs it costs nothing.
	startable = `(SELECT tenant, most FROM compactor.claim_startable_runs()
		WHERE EXISTS (SELECT FROM compactor.spending_limits WHERE runs_per_second IS NOT NULL))`
	// countStarted counts the rows that it is selected from as runs that start.
	countStarted = `CASE WHEN EXISTS (SELECT FROM startable) THEN compactor.count_started_runs(array_agg(tenant)) END`
)

// SpendingLimit bounds the calls of models for a tenant and the runs that start, or those of
// all together with an empty one. Nil fields are no limits. Costs are in millionths of the
// unit that prices are in, tokens those of input and output.
type SpendingLimit struct {
	Tenant        string    `json:"tenant"`
	MicrosPerHour *int64    `json:"cost_micros_per_hour"`
	MicrosPerDay  *int64    `json:"cost_micros_per_day"`
	CallsPerHour  *int64    `json:"calls_per_hour"`
	TokensPerHour *int64    `json:"tokens_per_hour"`
	RunsPerSecond *float64  `json:"runs_per_second"`
	Note          string    `json:"note"`
	ChangedBy     string    `json:"changed_by"`
	ChangedAt     time.Time `json:"changed_at"`
}

// Spending is a limit, and its present use by all databases of a fleet: the calls of models in
// the last hour and day, and the runs.
type Spending struct {
	SpendingLimit

	Calls  int64 `json:"calls_in_hour"`
	Tokens int64 `json:"tokens_in_hour"`
	Hour   int64 `json:"cost_micros_in_hour"`
	Day    int64 `json:"cost_micros_in_day"`
	// Started is the number of runs that have started in the last second and count for
	// RunsPerSecond, Throttled that of sessions and requests of this database that wait for the
	// limit of their tenant.
	Started   float64 `json:"runs_in_second"`
	Throttled int64   `json:"throttled"`
	// Estimated counts the calls of the last day in this database whose tokens are estimated,
	// as the server reported none.
	Estimated int64 `json:"estimated_calls_in_day"`
}

// Reached reports whether one of the limits of models is reached.
func (s Spending) Reached() bool {
	over := func(spent int64, limit *int64) bool { return limit != nil && spent >= *limit }
	return over(s.Calls, s.CallsPerHour) || over(s.Tokens, s.TokensPerHour) ||
		over(s.Hour, s.MicrosPerHour) || over(s.Day, s.MicrosPerDay)
}

// Spending returns the limits of a tenant and of all together, or all limits with an empty
// one, by tenant. It reads the calls of the last minutes, and sums of those before.
func (s Operator) Spending(ctx context.Context, tenant string) ([]Spending, error) {
	const query = `
		SELECT tenant, micros_per_hour, micros_per_day, calls_per_hour, tokens_per_hour, runs_per_second, note, changed_by,
			changed_at, calls, tokens, hour, day, started, throttled, estimated
		FROM compactor.spending_of($1)`
	return queryRows(ctx, s.Store, "spending", pgx.RowToStructByPos[Spending], query, tenant)
}

// RunLimit returns the limit of runs per second that holds for a tenant, or for all together with an
// empty one; false without any.
func (s Operator) RunLimit(ctx context.Context, tenant string) (least Spending, limited bool, err error) {
	rows, err := s.Spending(ctx, tenant)
	for _, r := range rows {
		if r.RunsPerSecond != nil && (r.Tenant == "" || r.Tenant == tenant) && (!limited || *r.RunsPerSecond < *least.RunsPerSecond) {
			least, limited = r, true
		}
	}
	return least, limited, err
}

// Validate returns an ErrInvalid for a limit that is out of range, and where there is none.
func (l SpendingLimit) Validate() error {
	const most = 1e9
	for _, x := range []struct {
		name   string
		n      *int64
		micros bool
	}{
		{"cost per hour", l.MicrosPerHour, true},
		{"cost per day", l.MicrosPerDay, true},
		{"calls per hour", l.CallsPerHour, false},
		{"tokens per hour", l.TokensPerHour, false},
	} {
		switch {
		case x.n == nil:
		case x.micros && (*x.n < 0 || *x.n > most*1e6):
			return invalid("%s: %g: want 0 to %g", x.name, float64(*x.n)/1e6, most)
		case *x.n < 0:
			return invalid("%s: %d: want 0 or more", x.name, *x.n)
		}
	}
	switch r := l.RunsPerSecond; {
	case r != nil && !(*r >= 0.001 && *r <= 1e6):
		return invalid("runs per second: %v: want 0.001 to 1e6; to hold all runs back there are pauses", *r)
	case r == nil && l.MicrosPerHour == nil && l.MicrosPerDay == nil && l.CallsPerHour == nil && l.TokensPerHour == nil:
		return invalid("want a cost per hour or per day, calls or tokens per hour, or runs per second")
	}
	return nil
}

// LimitSpending replaces the limits of a tenant; without any, it removes them. ErrNotFound:
// there are none. Once a limit of models is reached, AskSummary returns ErrSpendingLimit to runs
// that no operator requested; calls under way may exceed the limit. RunsPerSecond is an average:
// up to one second's runs start at once, and operators' runs always; the others wait in Postgres.
func (s Operator) LimitSpending(ctx context.Context, l SpendingLimit) error {
	const query = `SELECT compactor.limit_spending($1, $2, $3, $4, $5, $6, $7, $8)`
	return execute(ctx, s.Store, "limit spending", query,
		l.Tenant, l.MicrosPerHour, l.MicrosPerDay, l.CallsPerHour, l.Note, l.ChangedBy, l.TokensPerHour, l.RunsPerSecond)
}
