package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/scheduler"
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

// scheduleArg names a schedule.
type scheduleArg struct {
	Name string `arg:"" name:"schedule" help:"The schedule."`
}

// of returns the schedule.
func (a scheduleArg) of(cfg config.Config) (policy.Schedule, error) {
	return cfg.SchedulerConfig().ScheduleNamed(a.Name)
}

// lastTick returns the time of the last tick in the schedule's zone, nil for none.
func lastTick(s scheduler.ScheduleRow) any {
	switch {
	case s.Last == nil:
		return nil
	case s.Ticks == nil:
		return tickText(s.Last.Tick)
	}
	return tickText(s.Last.Tick.In(s.Ticks[0].Location()))
}

// pausedBy returns who paused the schedule, "the scheduler" without an operator.
func pausedBy(s scheduler.ScheduleRow) string { return cmp.Or(s.PausedBy, "scheduler") }

// pausedText describes the pause of a schedule.
func pausedText(s scheduler.ScheduleRow) string {
	return fmt.Sprintf("paused since %s by %s", timeText(*s.PausedAt), pausedBy(s))
}

type scheduleListCmd struct{}

func (*scheduleListCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	rows, err := cfg.SchedulerConfig().ShownSchedules(ctx, st, e.now())
	if err != nil {
		return err
	}
	paused := slices.DeleteFunc(slices.Clone(rows), func(r scheduler.ScheduleRow) bool { return r.PausedAt == nil })
	err = list(e, "schedules", rows, "no schedules", columns[scheduler.ScheduleRow]{
		{"schedule", term.Text("SCHEDULE"), nil},
		{"next", term.Text("NEXT"), func(s scheduler.ScheduleRow) any {
			switch {
			case s.PausedAt != nil:
				return term.Styled{Value: joined("paused", when(!s.Configured, "not configured")), As: e.Out.Yellow}
			case !s.Configured:
				return "not configured"
			}
			return tickText(s.Ticks[0])
		}},
		{"last_tick", term.Text("LAST TICK"), lastTick},
		{"", term.ID("SWEEP"), func(s scheduler.ScheduleRow) any {
			if s.Last == nil || s.Last.Sweep == 0 {
				return nil
			}
			return s.Last.Sweep
		}},
		{"", term.Text("OUTCOME"), func(s scheduler.ScheduleRow) any { return outcomeOf(s.Last) }},
	})
	if err != nil || e.JSON || len(paused) == 0 {
		return err
	}
	e.say("")
	columns[scheduler.ScheduleRow]{
		{"schedule", term.Text("PAUSED SCHEDULE"), nil},
		{"paused_at", term.Num("AGE"), func(s scheduler.ScheduleRow) any { return e.since(*s.PausedAt) }},
		{"paused_by", term.Text("BY"), func(s scheduler.ScheduleRow) any { return pausedBy(s) }},
		{"note", term.Text("NOTE"), nil},
	}.write(e, paused)
	return nil
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
	s, err := c.of(cfg)
	if err != nil {
		return err
	}
	out, err := cfg.SchedulerConfig().ShownSchedule(ctx, st, c.Name, e.now())
	if err != nil {
		return err
	}
	return e.show(out, func() {
		status, last, sweep := "in force", "none", ""
		if out.PausedAt != nil {
			status = pausedText(out)
		}
		if t := out.Last; t != nil {
			last = fmt.Sprint(lastTick(out), " ", lastText(*t))
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
		for i, t := range out.Ticks {
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
	if _, err := c.of(cfg); err != nil {
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
	s, err := cfg.SchedulerConfig().ShownSchedule(ctx, st, a.Name, e.now())
	if errors.Is(err, store.ErrNotFound) { // it was paused, and is not configured
		s, err = scheduler.ScheduleRow{Name: a.Name}, nil
	}
	if err != nil {
		return err
	}
	switch {
	case s.PausedAt != nil:
		return e.answer(s, "%s", term.Clean(joined(a.Name+" is "+pausedText(s), s.Note)))
	case !s.Configured:
		return e.answer(s, "%s is not paused, and not configured", term.Clean(a.Name))
	}
	return e.answer(s, "%s is in force: next %s", term.Clean(a.Name), tickText(s.Ticks[0]))
}

type scheduleRunCmd struct{ scheduleArg }

func (c *scheduleRunCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	s, err := c.of(cfg)
	if err != nil {
		return err
	}
	sweep, coalesced, err := scheduler.RunSchedule(ctx, st, c.Name, s, e.now(), e.by())
	if err != nil {
		return err
	}
	if coalesced {
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

func (c *scheduleBackfillCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	now := e.now()
	from, to := c.From.time(now), now
	if c.To != (instant{}) {
		to = c.To.time(now)
	}
	b, err := cfg.SchedulerConfig().Backfill(ctx, st, c.Name, from, to, now)
	if err != nil {
		return err
	}
	ok, err := c.agreed(e, b.ToFire, "Fire them?", b, func() {
		span := ""
		if n := b.ToFire; n > 0 {
			span = fmt.Sprintf(": %s to %s", tickText(b.Missed[0]), tickText(b.Missed[n-1]))
		}
		e.pairs(
			pair{"ticks", fmt.Sprintf("%s in that time, %s with a sweep", term.Count(b.Ticks), term.Count(b.Had))},
			pair{"to fire", term.Count(b.ToFire) + span},
			pair{"sessions", term.Count(b.Sessions) + " due now"},
		)
	})
	if err != nil || !ok {
		return err
	}
	progress := e.Err.Progress("ticks", int64(b.ToFire))
	defer progress.Done("")
	out, err := b.Fire(ctx, st, e.now, e.by(), func() { progress.Add(1) })
	if err != nil {
		return err
	}
	progress.Done("")
	return e.show(out, func() {
		e.say("%s fired", plural(out.Fired, "tick"))
		for _, sweep := range out.Sweeps {
			e.say("`compactor sweep watch %d%s` follows its sweep", sweep, e.at())
		}
	})
}
