package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/tokens"
	"github.com/sessionstore/compactor/worker"
)

type runsCmd struct {
	Session    string `arg:"" optional:"" help:"Only runs of this session."`
	ID         int64  `name:"run" placeholder:"N" help:"Show one run, step by step."`
	Status     string `placeholder:"STATUS" help:"Only runs with this status: queued, running, applied, skipped or failed."`
	Outcome    string `placeholder:"CODE" help:"Only runs with this outcome code."`
	AllTenants bool   `help:"Runs of every tenant."`
	Limit      int    `default:"50" help:"Maximum number of runs."`
	Before     int64  `placeholder:"N" help:"Only runs older than run N."`
}

func (*runsCmd) Help() string {
	return `Every decision is recorded as a run with an outcome code, skips included. --run also shows what a smaller view is at the provider's prompt cache, for models whose prices of it are known: what the next request reads there and writes anew in place of the view before, and after how many requests that is paid back.

Examples:

    compactor runs chat-42
    compactor runs --status failed
    compactor runs --run 4711`
}

func (c *runsCmd) Validate() error {
	statuses := []string{"queued", "running", "applied", "skipped", "failed"}
	if c.Status != "" && !slices.Contains(statuses, c.Status) {
		return fmt.Errorf("--status: %s: want %s", c.Status, strings.Join(statuses, ", "))
	}
	if c.ID < 0 || c.Before < 0 {
		return errors.New("--run and --before: want the number of a run")
	}
	if c.ID > 0 && (c.Session != "" || c.Status != "" || c.Outcome != "" || c.Before > 0) {
		return errors.New("--run shows one run, whatever its session: give it alone")
	}
	return validLimit(c.Limit)
}

type runJSON struct {
	store.RunRow
	Steps []stepJSON `json:"steps,omitempty"`
	// Summaries holds the ids of the messages the run wrote, CallRows the calls of models, and Cache what its change is at the
	// provider's prompt cache; set for --run only.
	Summaries []string               `json:"summaries,omitempty"`
	Cache     *tokens.Rewrite        `json:"cache,omitempty"`
	CallRows  []store.SummaryCallRow `json:"calls,omitempty"`
}

type stepJSON struct {
	pipeline.StepResult
	Before totalsJSON `json:"before"`
	After  totalsJSON `json:"after"`
}

// totalsJSON holds the counts of the view and of all messages considered.
type totalsJSON struct {
	Groups         int   `json:"groups"`
	Messages       int   `json:"messages"`
	ToolCalls      int   `json:"tool_calls"`
	Tokens         int64 `json:"tokens"`
	TotalGroups    int   `json:"total_groups"`
	TotalMessages  int   `json:"total_messages"`
	TotalToolCalls int   `json:"total_tool_calls"`
	TotalTokens    int64 `json:"total_tokens"`
}

func newTotalsJSON(t plan.Totals) totalsJSON {
	return totalsJSON{
		t.IncludedGroups, t.IncludedMessages, t.IncludedToolCalls, int64(t.IncludedTokens), t.Groups, t.Messages, t.ToolCalls, int64(t.Tokens),
	}
}

func newStepsJSON(steps []pipeline.StepResult) []stepJSON {
	var out []stepJSON
	for _, s := range steps {
		out = append(out, stepJSON{s, newTotalsJSON(s.Before), newTotalsJSON(s.After)})
	}
	return out
}

func newRunJSON(r store.RunRow) runJSON {
	r.QueuedAt = r.QueuedAt.UTC()
	return runJSON{RunRow: r, Steps: newStepsJSON(runSteps(r))}
}

