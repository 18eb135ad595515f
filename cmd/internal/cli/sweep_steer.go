package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
)

type sweepStartCmd struct {
	AllTenants bool          `help:"Sessions of every tenant."`
	For        time.Duration `placeholder:"DURATION" help:"Stop after this time; \"sweep resume\" goes on."`
	DryRun     bool          `help:"Only say what the sweep would do, and how long it would take."`
	stopFlag
	Canary float64 `placeholder:"SHARE" help:"Run this share of the sessions first, such as 0.01, and the others only if no more of its runs than --stop-at failed."`
	Note   string  `placeholder:"TEXT" help:"Why, for \"sweep show\"."`
}

func (c *sweepStartCmd) Validate() error {
	if !(c.Canary >= 0 && c.Canary <= 1) {
		return fmt.Errorf("--canary: %v: want a share up to 1, or 0 for none", c.Canary)
	}
	return errors.Join(c.stopFlag.Validate(), validWindow(c.For))
}

// stopFlag is the rule by which a sweep or a bulk recompaction stops by itself.
type stopFlag struct {
	StopAt float64 `default:"0.5" placeholder:"SHARE" help:"Stop when more of the latest runs than this share failed or got no summary; 1 for never."`
}

func (f stopFlag) Validate() error {
	if !(f.StopAt > 0 && f.StopAt <= 1) {
		return fmt.Errorf("--stop-at: %v: want a share above 0, up to 1", f.StopAt)
	}
	return nil
}

func validWindow(d time.Duration) error {
	if d != 0 && (d < time.Second || d > 365*24*time.Hour) {
		return fmt.Errorf("--for: %s: want 1s to 8760h", d)
	}
	return nil
}

func (c *sweepStartCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	tenant := cfg.Tenant
	if c.AllTenants {
		tenant = ""
	}
	if c.DryRun {
		return forecastSweep(ctx, e, st, tenant)
	}
	id, err := st.Operator.Start(ctx, store.SweepOptions{Tenant: tenant, Window: c.For, StopShare: c.StopAt, Canary: c.Canary, Note: c.Note, By: e.by()})
	if err != nil {
		return err
	}
	return sweepChanged(ctx, e, st, id)
}

func forecastSweep(ctx context.Context, e *Env, st *store.Store, tenant string) error {
	f, err := st.Operator.ForecastSweep(ctx, tenant)
	if err != nil {
		return err
	}
	runs, takes := f.Runs()
	perSecond, limit, err := runLimit(ctx, e, st, tenant)
	if err != nil {
		return err
	}
	least := takes // with the limit
	if perSecond > 0 {
		limited := time.Duration(float64(runs) / perSecond * float64(time.Second))
		limit += ": " + term.Duration(limited) + " or more"
		least = max(takes, limited)
	}
	if e.JSON {
		return term.JSON(e.Out.W, struct {
			store.SweepForecast
			Runs    int64   `json:"runs"`
			Seconds float64 `json:"seconds,omitempty"`
			Calls   float64 `json:"model_calls"`
			Cost    float64 `json:"cost"`
		}{f, runs, least.Seconds(), f.CallsPerRun * float64(runs), f.MicrosPerRun * float64(runs) / 1e6})
	}
	sessions, took, calls := fmt.Sprintf("%s due, of %s", term.Count(f.Sessions), term.Plural(f.Tenants, "tenant", "tenants")), "not known: no sweep with runs is done yet", ""
	if f.Paused > 0 {
		sessions += fmt.Sprintf("; %s paused and left out", term.Count(f.Paused))
	}
	if f.RunsPerSecond > 0 {
		took = fmt.Sprintf("%s, at the %.1f runs per second of sweep %d", term.Duration(takes), f.RunsPerSecond, f.Like)
		calls = fmt.Sprintf("%s, cost %.2f, as in sweep %d", term.Count(int64(f.CallsPerRun*float64(runs)+0.5)), f.MicrosPerRun*float64(runs)/1e6, f.Like)
	}
	return e.Out.Pairs(
		[2]any{"sessions", sessions},
		[2]any{"tokens", fmt.Sprintf("%s in their views, %s of them above the start", term.Count(f.Tokens), term.Count(f.OverStart))},
		[2]any{"model calls", calls},
		[2]any{"time", took},
		[2]any{"limit", limit},
	)
}

// sweepChanged writes a sweep that the command has changed.
func sweepChanged(ctx context.Context, e *Env, st *store.Store, id int64) error {
	r, err := st.Operator.Sweep(ctx, id)
	if err != nil {
		return err
	}
	var holds *store.Held
	if r.EndedAt != nil {
		if holds, err = st.Operator.HeldBySweep(ctx, id); err != nil {
			return err
		}
	}
	if e.JSON {
		out := newSweepJSON(r)
		out.HeldBack = holds
		return term.JSON(e.Out.W, out)
	}
	e.say("sweep %d is %s", id, term.Clean(sweepStatus(r)))
	switch {
	case holds != nil && holds.Until != nil:
		e.say("%s that were due wait until %s,\nfor the next sweep, or for a new message; to have them run now:\n`%s%s`",
			term.Plural(holds.Sessions, "session", "sessions"), holds.Until.UTC().Format("2006-01-02 15:04:05Z"), holds.EndsBy, e.at())
	case r.EndedAt != nil:
		e.say("it holds nothing back")
	}
	if r.Status == "open" {
		e.say("`compactor sweep watch %d%s` follows it", id, e.at())
	}
	return nil
}

// sweepNote is the argument and the flag of the commands that steer a sweep.
type sweepNote struct {
	sweepArg

	Note string `placeholder:"TEXT" help:"Why, for \"sweep show\"."`
}

func (c *sweepNote) steer(ctx context.Context, e *Env, st *store.Store, action string, window time.Duration) error {
	if err := st.Operator.SteerSweep(ctx, c.ID, action, c.Note, e.by(), window); err != nil {
		return err
	}
	return sweepChanged(ctx, e, st, c.ID)
}

type sweepPauseCmd struct{ sweepNote }

func (*sweepPauseCmd) Help() string {
	return `What it has queued is executed: about a second's work. The next tick of its schedule starts another sweep, unless its overlap is skip; "compactor pause --all" holds everything.`
}

func (c *sweepPauseCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	return c.steer(ctx, e, st, store.SweepPause, 0)
}

type sweepResumeCmd struct {
	sweepNote

	For time.Duration `placeholder:"DURATION" help:"Stop after this time."`
}

func (c *sweepResumeCmd) Validate() error {
	return errors.Join(c.sweepArg.Validate(), validWindow(c.For))
}

func (c *sweepResumeCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	return c.steer(ctx, e, st, store.SweepResume, c.For)
}

type sweepCancelCmd struct{ sweepNote }

func (*sweepCancelCmd) Help() string {
	return `Its runs that no worker has tried end as cancelled. Sessions that were due then and still are wait for a day, or for the next sweep, a new message or "sweep release": the answer says how many, and until when. What becomes due afterwards does not wait.`
}

func (c *sweepCancelCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	return c.steer(ctx, e, st, store.SweepCancel, 0)
}

type sweepReleaseCmd struct{ sweepArg }

func (*sweepReleaseCmd) Help() string {
	return `What was due when a sweep was stopped or cancelled is found within scheduler.reconcile_interval then, instead of a day later. A sweep that was stopped can be resumed afterwards.`
}

func (c *sweepReleaseCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	if err := st.Operator.SteerSweep(ctx, c.ID, store.SweepRelease, "", e.by(), 0); err != nil {
		return err
	}
	return sweepChanged(ctx, e, st, c.ID)
}
