package scheduler

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
)

func at(hour, minute int) time.Time { return time.Date(2000, 1, 1, hour, minute, 0, 0, time.UTC) }

// fired returns the ticks that were fired, of all schedules.
func (b *bench) fired() (ticks []time.Time) {
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	for _, t := range b.store.fired {
		ticks = append(ticks, t.At)
	}
	return ticks
}

func TestTwoSchedulersFireASlotOnce(t *testing.T) {
	bubble(t, func(b *bench) {
		stopA := b.start(b.new(b.config("a")))
		stopB := b.start(b.new(b.config("b")))
		b.pass(15 * time.Minute)
		b.check(slices.Equal(b.fired(), []time.Time{at(0, 10)}), "fired %v", b.fired())
		stopA()
		b.pass(10 * time.Minute)
		b.store.with(func() {
			b.check(b.store.fired[0].By == "a" && b.store.fired[1].By == "b", "fired %+v", b.store.fired)
		})
		stopB()
	})
}

func TestAFirstStartEverCatchesUpOnNothing(t *testing.T) {
	bubble(t, func(b *bench) {
		b.pass(25 * time.Minute)
		b.start(b.new(b.config("a")))
		b.pass(time.Minute)
		b.check(len(b.fired()) == 0, "fired %v", b.fired())
	})
}

func TestOfMissedSlotsTheNewestIsCaughtUpOnce(t *testing.T) {
	bubble(t, func(b *bench) {
		b.store.fired = []store.Tick{{Entry: EntryNightly, At: at(0, 0).AddDate(-1, 0, 0)}}
		b.pass(35 * time.Minute)
		for range 2 {
			stop := b.start(b.new(b.config("a")))
			b.pass(time.Minute)
			b.check(slices.Equal(b.fired()[1:], []time.Time{at(0, 30)}), "fired %v", b.fired())
			stop()
		}
		b.check(len(b.log.lines("catching up on a missed tick")) == 1, "not logged once")
	})
}

func TestATickWithoutALeaderIsFiredByTheNextLeader(t *testing.T) {
	bubble(t, func(b *bench) {
		b.store.holder, b.store.expires = "gone", at(0, 10).Add(5*time.Second)
		b.pass(9*time.Minute + 55*time.Second)
		b.start(b.new(b.config("a"))) // the very first tick: nothing else tells of it
		b.pass(30 * time.Second)
		b.check(slices.Equal(b.fired(), []time.Time{at(0, 10)}), "fired %v", b.fired())
	})
}

func TestTheClockMayJump(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		jump time.Duration
		want []time.Time // after ten minutes more
	}{
		"forward over three ticks fires the newest":           {33 * time.Minute, []time.Time{at(0, 10), at(0, 40), at(0, 50)}},
		"back over a tick does not fire it again":             {-3 * time.Minute, []time.Time{at(0, 10)}},
		"back by a year goes by the clock and not by history": {-366 * 24 * time.Hour, []time.Time{at(0, 10), time.Date(1998, 12, 31, 0, 20, 0, 0, time.UTC)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(b *bench) {
				var offset atomic.Int64
				cfg := b.config("a")
				cfg.Now = func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }
				b.start(b.new(cfg))
				b.pass(12 * time.Minute)
				offset.Store(int64(test.jump))
				b.pass(10 * time.Minute)
				got := b.fired()
				slices.SortFunc(got, time.Time.Compare)
				slices.SortFunc(test.want, time.Time.Compare)
				b.check(slices.Equal(got, test.want), "fired %v, want %v", got, test.want)
			})
		})
	}
}

func TestSlotsThatPassWhileTheDatabaseIsAwayFireAsOne(t *testing.T) {
	bubble(t, func(b *bench) {
		away := false
		b.store.fail = func(string) error {
			b.store.mu.Lock()
			defer b.store.mu.Unlock()
			if away {
				return store.ErrUnavailable
			}
			return nil
		}
		b.start(b.new(b.config("a")))
		b.pass(9 * time.Minute)
		b.store.with(func() { away = true })
		b.pass(36 * time.Minute)
		b.store.with(func() { away = false })
		b.pass(time.Minute)
		// The lead was lost meanwhile, and nothing was fired before.
		b.check(slices.Equal(b.fired(), []time.Time{at(0, 40)}), "fired %v", b.fired())
	})
}

func TestATriggeredSweepNeedsNoLeadAndRunsOncePerSecond(t *testing.T) {
	bubble(t, func(b *bench) {
		b.start(b.new(b.config("a")))
		b.pass(1500 * time.Millisecond)
		other := b.new(b.config("b"))
		for _, want := range []bool{true, false} {
			fired, err := other.TriggerSweep(b.t.Context())
			b.check(err == nil && fired == want, "fired %v, %v", fired, err)
		}
		b.pass(time.Second)
		b.check(len(b.log.lines("sweep ended")) == 1, "the leader did not go through it")
		b.pass(10 * time.Minute)
		b.check(slices.Equal(b.fired(), []time.Time{at(0, 0).Add(time.Second), at(0, 10)}), "fired %v", b.fired())
	})
}

func TestTheNewestSlotIsFoundInAnyDistance(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 8, 12, 0, 30, 0, time.UTC)
	tests := map[string]struct {
		cron, zone string
		after      time.Time
		want       time.Time
	}{
		"every minute, a year missed": {"* * * * *", "UTC", now.AddDate(-1, 0, 0), time.Date(2026, 3, 8, 12, 0, 0, 0, time.UTC)},
		"once a year":                 {"0 0 1 1 *", "UTC", now.AddDate(-3, 0, 0), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)},
		"none since":                  {"0 3 * * *", "UTC", now.Add(-time.Hour), time.Time{}},
		"exactly at after is decided": {"0 12 * * *", "UTC", now.Truncate(time.Minute), time.Time{}},
		"in a gap of the zone":        {"30 2 * * *", "America/New_York", now.AddDate(0, 0, -2), time.Date(2026, 3, 7, 7, 30, 0, 0, time.UTC)},
		"a fixed interval":            {"@every 1h", "UTC", now.AddDate(0, -1, 0), time.Date(2026, 3, 8, 12, 0, 0, 0, time.UTC)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := policy.Default()
			p.Cron, p.Timezone = test.cron, test.zone
			times, err := p.Schedule().Times()
			if err != nil {
				t.Fatal(err)
			}
			if got := newestTick(times, test.after, now); !got.Equal(test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
