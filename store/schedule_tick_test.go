package store

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// day returns the tick of a day.
func day(n int) time.Time { return time.Date(2026, 1, n, 3, 0, 0, 0, time.UTC) }

// fire fires a tick and compares its outcome and the status of the sweeps, oldest first.
func fire(t *testing.T, s *Store, tick Tick, want string, sweeps ...string) int64 {
	t.Helper()
	tick.Entry, tick.By = "nightly", "x"
	outcome, sweep := must2(s.Scheduler.Fire(t.Context(), tick))(t)
	equal(t, want, outcome, "tick %v", tick.At)
	got := list[string](t, s, `SELECT concat_ws(' ', status, nullif(reason, '')) FROM compactor.sweeps ORDER BY id`)
	noDiff(t, cmp.Diff(sweeps, got, cmpopts.EquateEmpty()), "sweeps after tick %v", tick.At)
	return sweep
}

func TestATickWhileAnEarlierSweepIsNotDone(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		overlap string
		state   string // of the sweep of day 1
		outcome string // of the tick of day 2
		sweeps  []string
	}{
		"one is buffered behind an open one":        {"buffer_one", "begun", TickFired, []string{"open", "open"}},
		"one that has not begun stands for another": {"buffer_one", "open", TickCoalesced, []string{"open"}},
		"one is buffered behind a stopped one":      {"buffer_one", "window", TickFired, []string{"open", "open"}},
		"a paused one is left alone":                {"buffer_one", "paused", TickFired, []string{"paused", "open"}},
		"an open one is enough to skip":             {"skip", "begun", TickOverlap, []string{"open"}},
		"skip, and it has not begun":                {"skip", "open", TickCoalesced, []string{"open"}},
		"skip, and the stopped one goes on":         {"skip", "window", TickOverlap, []string{"open"}},
		"a paused one is enough to skip":            {"skip", "paused", TickOverlap, []string{"paused"}},
		"one that failed has ended":                 {"skip", "failures", TickFired, []string{"stopped failures", "open"}},
		"an open one is cancelled":                  {"cancel_other", "begun", TickFired, []string{"cancelled overlap", "open"}},
		"a stopped one is cancelled":                {"cancel_other", "window", TickFired, []string{"cancelled overlap", "open"}},
		"a paused one is cancelled":                 {"cancel_other", "paused", TickFired, []string{"cancelled overlap", "open"}},
		"one that is done is none":                  {"cancel_other", "done", TickFired, []string{"done", "open"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := freshDue(t, dueTenant{"a", 3})
			sweep := fire(t, s, Tick{At: day(1), Overlap: test.overlap}, TickFired, "open")
			switch test.state {
			case "open":
			case "begun":
				page(t, s, sweep, 1)
			case "window":
				page(t, s, sweep, 1)
				exec(t, s, `SELECT compactor.set_sweep_status($1, 'stopped', 'window_ended', '')`, sweep)
			default:
				page(t, s, sweep, 1)
				reason := map[string]string{"failures": "failures"}[test.state]
				exec(t, s, `SELECT compactor.set_sweep_status($1, $2, $3, '')`, sweep, map[string]string{"failures": "stopped", "paused": "paused", "done": "done"}[test.state], reason)
			}
			got := fire(t, s, Tick{At: day(2), Overlap: test.overlap}, test.outcome, test.sweeps...)
			if (got == sweep) != (test.outcome != TickFired) {
				t.Errorf("sweep %d stands for the tick, the first is %d", got, sweep)
			}
			waiting := one[int](t, s, `SELECT count(*) FROM compactor.runs WHERE status = 'queued'`)
			if cancelled := test.sweeps[0] == "cancelled overlap"; (waiting == 0) != (cancelled || test.state == "open") {
				t.Errorf("%d runs of the first sweep wait", waiting)
			}
			// The tick is decided, whatever became of it.
			fire(t, s, Tick{At: day(2), Overlap: test.overlap}, "", test.sweeps...)
		})
	}
}

