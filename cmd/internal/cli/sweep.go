package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
)

type sweepCmd struct {
	List   sweepListCmd   `cmd:"" help:"List the latest sweeps."`
	Show   sweepShowCmd   `cmd:"" help:"Show the progress of a sweep and how its runs ended."`
	Watch  sweepWatchCmd  `cmd:"" help:"Follow a sweep until all of its runs have ended."`
	Start  sweepStartCmd  `cmd:"" help:"Start a sweep over the due sessions of a tenant, or of all."`
	Pause  sweepPauseCmd  `cmd:"" help:"Pause a sweep."`
	Resume sweepResumeCmd `cmd:"" help:"Go on with a sweep that is paused or stopped, where it was."`
	Cancel sweepCancelCmd `cmd:"" help:"End a sweep for good."`

	Release sweepReleaseCmd `cmd:"" help:"Have events run what a sweep that was stopped or cancelled holds back."`
}

type sweepListCmd struct {
	Limit int `default:"20" range:"1,1000" help:"Maximum number of sweeps."`
}

func (c *sweepListCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	rows, err := st.Operator.Sweeps(ctx, 0, c.Limit)
	if err != nil {
		return err
	}
	sweeps := make([]store.SweepReport, len(rows))
	for i, r := range rows {
		sweeps[i] = r.Report()
	}
	return list(e, "sweeps", sweeps, "no sweeps", columns[store.SweepReport]{
		{"sweep", term.ID("SWEEP"), nil},
		{"entry", term.Text("ENTRY"), nil},
		{"tenant", term.Text("TENANT"), func(r store.SweepReport) any { return cmp.Or(r.Tenant, "all") }},
		{"status", term.Text("STATUS"), func(r store.SweepReport) any { return sweepState(e.Out, r.SweepRow) }},
		{"due", term.Num("DUE"), nil},
		{"ended", term.Num("ENDED"), nil},
		{"remaining", term.Num("TO GO"), func(r store.SweepReport) any { return r.Remaining + r.Waiting + r.Running }},
		{"seconds_left", term.Num("LEFT"), func(r store.SweepReport) any { return timeLeft(r.SweepRow) }},
		{"started_at", term.Num("AGE"), func(r store.SweepReport) any { return e.since(r.StartedAt) }},
	})
}

// timeLeft is empty if nothing is left or the rate is not known.
func timeLeft(r store.SweepRow) string {
	left, ok := r.TimeLeft()
	return when(ok && left > 0 && (r.Status == "open" || r.EndedAt != nil), term.Duration(left))
}

// sweepArg names a sweep.
type sweepArg struct {
	ID int64 `arg:"" name:"sweep" range:"1," want:"the number of a sweep" help:"The sweep."`
}

type sweepShowCmd struct{ sweepArg }

func (c *sweepShowCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	return showSweep(ctx, e, st, c.ID)
}

func showSweep(ctx context.Context, e *Env, st *store.Store, id int64) error {
	out, err := st.Operator.SweepReport(ctx, id)
	if err != nil {
		return err
	}
	r := out.SweepRow
	held, limit := "", ""
	if r.EndedAt == nil {
		if held, limit, err = waits(ctx, e, st, r.Tenant); err != nil {
			return err
		}
	}
	sessions := "not counted yet: no scheduler has begun it"
	if r.AwaitsPolicies {
		progress, err := st.PolicyProgress(ctx)
		if err != nil {
			return err
		}
		sessions = fmt.Sprintf("not counted yet: a scheduler first applies new policies (%.0f %%)", progress.Percent)
	}
	if r.Due != nil {
		sessions = fmt.Sprintf("%s due, %s to go", term.Count(*r.Due), term.Count(r.Remaining)) +
			when(r.LeftOut > 0, fmt.Sprintf(", %s left out (paused, in a cooldown, or under way)", term.Count(r.LeftOut)))
	}
	return e.show(out, func() {
		e.pairs(
			pair{"sweep", fmt.Sprintf("%d (%s), %s", r.ID, r.Entry, reports.TenantText(r.Tenant))},
			pair{"status", term.Styled{Value: sweepStatus(r), As: sweepState(e.Out, r).As}},
			pair{"waits", held},
			pair{"holds back", heldBySweep(out.HeldBack)},
			pair{"started", r.StartedAt},
			pair{"requested by", r.RequestedBy},
			pair{"note", r.Note},
			pair{"window ends", r.WindowEnd},
			pair{"sessions", sessions},
			pair{"canary", canaryText(r)},
			pair{"runs", fmt.Sprintf("%s: %s waiting, %s running, %s ended", term.Count(r.Queued), term.Count(r.Waiting),
				term.Count(r.Running), term.Count(r.Ended))},
			pair{"rate", when(r.Worked > 0, fmt.Sprintf("%.1f runs per second in %s", r.Rate(), term.Duration(r.Worked))+
				when(timeLeft(r) != "", ", "+timeLeft(r)+" left"))},
			pair{"limit", limit},
		)
		writeOutcomes(e, out.Outcomes, r.Ended)
	})
}