func (c *runsCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	if c.ID > 0 {
		return showRun(ctx, e, st, c.ID)
	}
	f := store.RunFilter{
		Key: store.Key{Tenant: cfg.Tenant, Session: c.Session}, Status: c.Status, Outcome: c.Outcome, Before: c.Before, Limit: c.Limit,
	}
	if c.AllTenants {
		f.Key.Tenant = ""
	} else if c.Session != "" {
		if _, err := st.Session(ctx, f.Key); err != nil {
			return err
		}
	}
	rows, err := st.Operator.Runs(ctx, f)
	if err != nil {
		return err
	}
	if e.JSON {
		out := make([]runJSON, len(rows))
		for i, r := range rows {
			out[i] = newRunJSON(r)
		}
		return term.JSON(e.Out.W, map[string]any{"runs": out})
	}
	if len(rows) == 0 {
		return c.noteNone(ctx, e, st)
	}
	columns := []term.Column{
		term.ID("RUN"), term.Text("SESSION"), term.Text("OUTCOME"), term.Num("MESSAGES"), term.Num("TOKENS"), term.Num("AGE"),
		term.Text("TRIGGER").IfRoom(), term.Text("IN FORCE").IfRoom(), term.Text("KIND").IfRoom(),
	}
	if slices.ContainsFunc(rows, func(r store.RunRow) bool { return r.Calls > 0 }) {
		columns = append(columns, term.Num("COST").IfRoom(), term.Num("CALLS").IfRoom(), term.Text("MODEL").IfRoom())
	}
	t := e.Out.Table(columns...)
	for _, r := range rows {
		outcome := term.Styled{Value: r.Outcome, As: e.Out.Dim}
		outcome.Value = joined(r.Outcome, modelFailure(r))
		switch r.Status {
		case "applied":
			outcome.As = e.Out.Green
		case "failed":
			outcome.As = e.Out.Red
		case "queued", "running":
			outcome.Value = r.Status
			outcome.As = e.Out.Yellow
		}
		inForce := yes(r.InForce, "")
		messages, size := "", ""
		if r.Ended() {
			messages, size = term.Count(r.MessagesBefore), term.Count(r.TokensBefore)
			if r.Status == store.StatusApplied || r.Outcome == worker.OutcomeDryRun {
				messages, size = brief(r.MessagesBefore, r.MessagesAfter), brief(r.TokensBefore, r.TokensAfter)
			}
		}
		spent, calls := "", ""
		if r.Calls > 0 {
			spent, calls = cost(r.CostMicros), term.Count(r.Calls)
		}
		t.Row(r.ID, sessionName(r), outcome, messages, size, e.since(r.QueuedAt), runTrigger(r), inForce, r.Kind, spent, calls, r.Model)
	}
	if err := t.Write(); err != nil {
		return err
	}
	if len(rows) == c.Limit {
		e.note("there may be more: --before %d", rows[len(rows)-1].ID)
	}
	return nil
}

// triggerName names a trigger for people. That of sweeps has the name of the schedule that was the
// only one to start them once; who wants a sweep by hand finds its runs under "sweep", too.
func triggerName(trigger string) string {
	if trigger == store.TriggerNightly {
		return "sweep"
	}
	return trigger
}

// runTrigger names what made the run and, after a colon, the trigger of the policy that held.
func runTrigger(r store.RunRow) string {
	r.Trigger = triggerName(r.Trigger)
	if r.Fired == "" {
		return r.Trigger
	}
	return r.Trigger + ": " + r.Fired
}

// brief is change in a column: an unchanged number stands alone.
func brief(before, after int64) string {
	if before == after {
		return term.Count(after)
	}
	return change(before, after)
}

// noteNone says that there are no runs and, if no run of the ledger has the wanted outcome, which
// outcomes there are. There is no list to check it against: strategies have codes of their own.
func (c *runsCmd) noteNone(ctx context.Context, e *Env, st *store.Store) error {
	var known []string
	if c.Outcome != "" {
		rows, err := st.Operator.Outcomes(ctx, 0)
		if err != nil {
			return err
		}
		for _, r := range rows {
			known = append(known, r.Outcome)
		}
		slices.Sort(known)
		known = slices.Compact(known)
	}
	if c.Outcome == "" || slices.Contains(known, c.Outcome) {
		e.note("no runs")
		return nil
	}
	e.note("no run has ended with %s; the outcomes so far are: %s", c.Outcome, cmp.Or(strings.Join(known, ", "), "none"))
	return nil
}

func showRun(ctx context.Context, e *Env, st *store.Store, id store.RunID) error {
	r, err := st.Run(ctx, id)
	if err != nil {
		return err
	}
	summaries, err := st.Operator.SummariesOf(ctx, id)
	if err != nil {
		return err
	}
	cache, err := runCache(ctx, st, r)
	if err != nil {
		return err
	}
	calls, err := st.Operator.SummaryCalls(ctx, id)
	if err != nil {
		return err
	}
	if e.JSON {
		out := newRunJSON(r)
		out.Summaries, out.Cache, out.CallRows = summaries, cache, calls
		return term.JSON(e.Out.W, out)
	}
	if err := printRun(e, r); err != nil {
		return err
	}
	e.say("")
	model, written, revision := "", "", ""
	if r.Calls > 0 {
		model = fmt.Sprintf("%s: %s, %s tokens in, %s out, cost %s", term.Clean(r.Model), term.Plural(r.Calls, "call", "calls"),
			term.Count(r.InputTokens), term.Count(r.OutputTokens), cost(r.CostMicros))
	}
	if len(summaries) > 0 {
		written = term.Clean(summaries[0])
		if n := len(summaries) - 1; n > 0 {
			written += fmt.Sprintf(", and %s more", term.Count(n))
		}
		written += fmt.Sprintf(" (`compactor summary show %s`)", term.Clean(summaries[0]))
	}
	if r.Revision > 0 {
		revision = strconv.FormatInt(r.Revision, 10)
	}
	report, err := reportOf(r.Steps, "")
	if err != nil {
		return err
	}
	author := ""
	if report != nil {
		author = cmp.Or(authorOf(report), "none: "+cmp.Or(report.Failure, "unknown"))
	}
	pairs := [][2]any{
		{"trigger", runTrigger(r)},
		{"kind", r.Kind},
		{"requested by", r.RequestedBy},
		{"queued", r.QueuedAt},
		{"in force", yes(r.InForce, "no")},
		{"attempts", fmt.Sprintf("%d (%d failed, %d postponed)", r.Attempts, r.Failures, r.Snoozes)},
		{"model", model},
		{"summary", written},
		{"written by", term.Clean(author)},
		{"worker", r.Worker},
		{"policy", strings.TrimSpace(store.PolicyName(r.Policy, r.PolicyVersion) + " " + r.PolicyHash)},
		{"revision", revision},
		{"options", optionsText(r.Options)},
	}
	return e.Out.Pairs(slices.Concat(pairs, failedCalls(calls), cachePairs(cache))...)
}