func TestTicksOfAPausedScheduleStartNothing(t *testing.T) {
	s := fresh(t)
	noError(t, s.Operator.PauseSchedule(t.Context(), "nightly", "once", "ada"))
	noError(t, s.Operator.PauseSchedule(t.Context(), "nightly", "the model is ill", "bob"))
	fire(t, s, Tick{At: day(1)}, TickPaused)
	if !must(s.Scheduler.FireTick(t.Context(), "weekly", day(1), "x"))(t) {
		t.Error("another schedule does not fire")
	}
	states := must(s.Operator.Schedules(t.Context(), []string{"weekly"}))(t)
	if len(states) != 2 || states[0].PausedAt == nil || states[0].Note != "the model is ill" || states[0].PausedBy != "bob" || states[0].Last.Outcome != TickPaused ||
		states[1].PausedAt != nil || states[1].Last.Sweep == 0 || states[1].Last.Status != "open" {
		t.Errorf("%+v", states)
	}
	// An operator may want a sweep all the same. That is no tick of the schedule.
	fire(t, s, Tick{At: day(2), Source: SourceOperator}, TickFired, "open", "open")
	if last := must(s.Scheduler.LastTick(t.Context(), "nightly"))(t); !last.Equal(day(1)) {
		t.Errorf("last tick %v", last)
	}
	noError(t, s.Operator.ResumeSchedule(t.Context(), "nightly", "ada"))
	wantError(t, s.Operator.ResumeSchedule(t.Context(), "nightly", "ada"), ErrNotFound, "resumed twice")
	fire(t, s, Tick{At: day(1)}, "", "open", "open")
	fire(t, s, Tick{At: day(3)}, TickCoalesced, "open", "open")
	if by := one[string](t, s, `SELECT string_agg(requested_by || ' ' || resumed_by, ',') FROM compactor.schedule_pauses`); by != "bob ada" {
		t.Errorf("the pause was of %s", by)
	}
}

func TestABackfillFiresWhatStartedNothing(t *testing.T) {
	s := fresh(t)
	noError(t, s.Operator.PauseSchedule(t.Context(), "nightly", "", ""))
	fire(t, s, Tick{At: day(1)}, TickPaused)
	noError(t, s.Operator.ResumeSchedule(t.Context(), "nightly", ""))
	fire(t, s, Tick{At: day(2), Missed: true}, TickMissed)
	fire(t, s, Tick{At: day(3)}, TickFired, "open")
	for range 2 {
		want := TickCoalesced // by the sweep that has not begun
		if n := len(must(s.Operator.FiredTicks(t.Context(), "nightly", day(1), day(4)))(t)); n == 4 {
			want = "" // the second time
		}
		for n := range 4 {
			expect := want
			if n == 2 {
				expect = ""
			}
			fire(t, s, Tick{At: day(n + 1), Source: SourceBackfill}, expect, "open")
		}
	}
	fired := must(s.Operator.FiredTicks(t.Context(), "nightly", day(2), day(3)))(t)
	if diff := cmp.Diff([]time.Time{day(2), day(3)}, fired, cmpopts.EquateApproxTime(0)); diff != "" {
		t.Error(diff)
	}
}

