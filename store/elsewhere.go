package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Limited names the tenants that have limits, with an empty one for all together: Tenants any
// limit, Models one of models.
type Limited struct{ Tenants, Models []string }

// LimitedUse is what a database has used of a limit: the runs that have started since it has
// the limit, and what models cost in the last hour and day, as in Spending.
type LimitedUse struct {
	Tenant  string `json:"tenant"`
	Started int64  `json:"started"`
	Calls   int64  `json:"calls"`
	Tokens  int64  `json:"tokens"`
	Hour    int64  `json:"hour"`
	Day     int64  `json:"day"`
}

// Elsewhere is another database of the fleet whose use counts for the limits of this one.
type Elsewhere struct {
	Database string `json:"database"`
	// Age is the time since its use was read, up to ElsewhereWritten longer than it was.
	Age time.Duration `json:"age"`
}

// ElsewhereWritten is the interval at which the use of another database is written that has
// not changed. After three of them it is out of date.
const ElsewhereWritten = 10 * time.Second

// Limited returns which tenants have limits in this database.
func (s Scheduler) Limited(ctx context.Context) (Limited, error) {
	const query = `
		SELECT coalesce(array_agg(tenant), '{}'),
			coalesce(array_agg(tenant) FILTER (WHERE coalesce(calls_per_hour, tokens_per_hour, micros_per_hour, micros_per_day) IS NOT NULL), '{}')
		FROM compactor.spending_limits`
	return queryRow(ctx, s.Store, "read limits", pgx.RowToStructByPos[Limited], query)
}

// LimitedUse returns what this database has used of the limits of another one.
func (s Scheduler) LimitedUse(ctx context.Context, l Limited) ([]LimitedUse, error) {
	const query = `SELECT tenant, started, calls, tokens, hour, day FROM compactor.limited_use($1, $2)`
	return queryRows(ctx, s.Store, "read the use of limits", pgx.RowToStructByPos[LimitedUse], query, l.Tenants, l.Models)
}

// CountElsewhere counts what another database has used for the limits of this one: what
// LimitedUse returned there, which is to be read about once a second. That of models counts
// until it is read again, but no longer than the hour or the day of the limit. Runs that
// started between two readings take their share of what may start here, unless half a minute
// has passed between them.
func (s Scheduler) CountElsewhere(ctx context.Context, installation, database string, use []LimitedUse) error {
	_, err := s.pool.Exec(ctx, s.q(`SELECT compactor.count_elsewhere($1, $2, $3)`), installation, database, use)
	return wrap("count what is used elsewhere", err)
}

// Elsewhere returns the databases whose use counts for the limits of this one, by name.
func (s Admin) Elsewhere(ctx context.Context) ([]Elsewhere, error) {
	const query = `
		SELECT database, greatest(now() - max(read_at), '0') FROM compactor.used_elsewhere
		WHERE tenant IN (SELECT tenant FROM compactor.spending_limits) GROUP BY 1 ORDER BY 1`
	return queryRows(ctx, s.Store, "read what is used elsewhere", pgx.RowToStructByPos[Elsewhere], query)
}
