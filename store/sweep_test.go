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

// startSweep starts a sweep as an operator does.
func startSweep(t *testing.T, s *Store, tenant string, window time.Duration) int64 {
	t.Helper()
	return must(s.StartSweep(t.Context(), tenant, window, "spring cleaning", "ada"))(t)
}

// page takes a page and returns the sessions of its runs.
func page(t *testing.T, s *Store, sweep int64, limit int) ([]string, bool) {
	t.Helper()
	ds, done := must2(s.SweepPage(t.Context(), sweep, limit, time.Minute))(t)
	return sessionsOf(t, s, ds), done
}

// wantSweep compares status, reason, due, queued, left out and remaining sessions.
func wantSweep(t *testing.T, s *Store, sweep int64, want string) SweepRow {
	t.Helper()
	r := must(s.Sweep(t.Context(), sweep))(t)
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
	t.Parallel()
	s := open(t)
	thresholds(t, s, Threshold{"", 10, 0, false, Counts{}})
	dueOf(t, s, "big", 60)
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
	if diff := cmp.Diff([]int{8 + 3, 3 + 3, 8 + 3, 16, 16, 12, 0}, sizes); diff != "" {
		t.Errorf("sizes of pages (-want +got):\n%s", diff)
	}
	r := wantSweep(t, s, sweep, `done "" due 72 queued 72 left out 0 remaining 0`)
	if r.Waiting != 72 || r.Settled() || r.Note != "spring cleaning" || r.RequestedBy != "ada" {
		t.Errorf("%+v", r)
	}
	if n := one[int](t, s, `SELECT count(*) FROM compactor.sweep_tenants`); n != 0 {
		t.Errorf("%d rows are left of a sweep that is done", n)
	}
}

// The page waits for the run of an event that is being inserted, which then ends.
func TestASweepLeavesOutASessionWhoseEventRunEndsMeanwhile(t *testing.T) {
	t.Parallel()
	s := open(t)
	thresholds(t, s, Threshold{"", 10, 0, false, Counts{}})
	dueOf(t, s, "acme", 3)
	sweep := startSweep(t, s, "", 0)
	var got []string
	endsMeanwhile(t, s, TriggerEvent, func() { got, _ = page(t, s, sweep, 100) })
	if diff := cmp.Diff([]string{"acme000", "acme002"}, got); diff != "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
	page(t, s, sweep, 100)
	wantSweep(t, s, sweep, `done "" due 3 queued 2 left out 1 remaining 0`)
}

// The same the other way round.
func TestTheRelayLeavesOutASessionWhoseSweptRunEndsMeanwhile(t *testing.T) {
	t.Parallel()
	s := open(t)
	thresholds(t, s, Threshold{"", 10, 0, false, Counts{}})
	for i := range 3 {
		add(t, s, Key{Tenant: "acme", Session: fmt.Sprintf("acme%03d", i)}, user("", "as long as it takes to be due by the threshold of ten"))
	}
	var got []Delivery
	endsMeanwhile(t, s, TriggerNightly, func() { got = must(s.Relay(t.Context(), 0, 0, 10, time.Minute))(t) })
	if len(got) != 2 {
		t.Errorf("the relay delivers %v, want runs of the other two", got)
	}
	if n := one[int](t, s, `SELECT count(*) FROM compactor.runs WHERE trigger = 'event'`); n != 2 {
		t.Errorf("%d runs of events, want 2", n)
	}
}

