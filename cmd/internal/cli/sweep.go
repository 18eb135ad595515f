package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

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

func (*sweepCmd) Help() string {
	return `A sweep goes over all sessions that are due, once. Each tick of a schedule starts one (entry: the schedule's name), and so does "sweep start" (entry operator). Tenants take turns. Messages that arrive meanwhile, and requested runs, do not wait for it.

It is open, paused, ending (all sessions passed, runs left), done, cancelled, or stopped: at the end of its window (of the schedule, or --for), where it goes on at the next tick, or because more than half of its latest runs (--stop-at), a hundred or more, failed, would have made the view larger or got no summary, where an operator resumes it. With --canary, so do the runs of the first sessions, however few, and the others wait for them.

An open or paused sweep has the sessions that it is yet to pass: nothing else looks for them, but a new message gets a run. What was due when a sweep was stopped or cancelled waits for a day, or for the next sweep, a new message or "sweep release"; what becomes due afterwards does not.

Examples:

    compactor sweep start --all-tenants --dry-run
    compactor sweep start --all-tenants --for 2h --note "after the import"
    compactor sweep start --canary 0.01 --stop-at 0.1
    compactor sweep watch 12
    compactor sweep pause 12 --note "provider is down"`
}

type sweepJSON struct {
	store.SweepRow
	RunsPerSecond float64            `json:"runs_per_second,omitempty"` // not in a list where all runs have ended
	SecondsLeft   *float64           `json:"seconds_left,omitempty"`
	Outcomes      []store.RunOutcome `json:"outcomes,omitempty"`
	HeldBack      *store.Held        `json:"held_back,omitempty"` // what waits for it
}

func newSweepJSON(r store.SweepRow) sweepJSON {
	r.Tick, r.StartedAt = r.Tick.UTC(), r.StartedAt.UTC()
	out := sweepJSON{SweepRow: r, RunsPerSecond: r.Rate()}
	if left, ok := r.TimeLeft(); ok {
		seconds := left.Seconds()
		out.SecondsLeft = &seconds
	}
	return out
}

type sweepListCmd struct {
	Limit int `default:"20" help:"Maximum number of sweeps."`
}

func (c *sweepListCmd) Validate() error { return inRange("--limit", c.Limit, 1, 1000) }

func (c *sweepListCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	rows, err := st.Operator.Sweeps(ctx, c.Limit)
	if err != nil {
		return err
	}
	if e.JSON {
		out := make([]sweepJSON, len(rows))
		for i, r := range rows {
			out[i] = newSweepJSON(r)
		}
		return term.JSON(e.Out.W, map[string]any{"sweeps": out})
	}
	if len(rows) == 0 {
		e.note("no sweeps")
		return nil
	}
	t := e.Out.Table(term.ID("SWEEP"), term.Text("ENTRY"), term.Text("TENANT"), term.Text("STATUS"), term.Num("DUE"), term.Num("ENDED"),
		term.Num("TO GO"), term.Num("LEFT"), term.Num("AGE"))
	for _, r := range rows {
		var due any
		if r.Due != nil {
			due = *r.Due
		}
		t.Row(r.ID, r.Entry, cmp.Or(r.Tenant, "all"), term.Styled{Value: sweepState(r), As: sweepStyle(e.Out, sweepState(r))}, due, r.Ended,
			r.Remaining+r.Waiting+r.Running, timeLeft(r), e.since(r.StartedAt))
	}
	return t.Write()
}

func sweepStyle(o term.Output, status string) func(string) string {
	switch status {
	case "done":
		return o.Green
	case "open", "paused", sweepEnding:
		return o.Yellow
	}
	return o.Red
}

// timeLeft is empty if nothing is left or the rate is not known.
func timeLeft(r store.SweepRow) string {
	left, ok := r.TimeLeft()
	if !ok || left == 0 || r.Status != "open" && r.EndedAt == nil {
		return ""
	}
	return term.Duration(left)
}

// sweepArg names a sweep.
type sweepArg struct {
	ID int64 `arg:"" name:"sweep" help:"The sweep."`
}

func (a sweepArg) Validate() error {
	if a.ID <= 0 {
		return fmt.Errorf("%d: want the number of a sweep", a.ID)
	}
	return nil
}

type sweepShowCmd struct{ sweepArg }

func (c *sweepShowCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	return showSweep(ctx, e, st, c.ID)
}

