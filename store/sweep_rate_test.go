package store

import (
	"testing"
	"time"
)

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
		{SweepRow{Due: &due, Remaining: 99, Ended: 1, Worked: time.Second}, 0, false}, // one run is no rate
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
	s := freshDue(t, dueTenant{"acme", 10})
	sweep := startSweep(t, s, "acme", 0)
	page(t, s, sweep, 100)
	page(t, s, sweep, 100) // done, a moment after it began
	rate := func(what string, want float64) {
		t.Helper()
		row := must(s.Operator.Sweep(t.Context(), sweep))(t)
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
	if f := must(s.Operator.ForecastSweep(t.Context(), ""))(t); f.RunsPerSecond < 0.09 || f.RunsPerSecond > 0.11 {
		t.Errorf("forecast %+v", f)
	}
	exec(t, s, `UPDATE compactor.runs SET ended_at = now() - interval '1 hour'`)
	ago("2 hours")
	rate("an hour after they ended", 10.0/3601)
	exec(t, s, `UPDATE compactor.sweeps SET status = 'paused', ended_at = NULL`)
	noError(t, s.Operator.SteerSweep(t.Context(), sweep, SweepResume, "", "ada", 0))
	rate("resumed", 10.0/3601)
}

func TestASweepIsForecast(t *testing.T) {
	s := freshDue(t, dueTenant{"acme", 4}, dueTenant{"globex", 6})
	pause(t, s, "acme", "")
	want := SweepForecast{Sessions: 10, Paused: 4, Tenants: 2, Tokens: 110, OverStart: 10}
	equal(t, want, must(s.Operator.ForecastSweep(t.Context(), ""))(t), "forecast")
	sweep := startSweep(t, s, "globex", 0)
	page(t, s, sweep, 100)
	exec(t, s, `UPDATE compactor.runs SET status = 'skipped', outcome = 'x', ended_at = now()`)
	page(t, s, sweep, 100)
	exec(t, s, `UPDATE compactor.sweeps SET worked = '3 seconds', changed_at = now()`)
	f := must(s.Operator.ForecastSweep(t.Context(), "globex"))(t)
	if runs, takes := f.Runs(); f.Like != sweep || f.RunsPerSecond != 2 || runs != 6 || takes != 3*time.Second {
		t.Errorf("forecast %+v: %d runs in %v", f, runs, takes)
	}
}
