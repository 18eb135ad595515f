package metrics

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
)

// fakeStore returns a state of the fleet.
type fakeStore struct {
	state store.Fleet
	held  []store.Held
	err   error
	asked int // how often
	named int // tenants
	slow  func()

	heldErr   error
	deadlines []time.Time // of the reads
}

func (f *fakeStore) Fleet(ctx context.Context, _ string, tenants int) (store.Fleet, error) {
	f.asked++
	f.note(ctx)
	f.named = tenants
	if f.slow != nil {
		f.slow()
	}
	return f.state, f.err
}

func (f *fakeStore) HeldBack(ctx context.Context, _ string) ([]store.Held, error) {
	f.note(ctx)
	return f.held, errors.Join(f.err, f.heldErr)
}

func (f *fakeStore) note(ctx context.Context) {
	deadline, _ := ctx.Deadline()
	f.deadlines = append(f.deadlines, deadline)
}

func (*fakeStore) PoolStats() store.PoolStats {
	return store.PoolStats{Busy: 3, Idle: 2, Max: 20, Waits: 7, Waited: 1500 * time.Millisecond}
}

// watching returns metrics that watch a store on a clock of their own.
func watching(st *fakeStore, tenants int) (*Metrics, *fleet, *time.Time) {
	m := New("v1", "abc")
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f := m.newFleet(st, tenants)
	f.now = func() time.Time { return clock }
	m.registry.MustRegister(f)
	return m, f, &clock
}

func TestOnlyTheLeaderShowsTheFleet(t *testing.T) {
	t.Parallel()
	st := &fakeStore{state: store.Fleet{
		Tenants: []store.TenantDue{
			{Tenant: "acme", Sessions: 5, Cooling: 1, Repairs: 1, Debt: 700, OldestSeconds: 30},
			{Tenant: "other", Sessions: 2, Debt: 60, OldestSeconds: 90},
			{Others: true, Sessions: 3, Debt: 40, OldestSeconds: 10},
		},
		Outbox: 4, OldestOutboxSeconds: 2,
		Active: []store.ActiveRuns{{Trigger: "event", Queued: 6, Running: 1, OldestQueuedSeconds: 8}},
		Sweeps: []store.SweepProgress{{Entry: "nightly", Queued: 10, Left: 5, Seconds: 60}, {Entry: "nightly", Queued: 3, Left: 7, Seconds: 20}},
	}}
	st.held = []store.Held{{Reason: "paused", Sessions: 4}, {Reason: "paused", Sessions: 2}}
	m, f, _ := watching(st, 2)
	if n, err := testutil.GatherAndCount(m.registry, "compactor_due_sessions", "compactor_database_connections"); n != 2 || err != nil || st.asked != 0 {
		t.Errorf("standing by: %d series, %v, asked %d times", n, err, st.asked)
	}
	m.Leading(true)
	want(t, m, `
# HELP compactor_due_sessions Sessions that are due, by cause: size (over their start), repair (a view that may be invalid), cooldown (due, but waiting for its end).
# TYPE compactor_due_sessions gauge
compactor_due_sessions{cause="cooldown"} 1
compactor_due_sessions{cause="repair"} 1
compactor_due_sessions{cause="size"} 8
# HELP compactor_oldest_due_seconds Longest time for which a session may have been due, cooldowns left out.
# TYPE compactor_oldest_due_seconds gauge
compactor_oldest_due_seconds 90
# HELP compactor_debt_tokens Compaction debt: the tokens by which sessions that are due are over their start.
# TYPE compactor_debt_tokens gauge
compactor_debt_tokens 800
# HELP compactor_tenant_debt_tokens Compaction debt by tenant.
# TYPE compactor_tenant_debt_tokens gauge
compactor_tenant_debt_tokens{tenant="acme"} 700
compactor_tenant_debt_tokens{tenant="other"} 100
# HELP compactor_runs_active Runs that have not ended, by trigger and status (queued, running).
# TYPE compactor_runs_active gauge
compactor_runs_active{status="queued",trigger="event"} 6
compactor_runs_active{status="running",trigger="event"} 1
# HELP compactor_sweep_left_sessions Sessions that are due and that the open sweeps of an entry have not come to.
# TYPE compactor_sweep_left_sessions gauge
compactor_sweep_left_sessions{entry="nightly"} 7
# HELP compactor_sweep_queued_runs Runs that the open sweeps of an entry have queued.
# TYPE compactor_sweep_queued_runs gauge
compactor_sweep_queued_runs{entry="nightly"} 13
# HELP compactor_scheduler_leading 1 while this process is the leading scheduler, otherwise 0.
# TYPE compactor_scheduler_leading gauge
compactor_scheduler_leading 1
`, "due_sessions", "oldest_due_seconds", "debt_tokens", "tenant_debt_tokens", "runs_active", "sweep_left_sessions", "sweep_queued_runs", "scheduler_leading")
	if st.named != 2 {
		t.Errorf("asked for %d tenants", st.named)
	}
	if n, err := testutil.GatherAndCount(m.registry, "compactor_held_back_sessions"); n != len(store.HeldReasons) || err != nil {
		t.Errorf("%d reasons, %v, want each", n, err)
	}
	if got := f.held["paused"]; got != 6 {
		t.Errorf("%d sessions are paused, want the sum of both pauses", got)
	}
	m.Leading(false)
	if n, err := testutil.GatherAndCount(m.registry, "compactor_due_sessions"); n != 0 || err != nil {
		t.Errorf("after the lead: %d series, %v", n, err)
	}
}