// optionsText returns the options of a run without the text of an operator's summary.
func optionsText(options json.RawMessage) string {
	var o map[string]json.RawMessage
	if json.Unmarshal(options, &o) == nil && o["summary"] != nil {
		o["summary"] = json.RawMessage(fmt.Sprintf(`{"text":"(%s bytes)"}`, chat.Thousands(len(o["summary"]))))
		if short, err := json.Marshal(o); err == nil {
			options = short
		}
	}
	return strings.TrimPrefix(string(options), "{}")
}

// modelFailure returns the code of why no model wrote the summary of a run, empty if one did or
// none was asked for.
func modelFailure(r store.RunRow) string {
	if r.Status == store.StatusApplied || r.Outcome == worker.OutcomeNoSummary {
		return r.ErrorCode
	}
	return ""
}

// failedCalls describes the calls of models that failed, or an attempt of which did, in lines of
// a list.
func failedCalls(calls []store.SummaryCallRow) (lines [][2]any) {
	for _, c := range calls {
		text, title := joined(c.Code, cmp.Or(c.Model, "no model")), "failed call"
		switch {
		case c.State != "failed" && c.HTTPStatus == 0 && c.ServerError == "":
			continue
		case c.State != "failed": // c.Model has answered, perhaps after another
			text, title = "a server", "failed attempt"
		}
		if c.HTTPStatus > 0 {
			text += fmt.Sprintf(" answered %d", c.HTTPStatus)
		}
		lines = append(lines, [2]any{title, term.Clean(text)})
		if c.ServerError != "" {
			lines = append(lines, [2]any{"", term.Clean(c.ServerError)})
		}
	}
	return lines
}

// runCache returns what the change of a run is at the prompt cache of its session's model, nil
// for a run without a smaller view or if the prices are not known.
func runCache(ctx context.Context, st *store.Store, r store.RunRow) (*tokens.Rewrite, error) {
	if r.Status != store.StatusApplied || r.TokensAfter >= r.TokensBefore {
		return nil, nil
	}
	s, err := st.Session(ctx, store.Key{Tenant: r.Tenant, Session: r.Session})
	if err != nil {
		return nil, err
	}
	unchanged, err := st.Operator.Unchanged(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	return newRewrite(s.Model, chat.Tokens(r.TokensBefore), chat.Tokens(r.TokensAfter), chat.Tokens(r.TokensAfter)-unchanged), nil
}

// newRewrite returns what a smaller view is at the prompt cache, nil if the prices for the model
// are not known or the view is not smaller.
func newRewrite(model string, before, after, written chat.Tokens) *tokens.Rewrite {
	c, known := tokens.CacheOf(model)
	if !known || after >= before {
		return nil
	}
	r := c.Rewrite(before, after, min(max(0, written), after))
	return &r
}

// cachePairs describes a rewrite in lines of a list, none for nil.
func cachePairs(r *tokens.Rewrite) [][2]any {
	if r == nil {
		return nil
	}
	read := ""
	if r.Read > 0 {
		read = fmt.Sprintf("reads %s and ", term.Count(r.Read))
	}
	paid := "never paid back"
	if r.Requests > 0 {
		paid = "paid back after " + term.Plural(r.Requests, "request", "requests")
	}
	return [][2]any{
		{"prompt cache", fmt.Sprintf("%swrites %s tokens instead of reading %s:", read, term.Count(r.Written), term.Count(r.Before))},
		{"", paid + ", or at once if the cache has expired"},
	}
}
