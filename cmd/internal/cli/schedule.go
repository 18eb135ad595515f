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
	"github.com/sessionstore/compactor/cmd/internal/reports"
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

// row returns the schedule as seen now.
func (a scheduleArg) row(ctx context.Context, e *Env, st *store.Store, cfg config.Config) (scheduleJSON, error) {
	states, err := st.Operator.Schedules(ctx, []string{a.Name})
	if err != nil {
		return scheduleJSON{}, err
	}
	state := store.ScheduleState{Name: a.Name}
	if i := slices.IndexFunc(states, func(s store.ScheduleState) bool { return s.Name == a.Name }); i >= 0 {
		state = states[i]
	}
	return scheduleRow(state, cfg, e.now())
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

	ticks []time.Time // Next in the schedule's zone
}

// shownTicks is the number of coming ticks that are shown.
const shownTicks = 5

// newScheduleJSON returns a schedule as seen now; s is nil if it is not configured.
func newScheduleJSON(st store.ScheduleState, s *policy.Schedule, now time.Time) (scheduleJSON, error) {
	out := scheduleJSON{
		Name: st.Name, Configured: s != nil, PausedAt: reports.UTC(st.PausedAt), PausedBy: st.PausedBy, Note: st.Note,
		Last: st.Last,
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
	out.ticks = times.NextN(shownTicks, now)
	for _, t := range out.ticks {
		out.Next = append(out.Next, t.UTC())
	}
	for _, c := range times.ClockChanges(now) {
		out.ClockChanges = append(out.ClockChanges, c.String())
	}
	return out, nil
}

// lastTick returns the time of the last tick in the schedule's zone, nil for none.
func (s scheduleJSON) lastTick() any {
	switch {
	case s.Last == nil:
		return nil
	case s.ticks == nil:
		return tickText(s.Last.Tick)
	}
	return tickText(s.Last.Tick.In(s.ticks[0].Location()))
}

// pausedBy returns who paused the schedule, "the scheduler" without an operator.
func (s scheduleJSON) pausedBy() string { return cmp.Or(s.PausedBy, "scheduler") }

// pausedText describes the pause of a schedule.
func (s scheduleJSON) pausedText() string {
	return fmt.Sprintf("paused since %s by %s", timeText(*s.PausedAt), s.pausedBy())
}

type scheduleListCmd struct{}

func (*scheduleListCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	all := schedulesOf(cfg)
	states, err := st.Operator.Schedules(ctx, slices.Sorted(maps.Keys(all)))
	if err != nil {
		return err
	}
	var rows, paused []scheduleJSON
	for _, state := range states {
		row, err := scheduleRow(state, cfg, e.now())
		if err != nil {
			return err
		}
		if rows = append(rows, row); row.PausedAt != nil {
			paused = append(paused, row)
		}
	}
	err = list(e, "schedules", rows, "no schedules", columns[scheduleJSON]{
		{"schedule", term.Text("SCHEDULE"), nil},
		{"next", term.Text("NEXT"), func(s scheduleJSON) any {
			switch {
			case s.PausedAt != nil:
				return term.Styled{Value: joined("paused", when(!s.Configured, "not configured")), As: e.Out.Yellow}
			case !s.Configured:
				return "not configured"
			}
			return tickText(s.ticks[0])
		}},
		{"last_tick", term.Text("LAST TICK"), scheduleJSON.lastTick},
		{"", term.ID("SWEEP"), func(s scheduleJSON) any {
			if s.Last == nil || s.Last.Sweep == 0 {
				return nil
			}
			return s.Last.Sweep
		}},
		{"", term.Text("OUTCOME"), func(s scheduleJSON) any { return outcomeOf(s.Last) }},
	})
	if err != nil || e.JSON || len(paused) == 0 {
		return err
	}
	e.say("")
	columns[scheduleJSON]{
		{"schedule", term.Text("PAUSED SCHEDULE"), nil},
		{"paused_at", term.Num("AGE"), func(s scheduleJSON) any { return e.since(*s.PausedAt) }},
		{"paused_by", term.Text("BY"), func(s scheduleJSON) any { return s.pausedBy() }},
		{"note", term.Text("NOTE"), nil},
	}.write(e, paused)
	return nil
}

// scheduleRow returns a schedule as seen now, by its name in the configuration.
func scheduleRow(state store.ScheduleState, cfg config.Config, now time.Time) (scheduleJSON, error) {
	s, ok := schedulesOf(cfg)[state.Name]
	if !ok {
		return newScheduleJSON(state, nil, now)
	}
	return newScheduleJSON(state, &s, now)
}

// tickText returns a time to the minute, in its zone.
func tickText(t time.Time) string { return t.Format("2006-01-02 15:04 MST") }

// outcomeOf returns the outcome of a tick in a word: the status of its sweep, if it has one
// of its own; "" for no tick.
func outcomeOf(t *store.TickRow) string {
	switch {
	case t == nil:
		return ""
	case t.Outcome == store.TickFired, t.Outcome == store.TickCoalesced:
		return cmp.Or(t.Status, t.Outcome)
	case t.Outcome == store.TickOverlap:
		return "skipped"
	}
	return t.Outcome
}

type scheduleShowCmd struct{ scheduleArg }

func (c *scheduleShowCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	s, _, err := c.of(cfg)
	if err != nil {
		return err
	}
	out, err := c.row(ctx, e, st, cfg)
	if err != nil {
		return err
	}
	return e.show(out, func() {
		status, last, sweep := "in force", "none", ""
		if out.PausedAt != nil {
			status = out.pausedText()
		}
		if t := out.Last; t != nil {
			last = fmt.Sprint(out.lastTick(), " ", lastText(*t))
			sweep = when(t.Status != "", fmt.Sprintf("%s, %s, %s failed", sweepStatus(store.SweepRow{Status: t.Status, Reason: t.Reason}),
				plural(t.Queued, "run"), term.Count(t.Failed)))
		}
		pairs := []pair{
			{"schedule", c.Name},
			{"times", s.Text()},
			{"sessions", "those due of " + reports.TenantText(s.Tenant)},
			{"window", limited(s.Window, "none", "%s; what is left goes on at the next tick")},
			{"overlap", s.Overlap + ": " + overlaps[s.Overlap]},
			{"catch-up", limited(s.CatchUp, "a missed tick is fired however late", "a missed tick is fired up to %s late")},
			{"jitter", limited(s.Jitter, "", "starts up to %s after the tick")},
			{"canary", when(s.Canary > 0, fmt.Sprintf("%g %% of the sessions first, the others if those do not fail", 100*s.Canary))},
			{"failures", when(s.PauseAfterFailure, "a sweep that stops for its failures pauses the schedule")},
			{"status", status},
			{"note", out.Note},
			{"last tick", last},
			{"sweep", sweep},
		}
		for i, t := range out.ticks {
			text := t.Format("Mon ") + tickText(t)
			if start := s.Start(c.Name, t); start.After(t) {
				text += ", starts at " + start.Format(time.TimeOnly)
			}
			pairs = append(pairs, pair{when(i == 0, "next"), text})
		}
		if len(out.ClockChanges) == 0 {
			pairs = append(pairs, pair{"clock", "no change within a year skips or repeats a tick"})
		}
		for i, text := range out.ClockChanges {
			pairs = append(pairs, pair{when(i == 0, "clock"), text})
		}
		e.pairs(pairs...)
	})
}

// overlaps describes the effect of a tick while an earlier sweep is not done.
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

// lastText describes the outcome of a tick.
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
	s, err := a.row(ctx, e, st, cfg)
	if err != nil {
		return err
	}
	switch {
	case s.PausedAt != nil:
		return e.answer(s, "%s", term.Clean(joined(a.Name+" is "+s.pausedText(), s.Note)))
	case !s.Configured:
		return e.answer(s, "%s is not paused, and not configured", term.Clean(a.Name))
	}
	return e.answer(s, "%s is in force: next %s", term.Clean(a.Name), tickText(s.ticks[0]))
}

