package scheduler

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
)

// Backfill has the ticks of a schedule in a time in the past.
type Backfill struct {
	Ticks    int   `json:"ticks" doc:"In that time."`
	ToFire   int   `json:"to_fire" doc:"Those that started no sweep."`
	Sessions int64 `json:"sessions_due"`

	// Missed are the ticks to fire, the oldest first, in the zone of the schedule; Had is the number of those with a sweep.
	Missed []time.Time `json:"-"`
	Had    int         `json:"-"`

	name     string
	schedule policy.Schedule
}

// maxBackfill bounds the ticks of a backfill.
const maxBackfill = 10_000

// Backfill returns the ticks of a schedule from one time to another that started no sweep.
func (c Config) Backfill(ctx context.Context, st *store.Store, name string, from, to, now time.Time) (b Backfill, err error) {
	refuse := func(format string, args ...any) (Backfill, error) {
		return b, &store.Error{Kind: store.ErrInvalid, Message: fmt.Sprintf("backfill from %s to %s: ",
			from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339)) + fmt.Sprintf(format, args...)}
	}
	s, err := c.ScheduleNamed(name)
	if err != nil {
		return b, err
	}
	times, err := s.Times()
	if err != nil {
		return b, err
	}
	if from.After(to) || to.After(now) {
		return refuse("want a time in the past, and one behind it up to now")
	}
	ticks := times.Between(from, to, maxBackfill+1)
	if len(ticks) > maxBackfill {
		return refuse("more than 10,000 ticks: want a shorter time")
	}
	if from.Before(now.Add(-store.KeepTicks)) {
		return refuse("want a time in the last %d days; what became of ticks before that is not known", int(store.KeepTicks.Hours()/24))
	}
	had, err := st.Operator.FiredTicks(ctx, name, from, to)
	if err != nil {
		return b, err
	}
	b = Backfill{Ticks: len(ticks), Had: len(had), name: name, schedule: s}
	b.Missed = slices.DeleteFunc(ticks, func(t time.Time) bool {
		_, fired := slices.BinarySearchFunc(had, t, time.Time.Compare)
		return fired || s.Start(name, t).After(now) // which is still the scheduler's
	})
	b.ToFire = len(b.Missed)
	f, err := st.Operator.ForecastSweep(ctx, s.Tenant)
	b.Sessions = f.Sessions
	return b, err
}

// Backfilled describes the effect of a backfill.
type Backfilled struct {
	Fired  int     `json:"fired"`
	Sweeps []int64 `json:"sweeps"`
}

// Fire fires the ticks that started no sweep and calls each after every one. A sweep that has not begun stands for those behind it.
func (b Backfill) Fire(ctx context.Context, st *store.Store, now func() time.Time, by string, each func()) (Backfilled, error) {
	out, s := Backfilled{Sweeps: []int64{}}, b.schedule
	s.Overlap = policy.OverlapBufferOne
	for _, t := range b.Missed {
		outcome, sweep, err := st.Scheduler.Fire(ctx, OperatorTick(b.name, s, t.UTC(), now(), by, store.SourceBackfill))
		if err != nil {
			return out, err
		}
		if outcome != "" { // otherwise fired by another meanwhile
			out.Fired++
			if !slices.Contains(out.Sweeps, sweep) {
				out.Sweeps = append(out.Sweeps, sweep)
			}
		}
		each()
	}
	return out, nil
}
