package store

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sessionstore/compactor/strategies/strategiestest/growth"
)

// Wherever Postgres hands over runs, tenants take turns: runs of one of them that wait in
// hundreds keep no other one waiting for more than the pages that each has a share of.
func TestTenantsTakeTurns(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(t *testing.T, s *Store, limit int) []Delivery{
		"events": func(t *testing.T, s *Store, limit int) []Delivery {
			return must(s.Scheduler.Relay(t.Context(), 0, 0, limit, time.Minute))(t)
		},
		"requests": func(t *testing.T, s *Store, limit int) []Delivery {
			return must(s.Scheduler.Deliver(t.Context(), limit, 1000, time.Hour))(t)
		},
		"forgotten sessions": func(t *testing.T, s *Store, limit int) []Delivery {
			return must(s.Scheduler.Forgotten(t.Context(), limit, time.Hour))(t)
		},
	} {
		for _, limit := range []int{1, 20} {
			t.Run(fmt.Sprint(name, " ", limit), func(t *testing.T) {
				s := fresh(t)
				fillQueue(t, s, name, 60, 1)                                 // of one that was first
				exec(t, s, `UPDATE compactor.sessions SET tenant = 'large'`) // before all others in the order of names, and behind them
				exec(t, s, `UPDATE compactor.outbox SET tenant = 'large', first_at = first_at - interval '1 hour'`)
				exec(t, s, `UPDATE compactor.runs SET turn_of = 'large', deliver_at = deliver_at - interval '1 hour' WHERE turn_of <> ''`)
				for _, tenant := range []string{"a-small", "z-small"} {
					fillQueue(t, s, name, 8, 1)
					exec(t, s, `UPDATE compactor.outbox o SET tenant = $1 FROM compactor.sessions s WHERE s.sid = o.sid AND s.tenant = 't0'`, tenant)
					exec(t, s, `UPDATE compactor.runs o SET turn_of = $1 FROM compactor.sessions s WHERE s.sid = o.sid AND s.tenant = 't0' AND o.turn_of <> ''`, tenant)
					exec(t, s, `UPDATE compactor.sessions SET tenant = $1 WHERE tenant = 't0'`, tenant)
				}
				// The page that was begun, and then at most as many of large as of the others, or its share of a page.
				most := map[int]int{1: 10, 20: 40}[limit]
				taken := map[string]int{}
				// until takes pages until there are that many of the small tenants, at most 100.
				until := func(small int) {
					for range 100 {
						for _, name := range sessionsOfTenants(t, s, take(t, s, limit)) {
							tenant, _, _ := strings.Cut(name, "/")
							taken[tenant]++
						}
						if taken["a-small"]+taken["z-small"] == small {
							return
						}
					}
				}
				until(16)
				if taken["a-small"] != 8 || taken["z-small"] != 8 || taken["large"] > most {
					t.Errorf("took %v, want all of both small tenants and at most %d of the large one", taken, most)
				}
				until(17)
				if taken["large"] != 60 || taken["a-small"]+taken["z-small"] != 16 {
					t.Errorf("took %v in the end, want all, each once", taken)
				}
			})
		}
	}
}

// Rows that need no run take the turn of their tenant all the same, and another page.
func TestRowsWithoutARunTakeATurn(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]string{
		"not due": `UPDATE compactor.sessions SET due = false WHERE tenant = 'large'`,
		"paused":  `SELECT compactor.pause_runs('large', '', '', '')`,
		"limited": `SELECT compactor.limit_spending('large', NULL, NULL, NULL, p_runs_per_second => 0.001)`,
	} {
		for _, queue := range []string{"events", "requests"} {
			t.Run(name+" "+queue, func(t *testing.T) {
				s := fresh(t)
				for _, fill := range []struct {
					tenant string
					n      int
				}{{"large", 200}, {"small", 1}} {
					fillQueue(t, s, queue, fill.n, 1)
					exec(t, s, `UPDATE compactor.outbox SET tenant = $1 WHERE tenant = 't0'`, fill.tenant)
					exec(t, s, `UPDATE compactor.runs SET turn_of = $1 WHERE turn_of = 't0'`, fill.tenant)
					exec(t, s, `UPDATE compactor.sessions SET tenant = $1 WHERE tenant = 't0'`, fill.tenant)
				}
				exec(t, s, set)
				for range 3 {
					must(s.Scheduler.Relay(t.Context(), 0, 0, 4, time.Minute))(t)
					must(s.Scheduler.Deliver(t.Context(), 4, 1000, time.Minute))(t)
				}
				if n := one[int](t, s, `SELECT count(*) FROM compactor.runs r JOIN compactor.sessions s USING (sid) WHERE s.tenant = 'small' AND r.delivery > 0`); n != 1 {
					t.Errorf("%d runs of the small tenant started, want 1", n)
				}
				if left := one[int](t, s, `SELECT count(*) FROM compactor.outbox WHERE last_at <= now()`); left > 140 {
					t.Errorf("%d rows are left after three calls", left)
				}
			})
		}
	}
}