// endsMeanwhile inserts a run of acme001, calls do, which waits for that, and ends the run.
func endsMeanwhile(t *testing.T, s *Store, trigger string, do func()) {
	t.Helper()
	tx := must(s.pool.Begin(t.Context()))(t)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	step := func(sql string, args ...any) {
		if _, err := tx.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
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
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-done
}

func TestASweepOfOneTenantLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	s := open(t)
	thresholds(t, s, Threshold{"", 10, 0, false, Counts{}})
	dueOf(t, s, "acme", 3)
	dueOf(t, s, "globex", 3)
	sweep := startSweep(t, s, "acme", 0)
	got, _ := page(t, s, sweep, 100)
	if diff := cmp.Diff([]string{"acme000", "acme001", "acme002"}, got); diff != "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
	if ds := must(s.Forgotten(t.Context(), 10, time.Minute))(t); len(ds) != 3 {
		t.Errorf("the reconciler queues %v, want the three of the other tenant", ds)
	}
	// One over all is worked on beside it, and another one over the same sessions is refused; that
	// of a tick waits until it has passed them.
	all := startSweep(t, s, "", 0)
	for _, tenant := range []string{"", "acme", "globex"} {
		if _, err := s.StartSweep(t.Context(), tenant, 0, "", "ada"); !errors.Is(err, ErrInUse) || !strings.Contains(fmt.Sprint(err), fmt.Sprintf("sweep %d (operator) is open", map[string]int64{"": all, "acme": sweep, "globex": all}[tenant])) {
			t.Errorf("another sweep over %q: %v", tenant, err)
		}
	}
	later := must(s.FireTick(t.Context(), "nightly", time.Now(), "x"))(t)
	var ids []int64
	for _, w := range must(s.OpenSweeps(t.Context()))(t) {
		ids = append(ids, w.ID)
	}
	if slices.Sort(ids); !slices.Equal(ids, []int64{sweep, all}) {
		t.Errorf("pages are taken of %v, want %d and %d before that of the tick (%v)", ids, sweep, all, later)
	}
	must(0, s.SteerSweep(t.Context(), all, SweepCancel, "", "ada", 0))(t)
	if open := must(s.OpenSweeps(t.Context()))(t); len(open) != 2 || open[1].Entry != "nightly" {
		t.Errorf("pages are taken of %v, want the one of the tick to go on", open)
	}
}

func TestAnOperatorSteersASweep(t *testing.T) {
	t.Parallel()
	s := open(t)
	thresholds(t, s, Threshold{"", 10, 0, false, Counts{}})
	dueOf(t, s, "a", 5)
	sweep := startSweep(t, s, "", 0)
	steer := func(action, note string, want error) {
		t.Helper()
		if err := s.SteerSweep(t.Context(), sweep, action, note, "ada", 0); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", action, err, want)
		}
	}
	page(t, s, sweep, 2)
	steer(SweepResume, "", ErrNotApplicable)
	steer(SweepPause, "the model is ill", nil)
	steer(SweepPause, "", ErrNotApplicable)
	if got, done := page(t, s, sweep, 2); len(got) > 0 || !done || len(must(s.OpenSweeps(t.Context()))(t)) > 0 {
		t.Errorf("a paused sweep queues %v", got)
	}
	r := wantSweep(t, s, sweep, `paused "the model is ill" due 5 queued 2 left out 0 remaining 3`)
	if r.ChangedBy != "ada" {
		t.Errorf("changed by %q", r.ChangedBy)
	}
	if ds := must(s.Forgotten(t.Context(), 10, time.Minute))(t); len(ds) > 0 {
		t.Errorf("the reconciler goes on with a paused sweep: %v", ds)
	}
	steer(SweepResume, "", nil)
	if got, _ := page(t, s, sweep, 2); !slices.Equal(got, []string{"a002", "a003"}) {
		t.Errorf("it goes on with %v", got)
	}
	claimed := must(s.Claim(t.Context(), 1, "w", time.Minute))(t)
	steer(SweepCancel, "enough", nil)
	steer(SweepResume, "", ErrNotApplicable)
	steer("wreck", "", ErrInvalid)
	r = wantSweep(t, s, sweep, `cancelled "enough" due 5 queued 4 left out 0 remaining 0`)
	if r.Running != 1 || r.Waiting != 0 || r.Settled() {
		t.Errorf("%+v", r)
	}
	want := []RunOutcome{{Outcome: "cancelled", Runs: 3}}
	if diff := cmp.Diff(want, must(s.SweepOutcomes(t.Context(), sweep))(t)); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if err := s.Finish(t.Context(), claimed, StatusSkipped, Ledger{Outcome: "unchanged"}, nil); err != nil {
		t.Fatal(err)
	}
	if ds := must(s.Forgotten(t.Context(), 10, time.Minute))(t); len(ds) > 0 {
		t.Errorf("the reconciler goes on with a cancelled sweep: %v", ds)
	}
	exec(t, s, `UPDATE compactor.sweeps SET ended_at = ended_at - interval '25 hours'`)
	if ds := must(s.Forgotten(t.Context(), 10, time.Minute))(t); len(ds) != 4 {
		t.Errorf("a day later the reconciler finds %v", ds)
	}
	sweep = 999
	steer(SweepCancel, "", ErrNotFound)
	if _, err := s.Sweep(t.Context(), 999); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

