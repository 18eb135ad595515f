package scheduler

import (
	"context"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/sessionstore/compactor/strategies/backoff"
)

const (
	// maxSleep bounds the time until a change of the clock is noticed.
	maxSleep = 30 * time.Second
	// clockSlack is the step back of the clock that is not logged: NTP makes small ones.
	clockSlack = time.Minute
)

// runCron fires the ticks of the policy's cron. Each tick fires at most once, with any
// number of schedulers and any change of the clock. Of several missed ticks (no leader,
// a clock change, an outage of the database) only the newest fires, late. Without a
// recorded tick, those before started count as fired.
func (s *Scheduler) runCron(ctx context.Context, started time.Time) error {
	doneUntil, err := retry(ctx, s, "last tick", func(ctx context.Context) (time.Time, error) {
		return s.store.LastTick(ctx, EntryNightly)
	})
	if err != nil {
		return err
	}
	if doneUntil.IsZero() {
		doneUntil = started
	}
	for {
		if doneUntil, err = s.fireDue(ctx, doneUntil); err != nil {
			return err
		}
		now := s.clock()
		sleep := maxSleep
		if next := s.schedule.Next(now.In(s.location)); !next.IsZero() {
			sleep = min(sleep, max(next.Sub(now), time.Millisecond))
		}
		if err := backoff.Wait(ctx, sleep); err != nil {
			return err
		}
	}
}

// clock returns the wall clock without the monotonic reading, which would hide changes of
// the clock.
func (s *Scheduler) clock() time.Time { return s.cfg.Now().Round(0) }

// fireDue fires the newest tick after doneUntil that is due, if there is one, and returns
// the new doneUntil.
func (s *Scheduler) fireDue(ctx context.Context, doneUntil time.Time) (time.Time, error) {
	now := s.clock()
	if back := doneUntil.Sub(now); back > 0 {
		if back > clockSlack {
			s.log.WarnContext(ctx, "the clock is behind the last tick, going by the clock", "tick", doneUntil.UTC(), "now", now.UTC())
		}
		doneUntil = now // Postgres has the ticks that come up again as fired
	}
	tick := newestTick(s.schedule, doneUntil.In(s.location), now.In(s.location))
	if tick.IsZero() {
		return doneUntil, nil
	}
	fired, err := retry(ctx, s, "fire tick", func(ctx context.Context) (bool, error) {
		// Each attempt takes the newest tick: an outage may last for several.
		now = s.clock()
		if newer := newestTick(s.schedule, tick.In(s.location), now.In(s.location)); !newer.IsZero() {
			tick = newer
		}
		return s.store.FireTickWithin(ctx, EntryNightly, tick.UTC(), s.cfg.Holder, s.cfg.SweepWindow)
	})
	if err != nil {
		return doneUntil, err
	}
	if late := now.Sub(tick); fired && late > maxSleep {
		s.log.InfoContext(ctx, "sweep started, catching up on a missed tick", "entry", EntryNightly, "tick", tick.UTC(), "late", late)
	} else if fired {
		s.log.InfoContext(ctx, "sweep started", "entry", EntryNightly, "tick", tick.UTC())
	}
	s.wakeSweeps()
	return tick, nil
}

// newestTick returns the latest tick after a time and not after now, or zero. It searches
// back in doubling steps, so its cost does not grow with the number of ticks in between.
func newestTick(schedule cron.Schedule, after, now time.Time) time.Time {
	for back := time.Minute; ; back *= 2 {
		from := now.Add(-back)
		if from.Before(after) {
			from = after
		}
		var newest time.Time
		for t := schedule.Next(from); !t.IsZero() && !t.After(now); t = schedule.Next(t) {
			newest = t
		}
		if !newest.IsZero() || !from.After(after) {
			return newest
		}
	}
}
