package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// mostInterval is the longest time between two ticks.
const mostInterval = 366 * 24 * time.Hour

// validFrom is where schedules are looked at for their validity: using the clock, it would
// depend on the date. From here, no schedule that fires every year has a gap of more than
// 366 days.
var validFrom = time.Date(2025, time.March, 1, 0, 0, 0, 0, time.UTC)

// Times are the ticks of a schedule.
type Times struct {
	every time.Duration // between ticks; 0 with fields
	// fields are minute, hour, day and so on as robfig parses them. Its Next is not used: it
	// misses ticks after a clock change of half an hour.
	fields *cron.SpecSchedule
	loc    *time.Location
}

// Times returns the ticks of the schedule. It returns an error only for an invalid one.
func (s Schedule) Times() (Times, error) {
	loc, err := location(s.Timezone)
	if err != nil {
		return Times{}, err
	}
	if s.Every != 0 {
		if !validInterval(s.Every) {
			return Times{}, errors.New("whole seconds, 1m to 8784h")
		}
		return Times{every: s.Every, loc: loc}, nil
	}
	t, err := parseCron(strings.TrimSpace(s.Cron), loc)
	if err != nil {
		return Times{}, err
	}
	from := validFrom.In(loc)
	if next := t.Next(from); next.IsZero() || next.After(from.AddDate(1, 0, 1)) {
		return Times{}, errors.New("a schedule that comes up at least once a year")
	}
	return t, nil
}

func validInterval(d time.Duration) bool {
	return d%time.Second == 0 && d >= time.Minute && d <= mostInterval
}

// location loads a zone by its IANA name. It rejects "Local", which differs between
// machines.
func location(name string) (*time.Location, error) {
	switch name {
	case "UTC":
		return time.UTC, nil
	case "", "Local":
		return nil, errors.New("UTC or an IANA zone such as Europe/Berlin")
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("UTC or an IANA zone such as Europe/Berlin: %w", err)
	}
	return loc, nil
}

// parseCron parses a spec with robfig's parser, which panics on some input ("TZ=UTC"
// without a space).
func parseCron(spec string, loc *time.Location) (t Times, err error) {
	const want = "five cron fields, a descriptor such as @daily, or @every 1h"
	defer func() {
		if r := recover(); r != nil {
			t, err = Times{}, fmt.Errorf("%s (%v)", want, r)
		}
	}()
	if strings.Contains(spec, "TZ=") {
		return Times{}, errors.New("the zone in timezone, not in cron")
	}
	if text, ok := strings.CutPrefix(spec, "@every "); ok {
		d, err := time.ParseDuration(strings.TrimSpace(text))
		if err != nil || !validInterval(d) {
			return Times{}, errors.New("@every with whole seconds, 1m to 8784h")
		}
		return Times{every: d, loc: loc}, nil
	}
	parsed, err := cron.ParseStandard(spec)
	if err != nil {
		return Times{}, fmt.Errorf("%s (%w)", want, err)
	}
	fields, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return Times{}, errors.New(want)
	}
	return Times{fields: fields, loc: loc}, nil
}

// Next returns the first tick after a time, in the zone of the schedule; zero if there is
// none for years. A local time that the clock skips has no tick, one that occurs twice has
// two.
func (t Times) Next(after time.Time) time.Time {
	if t.every > 0 {
		return after.Truncate(t.every).Add(t.every).In(t.loc)
	}
	from := after.Add(1)
	for range 8 * 366 {
		to := from.Add(day)
		if ticks := t.Between(from, to, 1); len(ticks) > 0 {
			return ticks[0]
		}
		from = to
	}
	return time.Time{}
}

// NextN returns the next n ticks after a time.
func (t Times) NextN(n int, after time.Time) []time.Time {
	out := make([]time.Time, 0, max(0, n))
	for len(out) < n {
		if after = t.Next(after); after.IsZero() {
			break
		}
		out = append(out, after)
	}
	return out
}

