package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
)

// scheduled returns a configuration with one schedule, that of the bench with changes.
func (b *bench) scheduled(holder string, change func(*policy.Schedule)) Config {
	cfg := b.config(holder)
	s := policy.DefaultSchedule()
	s.Cron = "*/10 * * * *"
	change(&s)
	cfg.Schedules = map[string]policy.Schedule{"work": s}
	return cfg
}

// ticks returns the ticks that were fired, as "schedule hour:minute", sorted.
func (b *bench) ticks() (ticks []string) {
	b.store.with(func() {
		for _, t := range b.store.fired {
			ticks = append(ticks, t.Entry+" "+t.At.Format("15:04"))
		}
	})
	slices.Sort(ticks)
	return ticks
}

func TestThreeSchedulersFireEachTickOfEachScheduleOnce(t *testing.T) {
	bubble(t, func(b *bench) {
		cfg := func(holder string) Config {
			c := b.scheduled(holder, func(s *policy.Schedule) { s.Jitter = 4 * time.Minute })
			c.Schedules["half"] = policy.Schedule{Every: 30 * time.Minute, Timezone: "UTC", Overlap: policy.OverlapSkip, Tenant: "acme", Window: time.Hour, PauseAfterFailure: true, Canary: 0.05}
			return c
		}
		stops := map[string]func(){}
		for _, holder := range []string{"a", "b", "c"} {
			stops[holder] = b.start(b.new(cfg(holder)))
		}
		b.pass(15 * time.Minute)
		first := b.store.leader()
		stops[first]()
		delete(stops, first)
		b.pass(20 * time.Minute)
		b.store.with(func() { b.store.holder = "" }) // a broken lease: two lead at once
		b.pass(time.Hour)
		want := []string{"half 00:30", "half 01:00", "half 01:30"}
		for n := 1; n <= 9; n++ {
			want = append(want, "work "+at(0, 10*n).Format("15:04"))
		}
		b.check(slices.Equal(b.ticks(), want), "fired %v, want %v", b.ticks(), want)
		b.store.with(func() {
			i := slices.IndexFunc(b.store.fired, func(t store.Tick) bool { return t.Entry == "half" })
			got := b.store.fired[i]
			b.check(got.Tenant == "acme" && got.Overlap == policy.OverlapSkip && got.PauseSchedule && got.Canary == 0.05 && got.WindowEnd.Equal(at(1, 30)), "%+v", got)
		})
		for _, stop := range stops {
			stop()
		}
	})
}

func TestJitterDelaysATickAndLosesNone(t *testing.T) {
	bubble(t, func(b *bench) {
		cfg := b.scheduled("a", func(s *policy.Schedule) { s.Jitter, s.Window = 9*time.Minute, time.Hour })
		start := cfg.Schedules["work"].Start("work", at(0, 10))
		b.check(start.After(at(0, 10).Add(time.Second)), "this tick has no delay: the test wants another name")
		stop := b.start(b.new(cfg))
		b.pass(start.Sub(at(0, 0)) - time.Second)
		b.check(len(b.ticks()) == 0, "fired %v before its start", b.ticks())
		// Another scheduler takes over between tick and start.
		stop()
		cfg.Holder = "b"
		stop = b.start(b.new(cfg))
		b.pass(2 * time.Second)
		b.check(len(b.ticks()) == 0, "without any tick before, those before the start of a scheduler count as fired: %v", b.ticks())
		b.store.with(func() { b.store.fired = []store.Tick{{Entry: "work", At: at(0, 0)}} })
		stop()
		stop = b.start(b.new(cfg))
		b.pass(time.Second)
		b.check(slices.Equal(b.ticks(), []string{"work 00:00", "work 00:10"}), "fired %v", b.ticks())
		b.store.with(func() {
			got := b.store.fired[1].WindowEnd
			b.check(got.After(start.Add(time.Hour-time.Second)), "its window ends at %v, started %v", got, start)
		})
		b.pass(2 * time.Hour)
		b.check(len(b.ticks()) >= 12, "%d ticks in two hours", len(b.ticks()))
		stop()
	})
}

func TestATickThatWasMissedForLongerThanTheCatchUpIsNotFired(t *testing.T) {
	t.Parallel()
	for late, want := range map[time.Duration]bool{5 * time.Minute: true, 6 * time.Minute: false} {
		t.Run(fmt.Sprint(late), func(t *testing.T) {
			bubble(t, func(b *bench) {
				b.store.fired = []store.Tick{{Entry: "work", At: at(0, 0).AddDate(0, 0, -1)}}
				b.pass(30*time.Minute + late)
				b.start(b.new(b.scheduled("a", func(s *policy.Schedule) { s.CatchUp = 5 * time.Minute })))
				b.pass(time.Minute)
				b.store.with(func() {
					got := b.store.fired[len(b.store.fired)-1]
					b.check(got.At.Equal(at(0, 30)) && got.Missed == !want && len(b.store.sweeps) == map[bool]int{true: 1}[want], "%+v, %d sweeps", got, len(b.store.sweeps))
				})
				b.check((len(b.log.lines("missed for too long")) == 0) == want, "logged, or not")
				b.pass(5 * time.Minute) // it goes on
				b.check(slices.Contains(b.ticks(), "work 00:40"), "fired %v", b.ticks())
			})
		})
	}
}