// What a sweep holds is what was due when it ended, or what it is yet to pass.
func TestASweepHoldsNothingThatBecomesDueAfterwards(t *testing.T) {
	t.Parallel()
	for _, tenant := range []string{"", "a"} {
		t.Run("tenant "+tenant, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			thresholds(t, s, Threshold{"", 10, 0, false, Counts{}})
			dueOf(t, s, "a", 4)
			sweep := startSweep(t, s, tenant, 0)
			found := func(when string, want ...string) {
				t.Helper()
				if got := sessionsOf(t, s, must(s.Forgotten(t.Context(), 10, time.Minute))(t)); !slices.Equal(got, want) {
					t.Errorf("%s: found %v, want %v", when, got, want)
				}
			}
			becomes := func(session string) {
				t.Helper()
				if _, _, err := s.Import(t.Context(), Key{Tenant: "a", Session: session}, "", []NewMessage{counted(user("m1", "x"), 11)}); err != nil {
					t.Fatal(err)
				}
			}
			found("before it begins")
			if _, _, err := s.SweepPage(t.Context(), sweep, 2, time.Minute); err != nil {
				t.Fatal(err)
			}
			exec(t, s, `UPDATE compactor.runs SET status = 'failed', outcome = 'x', ended_at = now()`)
			found("behind it, not before it", "a000", "a001")
			if err := s.SteerSweep(t.Context(), sweep, SweepCancel, "", "ada", 0); err != nil {
				t.Fatal(err)
			}
			becomes("later")
			found("due later", "later")
			h := must(s.HeldBySweep(t.Context(), sweep))(t)
			if h == nil || h.Reason != HeldStoppedSweep || h.Sessions != 2 || h.Until == nil || h.EndsBy != fmt.Sprint("compactor sweep release ", sweep) {
				t.Errorf("%+v", h)
			}
			if err := s.SteerSweep(t.Context(), sweep, SweepRelease, "", "ada", 0); err != nil {
				t.Fatal(err)
			}
			found("released", "a002", "a003")
			if h := must(s.HeldBySweep(t.Context(), sweep))(t); h != nil {
				t.Errorf("%+v", h)
			}
		})
	}
}

func TestTheRunsOfACanaryComeFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bad  int // of four runs of the canary
		want string
	}{
		"all of them pass":      {0, `open "" due 40 queued 40 left out 0 remaining 0`},
		"as many fail as may":   {2, `open "" due 40 queued 40 left out 0 remaining 0`},
		"more of them than may": {3, `stopped "canary" due 40 queued 4 left out 0 remaining 36`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			thresholds(t, s, Threshold{"", 10, 0, false, Counts{}})
			dueOf(t, s, "a", 40)
			sweep := must(s.Start(t.Context(), SweepOptions{Canary: 0.1}))(t)
			if got, done := page(t, s, sweep, 100); len(got) != 4 || done {
				t.Errorf("%d sessions come first, want 4 of 40", len(got))
			}
			end := func(n int, outcome string) {
				exec(t, s, `UPDATE compactor.runs SET status = 'skipped', outcome = $2, ended_at = now()
					WHERE id IN (SELECT id FROM compactor.runs WHERE status = 'queued' LIMIT $1)`, n, outcome)
			}
			end(c.bad, "no_summary")
			end(3-c.bad, "unchanged")
			if got, done := page(t, s, sweep, 100); len(got) > 0 || done {
				t.Errorf("while one has not ended: %v", got)
			}
			if r := must(s.Sweep(t.Context(), sweep))(t); r.Canary == nil || *r.Canary != 4 {
				t.Errorf("%+v", r)
			}
			end(1, "unchanged")
			page(t, s, sweep, 100)
			wantSweep(t, s, sweep, c.want)
			if c.bad <= 2 {
				return
			}
			// An operator who resumes it has seen that.
			if err := s.SteerSweep(t.Context(), sweep, SweepResume, "", "ada", 0); err != nil {
				t.Fatal(err)
			}
			if rest, _ := page(t, s, sweep, 100); len(rest) != 36 {
				t.Errorf("resumed, it goes on with %d sessions", len(rest))
			}
		})
	}
}

