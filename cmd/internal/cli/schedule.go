package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
)

type scheduleCmd struct {
	List     scheduleListCmd     `cmd:"" help:"List the schedules with their next time and what became of the last."`
	Show     scheduleShowCmd     `cmd:"" help:"Show a schedule, its next times and the changes of the clock that it meets."`
	Pause    schedulePauseCmd    `cmd:"" help:"Pause a schedule: its ticks start nothing."`
	Resume   scheduleResumeCmd   `cmd:"" help:"End the pause of a schedule."`
	Run      scheduleRunCmd      `cmd:"" help:"Start a sweep of a schedule now."`
	Backfill scheduleBackfillCmd `cmd:"" help:"Fire the ticks of a time in the past that started no sweep."`
}

func (*scheduleCmd) Help() string {
	return `A schedule starts sweeps: at each of its times, a tick, one over the sessions that are due. Schedules are named in the configuration file ("compactor config example", schedules); without any, policy.cron is the schedule nightly. In force are those that the leading scheduler is configured with; these commands read their own configuration. Pauses and ticks are in Postgres: each tick is fired once, by whichever scheduler leads, and a pause holds for all of them.

Examples:

    compactor schedule list
    compactor schedule pause nightly --note "provider is down"
    compactor schedule backfill nightly --from 2026-01-28 --dry-run`
}

// schedulesOf returns the schedules of the configuration, by name.
func schedulesOf(cfg config.Config) map[string]policy.Schedule {
	c := cfg.Scheduler
	c.Policy, c.Schedules = cfg.Policy, cfg.Schedules
	return c.SchedulesInForce()
}

// scheduleArg names a schedule.
type scheduleArg struct {
	Name string `arg:"" name:"schedule" help:"The schedule."`
}

// of returns the schedule and its ticks.
func (a scheduleArg) of(cfg config.Config) (policy.Schedule, policy.Times, error) {
	all := schedulesOf(cfg)
	s, ok := all[a.Name]
	if !ok {
		return s, policy.Times{}, &exitError{exitNotFound, fmt.Errorf("schedule %s is not configured: want %s",
			term.Clean(a.Name), strings.Join(slices.Sorted(maps.Keys(all)), ", "))}
	}
	times, err := s.Times()
	return s, times, err
}

// state returns what the database knows of the schedule.
func (a scheduleArg) state(ctx context.Context, st *store.Store) (store.ScheduleState, error) {
	states, err := st.Operator.Schedules(ctx, []string{a.Name})
	i := slices.IndexFunc(states, func(s store.ScheduleState) bool { return s.Name == a.Name })
	if err != nil || i < 0 {
		return store.ScheduleState{Name: a.Name}, err
	}
	return states[i], nil
}

type scheduleJSON struct {
	Name         string         `json:"schedule"`
	Configured   bool           `json:"configured"`
	Settings     any            `json:"settings,omitempty"` // a policy.Schedule
	PausedAt     *time.Time     `json:"paused_at,omitempty"`
	PausedBy     string         `json:"paused_by,omitempty"`
	Note         string         `json:"note,omitempty"`
	Last         *store.TickRow `json:"last_tick,omitempty"`
	Next         []time.Time    `json:"next,omitempty"`
	ClockChanges []string       `json:"clock_changes,omitempty"`
}

// shownTicks is the number of coming ticks that are shown.
const shownTicks = 5

// newScheduleJSON returns a schedule as seen now; s is nil if it is not configured.
func newScheduleJSON(st store.ScheduleState, s *policy.Schedule, now time.Time) (scheduleJSON, error) {
	out := scheduleJSON{Name: st.Name, Configured: s != nil, PausedBy: st.PausedBy, Note: st.Note, Last: st.Last}
	if st.PausedAt != nil {
		at := st.PausedAt.UTC()
		out.PausedAt = &at
	}
	if out.Last != nil {
		out.Last.Tick = out.Last.Tick.UTC()
	}
	if s == nil {
		return out, nil
	}
	out.Settings = *s
	times, err := s.Times()
	if err != nil {
		return out, err
	}
	for _, t := range times.NextN(shownTicks, now) {
		out.Next = append(out.Next, t.UTC())
	}
	for _, c := range times.ClockChanges(now) {
		out.ClockChanges = append(out.ClockChanges, c.String())
	}
	return out, nil
}