func TestAPausedScheduleIsAskedForWithEachTick(t *testing.T) {
	bubble(t, func(b *bench) {
		b.store.paused = map[string]bool{"work": true}
		b.start(b.new(b.scheduled("a", func(*policy.Schedule) {})))
		b.pass(25 * time.Minute)
		b.check(len(b.store.sweeps) == 0 && len(b.log.lines("the schedule is paused")) == 2, "%d sweeps", len(b.store.sweeps))
		b.store.with(func() { b.store.paused["work"] = false })
		b.pass(10 * time.Minute)
		b.store.with(func() { b.check(len(b.store.sweeps) == 1, "%d sweeps after the pause", len(b.store.sweeps)) })
	})
}

func TestNightsOfChangingClocks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cron, zone, from string
		want             string // in two days, in UTC
	}{
		"skipped":                      {"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "03-30 00:30"},
		"twice":                        {"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "10-25 00:30, 10-25 01:30, 10-26 01:30"},
		"behind half an hour":          {"0 3 * * *", "Australia/Lord_Howe", "2026-10-02T18:00:00Z", "10-03 16:00, 10-04 16:00"},
		"midnight skipped":             {"0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z", "11-05 02:00"},
		"a new year":                   {"0 0 1 * *", "Asia/Kathmandu", "2026-12-30T12:00:00Z", "12-31 18:15"},
		"a leap day":                   {"0 3 * * *", "UTC", "2028-02-28T12:00:00Z", "02-29 03:00, 03-01 03:00"},
		"a day that there was not":     {"0 3 * * *", "Pacific/Apia", "2011-12-29T06:00:00Z", "12-29 13:00, 12-30 13:00"},
		"another offset for one month": {"0 3 * * *", "Africa/Casablanca", "2024-03-09T12:00:00Z", "03-10 03:00, 03-11 03:00"},
		"every six hours":              {"0 */6 * * *", "America/New_York", "2026-03-08T04:30:00Z", "03-08 05:00, 03-08 10:00, 03-08 16:00, 03-08 22:00, 03-09 04:00, 03-09 10:00, 03-09 16:00, 03-09 22:00, 03-10 04:00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now, err := time.Parse(time.RFC3339, c.from)
			if err != nil {
				t.Fatal(err)
			}
			b := newBench(t)
			cfg := b.scheduled("a", func(s *policy.Schedule) { s.Cron, s.Timezone = c.cron, c.zone })
			cfg.Now = func() time.Time { return now }
			s := b.new(cfg)
			// As runCron does, in which nothing else depends on the clock.
			for done, end := now, now.AddDate(0, 0, 2); now.Before(end); now = now.Add(10 * time.Minute) {
				if done, err = s.fireDue(t.Context(), s.entries[0], done); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			for _, t := range b.store.fired {
				got = append(got, t.At.UTC().Format("01-02 15:04"))
			}
			b.check(strings.Join(got, ", ") == c.want, "fired %v, want %v", got, c.want)
		})
	}
}

func TestASchedulerLogsItsSchedules(t *testing.T) {
	bubble(t, func(b *bench) {
		cfg := b.scheduled("a", func(s *policy.Schedule) { s.Cron, s.Timezone = "30 2 * * *", "Europe/Berlin" })
		cfg.Schedules["other"] = policy.Schedule{Every: time.Hour, Timezone: "UTC", Overlap: policy.OverlapSkip}
		stop := b.start(b.new(cfg))
		b.pass(time.Minute)
		stop()
		lines := b.log.lines("msg=schedule ")
		b.check(len(lines) == 2 && strings.Contains(lines[1], `times="30 2 * * * (Europe/Berlin)" next=2000-01-01T02:30:00.000+01:00`), "%v", lines)
		lines = b.log.lines("schedule meets changes of the clock")
		b.check(len(lines) == 1 && strings.Contains(lines[0], "level=WARN") && strings.Contains(lines[0], "2000-03-26 02:30 is skipped: no sweep starts; 2000-10-29 02:30 occurs twice"), "%v", lines)
	})
}

func TestSchedulesOfASchedulerAreChecked(t *testing.T) {
	t.Parallel()
	_, err := New(&fakeStore{}, &fakeQueue{}, Config{Policy: policy.Default(), Schedules: map[string]policy.Schedule{"a": {}}})
	if err == nil || !strings.Contains(err.Error(), "schedules: a.") {
		t.Error(err)
	}
}
