package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

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
			s := freshDue(t, dueTenant{"a", 40})
			sweep := must(s.Operator.Start(t.Context(), SweepOptions{Canary: 0.1}))(t)
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
			if r := must(s.Operator.Sweep(t.Context(), sweep))(t); r.Canary == nil || *r.Canary != 4 {
				t.Errorf("%+v", r)
			}
			end(1, "unchanged")
			page(t, s, sweep, 100)
			wantSweep(t, s, sweep, c.want)
			if c.bad <= 2 {
				return
			}
			// An operator who resumes it has seen that.
			noError(t, s.Operator.SteerSweep(t.Context(), sweep, SweepResume, "", "ada", 0))
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
			id := must(s.Operator.Start(t.Context(), SweepOptions{StopShare: share}))(t)
			return func(n int) int {
					ds, _ := must2(s.Scheduler.SweepPage(t.Context(), id, n, time.Minute))(t)
					return len(ds)
				},
				func() string { return must(s.Operator.Sweep(t.Context(), id))(t).Status },
				func() error { return s.Operator.SteerSweep(t.Context(), id, SweepResume, "", "ada", 0) }
		},
		"a bulk recompaction": func(t *testing.T, s *Store, share float64) (func(int) int, func() string, func() error) {
			exec(t, s, `INSERT INTO compactor.runs (sid, trigger, status, outcome, ended_at) SELECT sid, 'event', 'skipped', 'ineffective', now() FROM compactor.sessions`)
			id := must(s.Operator.StartBulkCompact(t.Context(), "", RunMatch{Outcome: "ineffective"}, Options{}, share, "", ""))(t)
			return func(n int) int {
					ds, _ := must2(s.Scheduler.BulkCompactPage(t.Context(), id, n, time.Minute))(t)
					return len(ds)
				},
				func() string { return must(s.Operator.Bulk(t.Context(), BulkCompact, id))(t).Status },
				func() error { return s.Operator.ResumeBulkCompact(t.Context(), id, "ada") }
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
			{0, 99, 99, "would_grow", "open"}, // too few
			{0.1, 100, 11, "would_grow", "stopped"},
			{1, 120, 120, "no_summary", "open"},
			{0, 120, 120, "ineffective", "open"},
			{0.1, 120, 13, "failed", "stopped"},
		} {
			t.Run(fmt.Sprint(name, " ", c), func(t *testing.T) {
				s := fresh(t)
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
				noError(t, resume())
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
	s := freshDue(t, dueTenant{"a", 5})
	now := time.Now().Truncate(time.Second)
	night := func(n int) time.Time { return now.Add(time.Duration(n) * 24 * time.Hour) }
	fire := func(n int, want bool) {
		t.Helper()
		outcome, _ := must2(s.Scheduler.Fire(t.Context(), Tick{Entry: "nightly", At: night(n), By: "x", WindowEnd: night(n).Add(time.Hour)}))(t)
		equal(t, want, outcome != "", "night %d fired", n)
	}
	fire(0, true)
	fire(0, false)
	sweep := must(s.Scheduler.OpenSweeps(t.Context()))(t)[0].ID
	if got, _ := page(t, s, sweep, 2); !slices.Equal(got, []string{"a000", "a001"}) {
		t.Errorf("first page %v", got)
	}
	exec(t, s, `UPDATE compactor.sweeps SET window_end = now()`)
	if got, done := page(t, s, sweep, 2); len(got) > 0 || !done {
		t.Errorf("behind its window it queues %v", got)
	}
	wantSweep(t, s, sweep, `stopped "window_ended" due 5 queued 2 left out 0 remaining 3`)
	none(t, must(s.Scheduler.OpenSweeps(t.Context()))(t), "open")
	fire(1, true)
	fire(1, false)
	if open := must(s.Scheduler.OpenSweeps(t.Context()))(t); len(open) != 1 || open[0].ID != sweep {
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
	rows := must(s.Operator.Sweeps(t.Context(), 0, 9))(t)
	var got []string
	for _, r := range rows {
		got = append(got, r.Status)
	}
	noDiff(t, cmp.Diff([]string{"open", "done"}, got, cmpopts.EquateEmpty()), "sweeps, newest first")
	// An operator may open one again, for as long as the operator says.
	second := must(s.Scheduler.OpenSweeps(t.Context()))(t)[0].ID
	exec(t, s, `UPDATE compactor.sweeps SET window_end = now() WHERE id = $1`, second)
	page(t, s, second, 9)
	noError(t, s.Operator.SteerSweep(t.Context(), second, SweepResume, "", "ada", 0))
	if r := wantSweep(t, s, second, `open "" due -1 queued 0 left out 0 remaining 0`); r.WindowEnd != nil {
		t.Errorf("its window ends at %v, want none", r.WindowEnd)
	}
}
