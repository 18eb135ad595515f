package policy

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Schedule returns when the sweep starts: Next gives the first start after a time, in
// that time's location. It fails only where Validate does.
//
// "@every d" is aligned to multiples of d, so that all schedulers of an
// installation name the same starts; robfig's own counts from whenever it was asked.
func (p Policy) Schedule() (cron.Schedule, *time.Location, error) {
	loc, err := location(p.Timezone)
	if err != nil {
		return nil, nil, err
	}
	s, err := parseCron(strings.TrimSpace(p.Cron), loc)
	if err != nil {
		return nil, nil, err
	}
	// A fixed reference keeps validation free of the clock; no gap of a schedule
	// that fires every year exceeds 366 days from it.
	from := time.Date(2025, time.March, 1, 0, 0, 0, 0, loc)
	if next := s.Next(from); next.IsZero() || next.After(from.AddDate(1, 0, 1)) {
		return nil, nil, errors.New("a schedule that comes up at least once a year")
	}
	return s, loc, nil
}

// NextRuns lists the next n starts of the sweep after a time, in the policy's zone.
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

// location loads a zone by its IANA name. "Local" is refused: the same policy
// would mean different hours on different machines.
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

// parseCron reads a spec with robfig's parser, which panics on some input
// ("TZ=UTC" without a space) and takes others that never fire.
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

// every fires at the multiples of a duration.
type every time.Duration

// Next returns the first multiple after t.
func (e every) Next(t time.Time) time.Time {
	d := time.Duration(e)
	return t.Truncate(d).Add(d)
}