// waits returns the pause that holds all sessions of a tenant, or of all with an empty one, and the limit of its runs.
func waits(ctx context.Context, e *Env, st *store.Store, tenant string) (held, limit string, err error) {
	if held, err = pauseOfAll(ctx, st, tenant); err == nil {
		_, limit, err = runLimit(ctx, e, st, tenant)
	}
	return held, limit, err
}

// canaryText describes the sessions that come first, "" if there are none.
func canaryText(r store.SweepRow) string {
	switch {
	case r.CanaryShare == 0:
		return ""
	case r.Due == nil:
		return fmt.Sprintf("%g %% of the sessions come first", 100*r.CanaryShare)
	case r.Canary == nil:
		return "passed"
	}
	return plural(*r.Canary, "session") + " first; the others wait until their runs have ended"
}

// heldBySweep describes the sessions that wait for a sweep that does not go on by itself, and how
// that ends; "" for none.
func heldBySweep(h *store.Held) string {
	if h == nil || h.Reason == store.HeldOpenSweep {
		return ""
	}
	text := plural(h.Sessions, "session")
	if h.Until != nil {
		text += ", until " + timeText(*h.Until)
	}
	return text + "; ended by: " + h.EndsBy
}

// writeOutcomes writes how runs ended, after an empty line.
func writeOutcomes(e *Env, outcomes []store.RunOutcome, ended int64) {
	if len(outcomes) == 0 {
		return
	}
	e.say("")
	columns[store.RunOutcome]{
		{"outcome", term.Text("OUTCOME"), func(o store.RunOutcome) any {
			return term.Styled{
				Value: o.Outcome,
				As:    when(o.Failed, e.Out.Red),
			}
		}},
		{"runs", term.Num("RUNS"), nil},
		{"", term.Num("SHARE"), func(o store.RunOutcome) any { return term.Percent(o.Runs, ended) }},
		{"tokens_after", term.Num("TOKENS"), func(o store.RunOutcome) any { return brief(o.TokensBefore, o.TokensAfter) }},
	}.write(e, outcomes)
}

// sweepEnding is the state of a sweep that has passed all sessions and whose last runs are to end.
const sweepEnding = "ending"

// sweepState returns the status of a sweep, or sweepEnding, in its colour.
func sweepState(o term.Output, r store.SweepRow) term.Styled {
	switch {
	case r.Status == "done" && !r.Settled():
		return term.Styled{Value: sweepEnding, As: o.Yellow}
	case r.Status == "done":
		return term.Styled{Value: r.Status, As: o.Green}
	case r.Status == "open", r.Status == "paused":
		return term.Styled{Value: r.Status, As: o.Yellow}
	}
	return term.Styled{Value: r.Status, As: o.Red}
}

// sweepStatus returns the state with who set it, and why.
func sweepStatus(r store.SweepRow) string {
	text := fmt.Sprint(sweepState(term.Output{}, r).Value)
	switch {
	case r.ChangedBy != "" && r.Status == "open":
		text += ", resumed by " + r.ChangedBy
	case r.ChangedBy != "":
		text += " by " + r.ChangedBy
	}
	reason := map[string]string{
		"window_ended": "its window ended; goes on at the next tick",
		"failures":     "too many of its latest runs failed",
		"canary":       "too many runs of its canary failed",
		"overlap":      "the next tick came before it was done",
	}[r.Reason]
	return joined(text, cmp.Or(reason, r.Reason))
}

type sweepWatchCmd struct {
	sweepArg

	Interval time.Duration `default:"1s" help:"Interval between looks."`
}

func (c *sweepWatchCmd) Validate() error {
	if c.Interval < 10*time.Millisecond {
		return errors.New("--interval: want at least 10ms")
	}
	return nil
}

func (c *sweepWatchCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	status := ""
	err := e.watch(ctx, fmt.Sprintf("sweep %d", c.ID), c.Interval, func() (total *int64, done int64, ended bool, err error) {
		r, err := st.Operator.Sweep(ctx, c.ID)
		if err != nil {
			return nil, 0, false, err
		}
		if status != "" && r.Status != status {
			e.note("sweep %d is %s", c.ID, sweepStatus(r))
		}
		if status = r.Status; r.Due != nil {
			done = *r.Due - r.Remaining - r.Waiting - r.Running
		}
		return r.Due, done, r.Settled(), nil
	})
	if err != nil {
		return err
	}
	return showSweep(ctx, e, st, c.ID)
}

