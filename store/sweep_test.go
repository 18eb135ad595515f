package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// dueOf makes n sessions of a tenant that are due, and no outbox rows.
func dueOf(t *testing.T, s *Store, tenant string, n int) {
	t.Helper()
	for i := range n {
		if _, _, err := s.Import(t.Context(), Key{Tenant: tenant, Session: fmt.Sprintf("%s%03d", tenant, i)}, "", []NewMessage{counted(user("m1", "x"), 11)}); err != nil {
			t.Fatal(err)
		}
	}
}

// dueTenant is a tenant with a number of sessions that are due.
type dueTenant struct {
	name     string
	sessions int
}

// freshDue is fresh with sessions that are due above ten tokens.
func freshDue(t *testing.T, tenants ...dueTenant) *Store {
	t.Helper()
	s := fresh(t)
	thresholds(t, s, Threshold{DueTokens: 10})
	for _, x := range tenants {
		dueOf(t, s, x.name, x.sessions)
	}
	return s
}

// startSweep starts a sweep as an operator does.
func startSweep(t *testing.T, s *Store, tenant string, window time.Duration) int64 {
	t.Helper()
	return must(s.Operator.StartSweep(t.Context(), tenant, window, "spring cleaning", "ada"))(t)
}

// page takes a page and returns the sessions of its runs.
func page(t *testing.T, s *Store, sweep int64, limit int) ([]string, bool) {
	t.Helper()
	ds, done := must2(s.Scheduler.SweepPage(t.Context(), sweep, limit, time.Minute))(t)
	return sessionsOf(t, s, ds), done
}

// wantSweep compares status, reason, due, queued, left out and remaining sessions.
func wantSweep(t *testing.T, s *Store, sweep int64, want string) SweepRow {
	t.Helper()
	r := must(s.Operator.Sweep(t.Context(), sweep))(t)
	due := int64(-1)
	if r.Due != nil {
		due = *r.Due
	}
	if got := fmt.Sprintf("%s %q due %d queued %d left out %d remaining %d", r.Status, r.Reason, due, r.Queued, r.LeftOut, r.Remaining); got != want {
		t.Errorf("sweep %d is %s, want %s", sweep, got, want)
	}
	if (r.EndedAt != nil) == slices.Contains([]string{"open", "paused"}, r.Status) {
		t.Errorf("sweep %d is %s and ended at %v", sweep, r.Status, r.EndedAt)
	}
	return r
}

func TestTenantsTakeTurnsInASweep(t *testing.T) {
	s := freshDue(t, dueTenant{"big", 60})
	for i := range 4 {
		dueOf(t, s, fmt.Sprint("small", i), 3)
	}
	sweep := startSweep(t, s, "", 0)
	wantSweep(t, s, sweep, `open "" due -1 queued 0 left out 0 remaining 0`)
	// A share is eight sessions at least, so a page of 16 has room for two tenants.
	var sizes []int
	for done := false; !done; {
		var got []string
		got, done = page(t, s, sweep, 16)
		sizes = append(sizes, len(got))
		if len(sizes) == 3 {
			wantSweep(t, s, sweep, `open "" due 72 queued 28 left out 0 remaining 44`)
		}
	}
	equal(t, []int{8 + 3, 3 + 3, 8 + 3, 16, 16, 12, 0}, sizes, "sizes of pages")
	r := wantSweep(t, s, sweep, `done "" due 72 queued 72 left out 0 remaining 0`)
	if r.Waiting != 72 || r.Settled() || r.Note != "spring cleaning" || r.RequestedBy != "ada" {
		t.Errorf("%+v", r)
	}
	equal(t, 0, one[int](t, s, `SELECT count(*) FROM compactor.sweep_tenants`), "rows are left of a sweep that is done")
}

// The page waits for the run of an event that is being inserted, which then ends.
func TestASweepLeavesOutASessionWhoseEventRunEndsMeanwhile(t *testing.T) {
	s := freshDue(t, dueTenant{"acme", 3})
	sweep := startSweep(t, s, "", 0)
	var got []string
	endsMeanwhile(t, s, TriggerEvent, func() { got, _ = page(t, s, sweep, 100) })
	equal(t, []string{"acme000", "acme002"}, got, "page")
	page(t, s, sweep, 100)
	wantSweep(t, s, sweep, `done "" due 3 queued 2 left out 1 remaining 0`)
}

