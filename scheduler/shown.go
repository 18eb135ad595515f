package scheduler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
)

// ScheduleRow is a schedule as seen at a time.
type ScheduleRow struct {
	Name         string         `json:"schedule"`
	Configured   bool           `json:"configured"`
	Settings     any            `json:"settings,omitempty"`
	PausedAt     *time.Time     `json:"paused_at,omitempty"`
	PausedBy     string         `json:"paused_by,omitempty"`
	Note         string         `json:"note,omitempty"`
	Last         *store.TickRow `json:"last_tick,omitempty"`
	Next         []time.Time    `json:"next,omitempty"`
	ClockChanges []string       `json:"clock_changes,omitempty"`

	// Ticks are Next in the zone of the schedule.
	Ticks []time.Time `json:"-"`
}

// shownTicks is the number of coming ticks that are shown.
const shownTicks = 5

// ShownSchedules returns the schedules in force, and those that are paused and not configured, by name, as seen now.
func (c Config) ShownSchedules(ctx context.Context, st *store.Store, now time.Time) ([]ScheduleRow, error) {
	all := c.SchedulesInForce()
	states, err := st.Operator.Schedules(ctx, slices.Sorted(maps.Keys(all)))
	if err != nil {
		return nil, err
	}
	rows := make([]ScheduleRow, len(states))
	for i, state := range states {
		s, ok := all[state.Name]
		if rows[i], err = shown(state, s, ok, now); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// ShownSchedule returns one of them. ErrNotFound: there is none.
func (c Config) ShownSchedule(ctx context.Context, st *store.Store, name string, now time.Time) (ScheduleRow, error) {
	rows, err := c.ShownSchedules(ctx, st, now)
	if i := slices.IndexFunc(rows, func(r ScheduleRow) bool { return r.Name == name }); err != nil || i >= 0 {
		return append(rows, ScheduleRow{})[max(i, 0)], err
	}
	return ScheduleRow{}, c.unknown(name)
}

func shown(st store.ScheduleState, s policy.Schedule, configured bool, now time.Time) (ScheduleRow, error) {
	out := ScheduleRow{Name: st.Name, Configured: configured, PausedBy: st.PausedBy, Note: st.Note, Last: st.Last}
	if st.PausedAt != nil {
		out.PausedAt = new(st.PausedAt.UTC())
	}
	if out.Last != nil {
		out.Last.Tick = out.Last.Tick.UTC()
	}
	if !configured {
		return out, nil
	}
	out.Settings = s
	times, err := s.Times()
	if err != nil {
		return out, err
	}
	out.Ticks = times.NextN(shownTicks, now)
	for _, t := range out.Ticks {
		out.Next = append(out.Next, t.UTC())
	}
	for _, c := range times.ClockChanges(now) {
		out.ClockChanges = append(out.ClockChanges, c.String())
	}
	return out, nil
}

// ScheduleNamed returns a schedule in force. ErrNotFound names those that there are.
func (c Config) ScheduleNamed(name string) (policy.Schedule, error) {
	s, ok := c.SchedulesInForce()[name]
	if !ok {
		return s, c.unknown(name)
	}
	return s, nil
}

func (c Config) unknown(name string) error {
	return &store.Error{Kind: store.ErrNotFound, Message: fmt.Sprintf("schedule %q is not configured: want %s", name,
		strings.Join(slices.Sorted(maps.Keys(c.SchedulesInForce())), ", "))}
}

// OperatorTick returns a tick of a schedule that an operator fires now.
func OperatorTick(name string, s policy.Schedule, at, now time.Time, by, source string) store.Tick {
	t := store.Tick{
		Entry: name, At: at, By: by, Source: source, Tenant: s.Tenant, Overlap: s.Overlap, PauseSchedule: s.PauseAfterFailure, Canary: s.Canary,
	}
	if s.Window > 0 {
		t.WindowEnd = now.Add(s.Window)
	}
	return t
}

// RunSchedule starts a sweep of a schedule now and returns it, or the one that has not begun and stands
// for it. ErrNotApplicable: another one is not done, and the schedule skips then.
func RunSchedule(ctx context.Context, st *store.Store, name string, s policy.Schedule, now time.Time, by string) (
	sweep int64, coalesced bool, err error,
) {
	outcome, sweep, err := st.Scheduler.Fire(ctx, OperatorTick(name, s, now, now, by, store.SourceOperator))
	switch {
	case err != nil:
	case outcome == "":
		err = fmt.Errorf("schedule %s: a sweep was started at this very moment: %w", name, store.ErrNotApplicable)
	case outcome == store.TickOverlap:
		err = fmt.Errorf("sweep %d is not done, and overlap of schedule %s is %s: %w", sweep, name, s.Overlap, store.ErrNotApplicable)
	}
	return sweep, outcome == store.TickCoalesced, err
}
