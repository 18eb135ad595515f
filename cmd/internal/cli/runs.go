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
	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/tokens"
	"github.com/sessionstore/compactor/worker"
)

type runsCmd struct {
	Session    string     `arg:"" optional:"" help:"Only runs of this session."`
	ID         int64      `name:"run" placeholder:"N" help:"Show one run, step by step."`
	Status     string     `placeholder:"STATUS" help:"Only runs with this status: queued, running, applied, skipped or failed."`
	Outcome    string     `placeholder:"CODE" help:"Only runs with this outcome code."`
	AllTenants allTenants `help:"Runs of every tenant."`
	Limit      int        `default:"50" range:"1,100000" help:"Maximum number of runs."`
	Before     int64      `placeholder:"N" help:"Only runs older than run N."`
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
	return nil
}

func (c *runsCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	if c.ID > 0 {
		return showRun(ctx, e, st, c.ID)
	}
	f := store.RunFilter{
		Key: store.Key{Tenant: c.AllTenants.tenant(cfg), Session: c.Session}, Status: c.Status, Outcome: c.Outcome, Before: c.Before, Limit: c.Limit,
	}
	if !c.AllTenants && c.Session != "" {
		if _, err := st.Session(ctx, f.Key); err != nil {
			return err
		}
	}
	rows, next, err := st.Reader.RunsPage(ctx, f)
	for n := 1; err == nil && next > 0 && len(rows) < c.Limit && n < mostRunPages; n++ {
		var more []store.RunRow
		f.Before, f.Limit = next, c.Limit-len(rows)
		more, next, err = st.Reader.RunsPage(ctx, f)
		rows = append(rows, more...)
	}
	switch {
	case err != nil:
		return err
	case len(rows) == 0 && next > 0 && !e.JSON:
		e.note("none of the runs from %d on; to look at older ones: --before %d", next, next)
		return nil
	case len(rows) == 0 && !e.JSON:
		return c.noteNone(ctx, e, st)
	}
	runs := make([]reports.Run, len(rows))
	for i, r := range rows {
		runs[i] = reports.NewRun(r)
	}
	if e.JSON {
		return e.json(struct {
			Runs []reports.Run `json:"runs"`
			Next store.RunID   `json:"next,omitempty"`
		}{runs, next})
	}
	called := slices.ContainsFunc(rows, func(r store.RunRow) bool { return r.Calls > 0 })
	runColumns(e).without(called, "cost_micros", "model_calls", "model").write(e, runs)
	if next > 0 {
		e.note("there may be more: --before %d", next)
	}
	return nil
}

// A command looks at so many pages of runs, each of a bounded number of them, and names so many outcomes.
const (
	mostRunPages = 50
	latestRuns   = 100_000
)

func runColumns(e *Env) columns[reports.Run] {
	sizes := func(r reports.Run, before, after int64) string {
		switch {
		case !r.Ended():
			return ""
		case r.Status == store.StatusApplied, r.Outcome == worker.OutcomeDryRun:
			return brief(before, after)
		}
		return term.Count(before)
	}
	return columns[reports.Run]{
		{"run", term.ID("RUN"), nil},
		{"session", term.Text("SESSION"), func(r reports.Run) any { return sessionName(r.RunRow) }},
		{"outcome", term.Text("OUTCOME"), func(r reports.Run) any {
			outcome := joined(r.Outcome, modelFailure(r.RunRow))
			switch r.Status {
			case "applied":
				return term.Styled{Value: outcome, As: e.Out.Green}
			case "failed":
				return term.Styled{Value: outcome, As: e.Out.Red}
			case "queued", "running":
				return term.Styled{Value: r.Status, As: e.Out.Yellow}
			}
			return term.Styled{Value: outcome, As: e.Out.Dim}
		}},
		{"messages_after", term.Num("MESSAGES"), func(r reports.Run) any { return sizes(r, r.MessagesBefore, r.MessagesAfter) }},
		{"tokens_after", term.Num("TOKENS"), func(r reports.Run) any { return sizes(r, r.TokensBefore, r.TokensAfter) }},
		{"queued_at", term.Num("AGE"), func(r reports.Run) any { return e.since(r.QueuedAt) }},
		{"trigger", term.Text("TRIGGER").IfRoom(), func(r reports.Run) any { return runTrigger(r.RunRow) }},
		{"in_force", term.Text("IN FORCE").IfRoom(), func(r reports.Run) any { return when(r.InForce, "yes") }},
		{"kind", term.Text("KIND").IfRoom(), nil},
		{"cost_micros", term.Num("COST").IfRoom(), func(r reports.Run) any { return when(r.Calls > 0, cost(r.CostMicros)) }},
		{"model_calls", term.Num("CALLS").IfRoom(), func(r reports.Run) any { return when(r.Calls > 0, term.Count(r.Calls)) }},
		{"model", term.Text("MODEL").IfRoom(), nil},
	}
}