// The same the other way round.
func TestTheRelayLeavesOutASessionWhoseSweptRunEndsMeanwhile(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{"", 10, 0, false, Counts{}})
	for i := range 3 {
		add(t, s, Key{Tenant: "acme", Session: fmt.Sprintf("acme%03d", i)}, user("", "as long as it takes to be due by the threshold of ten"))
	}
	var got []Delivery
	endsMeanwhile(t, s, TriggerNightly, func() { got = must(s.Scheduler.Relay(t.Context(), 0, 0, 10, time.Minute))(t) })
	if len(got) != 2 {
		t.Errorf("the relay delivers %v, want runs of the other two", got)
	}
	equal(t, 2, one[int](t, s, `SELECT count(*) FROM compactor.runs WHERE trigger = 'event'`), "runs of events")
}

// endsMeanwhile inserts a run of acme001, calls do, which waits for that, and ends the run.
func endsMeanwhile(t *testing.T, s *Store, trigger string, do func()) {
	t.Helper()
	tx := must(s.pool.Begin(t.Context()))(t)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	step := func(sql string, args ...any) {
		must(tx.Exec(t.Context(), sql, args...))(t)
	}
	step(`INSERT INTO compactor.runs (sid, trigger) SELECT sid, $1 FROM compactor.sessions WHERE id = 'acme001'`, trigger)
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	for waiters(t, s) == 0 {
		if t.Context().Err() != nil {
			t.Fatal("nothing waits for the run")
		}
	}
	step(`UPDATE compactor.runs SET status = 'skipped', outcome = 'x', ended_at = now() WHERE trigger = $1`, trigger)
	step(`UPDATE compactor.sessions SET due = false WHERE id = 'acme001'`)
	noError(t, tx.Commit(t.Context()))
	<-done
}

func TestASweepOfOneTenantLeavesOthersAlone(t *testing.T) {
	s := freshDue(t, dueTenant{"acme", 3}, dueTenant{"globex", 3})
	sweep := startSweep(t, s, "acme", 0)
	got, _ := page(t, s, sweep, 100)
	equal(t, []string{"acme000", "acme001", "acme002"}, got, "page")
	if ds := must(s.Scheduler.Forgotten(t.Context(), 10, time.Minute))(t); len(ds) != 3 {
		t.Errorf("the reconciler queues %v, want the three of the other tenant", ds)
	}
	// One over all is worked on beside it, and another one over the same sessions is refused; that
	// of a tick waits until it has passed them.
	all := startSweep(t, s, "", 0)
	for _, tenant := range []string{"", "acme", "globex"} {
		if _, err := s.Operator.StartSweep(t.Context(), tenant, 0, "", "ada"); !errors.Is(err, ErrInUse) || !strings.Contains(fmt.Sprint(err), fmt.Sprintf("sweep %d (operator) is open", map[string]int64{"": all, "acme": sweep, "globex": all}[tenant])) {
			t.Errorf("another sweep over %q: %v", tenant, err)
		}
	}
	later := must(s.Scheduler.FireTick(t.Context(), "nightly", time.Now(), "x"))(t)
	var ids []int64
	for _, w := range must(s.Scheduler.OpenSweeps(t.Context()))(t) {
		ids = append(ids, w.ID)
	}
	if slices.Sort(ids); !slices.Equal(ids, []int64{sweep, all}) {
		t.Errorf("pages are taken of %v, want %d and %d before that of the tick (%v)", ids, sweep, all, later)
	}
	noError(t, s.Operator.SteerSweep(t.Context(), all, SweepCancel, "", "ada", 0))
	if open := must(s.Scheduler.OpenSweeps(t.Context()))(t); len(open) != 2 || open[1].Entry != "nightly" {
		t.Errorf("pages are taken of %v, want the one of the tick to go on", open)
	}
}

// In a cooldown there is nothing to do but to repair a view.
func TestASweepLeavesOutSessionsInACooldown(t *testing.T) {
	s := freshDue(t, dueTenant{"acme", 5})
	exec(t, s, `UPDATE compactor.sessions SET cooldown_until = now() + interval '1 hour' WHERE id <> 'acme000'`)
	exec(t, s, `UPDATE compactor.sessions SET suspect_seq = 1 WHERE id = 'acme001'`)
	exec(t, s, `UPDATE compactor.sessions SET hold_code = 'min_interval' WHERE id = 'acme002'`) // another policy may not have that guard
	f := must(s.Operator.ForecastSweep(t.Context(), ""))(t)
	if runs, _ := f.Runs(); f.Sessions != 5 || f.Cooling != 2 || runs != 3 {
		t.Errorf("forecast %+v", f)
	}
	sweep := startSweep(t, s, "", 0)
	got, _ := page(t, s, sweep, 100)
	equal(t, []string{"acme000", "acme001", "acme002"}, got, "page")
	wantSweep(t, s, sweep, `open "" due 5 queued 3 left out 2 remaining 0`)
}

