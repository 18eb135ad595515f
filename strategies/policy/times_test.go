package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func timesOf(t *testing.T, cron, zone string) Times {
	t.Helper()
	s := DefaultSchedule()
	s.Cron, s.Timezone = cron, zone
	times, err := s.Times()
	if err != nil {
		t.Fatal(err)
	}
	return times
}

func TestTicksFollowTheCalendar(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cron, zone, after string
		want              []string
	}{
		"the end of a year":             {"30 23 31 12 *", "UTC", "2026-12-31T23:29:59Z", []string{"2026-12-31T23:30:00Z", "2027-12-31T23:30:00Z"}},
		"a leap day":                    {"0 3 * * *", "UTC", "2028-02-28T04:00:00Z", []string{"2028-02-29T03:00:00Z", "2028-03-01T03:00:00Z"}},
		"no leap day in 2100":           {"0 3 28-29 2 *", "UTC", "2100-02-28T00:00:00Z", []string{"2100-02-28T03:00:00Z", "2101-02-28T03:00:00Z"}},
		"the last days of months":       {"0 0 31 * *", "Europe/Berlin", "2026-03-31T12:00:00Z", []string{"2026-05-31T00:00:00+02:00", "2026-07-31T00:00:00+02:00"}},
		"either of two fields for days": {"0 0 13 * 5", "UTC", "2026-11-10T00:00:00Z", []string{"2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after, err := time.Parse(time.RFC3339, c.after)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, x := range timesOf(t, c.cron, c.zone).NextN(2, after) {
				got = append(got, x.Format(time.RFC3339))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestTicksAreTheMinutesThatMatch compares with what a clock on the wall shows, minute by
// minute, around changes of it.
func TestTicksAreTheMinutesThatMatch(t *testing.T) {
	t.Parallel()
	for zone, days := range map[string][]string{
		"UTC": {"2026-12-31", "2028-02-29"}, "Europe/Berlin": {"2026-03-29", "2026-10-25", "2027-01-01"}, "America/New_York": {"2026-03-08", "2026-11-01"},
		"America/Sao_Paulo": {"2018-11-04", "2019-02-17", "2026-11-01"}, "Australia/Lord_Howe": {"2026-04-05", "2026-10-04"}, "Asia/Kathmandu": {"1986-01-01", "2026-04-13"},
		"Africa/Casablanca": {"2024-03-10", "2024-04-14"}, "Pacific/Apia": {"2011-12-30", "2011-04-02", "2026-01-01"}, "America/St_Johns": {"2010-03-14", "2010-11-07"},
	} {
		for _, day := range days {
			middle, err := time.Parse(time.DateOnly, day)
			if err != nil {
				t.Fatal(err)
			}
			from, to := middle.AddDate(0, 0, -2), middle.AddDate(0, 0, 2)
			for _, c := range []struct {
				cron    string
				matches func(hour, minute int) bool
			}{
				{"*/15 * * * *", func(_, minute int) bool { return minute%15 == 0 }},
				{"0 3 * * *", func(hour, minute int) bool { return hour == 3 && minute == 0 }},
				{"15,45 0-2,23 * * *", func(hour, minute int) bool { return (hour <= 2 || hour == 23) && (minute == 15 || minute == 45) }},
			} {
				times := timesOf(t, c.cron, zone)
				var want []time.Time
				for x := from; !x.After(to); x = x.Add(time.Minute) {
					if local := x.In(times.loc); c.matches(local.Hour(), local.Minute()) {
						want = append(want, local)
					}
				}
				for how, got := range map[string][]time.Time{"Between": times.Between(from, to, 1e6), "NextN": times.NextN(len(want), from.Add(-1))} {
					if !slices.EqualFunc(want, got, time.Time.Equal) {
						t.Errorf("%s in %s about %s, by %s: %s", c.cron, zone, day, how, cmp.Diff(want, got))
					}
				}
			}
		}
	}
}

func TestClockChangesAreForeseen(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		cron, zone, want string
	}{
		"none in UTC":          {"30 2 * * *", "UTC", ""},
		"none by day":          {"0 4 * * *", "Europe/Berlin", ""},
		"none without changes": {"30 2 * * *", "Asia/Kathmandu", ""},
		"none of every hour":   {"*/15 * * * *", "Europe/Berlin", ""},
		"none of an interval":  {"@every 1h", "Europe/Berlin", ""},
		"none on other days":   {"30 2 * * 1-5", "Europe/Berlin", ""},
		"one of each":          {"30 2 * * *", "Europe/Berlin", "2026-03-29 02:30 is skipped: no sweep starts, 2026-10-25 02:30 occurs twice: a sweep starts at both"},
		"several times of a day": {
			"*/20 2 * * *", "Europe/Berlin",
			"2026-03-29 02:00 to 02:40 (3 times) are skipped: no sweeps start, 2026-10-25 02:00 to 02:40 (3 times) occur twice: sweeps start at both",
		},
		"half an hour": {"15 2 * * *", "Australia/Lord_Howe", "2026-10-04 02:15 is skipped: no sweep starts"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, x := range timesOf(t, c.cron, c.zone).ClockChanges(from) {
				got = append(got, x.String())
			}
			if got := strings.Join(got, ", "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestJitterFollowsFromNameAndTick(t *testing.T) {
	t.Parallel()
	s := Schedule{Jitter: 5 * time.Minute}
	tick := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[time.Duration]bool{}
	for n := range 100 {
		day := tick.AddDate(0, 0, n)
		delay := s.Start("nightly", day).Sub(day)
		if delay < 0 || delay >= s.Jitter || delay%time.Second != 0 || !s.Start("nightly", day.In(berlin)).Equal(day.Add(delay)) {
			t.Fatalf("tick %v is delayed by %s", day, delay)
		}
		seen[delay] = true
	}
	if len(seen) < 50 {
		t.Errorf("a hundred ticks have %d delays", len(seen))
	}
	if s.Start("nightly", tick).Equal(s.Start("weekly", tick)) {
		t.Error("two schedules start at the same time")
	}
	if got := (Schedule{}).Start("nightly", tick); !got.Equal(tick) {
		t.Errorf("without jitter it starts at %v", got)
	}
}

func TestASchedulesSettingsAreChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Schedule)
		want   string // the errors; "" for none
	}{
		"a cron":      {func(*Schedule) {}, ""},
		"an interval": {func(s *Schedule) { s.Cron, s.Every = "", 12*time.Hour }, ""},
		"all settings": {func(s *Schedule) {
			s.Overlap, s.Window, s.CatchUp, s.Jitter = OverlapSkip, time.Hour, 2*time.Hour, time.Minute
		}, ""},
		"both":                       {func(s *Schedule) { s.Every = time.Hour }, "every: 1h: want either cron or every"},
		"neither":                    {func(s *Schedule) { s.Cron = "" }, `cron: "": want five cron fields`},
		"a short interval":           {func(s *Schedule) { s.Cron, s.Every = "", time.Second }, "every: 1s: want whole seconds, 1m to 8784h"},
		"a zone for an interval":     {func(s *Schedule) { s.Cron, s.Every, s.Timezone = "", time.Hour, "Europe/Berlin" }, `timezone: "Europe/Berlin": want none beside every`},
		"an unknown zone":            {func(s *Schedule) { s.Timezone = "Mars" }, `timezone: "Mars": want UTC or an IANA zone`},
		"an unknown overlap":         {func(s *Schedule) { s.Overlap = "queue" }, `overlap: "queue": want buffer_one, skip, cancel_other`},
		"a long window":              {func(s *Schedule) { s.Window = 169 * time.Hour }, "window: 169h: want 0s to 168h"},
		"a catch-up below the polls": {func(s *Schedule) { s.CatchUp = time.Second }, "catch_up: 1s: want 1m to 8784h, or 0s for no limit"},
		"jitter of a whole interval": {func(s *Schedule) { s.Cron, s.Jitter = "0,10 * * * *", 10*time.Minute }, "jitter: 10m: want 0s, or 1s to less than the time between two ticks (10m)"},
		"negative jitter":            {func(s *Schedule) { s.Jitter = -time.Second }, "jitter: -1s: want 0s, or 1s"},
		"a leap day alone":           {func(s *Schedule) { s.Cron = "0 3 29 2 *" }, `cron: "0 3 29 2 *": want a schedule that comes up at least once a year`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := DefaultSchedule()
			s.Cron = "0 3 * * *"
			c.change(&s)
			err := ValidateSchedules(map[string]Schedule{"nightly": s})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), "nightly."+c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestNamesOfSchedulesAreChecked(t *testing.T) {
	t.Parallel()
	s := DefaultSchedule()
	s.Cron = "@daily"
	for name, ok := range map[string]bool{"nightly": true, "eu-2_b": true, "": false, "Nightly": false, "a.b": false, "operator": false, strings.Repeat("a", 64): false} {
		if err := ValidateSchedules(map[string]Schedule{name: s}); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
	many := map[string]Schedule{}
	for n := range 101 {
		many[fmt.Sprint("s", n)] = s
	}
	if err := ValidateSchedules(many); err == nil || !strings.Contains(err.Error(), "want at most 100") {
		t.Error(err)
	}
}

func TestTicksBetweenTwoTimes(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	for cron, want := range map[string]int{"0 3 * * *": 4, "@every 24h": 3, "* * * * *": 10, "0 2 * * *": 3} {
		times := timesOf(t, cron, "UTC")
		got := times.Between(from, from.AddDate(0, 0, 3), 10)
		if len(got) != want || got[0].Before(from) || !slices.IsSortedFunc(got, time.Time.Compare) {
			t.Errorf("%s: %v", cron, got)
		}
		if got := times.Between(from.Add(1), from.Add(2), 10); len(got) != 0 {
			t.Errorf("%s: %v where there is none", cron, got)
		}
	}
}