type scheduleListCmd struct{}

func (*scheduleListCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	all := schedulesOf(cfg)
	states, err := st.Operator.Schedules(ctx, slices.Sorted(maps.Keys(all)))
	if err != nil {
		return err
	}
	t := e.Out.Table(term.Text("SCHEDULE"), term.Text("NEXT"), term.Text("LAST TICK"), term.ID("SWEEP"), term.Text("OUTCOME"))
	pauses := e.Out.Table(term.Text("PAUSED SCHEDULE"), term.Num("AGE"), term.Text("BY"), term.Text("NOTE"))
	rows, paused := []scheduleJSON{}, false
	for _, state := range states {
		s, ok := all[state.Name]
		settings := &s
		if !ok {
			settings = nil
		}
		row, err := newScheduleJSON(state, settings, e.now())
		if err != nil {
			return err
		}
		rows = append(rows, row)
		zone, next := time.UTC, any("not configured")
		if ok {
			times, err := s.Times()
			if err != nil {
				return err
			}
			tick := times.Next(e.now())
			zone, next = tick.Location(), tickText(tick)
		}
		if state.PausedAt != nil {
			next = term.Styled{Value: joined("paused", map[bool]string{false: "not configured"}[ok]), As: e.Out.Yellow}
			pauses.Row(state.Name, e.since(*state.PausedAt), cmp.Or(state.PausedBy, "scheduler"), state.Note)
			paused = true
		}
		if state.Last == nil {
			t.Row(state.Name, next)
			continue
		}
		var sweep any
		if state.Last.Sweep != 0 {
			sweep = state.Last.Sweep
		}
		t.Row(state.Name, next, tickText(state.Last.Tick.In(zone)), sweep, outcomeOf(*state.Last))
	}
	if e.JSON {
		return term.JSON(e.Out.W, map[string]any{"schedules": rows})
	}
	if err := t.Write(); err != nil || !paused {
		return err
	}
	e.say("")
	return pauses.Write()
}

// tickText returns a time to the minute, in its zone.
func tickText(t time.Time) string { return t.Format("2006-01-02 15:04 MST") }

// outcomeOf returns what became of a tick in a word: the status of its sweep, if it has one
// of its own.
func outcomeOf(t store.TickRow) string {
	switch t.Outcome {
	case store.TickFired, store.TickCoalesced:
		return cmp.Or(t.Status, t.Outcome)
	case store.TickOverlap:
		return "skipped"
	}
	return t.Outcome
}

// pausedText says since when a schedule is paused, by whom and why.
func pausedText(s store.ScheduleState) string {
	return joined(fmt.Sprintf("is paused since %s by %s", s.PausedAt.UTC().Format("2006-01-02 15:04:05Z"), cmp.Or(s.PausedBy, "scheduler")), s.Note)
}

type scheduleShowCmd struct{ scheduleArg }

func (c *scheduleShowCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	s, times, err := c.of(cfg)
	if err != nil {
		return err
	}
	state, err := c.state(ctx, st)
	if err != nil {
		return err
	}
	if e.JSON {
		out, err := newScheduleJSON(state, &s, e.now())
		if err != nil {
			return err
		}
		return term.JSON(e.Out.W, out)
	}
	status, last := "in force", "none"
	if state.PausedAt != nil {
		status = fmt.Sprintf("paused since %s by %s", state.PausedAt.UTC().Format("2006-01-02 15:04:05Z"), cmp.Or(state.PausedBy, "scheduler"))
	}
	sweep := ""
	next := times.NextN(shownTicks, e.now())
	if t := state.Last; t != nil {
		last = tickText(t.Tick.In(next[0].Location())) + " " + lastText(*t)
		if t.Status != "" {
			sweep = fmt.Sprintf("%s, %s, %s failed", sweepStatus(store.SweepRow{Status: t.Status, Reason: t.Reason}), term.Plural(t.Queued, "run", "runs"), term.Count(t.Failed))
		}
	}
	pairs := [][2]any{
		{"schedule", c.Name},
		{"times", s.Text()},
		{"sessions", map[bool]string{true: "those due of all tenants", false: "those due of tenant " + s.Tenant}[s.Tenant == ""]},
		{"window", limited(s.Window, "none", "%s; what is left goes on at the next tick")},
		{"overlap", s.Overlap + ": " + overlaps[s.Overlap]},
		{"catch-up", limited(s.CatchUp, "a missed tick is fired however late", "a missed tick is fired up to %s late")},
		{"jitter", limited(s.Jitter, "", "starts up to %s after the tick")},
		{"canary", map[bool]string{true: fmt.Sprintf("%g %% of the sessions first, the others if those do not fail", 100*s.Canary)}[s.Canary > 0]},
		{"failures", map[bool]string{true: "a sweep that stops for its failures pauses the schedule"}[s.PauseAfterFailure]},
		{"status", status},
		{"note", state.Note},
		{"last tick", last},
		{"sweep", sweep},
	}
	for i, t := range next {
		text := t.Format("Mon ") + tickText(t)
		if start := s.Start(c.Name, t); start.After(t) {
			text += ", starts at " + start.Format(time.TimeOnly)
		}
		pairs = append(pairs, [2]any{map[bool]string{true: "next"}[i == 0], text})
	}
	changes := times.ClockChanges(e.now())
	if len(changes) == 0 {
		pairs = append(pairs, [2]any{"clock", "no change within a year skips or repeats a tick"})
	}
	for i, x := range changes {
		pairs = append(pairs, [2]any{map[bool]string{true: "clock"}[i == 0], x.String()})
	}
	return e.Out.Pairs(pairs...)
}

