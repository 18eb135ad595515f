package policy

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Schedule returns the schedule of sweeps and its time zone. It returns an error only for
// an invalid policy.
//
// "@every d" is aligned to multiples of d, so that all schedulers compute the same ticks.
// robfig's own counts from the time of the call.
func (p Policy) Schedule() (cron.Schedule, *time.Location, error) {
	loc, err := location(p.Timezone)
	if err != nil {
		return nil, nil, err
	}
	s, err := parseCron(strings.TrimSpace(p.Cron), loc)
	if err != nil {
		return nil, nil, err
	}
	// From this fixed time, no schedule that fires every year has a gap of more than 366
	// days; using the clock, validation would depend on the date.
	from := time.Date(2025, time.March, 1, 0, 0, 0, 0, loc)
	if next := s.Next(from); next.IsZero() || next.After(from.AddDate(1, 0, 1)) {
		return nil, nil, errors.New("a schedule that comes up at least once a year")
	}
	return s, loc, nil
}

// NextRuns returns the next n starts of sweeps after a time, in the policy's time zone.
func (p Policy) NextRuns(n int, after time.Time) ([]time.Time, error) {
	s, loc, err := p.Schedule()
	if err != nil {
		return nil, err
	}
	out := make([]time.Time, 0, max(0, n))
	for t := after.In(loc); len(out) < n; {
		if t = s.Next(t); t.IsZero() {
			break
		}
		out = append(out, t)
	}
	return out, nil
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
func parseCron(spec string, loc *time.Location) (s cron.Schedule, err error) {
	const want = "five cron fields, a descriptor such as @daily, or @every 1h"
	defer func() {
		if r := recover(); r != nil {
			s, err = nil, fmt.Errorf("%s (%v)", want, r)
		}
	}()
	if strings.Contains(spec, "TZ=") {
		return nil, errors.New("the zone in timezone, not in cron")
	}
	if text, ok := strings.CutPrefix(spec, "@every "); ok {
		d, err := time.ParseDuration(strings.TrimSpace(text))
		if err != nil || d%time.Second != 0 || d < time.Minute || d > 366*24*time.Hour {
			return nil, errors.New("@every with whole seconds, 1m to 8784h")
		}
		return every(d), nil
	}
	parsed, err := cron.ParseStandard(spec)
	if err != nil {
		return nil, fmt.Errorf("%s (%w)", want, err)
	}
	fields, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, errors.New(want)
	}
	fields.Location = loc
	return fields, nil
}

// every is a schedule of the multiples of a duration.
type every time.Duration

// Next returns the first multiple after t.
func (e every) Next(t time.Time) time.Time {
	d := time.Duration(e)
	return t.Truncate(d).Add(d)
}