// tickOf returns a tick that an operator fires now.
func (a scheduleArg) tickOf(s policy.Schedule, at time.Time, e *Env, source string) store.Tick {
	t := store.Tick{
		Entry: a.Name, At: at, By: e.by(), Source: source, Tenant: s.Tenant, Overlap: s.Overlap, PauseSchedule: s.PauseAfterFailure, Canary: s.Canary,
	}
	if s.Window > 0 {
		t.WindowEnd = e.now().Add(s.Window)
	}
	return t
}

type scheduleRunCmd struct{ scheduleArg }

func (c *scheduleRunCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	s, _, err := c.of(cfg)
	if err != nil {
		return err
	}
	outcome, sweep, err := st.Scheduler.Fire(ctx, c.tickOf(s, e.now(), e, store.SourceOperator))
	if err != nil {
		return err
	}
	switch outcome {
	case "":
		return fmt.Errorf("schedule %s: a sweep was started at this very moment: %w", c.Name, store.ErrNotApplicable)
	case store.TickOverlap:
		return fmt.Errorf("sweep %d is not done, and overlap of schedule %s is %s: %w", sweep, c.Name, s.Overlap, store.ErrNotApplicable)
	case store.TickCoalesced:
		e.note("sweep %d has not begun and stands for another", sweep)
	}
	return sweepChanged(ctx, e, st, sweep)
}

