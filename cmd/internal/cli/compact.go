package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/worker"
	"github.com/sessionstore/compactor/worker/jobs"
)

// compactCmd requests a run of one session and waits for it.
type compactCmd struct {
	Session     string        `arg:"" help:"The session."`
	From        string        `enum:"log,view," default:"" placeholder:"log|view" help:"Plan over the whole log, ignoring earlier runs (the default), or over the current view."`
	Strategy    []string      `sep:"none" placeholder:"NAME[:P=V,…]" help:"Run this strategy instead of the policy's pipeline; repeatable, in order."`
	Focus       string        `placeholder:"TEXT" help:"Topic that a summary should keep."`
	Summary     string        `type:"existingfile" placeholder:"FILE" help:"Use the text of this file as the summary, in place of a model's. [m12] at the end of a line names the message with the seq 12."`
	Author      string        `placeholder:"NAME" help:"Who wrote the summary; by default who requests the run."`
	Note        string        `placeholder:"TEXT" help:"A remark that is stored with the summary."`
	DryRun      bool          `help:"Plan and record the run, but change nothing. It ends as dry_run if the plan would be applied, and otherwise as the run would."`
	AllowGrowth bool          `help:"Apply the result even if the view grows."`
	Force       bool          `help:"Execute the run although its session is paused."`
	Wait        bool          `default:"true" negatable:"" help:"Wait for the run to end."`
	Timeout     time.Duration `default:"60s" help:"Maximum time to wait."`
}

func (c *compactCmd) Run(ctx context.Context, e *Env, cfg config.Config) error {
	if c.Timeout <= 0 {
		return wrong("--timeout: %s: want more than 0", c.Timeout)
	}
	parsed, err := parseStrategies(c.Strategy, cfg.Policy, e.Registry)
	if err != nil {
		return err
	}
	var steps []store.Step
	for _, s := range parsed {
		steps = append(steps, store.Step(s))
	}
	written, err := c.written(e.by())
	if err != nil {
		return err
	}
	st, err := e.Open(ctx)
	if err != nil {
		return err
	}
	pauses, err := st.Operator.PausesOf(ctx, key(cfg, c.Session))
	if err != nil {
		return err
	}
	if len(pauses) > 0 && !c.Force {
		return &exitError{exitRefused, fmt.Errorf("%s; --force runs it anyway", pauseText(pauses[0]))}
	}
	o := store.Options{
		From: c.From, Focus: c.Focus, DryRun: c.DryRun, AllowGrowth: c.AllowGrowth, Pipeline: steps, Force: c.Force, Summary: written,
	}
	if err := (reports.Planning{Config: cfg, Registry: e.Registry, Options: &o}).CheckSummary(ctx, st, key(cfg, c.Session)); err != nil && !c.DryRun {
		return &exitError{exitRefused, fmt.Errorf("--summary: %w", err)}
	}
	run, err := st.Request(ctx, key(cfg, c.Session), store.TriggerOperator, e.by(), o)
	if err != nil {
		return err
	}
	e.enqueue(ctx, cfg, st, run)
	row := store.RunRow{ID: run, Session: c.Session, Tenant: cfg.Tenant, Status: "queued"}
	if c.Wait {
		if row, err = reports.AwaitRun(ctx, st, run, c.Timeout); err != nil {
			return err
		}
	}
	return c.report(e, row)
}

// written returns the summary of the file, with its secrets masked, nil without one.
func (c *compactCmd) written(by string) (*store.WrittenSummary, error) {
	if c.Summary == "" {
		if c.Author != "" || c.Note != "" {
			return nil, wrong("--author, --note: want --summary too")
		}
		return nil, nil
	}
	text, err := os.ReadFile(c.Summary)
	if err != nil {
		return nil, err
	}
	written, err := reports.WrittenSummary(string(text), cmp.Or(c.Author, by), c.Note)
	if err != nil {
		return nil, wrong("--summary: %s: %s", c.Summary, err)
	}
	return written, nil
}

// enqueue enqueues the run's task. Without Redis the scheduler does so later.
func (e *Env) enqueue(ctx context.Context, cfg config.Config, st *store.Store, run store.RunID) {
	if cfg.Redis.URL == "" {
		e.note("no Redis is configured (--redis-url): the scheduler will enqueue run %d", run)
		return
	}
	redis, err := ParseRedis(cfg)
	var name jobs.Installation
	if err == nil {
		name, err = installation(ctx, cfg, st)
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		queue := jobs.NewEnqueuer(redis, name, cfg.Worker.JobTimeout)
		defer func() { _ = queue.Close() }()
		err = queue.Enqueue(ctx, store.TriggerOperator, 1, run)
	}
	if err != nil {
		e.note("%s", e.scrub(fmt.Sprintf("Redis could not be reached (%v): run %d is queued in Postgres, the scheduler enqueues it when Redis is back", err, run)))
	}
}

// report writes the result of the run and returns an error if it failed or was refused.
func (c *compactCmd) report(e *Env, r store.RunRow) error {
	ended := r.Ended()
	switch {
	case e.JSON:
		if err := e.json(reports.NewRun(r)); err != nil {
			return err
		}
	case ended:
		printRun(e, r)
	case !c.Wait:
		e.say("run %d of session %s is queued; `compactor runs --run %d%s` shows it", r.ID, term.Clean(r.Session), r.ID, e.at())
	}
	switch {
	case !ended && c.Wait:
		state := "queued: no worker has taken it (is one running? `compactor worker`)"
		switch {
		case r.Status == "running":
			state = "running"
		case r.ErrorCode == store.CodePaused:
			state = "queued: its session is paused (`compactor pause --list`)"
		case r.ErrorCode == store.CodeRunLimit:
			state = "queued: the limit of runs of its tenant holds it (`compactor limit list`)"
		}
		return fmt.Errorf("run %d is still %s after %s; it continues in the background, `compactor runs --run %d%s` shows it", r.ID, state, c.Timeout, r.ID, e.at())
	case r.Status == "failed":
		return fmt.Errorf("run %d failed: %s", r.ID, joined(r.Outcome, when(r.Error != r.Outcome, r.Error)))
	case r.Outcome == worker.OutcomeWouldGrow:
		hint := "--allow-growth applies it anyway"
		if c.From != "view" {
			hint = "--from view plans over the current view, " + hint
		}
		return &exitError{exitRefused, fmt.Errorf("run %d changed nothing: the view would have grown; %s", r.ID, hint)}
	}
	return nil
}
