package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
)

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

func (*scheduleRunCmd) Help() string {
	return `Starts a sweep with the tenant, the window, the overlap and the canary of the schedule, whether it is paused or not. Its ticks stay as they are.`
}

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

func (*scheduleBackfillCmd) Help() string {
	return `Fires the ticks from one time to another that started no sweep: those that passed while no scheduler ran, while the schedule was paused, or that were skipped or found too late. A tick that had a sweep is not fired again, so a backfill that was interrupted can be repeated. What became of ticks is known for 90 days, and that is how far a backfill goes back.

A sweep goes over the sessions that are due now, whatever the tick that it is of. So one stands for all ticks that are fired before it begins: many ticks usually are one sweep or two, one after the other. What is configured as overlap does not count here.

Examples:

    compactor schedule backfill nightly --from 2026-01-28 --dry-run
    compactor schedule backfill nightly --from 2026-01-28 --to 2026-01-31T12:00:00Z --yes`
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
		return wrong("--from %s, --to %s: want a time in the past, and one behind it up to now", from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339))
	}
	ticks := times.Between(from, to, maxBackfill+1)
	if len(ticks) > maxBackfill {
		return wrong("more than %s ticks: want a shorter time", term.Count(maxBackfill))
	}
	if from.Before(now.Add(-store.KeepTicks)) {
		return wrong("--from %s: want a time in the last %d days; what became of ticks before that is not known", from.UTC().Format(time.RFC3339), int(store.KeepTicks.Hours()/24))
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
	if !e.JSON {
		span := ""
		if len(ticks) > 0 {
			span = fmt.Sprintf(": %s to %s", tickText(ticks[0]), tickText(ticks[len(ticks)-1]))
		}
		if err := e.Out.Pairs(
			[2]any{"ticks", fmt.Sprintf("%s in that time, %s with a sweep", term.Count(int64(all)), term.Count(int64(len(before))))},
			[2]any{"to fire", term.Count(int64(len(ticks))) + span},
			[2]any{"sessions", term.Count(f.Sessions) + " due now"},
		); err != nil {
			return err
		}
	}
	ok, err := c.confirmed(e, len(ticks), "Fire them?")
	if err != nil {
		return err
	}
	if !ok {
		if e.JSON {
			return term.JSON(e.Out.W, map[string]any{"ticks": all, "to_fire": len(ticks), "sessions_due": f.Sessions})
		}
		return nil
	}
	return c.fire(ctx, e, st, s, ticks)
}

// fire fires ticks, the oldest first.
func (c *scheduleBackfillCmd) fire(ctx context.Context, e *Env, st *store.Store, s policy.Schedule, ticks []time.Time) error {
	s.Overlap = policy.OverlapBufferOne
	progress := e.Err.Progress("ticks", int64(len(ticks)))
	fired, sweeps := 0, []int64{}
	for _, t := range ticks {
		outcome, sweep, err := st.Scheduler.Fire(ctx, c.tickOf(s, t.UTC(), e, store.SourceBackfill))
		if err != nil {
			progress.Done("")
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
	if e.JSON {
		return term.JSON(e.Out.W, map[string]any{"fired": fired, "sweeps": sweeps})
	}
	e.say("%s fired", term.Plural(fired, "tick", "ticks"))
	for _, sweep := range sweeps {
		e.say("`compactor sweep watch %d%s` follows its sweep", sweep, e.at())
	}
	return nil
}