// The limit of runs of all tenants is shared by turns, too.
func TestALimitOfAllRunsIsSharedByTurns(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"events", "requests"} {
		t.Run(name, func(t *testing.T) {
			s := fresh(t)
			fillQueue(t, s, name, 40, 1)
			fillQueue(t, s, name, 1, 2) // t0 once more, and t1
			limitRuns(t, s, "", 2)
			for range 4 {
				letStart(t, s, true)
				if name == "events" {
					must(s.Scheduler.Relay(t.Context(), 0, 0, 100, time.Hour))(t)
				} else {
					must(s.Scheduler.Deliver(t.Context(), 100, 100, time.Hour))(t)
				}
			}
			if n := one[int](t, s, `SELECT count(*) FROM compactor.runs r JOIN compactor.sessions s USING (sid) WHERE s.tenant = 't1' AND r.delivery > 0`); n != 1 {
				t.Errorf("%d runs of the small tenant started, want 1", n)
			}
			equal(t, 8, one[int](t, s, `SELECT count(*) FROM compactor.runs WHERE delivery > 0`), "runs started")
		})
	}
}

// fillQueue makes n due sessions of each of some tenants, t0 and so on, each with a row of the outbox or with a
// request.
func fillQueue(t testing.TB, s *Store, queue string, n, tenants int) {
	t.Helper()
	exec(t, s, `INSERT INTO compactor.sessions (tenant, id, due, due_tokens, live_tokens, last_source_seq, last_seq)
		SELECT 't' || i % $2, 's' || i || '-' || random(), true, 1, 2, 1, 1 FROM generate_series(0, $1::int * $2::int - 1) i`, n, tenants)
	switch queue {
	case "events":
		exec(t, s, `INSERT INTO compactor.outbox (sid, tenant) SELECT sid, tenant FROM compactor.sessions WHERE tenant LIKE 't%' ON CONFLICT DO NOTHING`)
	case "requests":
		exec(t, s, `INSERT INTO compactor.runs (sid, turn_of, trigger) SELECT sid, tenant, 'application' FROM compactor.sessions s
			WHERE tenant LIKE 't_' AND NOT EXISTS (SELECT FROM compactor.runs r WHERE r.sid = s.sid)`)
	}
}

// sessionsOfTenants returns the sessions of deliveries as tenant/session.
func sessionsOfTenants(t *testing.T, s *Store, ds []Delivery) []string {
	t.Helper()
	ids := runsOf(ds)
	return list[string](t, s, `SELECT s.tenant || '/' || s.id FROM compactor.runs r JOIN compactor.sessions s USING (sid) WHERE r.id = ANY($1)`, ids)
}

// BenchmarkRelayGrowth takes all of an outbox, page by page.
func BenchmarkRelayGrowth(b *testing.B) {
	for _, tenants := range []int{1, 1000} {
		b.Run(fmt.Sprint(tenants), func(b *testing.B) {
			s := open(b)
			growth.Report(b, 2000, 8, func(n int) func() {
				exec(b, s, `INSERT INTO compactor.sessions (tenant, id, due, due_tokens, live_tokens, last_source_seq, last_seq)
					SELECT 't' || i % $2, $1 || '-' || i, true, 1, 2, 1, 1 FROM generate_series(1, $1) i`, n, tenants)
				return func() {
					exec(b, s, `UPDATE compactor.runs SET status = 'skipped', outcome = 'unchanged', ended_at = now() WHERE status = 'queued'`)
					exec(b, s, `INSERT INTO compactor.outbox (sid, tenant) SELECT sid, tenant FROM compactor.sessions WHERE id LIKE $1 || '-%'`, fmt.Sprint(n))
					exec(b, s, `VACUUM ANALYZE compactor.runs, compactor.outbox`)
					for left := n; left > 0; {
						page, err := s.Scheduler.Relay(context.Background(), 0, 0, 500, time.Minute)
						if err != nil || len(page) == 0 {
							b.Fatal(len(page), left, err)
						}
						left -= len(page)
					}
				}
			})
		})
	}
}
