package store

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// limitRuns limits the runs of a tenant, or of all.
func limitRuns(t *testing.T, s *Store, tenant string, perSecond float64) {
	t.Helper()
	noError(t, s.Operator.LimitSpending(t.Context(), SpendingLimit{Tenant: tenant, RunsPerSecond: &perSecond}))
}

// letStart lets the runs of a second start at once, or none for an hour.
func letStart(t *testing.T, s *Store, yes bool) {
	t.Helper()
	exec(t, s, `UPDATE compactor.spending_limits SET full_at = CASE WHEN $1 THEN now() ELSE now() + interval '1 hour' END`, yes)
}

// throttledWork lists the ways from Postgres to Redis. Each makes work of five sessions of the
// tenant big and two of small, and returns the function that takes some of it.
var throttledWork = map[string]func(t *testing.T, s *Store) (take func() []Delivery){
	"events": func(t *testing.T, s *Store) func() []Delivery {
		for _, k := range append(sessionsNamed("big", 5), sessionsNamed("small", 2)...) {
			add(t, s, k, user("m2", "x"))
		}
		return func() []Delivery {
			must(s.Scheduler.ReleaseThrottled(t.Context()))(t)
			return must(s.Scheduler.Relay(t.Context(), 0, 0, 100, time.Minute))(t)
		}
	},
	"requests": func(t *testing.T, s *Store) func() []Delivery {
		for _, k := range append(sessionsNamed("big", 5), sessionsNamed("small", 2)...) {
			must(s.Request(t.Context(), k, TriggerApplication, "", Options{}))(t)
		}
		return func() []Delivery {
			must(s.Scheduler.ReleaseThrottled(t.Context()))(t)
			return must(s.Scheduler.Undelivered(t.Context(), 100, time.Hour))(t)
		}
	},
	"a sweep": func(t *testing.T, s *Store) func() []Delivery {
		sweep := startSweep(t, s, "", 0)
		return func() []Delivery {
			ds, _ := must2(s.Scheduler.SweepPage(t.Context(), sweep, 100, time.Hour))(t)
			return ds
		}
	},
	"a bulk recompaction": func(t *testing.T, s *Store) func() []Delivery {
		exec(t, s, `INSERT INTO compactor.runs (sid, trigger, status, outcome, ended_at, in_force) SELECT sid, 'event', 'skipped', 'ineffective', now(), false FROM compactor.sessions`)
		id := must(s.Operator.StartBulkCompact(t.Context(), "", RunMatch{Outcome: "ineffective"}, Options{}, 0, "", ""))(t)
		return func() []Delivery {
			ds, _ := must2(s.Scheduler.BulkCompactPage(t.Context(), id, 100, time.Hour))(t)
			return ds
		}
	},
	"forgotten sessions": func(t *testing.T, s *Store) func() []Delivery {
		return func() []Delivery {
			ds := must(s.Scheduler.Forgotten(t.Context(), 100, time.Hour))(t)
			must(s.Scheduler.ReleaseThrottled(t.Context()))(t)
			return append(ds, must(s.Scheduler.Relay(t.Context(), 0, 0, 100, time.Hour))(t)...)
		}
	},
}

func sessionsNamed(tenant string, n int) (keys []Key) {
	for i := range n {
		keys = append(keys, Key{Tenant: tenant, Session: tenant + "00" + string(rune('0'+i))})
	}
	return keys
}

// No more runs start in a second than a limit allows, whatever they are for; the others stay,
// in their order, and keep no other tenant waiting.
func TestALimitOfRunsHoldsWorkInPostgres(t *testing.T) {
	t.Parallel()
	for name, work := range throttledWork {
		t.Run(name, func(t *testing.T) {
			s := freshDue(t, dueTenant{"big", 5}, dueTenant{"small", 2})
			take := work(t, s)
			want := func(sessions ...string) {
				t.Helper()
				noDiff(t, cmp.Diff(sessions, sessionsOf(t, s, take()), cmpopts.EquateEmpty()), "started")
			}
			limitRuns(t, s, "big", 3)
			if name == "a bulk recompaction" { // from the newest session down
				want("big002", "big003", "big004", "small000", "small001")
			} else {
				want("big000", "big001", "big002", "small000", "small001")
			}
			letStart(t, s, false)
			want()
			if name == "events" || name == "requests" {
				if l := must(s.Operator.Spending(t.Context(), ""))(t)[0]; l.Throttled != 2 || l.Started != 3 || l.Reached() {
					t.Errorf("%+v, want 2 that wait and 3 that started", l)
				}
			}
			if n, _ := must2(s.Scheduler.Waiting(t.Context(), TriggerApplication, 100))(t); name == "requests" && n != 5 {
				t.Errorf("%d runs count as enqueued, want 5", n)
			}
			letStart(t, s, true)
			if name == "a bulk recompaction" {
				want("big000", "big001")
			} else {
				want("big003", "big004")
			}
			want()
			equal(t, 0, one[int](t, s, `SELECT count(*) FROM compactor.throttled`), "rows wait for a limit")
		})
	}
}