func TestAnOperatorSteersASweep(t *testing.T) {
	s := freshDue(t, dueTenant{"a", 5})
	sweep := startSweep(t, s, "", 0)
	steer := func(action, note string, want error) {
		t.Helper()
		wantError(t, s.Operator.SteerSweep(t.Context(), sweep, action, note, "ada", 0), want, "%s", action)
	}
	page(t, s, sweep, 2)
	steer(SweepResume, "", ErrNotApplicable)
	steer(SweepPause, "the model is ill", nil)
	steer(SweepPause, "", ErrNotApplicable)
	if got, done := page(t, s, sweep, 2); len(got) > 0 || !done || len(must(s.Scheduler.OpenSweeps(t.Context()))(t)) > 0 {
		t.Errorf("a paused sweep queues %v", got)
	}
	r := wantSweep(t, s, sweep, `paused "the model is ill" due 5 queued 2 left out 0 remaining 3`)
	equal(t, "ada", r.ChangedBy, "changed by")
	none(t, must(s.Scheduler.Forgotten(t.Context(), 10, time.Minute))(t), "the reconciler goes on with a paused sweep")
	steer(SweepResume, "", nil)
	if got, _ := page(t, s, sweep, 2); !slices.Equal(got, []string{"a002", "a003"}) {
		t.Errorf("it goes on with %v", got)
	}
	claimed := must(s.Worker.Claim(t.Context(), 1, "w", time.Minute))(t)
	steer(SweepCancel, "enough", nil)
	steer(SweepResume, "", ErrNotApplicable)
	steer("wreck", "", ErrInvalid)
	r = wantSweep(t, s, sweep, `cancelled "enough" due 5 queued 4 left out 0 remaining 0`)
	if r.Running != 1 || r.Waiting != 0 || r.Settled() {
		t.Errorf("%+v", r)
	}
	want := []RunOutcome{{Outcome: "cancelled", Runs: 3}}
	equal(t, want, must(s.Operator.SweepOutcomes(t.Context(), sweep))(t), "outcomes")
	noError(t, s.Worker.Finish(t.Context(), claimed, StatusSkipped, Ledger{Outcome: "unchanged"}, nil))
	none(t, must(s.Scheduler.Forgotten(t.Context(), 10, time.Minute))(t), "the reconciler goes on with a cancelled sweep")
	exec(t, s, `UPDATE compactor.sweeps SET ended_at = ended_at - interval '25 hours'`)
	if ds := must(s.Scheduler.Forgotten(t.Context(), 10, time.Minute))(t); len(ds) != 4 {
		t.Errorf("a day later the reconciler finds %v", ds)
	}
	sweep = 999
	steer(SweepCancel, "", ErrNotFound)
	if _, err := s.Operator.Sweep(t.Context(), 999); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

// A sweep holds the sessions that were due when it ended, or that it is yet to pass.
func TestASweepHoldsNothingThatBecomesDueAfterwards(t *testing.T) {
	t.Parallel()
	for _, tenant := range []string{"", "a"} {
		t.Run("tenant "+tenant, func(t *testing.T) {
			s := freshDue(t, dueTenant{"a", 4})
			sweep := startSweep(t, s, tenant, 0)
			found := func(when string, want ...string) {
				t.Helper()
				noDiff(t, cmp.Diff(want, sessionsOf(t, s, must(s.Scheduler.Forgotten(t.Context(), 10, time.Minute))(t)), cmpopts.EquateEmpty()), "%s: found", when)
			}
			becomes := func(session string) {
				t.Helper()
				must2(s.Import(t.Context(), Key{Tenant: "a", Session: session}, "", []NewMessage{counted(user("m1", "x"), 11)}))(t)
			}
			found("before it begins")
			must2(s.Scheduler.SweepPage(t.Context(), sweep, 2, time.Minute))(t)
			exec(t, s, `UPDATE compactor.runs SET status = 'failed', outcome = 'x', ended_at = now()`)
			found("behind it, not before it", "a000", "a001")
			noError(t, s.Operator.SteerSweep(t.Context(), sweep, SweepCancel, "", "ada", 0))
			becomes("later")
			found("due later", "later")
			h := must(s.Operator.HeldBySweep(t.Context(), sweep))(t)
			if h == nil || h.Reason != HeldStoppedSweep || h.Sessions != 2 || h.Until == nil || h.EndsBy != fmt.Sprint("compactor sweep release ", sweep) {
				t.Errorf("%+v", h)
			}
			noError(t, s.Operator.SteerSweep(t.Context(), sweep, SweepRelease, "", "ada", 0))
			found("released", "a002", "a003")
			if h := must(s.Operator.HeldBySweep(t.Context(), sweep))(t); h != nil {
				t.Errorf("%+v", h)
			}
		})
	}
}