func showSweep(ctx context.Context, e *Env, st *store.Store, id int64) error {
	r, err := st.Operator.Sweep(ctx, id)
	if err != nil {
		return err
	}
	outcomes, err := st.Operator.SweepOutcomes(ctx, id)
	if err != nil {
		return err
	}
	holds, err := st.Operator.HeldBySweep(ctx, id)
	if err != nil {
		return err
	}
	if e.JSON {
		out := newSweepJSON(r)
		out.Outcomes, out.HeldBack = outcomes, holds
		return term.JSON(e.Out.W, out)
	}
	held, limit := "", "" // by a pause of all its sessions, and of its runs
	if r.EndedAt == nil {
		if held, err = pauseOfAll(ctx, st, r.Tenant); err != nil {
			return err
		}
		if _, limit, err = runLimit(ctx, e, st, r.Tenant); err != nil {
			return err
		}
	}
	of := "all tenants"
	if r.Tenant != "" {
		of = "tenant " + r.Tenant
	}
	sessions, rate := "not counted yet: no scheduler has begun it", ""
	if r.AwaitsPolicies {
		progress, err := st.PolicyProgress(ctx)
		if err != nil {
			return err
		}
		sessions = fmt.Sprintf("not counted yet: a scheduler first applies new policies (%.0f %%)", progress.Percent)
	}
	if r.Due != nil {
		sessions = fmt.Sprintf("%s due, %s to go", term.Count(*r.Due), term.Count(r.Remaining))
		if r.LeftOut > 0 {
			sessions += fmt.Sprintf(", %s left out (paused, or under way)", term.Count(r.LeftOut))
		}
	}
	if r.Worked > 0 {
		rate = fmt.Sprintf("%.1f runs per second in %s", r.Rate(), term.Duration(r.Worked))
		if left := timeLeft(r); left != "" {
			rate += ", " + left + " left"
		}
	}
	canary := ""
	switch {
	case r.CanaryShare == 0:
	case r.Due == nil:
		canary = fmt.Sprintf("%g %% of the sessions come first", 100*r.CanaryShare)
	case r.Canary == nil:
		canary = "passed"
	default:
		canary = term.Plural(*r.Canary, "session", "sessions") + " first; the others wait until their runs have ended"
	}
	var window any
	if r.WindowEnd != nil {
		window = *r.WindowEnd
	}
	if err := e.Out.Pairs(
		[2]any{"sweep", fmt.Sprintf("%d (%s), %s", r.ID, r.Entry, of)},
		[2]any{"status", term.Styled{Value: sweepStatus(r), As: sweepStyle(e.Out, sweepState(r))}},
		[2]any{"waits", held},
		[2]any{"holds back", heldBySweep(holds)},
		[2]any{"started", r.StartedAt},
		[2]any{"requested by", r.RequestedBy},
		[2]any{"note", r.Note},
		[2]any{"window ends", window},
		[2]any{"sessions", sessions},
		[2]any{"canary", canary},
		[2]any{"runs", fmt.Sprintf("%s: %s waiting, %s running, %s ended", term.Count(r.Queued), term.Count(r.Waiting), term.Count(r.Running), term.Count(r.Ended))},
		[2]any{"rate", rate},
		[2]any{"limit", limit},
	); err != nil || len(outcomes) == 0 {
		return err
	}
	e.say("")
	return writeOutcomes(e, outcomes, r.Ended)
}

// heldBySweep says what waits for a sweep that does not go on by itself, and what ends that;
// empty for nothing.
func heldBySweep(h *store.Held) string {
	if h == nil || h.Reason == store.HeldOpenSweep {
		return ""
	}
	text := term.Plural(h.Sessions, "session", "sessions")
	if h.Until != nil {
		text += ", until " + h.Until.UTC().Format("2006-01-02 15:04:05Z")
	}
	return text + "; ended by: " + h.EndsBy
}

// writeOutcomes writes how runs ended.
func writeOutcomes(e *Env, outcomes []store.RunOutcome, ended int64) error {
	t := e.Out.Table(term.Text("OUTCOME"), term.Num("RUNS"), term.Num("SHARE"), term.Num("TOKENS"))
	for _, o := range outcomes {
		outcome := term.Styled{Value: o.Outcome, As: func(s string) string { return s }}
		if o.Failed {
			outcome.As = e.Out.Red
		}
		t.Row(outcome, o.Runs, term.Percent(o.Runs, ended), brief(o.TokensBefore, o.TokensAfter))
	}
	return t.Write()
}

// sweepEnding is the state of a sweep that has passed all sessions and whose last runs are to end.
const sweepEnding = "ending"

// sweepState returns the status of a sweep, or sweepEnding.
func sweepState(r store.SweepRow) string {
	if r.Status == "done" && !r.Settled() {
		return sweepEnding
	}
	return r.Status
}

// sweepStatus returns the state with who set it, and why.
func sweepStatus(r store.SweepRow) string {
	text := sweepState(r)
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
	return c.sweepArg.Validate()
}

func (c *sweepWatchCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	var progress *term.Progress
	status := ""
	for {
		r, err := st.Operator.Sweep(ctx, c.ID)
		if err != nil {
			return err
		}
		if status != "" && r.Status != status {
			e.note("sweep %d is %s", c.ID, sweepStatus(r))
		}
		status = r.Status
		if r.Due != nil {
			if progress == nil {
				progress = e.Err.Progress(fmt.Sprintf("sweep %d", c.ID), *r.Due)
			}
			progress.Set(*r.Due - r.Remaining - r.Waiting - r.Running)
		}
		if r.Settled() {
			if progress != nil {
				progress.Done("")
			}
			return showSweep(ctx, e, st, c.ID)
		}
		if err := backoff.Wait(ctx, c.Interval); err != nil {
			return err
		}
	}
}