// The limit of all together holds for every tenant, and the limits of tenants hold below it.
func TestALimitOfTheRunsOfAllTenants(t *testing.T) {
	t.Parallel()
	for name, work := range throttledWork {
		t.Run(name, func(t *testing.T) {
			s := freshDue(t, dueTenant{"big", 5}, dueTenant{"small", 2})
			take := work(t, s)
			limitRuns(t, s, "", 2)
			limitRuns(t, s, "small", 0.5)
			var sizes []int
			for range 5 {
				sizes = append(sizes, len(take()))
				letStart(t, s, false)
				equal(t, 0, len(take()), "runs start beyond the limit")
				letStart(t, s, true)
			}
			total := 0
			for _, n := range sizes {
				if total += n; n > 2 {
					t.Errorf("%v runs start at once, want two at most", sizes)
				}
			}
			if total != 7 {
				t.Errorf("%v runs start, want seven", sizes)
			}
		})
	}
}

func TestRunsOfOperatorsAndRepeatedDeliveriesAreNotLimited(t *testing.T) {
	s := freshDue(t, dueTenant{"a", 3})
	keys := sessionsNamed("a", 3)
	first := must(s.Request(t.Context(), keys[0], TriggerApplication, "", Options{}))(t)
	must(s.Scheduler.Undelivered(t.Context(), 10, time.Minute))(t)
	limitRuns(t, s, "", 1)
	limitRuns(t, s, "a", 1)
	must(s.Request(t.Context(), keys[1], TriggerApplication, "", Options{}))(t)
	must(s.Request(t.Context(), keys[2], TriggerOperator, "", Options{}))(t)
	if ds := must(s.Scheduler.Undelivered(t.Context(), 10, time.Minute))(t); len(ds) != 2 {
		t.Fatalf("%v, want the operator's run and one of the application", ds)
	}
	letStart(t, s, false)
	exec(t, s, `UPDATE compactor.runs SET deliver_at = now() WHERE id = $1`, first)
	must(s.Request(t.Context(), keys[0], TriggerOperator, "", Options{}))(t)
	if ds := must(s.Scheduler.Undelivered(t.Context(), 10, time.Minute))(t); len(ds) != 2 {
		t.Errorf("%v, want the operator's run and the one that is delivered again", ds)
	}
}

func TestWhatWaitsForALimitGoesOnWithoutIt(t *testing.T) {
	s := freshDue(t, dueTenant{"big", 5}, dueTenant{"small", 2})
	events, requests := throttledWork["events"](t, s), throttledWork["requests"]
	limitRuns(t, s, "big", 1)
	letStart(t, s, false)
	if ds := events(); len(ds) != 2 {
		t.Fatalf("%v, want those of the other tenant", ds)
	}
	// A request of a session that waits is a run of its own, and waits too; Expire spares it.
	take := requests(t, s)
	take()
	exec(t, s, `UPDATE compactor.runs SET waiting_since = now() - interval '30 days'`)
	equal(t, 5, one[int](t, s, `SELECT count(*) FROM compactor.runs WHERE error_code = 'run_limit'`), "requests wait")
	must(s.Scheduler.RedeliverAll(t.Context()))(t)
	if ds := take(); len(ds) > 4 { // two events and two requests of the other tenant
		t.Errorf("a new Redis gets %v", ds)
	}
	must(s.Scheduler.Expire(t.Context(), time.Hour, 100))(t)
	if b := must(s.Scheduler.Backlog(t.Context()))(t); b.Outbox != 5 {
		t.Errorf("%+v, want the five events in the outbox", b)
	}
	if x := must(s.Operator.Explain(t.Context(), sessionsNamed("big", 1)[0]))(t); len(x.Held) == 0 || x.Held[len(x.Held)-1].Reason != CodeRunLimit {
		t.Error("what waits is not explained")
	}
	noError(t, s.Operator.LimitSpending(t.Context(), SpendingLimit{Tenant: "big"}))
	if ds := take(); len(ds) != 5 {
		t.Errorf("%v, want the five requests", ds)
	}
	equal(t, []string{"big000 1", "big001 1", "big002 1", "big003 1", "big004 1"}, gens(t, s), "outbox")
}