// One rule stops sweeps and bulk recompactions: more bad ends than their share among the latest
// runs, a hundred or more. Resumed, they go by the runs behind these.
func TestWorkWhoseRunsFailStops(t *testing.T) {
	t.Parallel()
	kinds := map[string]func(t *testing.T, s *Store, share float64) (page func(int) int, status func() string, resume func() error){
		"a sweep": func(t *testing.T, s *Store, share float64) (func(int) int, func() string, func() error) {
			id := must(s.Start(t.Context(), SweepOptions{StopShare: share}))(t)
			return func(n int) int { ds, _ := must2(s.SweepPage(t.Context(), id, n, time.Minute))(t); return len(ds) },
				func() string { return must(s.Sweep(t.Context(), id))(t).Status },
				func() error { return s.SteerSweep(t.Context(), id, SweepResume, "", "ada", 0) }
		},
		"a bulk recompaction": func(t *testing.T, s *Store, share float64) (func(int) int, func() string, func() error) {
			exec(t, s, `INSERT INTO compactor.runs (sid, trigger, status, outcome, ended_at) SELECT sid, 'event', 'skipped', 'ineffective', now() FROM compactor.sessions`)
			id := must(s.StartBulkCompact(t.Context(), "", RunMatch{Outcome: "ineffective"}, Options{}, share, "", ""))(t)
			return func(n int) int { ds, _ := must2(s.BulkCompactPage(t.Context(), id, n, time.Minute))(t); return len(ds) },
				func() string { return must(s.Bulk(t.Context(), BulkCompact, id))(t).Status },
				func() error { return s.ResumeBulkCompact(t.Context(), id) }
		},
	}
	for name, start := range kinds {
		for _, c := range []struct {
			share float64 // 0: the default
			ended int     // of 120 runs
			bad   int     // of those, from the first
			code  string
			want  string
		}{
			{0, 120, 61, "no_summary", "stopped"},
			{0, 120, 60, "no_summary", "open"},
			{0, 99, 99, "would_grow", "open"}, // too few to tell
			{0.1, 100, 11, "would_grow", "stopped"},
			{1, 120, 120, "no_summary", "open"},
			{0, 120, 120, "ineffective", "open"},
			{0.1, 120, 13, "failed", "stopped"},
		} {
			t.Run(fmt.Sprint(name, " ", c), func(t *testing.T) {
				t.Parallel()
				s := open(t)
				thresholds(t, s, Threshold{"", 10, 0, false, Counts{}})
				exec(t, s, `INSERT INTO compactor.sessions (id, due) SELECT 's' || i, true FROM generate_series(1, 400) i`)
				page, status, resume := start(t, s, c.share)
				end := func(ended, bad int) {
					exec(t, s, `UPDATE compactor.runs r SET status = CASE WHEN n <= $2 AND $3 = 'failed' THEN 'failed' ELSE 'skipped' END,
							outcome = CASE WHEN n <= $2 THEN $3 ELSE 'applied' END, ended_at = now()
						FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM compactor.runs WHERE status = 'queued') x WHERE x.id = r.id AND n <= $1`, ended, bad, c.code)
				}
				if n := page(120); n != 120 {
					t.Fatalf("%d runs in the first page", n)
				}
				end(c.ended, c.bad)
				if n := page(120); status() != c.want || (n > 0) != (c.want == "open") {
					t.Fatalf("it is %s after a page of %d, want %s", status(), n, c.want)
				}
				if c.want == "open" {
					return
				}
				if err := resume(); err != nil {
					t.Fatal(err)
				}
				if n := page(120); n != 120 || status() != "open" {
					t.Errorf("resumed, it is %s after a page of %d", status(), n)
				}
				exec(t, s, `UPDATE compactor.runs SET status = 'skipped', outcome = 'applied', ended_at = now() WHERE status = 'queued'`)
				if n := page(9); n != 9 || status() != "open" {
					t.Errorf("with runs that end well, it is %s after a page of %d", status(), n)
				}
			})
		}
	}
}

