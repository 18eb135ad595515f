package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Limited names the tenants that have limits, with an empty one for all together: Tenants those
// with any limit, Models those with a limit of models.
type Limited struct{ Tenants, Models []string }

// LimitedUse is the use of a limit by a database: the runs that have started since it has
// the limit, and the cost of models in the last hour and day, as in Spending.
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
	// Age is the time since its use was read, or up to ElsewhereWritten more.
	Age time.Duration `json:"age"`
}

// ElsewhereWritten is the interval at which an unchanged use of another database is written.
// After three of them it is out of date.
const ElsewhereWritten = 10 * time.Second

// Limited returns which tenants have limits in this database.
func (s Scheduler) Limited(ctx context.Context) (Limited, error) {
	const query = `
		SELECT coalesce(array_agg(tenant), '{}'),
			coalesce(array_agg(tenant) FILTER (
				WHERE coalesce(calls_per_hour, tokens_per_hour, micros_per_hour, micros_per_day) IS NOT NULL), '{}')
		FROM compactor.spending_limits`
	return queryRow(ctx, s.Store, "read limits", pgx.RowToStructByPos[Limited], query)
}

// LimitedUse returns the use by this database of the limits of another one.
func (s Scheduler) LimitedUse(ctx context.Context, l Limited) ([]LimitedUse, error) {
	const query = `SELECT tenant, started, calls, tokens, hour, day FROM compactor.limited_use($1, $2)`
	return queryRows(ctx, s.Store, "read the use of limits", pgx.RowToStructByPos[LimitedUse], query, l.Tenants, l.Models)
}

// CountElsewhere counts the use by another database for the limits of this one: the result of
// LimitedUse there, to be read about once a second. That of models counts until it is read
// again, but no longer than the hour or the day of the limit. Runs that started there between
// two readings reduce the number that may start here, unless the readings are half a minute
// apart.
func (s Scheduler) CountElsewhere(ctx context.Context, installation, database string, use []LimitedUse) error {
	const query = `SELECT compactor.count_elsewhere($1, $2, $3)`
	return execute(ctx, s.Store, "count what is used elsewhere", query, installation, database, use)
}

// Elsewhere returns the databases whose use counts for the limits of this one, by name.
func (s Admin) Elsewhere(ctx context.Context) ([]Elsewhere, error) {
	const query = `
		SELECT database, greatest(now() - max(read_at), '0') FROM compactor.used_elsewhere
		WHERE tenant IN (SELECT tenant FROM compactor.spending_limits) GROUP BY 1 ORDER BY 1`
	return queryRows(ctx, s.Store, "read what is used elsewhere", pgx.RowToStructByPos[Elsewhere], query)
}