// noteNone says that there are no runs and, if none of the latest has the wanted outcome, which
// outcomes these have. There is no list to check it against: strategies have codes of their own.
func (c *runsCmd) noteNone(ctx context.Context, e *Env, st *store.Store) error {
	var known []string
	if c.Outcome != "" {
		rows, err := st.Operator.Outcomes(ctx, -latestRuns)
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
	e.note("no run has ended with %s; the outcomes of the latest runs are: %s", c.Outcome, cmp.Or(strings.Join(known, ", "), "none"))
	return nil
}

func showRun(ctx context.Context, e *Env, st *store.Store, id store.RunID) error {
	out, err := reports.LoadRun(ctx, st, id)
	if err != nil {
		return err
	}
	r, summaries, cache, calls := out.RunRow, out.Summaries, out.Cache, out.CallRows
	return e.show(out, func() {
		printRun(e, r)
		e.say("")
		model, written, author := "", "", ""
		if r.Calls > 0 {
			model = fmt.Sprintf("%s: %s, %s tokens in, %s out, cost %s", term.Clean(r.Model), plural(r.Calls, "call"),
				term.Count(r.InputTokens), term.Count(r.OutputTokens), cost(r.CostMicros))
		}
		if len(summaries) > 0 {
			first, more := term.Clean(summaries[0]), len(summaries)-1
			written = first + when(more > 0, fmt.Sprintf(", and %s more", term.Count(more))) + fmt.Sprintf(" (`compactor summary show %s`)", first)
		}
		report, err := reports.ReportOf(r.Steps, "")
		e.wrote(err)
		if report != nil {
			author = cmp.Or(authorOf(report), "none: "+cmp.Or(report.Failure, "unknown"))
		}
		e.pairs(slices.Concat([]pair{
			{"trigger", runTrigger(r)},
			{"kind", r.Kind},
			{"requested by", r.RequestedBy},
			{"queued", r.QueuedAt},
			{"in force", yesOrNo(r.InForce)},
			{"attempts", fmt.Sprintf("%d (%d failed, %d postponed)", r.Attempts, r.Failures, r.Snoozes)},
			{"model", model},
			{"summary", written},
			{"written by", author},
			{"worker", r.Worker},
			{"policy", strings.TrimSpace(store.PolicyName(r.Policy, r.PolicyVersion) + " " + r.PolicyHash)},
			{"revision", when(r.Revision > 0, strconv.FormatInt(r.Revision, 10))},
			{"options", optionsText(r.Options)},
		}, failedCalls(calls), cachePairs(cache))...)
	})
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

// failedCalls describes the calls of models that failed, or an attempt of which did, in lines of
// a list.
func failedCalls(calls []store.SummaryCallRow) (lines []pair) {
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
		lines = append(lines, pair{title, term.Clean(text)})
		if c.ServerError != "" {
			lines = append(lines, pair{"", term.Clean(c.ServerError)})
		}
	}
	return lines
}

// cachePairs describes a rewrite in lines of a list, none for nil.
func cachePairs(r *tokens.Rewrite) []pair {
	if r == nil {
		return nil
	}
	read := when(r.Read > 0, fmt.Sprintf("reads %s and ", term.Count(r.Read)))
	paid := "never paid back"
	if r.Requests > 0 {
		paid = "paid back after " + plural(r.Requests, "request")
	}
	return []pair{
		{"prompt cache", fmt.Sprintf("%swrites %s tokens instead of reading %s:", read, term.Count(r.Written), term.Count(r.Before))},
		{"", paid + ", or at once if the cache has expired"},
	}
}