func TestATransactionThatIsRolledBackNeitherLosesNorDoublesATick(t *testing.T) {
	s := fresh(t)
	const query = `SELECT coalesce(outcome, '') FROM compactor.fire_tick('nightly', $1, 'x')`
	for n, commit := range []bool{false, true} {
		tx := must(s.pool.Begin(t.Context()))(t)
		var outcome string
		if err := tx.QueryRow(t.Context(), query, day(n+1)).Scan(&outcome); err != nil || outcome == "" {
			t.Fatalf("%q, %v", outcome, err)
		}
		other := make(chan string)
		go func() { // another scheduler waits for the end of that transaction
			got, _, err := s.Scheduler.Fire(context.Background(), Tick{Entry: "nightly", At: day(n + 1), By: "y"})
			other <- fmt.Sprint(got, err)
		}()
		for one[int](t, s, `SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database WHERE d.datname = current_database() AND locktype = 'advisory' AND NOT granted`) == 0 {
			exec(t, s, `SELECT pg_sleep(0.01)`)
		}
		want := "fired<nil>"
		if commit {
			want = "<nil>"
			noError(t, tx.Commit(t.Context()))
		} else {
			noError(t, tx.Rollback(t.Context()))
		}
		equal(t, want, <-other, "with commit %v the other one gets", commit)
		equal(t, n+1, one[int](t, s, `SELECT count(*) FROM compactor.cron_ticks`), "ticks")
		exec(t, s, `UPDATE compactor.sweeps SET due = 0`)
	}
}

func TestASweepThatStopsForItsFailuresPausesItsSchedule(t *testing.T) {
	t.Parallel()
	for _, pause := range []bool{false, true} {
		s := open(t)
		thresholds(t, s, Threshold{"", 10, 0, false, Counts{}})
		dueOf(t, s, "a", 120)
		sweep := fire(t, s, Tick{At: day(1), Tenant: "a", PauseSchedule: pause}, TickFired, "open")
		page(t, s, sweep, 110)
		exec(t, s, `UPDATE compactor.runs SET status = 'failed', outcome = 'timeout', ended_at = now()`)
		page(t, s, sweep, 10)
		r := must(s.Operator.Sweep(t.Context(), sweep))(t)
		if r.Status != "stopped" || r.Reason != "failures" || r.Tenant != "a" {
			t.Errorf("%+v", r)
		}
		state := must(s.Operator.Schedules(t.Context(), []string{"nightly"}))(t)[0]
		if (state.PausedAt != nil) != pause || pause && state.Note != fmt.Sprintf("sweep %d stopped: too many runs failed", sweep) || state.Last.Failed != 110 {
			t.Errorf("with pause after failure %v: %+v", pause, state)
		}
	}
}

// Old ticks go, but for the latest one of a schedule: by that its missed ticks are found.
func TestOldTicksArePurged(t *testing.T) {
	s := fresh(t)
	exec(t, s, `INSERT INTO compactor.cron_ticks (entry, tick, fired_by, source)
		SELECT entry, now() - days * interval '1 day', '', source FROM (VALUES ('nightly', 'schedule', 1), ('nightly', 'schedule', 9), ('nightly', 'backfill', 11), ('nightly', 'schedule', 12),
			('yearly', 'schedule', 300), ('yearly', 'operator', 100), ('yearly', 'schedule', 700), ('once', 'operator', 11)) x(entry, source, days)`)
	var purged int64
	for n := int64(-1); n != 0; purged += n {
		n = must(s.Scheduler.PurgeTicks(t.Context(), 10*24*time.Hour, 3))(t)
	}
	got := list[string](t, s, `SELECT entry || ' ' || extract(day FROM now() - tick) FROM compactor.cron_ticks ORDER BY 1`)
	if diff := cmp.Diff([]string{"nightly 1", "nightly 9", "yearly 300"}, got); diff != "" || purged != 5 {
		t.Errorf("%d purged, left are (-want +got):\n%s", purged, diff)
	}
}

