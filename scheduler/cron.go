package scheduler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
	"github.com/sessionstore/compactor/strategies/policy"
)

const (
	// maxSleep bounds the time until a change of the clock is noticed.
	maxSleep = 30 * time.Second
	// clockSlack is the step back of the clock that is not logged: NTP makes small ones.
	clockSlack = time.Minute
)

// entry is a schedule with its name and ticks.
type entry struct {
	policy.Schedule

	name  string
	times policy.Times
	// fromTick makes the window count from the tick and not from the start, as that of the
	// policy's cron does.
	fromTick bool
}

// entries returns the schedules in force, by name.
func (c Config) entries() ([]entry, error) {
	all := c.SchedulesInForce()
	out := make([]entry, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		times, err := all[name].Times()
		if err != nil {
			return nil, fmt.Errorf("schedule %s: %w", name, err)
		}
		out = append(out, entry{Schedule: all[name], name: name, times: times, fromTick: len(c.Schedules) == 0})
	}
	return out, nil
}

// logEntries logs each schedule, and the clock changes of a year that it meets.
func (s *Scheduler) logEntries(ctx context.Context, now time.Time) {
	for _, e := range s.entries {
		s.log.InfoContext(ctx, "schedule", "entry", e.name, "times", e.Text(), "next", e.times.Next(now))
		changes := e.times.ClockChanges(now)
		if len(changes) == 0 {
			continue
		}
		texts := make([]string, len(changes))
		for i, c := range changes {
			texts[i] = c.String()
		}
		s.log.WarnContext(ctx, "schedule meets changes of the clock", "entry", e.name, "changes", strings.Join(texts, "; "))
	}
}

// runCron fires the ticks of a schedule. Each tick fires at most once, with any number of
// schedulers and any change of the clock. Of several missed ticks (no leader, a clock
// change, an outage of the database) only the newest fires, late, unless it is too late.
// Without a recorded tick, those before started count as fired.
func (s *Scheduler) runCron(ctx context.Context, e entry, started time.Time) error {
	doneUntil, err := retry(ctx, s, "last tick", func(ctx context.Context) (time.Time, error) {
		return s.store.LastTick(ctx, e.name)
	})
	if err != nil {
		return err
	}
	if doneUntil.IsZero() {
		doneUntil = started
	}
	for {
		if doneUntil, err = s.fireDue(ctx, e, doneUntil); err != nil {
			return err
		}
		now := s.clock()
		sleep := maxSleep
		if next := e.nextStart(now); !next.IsZero() {
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
func (s *Scheduler) fireDue(ctx context.Context, e entry, doneUntil time.Time) (time.Time, error) {
	now := s.clock()
	if back := doneUntil.Sub(now); back > 0 {
		if back > clockSlack {
			s.log.WarnContext(ctx, "the clock is behind the last tick, going by the clock", "entry", e.name, "tick", doneUntil.UTC(), "now", now.UTC())
		}
		doneUntil = now // Postgres has the ticks that come up again as fired
	}
	tick := e.newestDue(doneUntil, now)
	if tick.IsZero() {
		return doneUntil, nil
	}
	var sweep int64
	outcome, err := retry(ctx, s, "fire tick", func(ctx context.Context) (outcome string, err error) {
		// Each attempt takes the newest tick: an outage may last for several.
		now = s.clock()
		if newer := e.newestDue(tick, now); !newer.IsZero() {
			tick = newer
		}
		outcome, sweep, err = s.store.Fire(ctx, e.tick(tick, now, s.cfg.Holder))
		return outcome, err
	})
	if err != nil {
		return doneUntil, err
	}
	log := s.log.With("entry", e.name, "tick", tick.UTC())
	switch late := now.Sub(e.Start(e.name, tick)); outcome {
	case store.TickFired, store.TickCoalesced:
		if late > maxSleep {
			log.InfoContext(ctx, "sweep started, catching up on a missed tick", "sweep_id", sweep, "late", late)
		} else {
			log.InfoContext(ctx, "sweep started", "sweep_id", sweep)
		}
		s.wakeSweeps()
	case store.TickOverlap:
		log.InfoContext(ctx, "no sweep started: an earlier one is not done", "sweep_id", sweep)
		s.wakeSweeps() // its window begins anew
	case store.TickPaused:
		log.InfoContext(ctx, "no sweep started: the schedule is paused")
	case store.TickMissed:
		log.WarnContext(ctx, "no sweep started: the tick was missed for too long", "late", late, "catch_up", e.CatchUp)
	}
	return tick, nil
}

// tick returns a tick of the schedule as it is fired now.
func (e entry) tick(at, now time.Time, by string) store.Tick {
	t := store.Tick{Entry: e.name, At: at.UTC(), By: by, Tenant: e.Tenant, Overlap: e.Overlap, PauseSchedule: e.PauseAfterFailure, Canary: e.Canary}
	t.Missed = e.CatchUp > 0 && now.Sub(e.Start(e.name, at)) > e.CatchUp
	switch {
	case e.Window == 0:
	case e.fromTick:
		t.WindowEnd = at.UTC().Add(e.Window)
	default:
		t.WindowEnd = now.UTC().Add(e.Window)
	}
	return t
}

// nextStart returns when the next tick starts: one that has passed may be delayed.
func (e entry) nextStart(now time.Time) time.Time {
	for t := e.times.Next(now.Add(-e.Jitter)); !t.IsZero(); t = e.times.Next(t) {
		if start := e.Start(e.name, t); start.After(now) {
			return start
		}
	}
	return time.Time{}
}

// newestDue returns the latest tick after a time that has started by now, or zero.
func (e entry) newestDue(after, now time.Time) time.Time {
	for until := now; ; {
		tick := newestTick(e.times, after, until)
		if tick.IsZero() || !e.Start(e.name, tick).After(now) {
			return tick
		}
		until = tick.Add(-1)
	}
}

// newestTick returns the latest tick after a time and not after now, or zero. It searches
// back in doubling steps, so its cost does not grow with the number of ticks in between.
func newestTick(times policy.Times, after, now time.Time) time.Time {
	for back := time.Minute; ; back *= 2 {
		from := now.Add(-back)
		if from.Before(after) {
			from = after
		}
		var newest time.Time
		for t := times.Next(from); !t.IsZero() && !t.After(now); t = times.Next(t) {
			newest = t
		}
		if !newest.IsZero() || !from.After(after) {
			return newest
		}
	}
}
