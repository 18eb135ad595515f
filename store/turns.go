package store

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// turn holds the tenant whose turn was the last among those that share a queue. It is kept in
// memory: a new leader begins at any tenant.
type turn struct{ last atomic.Pointer[string] }

// queueTurns holds the turns of the queues that tenants share.
type queueTurns struct{ relay, deliver, forgotten turn }

// turns returns a recursive query named turn: the tenants in a column of the rows r of a FROM
// clause with a condition, in the order of their turns, which begins after the tenant in the
// parameter. It is an index lookup for each tenant that is read. Its first row, with n = 0, is
// the parameter.
func turns(column, from, parameter string) string {
	return fmt.Sprintf(`turn(tenant, n, lap) AS (
		SELECT %[2]s::text, 0, 0
		UNION ALL SELECT x.tenant, n + 1, x.lap FROM turn t
			CROSS JOIN LATERAL (SELECT min(r.%[3]s) AS tenant FROM %[1]s AND r.%[3]s > t.tenant) later
			CROSS JOIN LATERAL (SELECT coalesce(later.tenant, CASE t.lap WHEN 0 THEN (SELECT min(r.%[3]s) FROM %[1]s) END) AS tenant,
				CASE WHEN later.tenant IS NULL THEN 1 ELSE t.lap END AS lap) x
			WHERE x.tenant IS NOT NULL AND (x.lap = 0 OR x.tenant <= %[2]s::text))`, from, parameter, column)
}

// turnShare returns the number of rows that one tenant may have on a page of a size: enough to
// fill half of the page where many tenants have no rows that are ready.
func turnShare(size string) string {
	return `(SELECT greatest(1, least(16, ` + size + ` / 2), ` + size + ` / greatest(1, count(*)))
		FROM (SELECT FROM turn WHERE n > 0 LIMIT 64) q)`
}

// takeTurn executes a query for a page of rows in the order of turns, and returns the deliveries
// and the number of rows. A row is a delivery, with run 0 for one that needs none, and the tenant
// whose turn it took, null outside of the turns. The last parameter of the query is the tenant
// whose turn was last.
func (s Scheduler) takeTurn(ctx context.Context, t *turn, op, query string, args ...any) (page []Delivery, taken int, err error) {
	after := ""
	if last := t.last.Load(); last != nil {
		after = *last
	}
	type row struct {
		Delivery
		Tenant *string
	}
	rows, err := queryRows(ctx, s.Store, op, pgx.RowToStructByPos[row], query, append(args, after)...)
	page = make([]Delivery, 0, len(rows))
	for _, r := range rows {
		if r.Run != 0 {
			page = append(page, r.Delivery)
		}
		if r.Tenant != nil {
			t.last.Store(r.Tenant)
		}
	}
	return page, len(rows), err
}