// overlaps says what happens at a tick while an earlier sweep is not done.
var overlaps = map[string]string{
	policy.OverlapBufferOne:   "a tick starts a sweep behind an open one, at most one",
	policy.OverlapSkip:        "a tick starts none while an earlier one is not done",
	policy.OverlapCancelOther: "a tick cancels an earlier one that is not done",
}

// limited describes a duration, of which 0 is no limit.
func limited(d time.Duration, none, format string) string {
	if d == 0 {
		return none
	}
	return fmt.Sprintf(format, policy.Text(d))
}

// lastText says what became of a tick.
func lastText(t store.TickRow) string {
	return map[string]string{
		store.TickFired:     fmt.Sprintf("started sweep %d", t.Sweep),
		store.TickCoalesced: fmt.Sprintf("was left to sweep %d, which had not begun", t.Sweep),
		store.TickOverlap:   fmt.Sprintf("was skipped: sweep %d was not done", t.Sweep),
		store.TickPaused:    "started nothing: the schedule was paused",
		store.TickMissed:    "started nothing: it was missed for too long",
	}[t.Outcome]
}

type schedulePauseCmd struct {
	scheduleArg

	Note string `placeholder:"TEXT" help:"Why, for \"schedule list\"."`
}

func (*schedulePauseCmd) Help() string {
	return `Ticks that pass start nothing and are not fired later; "compactor schedule backfill" can. Sweeps that are open go on ("compactor sweep pause"), and so do event runs ("compactor pause").`
}

func (c *schedulePauseCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	if _, _, err := c.of(cfg); err != nil {
		return err
	}
	if err := st.Operator.PauseSchedule(ctx, c.Name, c.Note, e.by()); err != nil {
		return err
	}
	return c.changed(ctx, e, st, cfg)
}

type scheduleResumeCmd struct{ scheduleArg }

func (c *scheduleResumeCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	err := st.Operator.ResumeSchedule(ctx, c.Name, e.by())
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w (`compactor schedule list`)", err)
	}
	if err != nil {
		return err
	}
	return c.changed(ctx, e, st, cfg)
}

// changed writes the schedule after a change of its pause.
func (a scheduleArg) changed(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	state, err := a.state(ctx, st)
	if err != nil {
		return err
	}
	s, times, missing := a.of(cfg)
	if e.JSON {
		settings := &s
		if missing != nil {
			settings = nil
		}
		out, err := newScheduleJSON(state, settings, e.now())
		if err != nil {
			return err
		}
		return term.JSON(e.Out.W, out)
	}
	switch {
	case state.PausedAt != nil:
		e.say("%s", term.Clean(a.Name+" "+pausedText(state)))
	case missing != nil:
		e.say("%s is not paused, and not configured", term.Clean(a.Name))
	default:
		e.say("%s is in force: next %s", term.Clean(a.Name), tickText(times.Next(e.now())))
	}
	return nil
}
