package policy

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Values of Schedule.Overlap: the action at a tick while the sweep of an earlier one is not done.
const (
	// OverlapBufferOne starts another sweep after it, unless one waits there already.
	OverlapBufferOne = "buffer_one"
	// OverlapSkip starts none.
	OverlapSkip = "skip"
	// OverlapCancelOther cancels it and starts another.
	OverlapCancelOther = "cancel_other"
)

// Schedule says when sweeps start, and how. It has a cron or an interval.
type Schedule struct {
	// Cron has five fields, a descriptor such as @daily, or @every 1h.
	Cron string `yaml:"cron"`
	// Every starts a sweep at each multiple of a duration, so that all schedulers compute
	// the same times.
	Every time.Duration `yaml:"every"`
	// Timezone is the IANA name of the zone of Cron.
	Timezone string `yaml:"timezone"`
	// Tenant is the only one that the sweeps go over; "" for all.
	Tenant string `yaml:"tenant"`
	// Window is how long a sweep may queue runs after its start. The sessions that are left are
	// queued at the next tick. 0 is no limit.
	Window time.Duration `yaml:"window"`
	// Overlap is one of the constants above. The default buffers one: a session that becomes
	// due after the cursors of a long sweep have passed it is then not left until the next tick.
	Overlap string `yaml:"overlap"`
	// CatchUp is how late a tick may fire that no scheduler fired in time. 0 is no limit.
	CatchUp time.Duration `yaml:"catch_up"`
	// Jitter delays each start by a part of it; see Start.
	Jitter time.Duration `yaml:"jitter"`
	// Canary is the share of the sessions that a sweep runs first; the others follow if the
	// runs of these do not fail. 0 is none.
	Canary float64 `yaml:"canary"`
	// PauseAfterFailure pauses the schedule when one of its sweeps stops for its failures.
	PauseAfterFailure bool `yaml:"pause_after_failure"`
}

// DefaultSchedule returns the settings that a schedule has unless it gives others.
func DefaultSchedule() Schedule { return Schedule{Timezone: "UTC", Overlap: OverlapBufferOne} }

// Schedule returns the schedule of the policy's cron.
func (p Policy) Schedule() Schedule {
	s := DefaultSchedule()
	s.Cron, s.Timezone = p.Cron, p.Timezone
	return s
}

// Start returns when the sweep of a tick starts: after a part of Jitter that follows from
// the schedule's name and the tick, so that all schedulers agree.
func (s Schedule) Start(name string, tick time.Time) time.Time {
	parts := uint64(s.Jitter / time.Second) //nolint:gosec // not negative
	if parts == 0 {
		return tick
	}
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(name), uint64(tick.Unix()))) //nolint:gosec // any 64 bits will do
	return tick.Add(time.Duration(binary.BigEndian.Uint64(sum[:])%parts) * time.Second)    //nolint:gosec // less than Jitter
}

// Text returns the cron and its zone, or the interval.
func (s Schedule) Text() string {
	switch {
	case s.Every > 0:
		return "every " + Text(s.Every)
	case strings.HasPrefix(s.Cron, "@every"):
		return s.Cron
	}
	return s.Cron + " (" + s.Timezone + ")"
}

// MarshalJSON writes durations as text, and leaves out settings that are not set.
func (s Schedule) MarshalJSON() ([]byte, error) {
	out := map[string]any{}
	for key, v := range map[string]any{
		"cron": s.Cron, "every": s.Every, "timezone": s.Timezone, "tenant": s.Tenant, "window": s.Window, "overlap": s.Overlap,
		"catch_up": s.CatchUp, "jitter": s.Jitter, "pause_after_failure": s.PauseAfterFailure, "canary": s.Canary,
	} {
		if reflect.ValueOf(v).IsZero() {
			continue
		}
		if d, ok := v.(time.Duration); ok {
			v = Text(d)
		}
		out[key] = v
	}
	return json.Marshal(out)
}

// scheduleName matches the names of schedules.
var scheduleName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// maxSchedules bounds the statements of a scheduler.
const maxSchedules = 100

// ValidateSchedules returns every error of named schedules, as an errors.Join of *FieldError
// values, with keys like "nightly.cron".
func ValidateSchedules(all map[string]Schedule) error {
	var fs FieldErrors
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fs.Prefix = ""
		fs.Check(scheduleName.MatchString(name) && name != "operator", name, quote(name),
			"a name of 1 to 63 lower-case letters, digits, _ and -, other than operator (sweeps started by hand)")
		fs.Prefix = name + "."
		all[name].validate(&fs)
	}
	fs.Prefix = ""
	fs.Check(len(all) <= maxSchedules, "schedules", len(all), "at most %d", maxSchedules)
	return fs.Join()
}

func (s Schedule) validate(fs *FieldErrors) {
	fs.Check(s.Cron == "" || s.Every == 0, "every", s.Every, "either cron or every")
	fs.Check(s.Every == 0 || s.Timezone == DefaultSchedule().Timezone, "timezone", quote(s.Timezone), "none beside every, which is the same in all zones")
	overlaps := []string{OverlapBufferOne, OverlapSkip, OverlapCancelOther}
	fs.Check(slices.Contains(overlaps, s.Overlap), "overlap", quote(s.Overlap), "%s", strings.Join(overlaps, ", "))
	CheckRange(fs, "window", s.Window, 0, 7*24*time.Hour)
	fs.Check(s.CatchUp == 0 || s.CatchUp >= time.Minute && s.CatchUp <= mostInterval, "catch_up", s.CatchUp, "1m to %s, or 0s for no limit", Text(mostInterval))
	fs.Check(s.Canary >= 0 && s.Canary <= 1, "canary", s.Canary, "a share up to 1, such as 0.05, or 0 for none")
	s.validateTimes(fs)
}

func (s Schedule) validateTimes(fs *FieldErrors) {
	if _, err := location(s.Timezone); err != nil {
		fs.Check(false, "timezone", quote(s.Timezone), "%v", err)
		return
	}
	times, err := s.Times()
	switch {
	case err != nil && s.Every != 0:
		fs.Check(false, "every", s.Every, "%v", err)
		return
	case err != nil:
		fs.Check(false, "cron", quote(s.Cron), "%v", err)
		return
	}
	if s.Jitter == 0 {
		return
	}
	// The shortest time between two ticks, of as many as show it.
	shortest, ticks := mostInterval, times.NextN(64, validFrom)
	for i := range ticks[1:] {
		shortest = min(shortest, ticks[i+1].Sub(ticks[i]))
	}
	fs.Check(s.Jitter >= time.Second && s.Jitter < shortest, "jitter", s.Jitter,
		"0s, or 1s to less than the time between two ticks (%s)", Text(shortest))
}