type scheduleBackfillCmd struct {
	scheduleArg
	confirmFlags

	From instant `required:"" placeholder:"TIME" help:"First tick: 36h, 2026-11-20 or 2026-11-20T22:00:00Z."`
	To   instant `placeholder:"TIME" help:"Last tick; default: now."`
}

// maxBackfill bounds the ticks of a backfill.
const maxBackfill = 10_000

func (c *scheduleBackfillCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	s, times, err := c.of(cfg)
	if err != nil {
		return err
	}
	now := e.now()
	from, to := c.From.time(now), now
	if c.To != (instant{}) {
		to = c.To.time(now)
	}
	if from.After(to) || to.After(now) {
		return wrong("--from %s, --to %s: want a time in the past, and one behind it up to now", from.UTC().Format(time.RFC3339),
			to.UTC().Format(time.RFC3339))
	}
	ticks := times.Between(from, to, maxBackfill+1)
	if len(ticks) > maxBackfill {
		return wrong("more than %s ticks: want a shorter time", term.Count(maxBackfill))
	}
	if from.Before(now.Add(-store.KeepTicks)) {
		return wrong("--from %s: want a time in the last %d days; what became of ticks before that is not known",
			from.UTC().Format(time.RFC3339), int(store.KeepTicks.Hours()/24))
	}
	before, err := st.Operator.FiredTicks(ctx, c.Name, from, to)
	if err != nil {
		return err
	}
	all := len(ticks)
	ticks = slices.DeleteFunc(ticks, func(t time.Time) bool {
		_, had := slices.BinarySearchFunc(before, t, time.Time.Compare)
		return had || s.Start(c.Name, t).After(now) // which is still the scheduler's
	})
	f, err := st.Operator.ForecastSweep(ctx, s.Tenant)
	if err != nil {
		return err
	}
	preview := map[string]any{"ticks": all, "to_fire": len(ticks), "sessions_due": f.Sessions}
	ok, err := c.agreed(e, len(ticks), "Fire them?", preview, func() {
		span := ""
		if len(ticks) > 0 {
			span = fmt.Sprintf(": %s to %s", tickText(ticks[0]), tickText(ticks[len(ticks)-1]))
		}
		e.pairs(
			pair{"ticks", fmt.Sprintf("%s in that time, %s with a sweep", term.Count(all), term.Count(len(before)))},
			pair{"to fire", term.Count(len(ticks)) + span},
			pair{"sessions", term.Count(f.Sessions) + " due now"},
		)
	})
	if err != nil || !ok {
		return err
	}
	return c.fire(ctx, e, st, s, ticks)
}

// fire fires ticks, the oldest first.
func (c *scheduleBackfillCmd) fire(ctx context.Context, e *Env, st *store.Store, s policy.Schedule, ticks []time.Time) error {
	s.Overlap = policy.OverlapBufferOne
	progress := e.Err.Progress("ticks", int64(len(ticks)))
	defer progress.Done("")
	fired, sweeps := 0, []int64{}
	for _, t := range ticks {
		outcome, sweep, err := st.Scheduler.Fire(ctx, c.tickOf(s, t.UTC(), e, store.SourceBackfill))
		if err != nil {
			return err
		}
		if outcome != "" { // otherwise fired by another meanwhile
			fired++
			if !slices.Contains(sweeps, sweep) {
				sweeps = append(sweeps, sweep)
			}
		}
		progress.Add(1)
	}
	progress.Done("")
	return e.show(map[string]any{"fired": fired, "sweeps": sweeps}, func() {
		e.say("%s fired", plural(fired, "tick"))
		for _, sweep := range sweeps {
			e.say("`compactor sweep watch %d%s` follows its sweep", sweep, e.at())
		}
	})
}