// Between returns the ticks from one time to another, both included, at most limit.
func (t Times) Between(from, to time.Time, limit int) []time.Time {
	var out []time.Time
	if t.every > 0 {
		for x := t.Next(from.Add(-1)); !x.After(to) && len(out) < limit; x = t.Next(x) {
			out = append(out, x)
		}
		return out
	}
	// A day may begin before another has ended, where the clock changes at midnight.
	last := civil(to.In(t.loc)).AddDate(0, 0, 1)
	for date := civil(from.In(t.loc)).AddDate(0, 0, -1); !date.After(last) && len(out) < limit+2*24*60; date = date.AddDate(0, 0, 1) {
		t.walk(date, func(_ time.Time, at []time.Time) {
			for _, x := range at {
				if !x.Before(from) && !x.After(to) {
					out = append(out, x)
				}
			}
		})
	}
	slices.SortFunc(out, time.Time.Compare)
	return out[:min(len(out), limit)]
}

// walk calls f for the local times of a day that the fields name, with the instants at which
// the clock shows them. A local time is given as one of UTC.
func (t Times) walk(day time.Time, f func(local time.Time, at []time.Time)) {
	if !t.onDay(day) {
		return
	}
	for hour := range 24 {
		if t.fields.Hour>>hour&1 == 0 {
			continue
		}
		for minute := range 60 {
			if t.fields.Minute>>minute&1 == 1 {
				local := day.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute)
				f(local, instants(local, t.loc))
			}
		}
	}
}

// star is set in the fields of a cron that are *.
const star = 1 << 63

// onDay reports whether the fields name a day: by both fields for days, or by either if
// both are restricted.
func (t Times) onDay(day time.Time) bool {
	dom, dow := t.fields.Dom>>day.Day()&1 == 1, t.fields.Dow>>day.Weekday()&1 == 1
	if t.fields.Dom&star != 0 || t.fields.Dow&star != 0 {
		return t.fields.Month>>day.Month()&1 == 1 && dom && dow
	}
	return t.fields.Month>>day.Month()&1 == 1 && (dom || dow)
}

// civil returns the local day of a time, as one of UTC.
func civil(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
}

// instants returns when the clocks of a zone show a local time, given as one of UTC: never,
// once or twice.
func instants(local time.Time, loc *time.Location) []time.Time {
	var out []time.Time
	// By the offsets before and after a clock change of that day.
	for _, near := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		_, offset := local.Add(near).In(loc).Zone()
		at := local.Add(-time.Duration(offset) * time.Second).In(loc)
		if _, is := at.Zone(); is == offset && (len(out) == 0 || !out[0].Equal(at)) {
			out = append(out, at)
		}
	}
	return out
}

// ClockChange is a day on which local times of a schedule do not occur, or twice.
type ClockChange struct {
	Day   time.Time // as one of UTC
	Local []string  // such as 02:30
	Twice bool      // they occur twice; otherwise, not at all
}

// String describes the change: "2026-03-29 02:30 is skipped: no sweep starts".
func (c ClockChange) String() string {
	text := c.Day.Format(time.DateOnly) + " " + c.Local[0]
	verb := []string{" is skipped: no sweep starts", " occurs twice: a sweep starts at both"}
	if n := len(c.Local); n > 1 {
		text += fmt.Sprintf(" to %s (%d times)", c.Local[n-1], n)
		verb = []string{" are skipped: no sweeps start", " occur twice: sweeps start at both"}
	}
	if c.Twice {
		return text + verb[1]
	}
	return text + verb[0]
}

// ClockChanges returns the days within a year of a time on which the clock skips or repeats
// ticks. Schedules of every hour have none: they go on as before.
func (t Times) ClockChanges(from time.Time) []ClockChange {
	if t.every > 0 || t.fields.Hour&star != 0 {
		return nil
	}
	var out []ClockChange
	day := civil(from.In(t.loc))
	for end := day.AddDate(1, 0, 0); !day.After(end); day = day.AddDate(0, 0, 1) {
		skipped, twice := ClockChange{Day: day}, ClockChange{Day: day, Twice: true}
		t.walk(day, func(local time.Time, at []time.Time) {
			switch text := local.Format("15:04"); {
			case len(at) == 0:
				skipped.Local = append(skipped.Local, text)
			case len(at) == 2 && at[1].After(from):
				twice.Local = append(twice.Local, text)
			}
		})
		for _, c := range []ClockChange{skipped, twice} {
			if len(c.Local) > 0 {
				out = append(out, c)
			}
		}
	}
	return out
}