func TestASweepStopsAtTheEndOfItsWindowAndGoesOnAtTheNextTick(t *testing.T) {
	t.Parallel()
	s := open(t)
	thresholds(t, s, Threshold{"", 10, 0, false, Counts{}})
	dueOf(t, s, "a", 5)
	now := time.Now().Truncate(time.Second)
	night := func(n int) time.Time { return now.Add(time.Duration(n) * 24 * time.Hour) }
	fire := func(n int, want bool) {
		t.Helper()
		outcome, _ := must2(s.Fire(t.Context(), Tick{Entry: "nightly", At: night(n), By: "x", WindowEnd: night(n).Add(time.Hour)}))(t)
		if got := outcome != ""; got != want {
			t.Errorf("night %d fired: %v, want %v", n, got, want)
		}
	}
	fire(0, true)
	fire(0, false)
	sweep := must(s.OpenSweeps(t.Context()))(t)[0].ID
	if got, _ := page(t, s, sweep, 2); !slices.Equal(got, []string{"a000", "a001"}) {
		t.Errorf("first page %v", got)
	}
	exec(t, s, `UPDATE compactor.sweeps SET window_end = now()`)
	if got, done := page(t, s, sweep, 2); len(got) > 0 || !done {
		t.Errorf("behind its window it queues %v", got)
	}
	wantSweep(t, s, sweep, `stopped "window_ended" due 5 queued 2 left out 0 remaining 3`)
	if open := must(s.OpenSweeps(t.Context()))(t); len(open) > 0 {
		t.Errorf("open: %v", open)
	}
	fire(1, true)
	fire(1, false)
	if open := must(s.OpenSweeps(t.Context()))(t); len(open) != 1 || open[0].ID != sweep {
		t.Fatalf("the next tick opens %+v", open)
	}
	r := wantSweep(t, s, sweep, `open "" due 5 queued 2 left out 0 remaining 3`)
	if r.WindowEnd == nil || !r.WindowEnd.Equal(night(1).Add(time.Hour)) {
		t.Errorf("its window ends at %v", r.WindowEnd)
	}
	fire(2, true) // while the first goes on, one waits behind it
	if got, _ := page(t, s, sweep, 9); !slices.Equal(got, []string{"a002", "a003", "a004"}) {
		t.Errorf("it goes on with %v", got)
	}
	page(t, s, sweep, 9)
	rows := must(s.Sweeps(t.Context(), 9))(t)
	var got []string
	for _, r := range rows {
		got = append(got, r.Status)
	}
	if diff := cmp.Diff([]string{"open", "done"}, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("sweeps, newest first (-want +got):\n%s", diff)
	}
	// An operator may open one again, for as long as the operator says.
	second := must(s.OpenSweeps(t.Context()))(t)[0].ID
	exec(t, s, `UPDATE compactor.sweeps SET window_end = now() WHERE id = $1`, second)
	page(t, s, second, 9)
	if err := s.SteerSweep(t.Context(), second, SweepResume, "", "ada", 0); err != nil {
		t.Fatal(err)
	}
	if r := wantSweep(t, s, second, `open "" due -1 queued 0 left out 0 remaining 0`); r.WindowEnd != nil {
		t.Errorf("its window ends at %v, want none", r.WindowEnd)
	}
}

func TestASweepWhoseRunsFailStops(t *testing.T) {
	t.Parallel()
	s := open(t)
	thresholds(t, s, Threshold{"", 10, 0, false, Counts{}})
	dueOf(t, s, "a", 340)
	sweep := startSweep(t, s, "", 0)
	// take queues a page of 100, of whose runs bad fail.
	take := func(bad int) bool {
		t.Helper()
		got, done := page(t, s, sweep, 100)
		exec(t, s, `UPDATE compactor.runs SET ended_at = now(), status = CASE WHEN n <= $1 THEN 'failed' ELSE 'skipped' END, outcome = 'x'
			FROM (SELECT id AS run, row_number() OVER () AS n FROM compactor.runs WHERE status = 'queued') x WHERE id = run`, bad)
		return !done && len(got) > 0
	}
	for i, bad := range []int{50, 51} {
		if !take(bad) {
			t.Fatalf("page %d: it has stopped", i)
		}
	}
	if take(0) {
		t.Error("it goes on after 51 of the latest 100 runs have failed")
	}
	wantSweep(t, s, sweep, `stopped "failures" due 340 queued 200 left out 0 remaining 140`)
	if must(s.FireTick(t.Context(), "operator", time.Now(), "x"))(t); must(s.Sweep(t.Context(), sweep))(t).Status != "stopped" {
		t.Error("a tick opens it again")
	}
	// An operator who resumes it knows of those.
	if err := s.SteerSweep(t.Context(), sweep, SweepResume, "", "ada", 0); err != nil {
		t.Fatal(err)
	}
	if !take(50) || !take(0) {
		t.Error("it does not go on")
	}
	exec(t, s, `UPDATE compactor.sweeps SET status = 'cancelled', ended_at = now()`)
	never := must(s.Start(t.Context(), SweepOptions{StopShare: 1}))(t)
	if got := one[float32](t, s, `SELECT stop_share FROM compactor.sweeps WHERE id = $1`, never); got != 1 {
		t.Errorf("stops at %v", got)
	}
}

