package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/redact"
	"github.com/sessionstore/compactor/strategies/summary"
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

	registry *plan.Registry // for Help
}

func (c *compactCmd) Help() string {
	var b strings.Builder
	b.WriteString("A worker must be running; without one the run stays queued.\n\n")
	writeStrategyHelp(&b, c.registry)
	b.WriteString(`
Examples:

    compactor compact chat-42
    compactor compact chat-42 --dry-run
    compactor compact chat-42 --summary handover.md --note "after the call with the customer"
    compactor compact chat-42 --strategy tool_result:keep_last_tool_call_groups=2 --strategy sliding_window:keep_last_groups=20`)
	return b.String()
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
	run, err := st.Request(ctx, key(cfg, c.Session), store.TriggerOperator, e.by(), store.Options{
		From: c.From, Focus: c.Focus, DryRun: c.DryRun, AllowGrowth: c.AllowGrowth, Pipeline: steps, Force: c.Force, Summary: written,
	})
	if err != nil {
		return err
	}
	e.enqueue(ctx, cfg, st, run)
	row := store.RunRow{ID: run, Session: c.Session, Tenant: cfg.Tenant, Status: "queued"}
	if c.Wait {
		if row, err = awaitRun(ctx, st, run, c.Timeout); err != nil {
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
	if strings.TrimSpace(string(text)) == "" || !utf8.Valid(text) {
		return nil, wrong("--summary: %s: want a text in UTF-8", c.Summary)
	}
	var secrets redact.Secrets
	clean := func(s string) string {
		s, _ = secrets.Redact(summary.Clean(s))
		return s
	}
	return &store.WrittenSummary{Text: clean(string(text)), Author: clean(cmp.Or(c.Author, by)), Note: clean(c.Note)}, nil
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

// awaitRun waits until a run has ended or timeout has passed, and returns its last state.
func awaitRun(ctx context.Context, st *store.Store, run store.RunID, timeout time.Duration) (store.RunRow, error) {
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	row, err := st.WaitRun(waiting, run)
	if waiting.Err() != nil {
		return st.Run(ctx, run)
	}
	return row, err
}

// report writes the result of the run and returns an error if it failed or was refused.
func (c *compactCmd) report(e *Env, r store.RunRow) error {
	ended := r.Ended()
	if e.JSON {
		if err := term.JSON(e.Out.W, newRunJSON(r)); err != nil {
			return err
		}
	}
	switch {
	case !ended && !c.Wait:
		if !e.JSON {
			e.say("run %d of session %s is queued; `compactor runs --run %d%s` shows it", r.ID, term.Clean(r.Session), r.ID, e.at())
		}
		return nil
	case !ended:
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
	}
	if !e.JSON {
		if err := printRun(e, r); err != nil {
			return err
		}
	}
	switch {
	case r.Status == "failed":
		return fmt.Errorf("run %d failed: %s", r.ID, failureOf(r))
	case r.Outcome == worker.OutcomeWouldGrow:
		hint := "--allow-growth applies it anyway"
		if c.From != "view" {
			hint = "--from view plans over the current view, " + hint
		}
		return &exitError{exitRefused, fmt.Errorf("run %d changed nothing: the view would have grown; %s", r.ID, hint)}
	}
	return nil
}

func failureOf(r store.RunRow) string {
	if r.Error != "" && r.Error != r.Outcome {
		return r.Outcome + ": " + r.Error
	}
	return r.Outcome
}

// outcomeText returns an explanation of the outcome of a run.
func outcomeText(r store.RunRow) string {
	if text := map[string]string{
		worker.OutcomeApplied:           "compacted, within the target",
		worker.OutcomeRepaired:          "the view was invalid and has been repaired",
		worker.OutcomeAboveTarget:       "compacted, but the messages that must stay exceed the target",
		worker.OutcomeFloorAboveTrigger: "the messages that must stay exceed the start: only new messages can change that",
		worker.OutcomeNoSummary:         "nothing changed: no summary could be produced, see the steps",
		worker.OutcomeIneffective:       "nothing changed: too little to gain",
		worker.OutcomeBelowThreshold:    "nothing changed: not above the start",
		worker.OutcomeNothingToCompact:  "nothing to compact",
		worker.OutcomeUnchanged:         "nothing changed since the last decision",
		worker.OutcomeWaitingAfterUndo:  "undone by an operator; waiting for a new message",
		worker.OutcomeOpenToolLoop:      "nothing changed: a tool loop is open, and its signed reasoning or the policy has the run wait",
		worker.OutcomeNotTriggered:      "nothing changed: no trigger of the policy holds",
		worker.OutcomeMidTurn:           "nothing changed: the agent has not answered the last message yet",
		worker.OutcomeMinInterval:       "nothing changed: too soon after the last automatic run",
		worker.OutcomeMaxPerHour:        "nothing changed: no more automatic runs in this hour",
		worker.OutcomeMaxPerDay:         "nothing changed: no more automatic runs within 24 hours",
		worker.OutcomeServiceManaged:    "nothing changed: a service manages the history of this session",
		worker.OutcomeCooldown:          "too soon after a run that gained too little or got no summary",
		worker.OutcomeWouldGrow:         "nothing changed: the view would have become larger",
		worker.OutcomePaused:            "paused by an operator (`compactor pause --list`); the session is still due",
		worker.OutcomeStale:             "nothing changed: the application changed the view each time before the plan could be applied",
		worker.OutcomeDryRun:            "planned only, nothing changed",
		"undone":                        fmt.Sprintf("run %d was undone", r.Undoes),
		"replaced":                      "the application replaced the view",
		"erased":                        "words were erased for good (`compactor erase`)",
		"":                              r.Status,
	}[r.Outcome]; text != "" {
		switch steps := runSteps(r); {
		case r.Outcome == worker.OutcomeNoSummary && r.Status == "applied":
			return "still above the start: no summary could be produced, see the steps"
		case r.Outcome != worker.OutcomeNothingToCompact || len(steps) == 0 || steps[0].Before == steps[len(steps)-1].After:
		case r.TokensBefore == r.TokensAfter && r.MessagesBefore == r.MessagesAfter: // the plan began with the whole log
			return "nothing changed: the view is already what the steps lead to"
		default:
			return fmt.Sprintf("nothing changed: the steps would save %s tokens, less than the policy asks for (min_gain_tokens, guards.min_gain_share)",
				term.Count(r.TokensBefore-r.TokensAfter))
		}
		return text
	}
	if r.Status == "failed" {
		return "failed"
	}
	return ""
}

func printRun(e *Env, r store.RunRow) error {
	code, as := r.Outcome, e.Out.Green
	if code == "" {
		code = r.Status
	}
	switch r.Status {
	case "failed":
		as = e.Out.Red
	case "skipped", "queued", "running":
		as = e.Out.Yellow
	}
	status, fault, messages, size, took, origin := "", "", "", "", "", ""
	if !r.Ended() {
		status = r.Status
	}
	if r.Error != "" {
		fault = joined(r.ErrorCode, r.Error)
	} else if code := modelFailure(r); code != "" {
		fault = "no model wrote the summary: " + code
	}
	if r.Origin > 0 {
		origin = fmt.Sprintf("run %d, by a fork", r.Origin)
	}
	if r.MessagesBefore > 0 || r.MessagesAfter > 0 {
		messages, size = changed(r)
	}
	if r.StartedAt != nil && r.EndedAt != nil {
		took = fmt.Sprintf("%s, after waiting %s", term.Duration(r.EndedAt.Sub(*r.StartedAt)), term.Duration(r.StartedAt.Sub(r.QueuedAt)))
	}
	if err := e.Out.Pairs(
		[2]any{"run", strconv.FormatInt(r.ID, 10)}, [2]any{"session", sessionName(r)}, [2]any{"copy of", origin}, [2]any{"outcome", term.Styled{Value: joined(code, outcomeText(r)), As: as}},
		[2]any{"status", status}, [2]any{"error", fault}, [2]any{"messages", messages}, [2]any{"tokens", size}, [2]any{"time", took},
	); err != nil {
		return err
	}
	if r.MessagesAfter < r.MessagesBefore && r.TokensAfter > r.TokensBefore {
		e.say("note: fewer messages became more tokens (+%s)", term.Count(r.TokensAfter-r.TokensBefore))
	}
	steps := runSteps(r)
	if err := writeSteps(e, steps); err != nil || len(steps) == 0 {
		return err
	}
	if b := steps[0].Before; b.IncludedMessages == int(r.MessagesBefore) && int64(b.IncludedTokens) > r.TokensBefore {
		e.say("the steps, and with them the target, count estimated tokens with the policy's margin: %s for %s", term.Count(b.IncludedTokens), term.Count(r.TokensBefore))
	}
	return nil
}

// changed returns how many messages and tokens a run left in the view, and beside that what one
// that changed nothing had planned.
func changed(r store.RunRow) (messages, size string) {
	if r.Status == store.StatusApplied || r.Outcome == worker.OutcomeDryRun || r.TokensBefore == r.TokensAfter && r.MessagesBefore == r.MessagesAfter {
		return change(r.MessagesBefore, r.MessagesAfter), change(r.TokensBefore, r.TokensAfter)
	}
	planned := func(before, after int64) string {
		return fmt.Sprintf("%s, planned were %s", change(before, before), term.Count(after))
	}
	return planned(r.MessagesBefore, r.MessagesAfter), planned(r.TokensBefore, r.TokensAfter)
}

// writeSteps writes the counts of the view before and after each step, and the totals
// where more than the view was considered.
func writeSteps(e *Env, steps []pipeline.StepResult) error {
	if len(steps) == 0 {
		return nil
	}
	e.say("")
	cell := func(before, after, all int64) string {
		text := term.Count(after)
		if before != after {
			text = change(before, after)
		}
		if all > max(before, after) {
			text += " of " + term.Count(all)
		}
		return text
	}
	t := e.Out.Table(term.Num("STEP"), term.Text("STRATEGY"), term.Text("GROUPS"), term.Text("MESSAGES"), term.Text("CALLS"), term.Text("TOKENS"))
	for i, s := range steps {
		b, a := s.Before, s.After
		t.Row(i+1, s.Strategy, cell(int64(b.IncludedGroups), int64(a.IncludedGroups), int64(a.Groups)),
			cell(int64(b.IncludedMessages), int64(a.IncludedMessages), int64(a.Messages)),
			cell(int64(b.IncludedToolCalls), int64(a.IncludedToolCalls), int64(a.ToolCalls)),
			cell(int64(b.IncludedTokens), int64(a.IncludedTokens), int64(a.Tokens)))
	}
	if err := t.Write(); err != nil {
		return err
	}
	for i, s := range steps {
		switch {
		case s.Err != nil: // holds no message content
			e.say("step %d: %s", i+1, term.Clean(s.Err.Error()))
		case s.Discarded == "would_grow":
			e.say("step %d: the changes of the previous steps were discarded: they would make the view larger than its repair does", i+1)
		case s.Discarded != "":
			e.say("step %d: the changes of the previous steps were discarded: they allow no valid view", i+1)
		case s.NoSummary != "":
			why := term.Clean(s.NoSummary)
			if s.NoSummary == plan.FailureTooLarge {
				why += ", it would be larger than what it replaces or than its share of the target"
			}
			e.say("step %d: no summary: %s", i+1, why)
		default:
			if r := stepReport(s); r != nil && r.WrittenBy != "" {
				e.say("step %d: summary of %s, written by %s", i+1, term.Plural(r.Messages, "message", "messages"), term.Clean(authorOf(r)))
			}
		}
	}
	return nil
}

// stepReport returns the summary report of a step, nil if the step has none.
func stepReport(s pipeline.StepResult) *summary.Provenance {
	switch r := s.Summary.(type) {
	case nil:
		return nil
	case *summary.Provenance:
		return r
	}
	var out summary.Provenance // the step was read from the database
	raw, err := json.Marshal(s.Summary)
	if err != nil || json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return &out
}

func sessionName(r store.RunRow) string {
	return store.Key{Tenant: r.Tenant, Session: r.Session}.String()
}

// runSteps decodes the pipeline steps that the worker recorded.
func runSteps(r store.RunRow) []pipeline.StepResult {
	var steps []pipeline.StepResult
	if json.Unmarshal(r.Steps, &steps) != nil {
		return nil // written by another version
	}
	return steps
}

// change formats "before → after".
func change(before, after int64) string {
	if before == after {
		return term.Count(before) + " (unchanged)"
	}
	return term.Count(before) + " → " + term.Count(after)
}

// joined returns "code: text", without the colon if one of them is empty.
func joined(code, text string) string {
	if code == "" || text == "" {
		return code + text
	}
	return code + ": " + text
}