// Old runs without effect are deleted. Runs that explain a view, cost money or stopped a bulk operation stay.
func TestOldRunsWithoutEffectArePurged(t *testing.T) {
	s, k := freshTalk(t, 8)
	applied := apply(t, s, k, exclude(span(1, 2)))
	exec(t, s, `INSERT INTO compactor.runs (sid, trigger, requested_by, status, outcome, ended_at)
		SELECT sid, 'event', x.name, x.status, 'x', now() - x.days * interval '1 day' FROM compactor.sessions,
			(VALUES ('old', 'skipped', 11), ('older', 'failed', 12), ('oldest', 'skipped', 40), ('new', 'skipped', 9), ('paid', 'failed', 39), ('refused', 'failed', 38), ('canary', 'failed', 37), ('bulk', 'failed', 36)) x(name, status, days)`)
	exec(t, s, `INSERT INTO compactor.runs (sid, trigger, requested_by, queued_at) SELECT sid, 'event', 'waits', now() - interval '20 days' FROM compactor.sessions`)
	exec(t, s, `UPDATE compactor.runs SET ended_at = now() - interval '40 days' WHERE status = 'applied'`)
	exec(t, s, `INSERT INTO compactor.summary_calls (key, sid, run, fence, state, code, prompt_hash, ended_at)
		SELECT 'k', sid, id, 1, 'failed', 'x', '', now() FROM compactor.runs WHERE requested_by = 'paid'`)
	exec(t, s, `WITH b AS (INSERT INTO compactor.bulk_operations (kind, tenant, filter, cascade, first_id, next_id, matched) VALUES ('undo', '', '{}', false, 1, 1, 1) RETURNING id)
		INSERT INTO compactor.bulk_refusals (bulk, run, sid, code) SELECT b.id, r.id, r.sid, 'x' FROM b, compactor.runs r WHERE requested_by = 'refused'`)
	exec(t, s, `UPDATE compactor.runs SET bulk = b.id FROM compactor.bulk_operations b WHERE runs.requested_by = 'bulk'`)
	sweep := must(s.Operator.StartSweep(t.Context(), "", 0, "", "test"))(t)
	exec(t, s, `UPDATE compactor.runs SET sweep = $1 WHERE requested_by = 'canary'`, sweep)
	var pages []string
	for mark, n := (RunMark{}), int64(2); n == 2; {
		mark, n = must2(s.Scheduler.PurgeRuns(t.Context(), 10*24*time.Hour, mark, 2))(t)
		pages = append(pages, strings.Join(list[string](t, s, `SELECT requested_by FROM compactor.runs WHERE requested_by <> '' AND status IN ('skipped', 'failed') ORDER BY ended_at`), " "))
	}
	want := []string{"paid refused canary bulk older old new", "paid refused canary bulk older old new", "paid refused canary bulk old new", "paid refused canary bulk new"}
	equal(t, want, pages, "after each page there are")
	exec(t, s, `UPDATE compactor.bulk_operations SET status = 'done', ended_at = now()`)
	exec(t, s, `UPDATE compactor.sweeps SET status = 'done', ended_at = now()`)
	if _, n := must2(s.Scheduler.PurgeRuns(t.Context(), 10*24*time.Hour, RunMark{}, 100))(t); n != 4 {
		t.Errorf("%d runs looked at, want 4", n)
	}
	left := list[string](t, s, `SELECT coalesce(nullif(requested_by, ''), status) FROM compactor.runs ORDER BY 1`)
	equal(t, []string{"new", "paid", "refused", "test", "waits"}, left, "left are")
	if _, err := s.pool.Exec(t.Context(), s.q(`DELETE FROM compactor.runs WHERE id = $1`), applied); err == nil {
		t.Error("a run that explains the view was deleted")
	}
}

// The sweep of a tick runs the share of the schedule's canary first.
func TestATickStartsASweepWithACanary(t *testing.T) {
	s := freshDue(t, dueTenant{"a", 20})
	sweep := fire(t, s, Tick{At: day(1), Canary: 0.1}, TickFired, "open")
	if got, _ := page(t, s, sweep, 100); len(got) != 2 {
		t.Errorf("%v come first, want two", got)
	}
	if got, done := page(t, s, sweep, 100); len(got) != 0 || done {
		t.Errorf("%v follow before the first have ended, done: %t", got, done)
	}
	if r := must(s.Operator.Sweep(t.Context(), fire(t, s, Tick{At: day(2)}, TickFired, "open", "open")))(t); r.CanaryShare != 0 {
		t.Errorf("%+v has a canary", r)
	}
}