// watch shows the progress of something until it has ended. The total is nil while it is not known.
func (e *Env) watch(ctx context.Context, label string, interval time.Duration,
	look func() (total *int64, done int64, ended bool, err error),
) error {
	var progress *term.Progress
	for {
		total, done, ended, err := look()
		if err == nil && total != nil {
			if progress == nil {
				progress = e.Err.Progress(label, *total)
			}
			progress.Set(done)
		}
		if err == nil && !ended {
			err = backoff.Wait(ctx, interval)
		}
		if err == nil && !ended {
			continue
		}
		if progress != nil {
			progress.Done("")
		}
		return err
	}
}

type sweepStartCmd struct {
	AllTenants allTenants    `help:"Sessions of every tenant."`
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
	tenant := c.AllTenants.tenant(cfg)
	if c.DryRun {
		return forecastSweep(ctx, e, st, tenant)
	}
	id, err := st.Operator.Start(ctx, store.SweepOptions{
		Tenant: tenant, Window: c.For, StopShare: c.StopAt, Canary: c.Canary,
		Note: c.Note, By: e.by(),
	})
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
	perSecond, limit, err := runLimit(ctx, e, st, tenant)
	if err != nil {
		return err
	}
	x := f.Estimate(perSecond)
	_, takes := f.Runs()
	if perSecond > 0 {
		limit += ": " + term.Duration(seconds(float64(x.Runs)/perSecond)) + " or more"
	}
	sessions, took, calls := fmt.Sprintf("%s due, of %s", term.Count(f.Sessions),
		plural(f.Tenants, "tenant")), "not known: no sweep with runs is done yet", ""
	if f.Paused > 0 {
		sessions += fmt.Sprintf("; %s paused and left out", term.Count(f.Paused))
	}
	if f.Cooling > 0 {
		sessions += fmt.Sprintf("; %s in a cooldown and left out", term.Count(f.Cooling))
	}
	if f.RunsPerSecond > 0 {
		took = fmt.Sprintf("%s, at the %.1f runs per second of sweep %d", term.Duration(takes), f.RunsPerSecond, f.Like)
		calls = fmt.Sprintf("%s, cost %.2f, as in sweep %d", term.Count(int64(x.Calls+0.5)), x.Cost, f.Like)
	}
	return e.show(x, func() {
		e.pairs(
			pair{"sessions", sessions},
			pair{"tokens", fmt.Sprintf("%s in their views, %s of them above the start", term.Count(f.Tokens), term.Count(f.OverStart))},
			pair{"model calls", calls},
			pair{"time", took},
			pair{"limit", limit},
		)
	})
}

// sweepChanged writes a sweep that the command has changed.
func sweepChanged(ctx context.Context, e *Env, st *store.Store, id int64) error {
	r, err := st.Operator.Sweep(ctx, id)
	if err != nil {
		return err
	}
	out := r.Report()
	if r.EndedAt != nil {
		if out.HeldBack, err = st.Operator.HeldBySweep(ctx, id); err != nil {
			return err
		}
	}
	return e.show(out, func() {
		e.say("sweep %d is %s", id, term.Clean(sweepStatus(r)))
		switch h := out.HeldBack; {
		case h != nil && h.Until != nil:
			e.say("%s that were due wait until %s,\nfor the next sweep, or for a new message; to have them run now:\n`%s%s`",
				plural(h.Sessions, "session"), timeText(*h.Until), h.EndsBy, e.at())
		case r.EndedAt != nil:
			e.say("it holds nothing back")
		}
		if r.Status == "open" {
			e.say("`compactor sweep watch %d%s` follows it", id, e.at())
		}
	})
}

// steerSweep changes the state of a sweep and writes it.
func steerSweep(ctx context.Context, e *Env, st *store.Store, id int64, action, note string, window time.Duration) error {
	if err := st.Operator.SteerSweep(ctx, id, action, note, e.by(), window); err != nil {
		return err
	}
	return sweepChanged(ctx, e, st, id)
}

// sweepNote is the argument and the flag of the commands that steer a sweep.
type sweepNote struct {
	sweepArg

	Note string `placeholder:"TEXT" help:"Why, for \"sweep show\"."`
}

type sweepPauseCmd struct{ sweepNote }

func (c *sweepPauseCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	return steerSweep(ctx, e, st, c.ID, store.SweepPause, c.Note, 0)
}

type sweepResumeCmd struct {
	sweepNote

	For time.Duration `placeholder:"DURATION" help:"Stop after this time."`
}

func (c *sweepResumeCmd) Validate() error { return validWindow(c.For) }

func (c *sweepResumeCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	return steerSweep(ctx, e, st, c.ID, store.SweepResume, c.Note, c.For)
}

type sweepCancelCmd struct{ sweepNote }

func (c *sweepCancelCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	return steerSweep(ctx, e, st, c.ID, store.SweepCancel, c.Note, 0)
}

type sweepReleaseCmd struct{ sweepArg }

func (c *sweepReleaseCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	return steerSweep(ctx, e, st, c.ID, store.SweepRelease, "", 0)
}
