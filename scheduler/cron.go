package scheduler

import (
	"context"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/sessionstore/compactor/strategies/backoff"
)

const (
	// maxNap is how soon a change of the clock is noticed.
	maxNap = 30 * time.Second
	// clockSlack is how far back a clock may step without a word: NTP does that.
	clockSlack = time.Minute
)

// runCron fires the slots of the policy's cron. Each slot fires once, however
// many schedulers there are and however the clock jumps; of slots that passed
// unfired (nobody led, the clock leapt, the database was away) the newest fires,
// late, and the others do not. A first start ever catches up on nothing from
// before started.
func (s *Scheduler) runCron(ctx context.Context, started time.Time) error {
	decided, err := retry(ctx, s, "last slot", func(ctx context.Context) (time.Time, error) {
		return s.store.LastTick(ctx, EntryNightly)
	})
	if err != nil {
		return err
	}
	if decided.IsZero() {
		decided = started
	}
	for {
		if decided, err = s.fireDue(ctx, decided); err != nil {
			return err
		}
		now := s.clock()
		nap := maxNap
		if next := s.schedule.Next(now.In(s.location)); !next.IsZero() {
			nap = min(nap, max(next.Sub(now), time.Millisecond))
		}
		if err := backoff.Wait(ctx, nap); err != nil {
			return err
		}
	}
}

// clock returns the wall clock alone: slots are wall times, and a monotonic reading
// would hide that the clock was set.
func (s *Scheduler) clock() time.Time { return s.cfg.Now().Round(0) }

// fireDue fires the newest slot after decided that has come, if there is one,
// and returns up to when everything is decided.
func (s *Scheduler) fireDue(ctx context.Context, decided time.Time) (time.Time, error) {
	now := s.clock()
	if back := decided.Sub(now); back > 0 {
		if back > clockSlack {
			s.log.WarnContext(ctx, "the clock is behind the last slot, going by the clock", "slot", decided.UTC(), "now", now.UTC())
		}
		decided = now // a slot that comes up again is in the database as fired
	}
	slot := newestSlot(s.schedule, decided.In(s.location), now.In(s.location))
	if slot.IsZero() {
		return decided, nil
	}
	fired, err := retry(ctx, s, "fire slot", func(ctx context.Context) (bool, error) {
		// Looked at anew each time: the database may be away for several slots.
		now = s.clock()
		if newer := newestSlot(s.schedule, slot.In(s.location), now.In(s.location)); !newer.IsZero() {
			slot = newer
		}
		return s.store.FireTick(ctx, EntryNightly, slot.UTC(), s.cfg.Holder)
	})
	if err != nil {
		return decided, err
	}
	if late := now.Sub(slot); fired && late > maxNap {
		s.log.InfoContext(ctx, "sweep started, catching up on a missed slot", "entry", EntryNightly, "slot", slot.UTC(), "late", late)
	} else if fired {
		s.log.InfoContext(ctx, "sweep started", "entry", EntryNightly, "slot", slot.UTC())
	}
	s.wakeSweeps()
	return slot, nil
}

// newestSlot returns the latest slot after a time and not after now; zero if there is
// none. It looks back in growing steps, so that its cost does not grow with the
// number of slots in between.
func newestSlot(schedule cron.Schedule, after, now time.Time) time.Time {
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