func TestHowLongASweepTakes(t *testing.T) {
	t.Parallel()
	due := int64(100)
	for _, c := range []struct {
		row  SweepRow
		left time.Duration
		ok   bool
	}{
		{SweepRow{}, 0, false},
		{SweepRow{Due: &due, Remaining: 100}, 0, false},
		{SweepRow{Due: &due, Remaining: 99, Ended: 1, Worked: time.Second}, 0, false}, // one run tells nothing
		{SweepRow{Due: &due, Remaining: 40, Waiting: 15, Running: 5, Ended: 40, Worked: 20 * time.Second}, 30 * time.Second, true},
		{SweepRow{Due: &due, Ended: 100, Worked: time.Second}, 0, true},
	} {
		if left, ok := c.row.TimeLeft(); left != c.left || ok != c.ok {
			t.Errorf("%+v: %v, %v, want %v, %v", c.row, left, ok, c.left, c.ok)
		}
	}
}

// The runs of a sweep end later than it queues them, also while it is paused: that is part of its rate.
func TestTheRateOfASweepIsThatOfItsRuns(t *testing.T) {
	t.Parallel()
	s := open(t)
	thresholds(t, s, Threshold{"", 10, 0, false, Counts{}})
	dueOf(t, s, "acme", 10)
	sweep := startSweep(t, s, "acme", 0)
	page(t, s, sweep, 100)
	page(t, s, sweep, 100) // done, a moment after it began
	rate := func(what string, want float64) {
		t.Helper()
		row := must(s.Sweep(t.Context(), sweep))(t)
		if got := row.Rate(); got < 0.9*want || got > want*1.1 {
			t.Errorf("%s: %v runs per second in %v, want %v", what, got, row.Worked, want)
		}
	}
	ago := func(d string) {
		exec(t, s, `UPDATE compactor.sweeps SET worked = '1 second', changed_at = now() - $1::interval`, d)
	}
	exec(t, s, `UPDATE compactor.runs SET status = 'skipped', outcome = 'x', ended_at = now() WHERE id IN (SELECT id FROM compactor.runs LIMIT 5)`)
	ago("99 seconds")
	rate("half of them", 0.05)
	exec(t, s, `UPDATE compactor.runs SET status = 'skipped', outcome = 'x', ended_at = now()`)
	ago("99 seconds")
	rate("all of them", 0.1)
	if f := must(s.ForecastSweep(t.Context(), ""))(t); f.RunsPerSecond < 0.09 || f.RunsPerSecond > 0.11 {
		t.Errorf("forecast %+v", f)
	}
	exec(t, s, `UPDATE compactor.runs SET ended_at = now() - interval '1 hour'`)
	ago("2 hours")
	rate("an hour after they ended", 10.0/3601)
	exec(t, s, `UPDATE compactor.sweeps SET status = 'paused', ended_at = NULL`)
	if err := s.SteerSweep(t.Context(), sweep, SweepResume, "", "ada", 0); err != nil {
		t.Fatal(err)
	}
	rate("resumed", 10.0/3601)
}

func TestASweepIsForecast(t *testing.T) {
	t.Parallel()
	s := open(t)
	thresholds(t, s, Threshold{"", 10, 0, false, Counts{}})
	dueOf(t, s, "acme", 4)
	dueOf(t, s, "globex", 6)
	pause(t, s, "acme", "")
	want := SweepForecast{Sessions: 10, Paused: 4, Tenants: 2, Tokens: 110, OverStart: 10}
	if diff := cmp.Diff(want, must(s.ForecastSweep(t.Context(), ""))(t)); diff != "" {
		t.Errorf("forecast (-want +got):\n%s", diff)
	}
	sweep := startSweep(t, s, "globex", 0)
	page(t, s, sweep, 100)
	exec(t, s, `UPDATE compactor.runs SET status = 'skipped', outcome = 'x', ended_at = now()`)
	page(t, s, sweep, 100)
	exec(t, s, `UPDATE compactor.sweeps SET worked = '3 seconds', changed_at = now()`)
	f := must(s.ForecastSweep(t.Context(), "globex"))(t)
	if runs, takes := f.Runs(); f.Like != sweep || f.RunsPerSecond != 2 || runs != 6 || takes != 3*time.Second {
		t.Errorf("forecast %+v: %d runs in %v", f, runs, takes)
	}
}