func TestTheFleetIsReadAtMostSoOften(t *testing.T) {
	t.Parallel()
	st := &fakeStore{}
	m, f, clock := watching(st, 1)
	m.Leading(true)
	scrape := func(after time.Duration, asked int) {
		t.Helper()
		*clock = clock.Add(after)
		if _, err := m.registry.Gather(); err != nil {
			t.Fatal(err)
		}
		if st.asked != asked {
			t.Errorf("asked %d times, want %d", st.asked, asked)
		}
	}
	scrape(0, 1)
	scrape(fleetAge-1, 1)
	st.slow = func() { *clock = clock.Add(3 * time.Second) }
	scrape(1, 2)
	st.slow = nil
	scrape(fleetAge, 2) // a reading of 3 s is worth a minute
	st.err = errors.New("no answer")
	scrape(50*time.Second, 3)
	if age := clock.Sub(f.at); age != time.Minute || f.failures != 1 {
		t.Errorf("after a failure: age %s, %d failures", age, f.failures)
	}
	scrape(fleetAge, 4)
}

// A slow database is waited for once, and what it did not answer keeps its last value.
func TestASlowDatabaseKeepsTheLastReasons(t *testing.T) {
	t.Parallel()
	st := &fakeStore{held: []store.Held{{Reason: "paused", Sessions: 4}}}
	m, f, clock := watching(st, 1)
	m.Leading(true)
	for range 2 {
		*clock = clock.Add(time.Hour)
		if n, err := testutil.GatherAndCount(m.registry, "compactor_held_back_sessions"); n != len(store.HeldReasons) || err != nil || f.held["paused"] != 4 {
			t.Errorf("%d reasons, %v: %v", n, err, f.held)
		}
		st.held, st.heldErr = nil, context.DeadlineExceeded
	}
	if f.failures != 1 {
		t.Errorf("%d failures, want 1", f.failures)
	}
	if d := st.deadlines; len(d) != 4 || !d[0].Equal(d[1]) || !d[2].Equal(d[3]) {
		t.Errorf("one read has several timeouts: %v", d)
	}
}

func TestTenantsAreBounded(t *testing.T) {
	t.Parallel()
	st := &fakeStore{}
	m, f, clock := watching(st, 20)
	m.Leading(true)
	series := 0
	for i := range 500 { // other ones each time: 10,000 in all
		st.state.Tenants = []store.TenantDue{{Others: true, Sessions: 9980, Debt: 1}}
		for n := range 20 {
			st.state.Tenants = append(st.state.Tenants, store.TenantDue{Tenant: fmt.Sprint("tenant-", i*20+n), Sessions: 1, Debt: 100})
		}
		*clock = clock.Add(time.Minute)
		n, err := testutil.GatherAndCount(m.registry)
		if err != nil {
			t.Fatal(err)
		}
		if series == 0 {
			series = n
		}
		if n != series || len(f.debt) != 22 {
			t.Fatalf("%d series after %d, %d averages", n, series, len(f.debt))
		}
	}
}

func TestDebtIsSmoothed(t *testing.T) {
	t.Parallel()
	st := &fakeStore{state: store.Fleet{Tenants: []store.TenantDue{{Tenant: "a", Debt: 1000}}}}
	m, f, clock := watching(st, 1)
	m.Leading(true)
	debt := func(d chat.Tokens, after time.Duration, want float64) {
		t.Helper()
		st.state.Tenants[0].Debt = d
		*clock = clock.Add(after)
		if _, err := m.registry.Gather(); err != nil {
			t.Fatal(err)
		}
		for _, label := range []string{"", "a"} {
			if got := f.debt[label].value; math.Abs(got-want) > 1 {
				t.Errorf("%q: %.0f, want %.0f", label, got, want)
			}
		}
	}
	debt(1000, 0, 1000)
	debt(0, smoothing, 1000/math.E)
	// However often it is read meanwhile, the average is the same.
	debt(1000, 0, 1000/math.E)
	for range 10 {
		st.state.Tenants[0].Debt = 1000
		*clock = clock.Add(smoothing / 10)
		if _, err := m.registry.Gather(); err != nil {
			t.Fatal(err)
		}
	}
	debt(1000, 0, 1000-(1000-1000/math.E)/math.E)
	m.Leading(false)
	debt(1000, time.Minute, 0)
	m.Leading(true)
	debt(50, time.Minute, 50) // of the new lead
}
