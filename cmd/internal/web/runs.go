package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/sessionstore/compactor/cmd/internal/api"
	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/summary"
)

var runPages = []page{
	{"runs", "runs", "runs", "Runs", listRuns},
	{"decisions", "decisions", "decisions", "Decisions", listDecisions},
	{"run", "run", "runs", "Run", showRun},
	{"compact", "compact", "sessions", "Compact now", showCompact},
	{"compact/plan", "part-plan", "", "", planCompact},
}

// runsOn are the runs of a page, and of Decisions the counts of the last day.
type runsOn struct {
	listed[reports.Run]
	Statuses, Triggers []string
	Outcomes           []outcome
}

// outcome counts the runs of the last day that ended with an outcome.
type outcome struct {
	Name, Meaning string
	Runs          int64
}

const runsOfPage = "50"

// list reads a page of runs with the filters of the address.
func (q *request) list(out *runsOn, status string) error {
	query := []string{"status", status, "limit", runsOfPage}
	for _, name := range []string{"session", "outcome", "trigger", "model", "sweep", "after"} {
		query = append(query, name, q.param(name))
	}
	return q.get(&out.listed, "/v1/runs", query...)
}

func listRuns(q *request) (any, error) {
	out := runsOn{
		Statuses: []string{"applied", "skipped", "failed", "queued", "running"},
		Triggers: []string{"event", "nightly", "operator", "application", "bulk"},
	}
	return out, q.list(&out, q.param("status"))
}

// listDecisions lists runs that changed nothing or, by their outcome, those that changed too little.
func listDecisions(q *request) (any, error) {
	var out runsOn
	status := "skipped"
	if q.param("outcome") != "" {
		status = ""
	}
	if err := q.list(&out, status); err != nil {
		return nil, err
	}
	var day store.Series
	if err := q.get(&day, "/v1/activity"); err != nil {
		return nil, err
	}
	out.Outcomes = unsuccessful(day.Runs)
	return out, nil
}

// unsuccessful sums the outcomes of runs that did not end as wanted, the most frequent first.
func unsuccessful(all []store.SeriesRuns) (out []outcome) {
	for _, o := range all {
		if o.Status == "failed" || o.Status == store.StatusApplied && reports.Successful(o.Outcome) {
			continue
		}
		i := slices.IndexFunc(out, func(x outcome) bool { return x.Name == o.Outcome })
		if i < 0 {
			i, out = len(out), append(out, outcome{Name: o.Outcome, Meaning: reports.Meaning(store.RunRow{Outcome: o.Outcome})})
		}
		out[i].Runs += o.Runs
	}
	slices.SortFunc(out, func(a, b outcome) int { return int(b.Runs - a.Runs) })
	return out
}

// runOn is the page of a run.
type runOn struct {
	reports.Run
	Diff      *changeOn
	Kept      keptOn
	Summaries []summaryOn
	// Undo is the run that undid it, nil if it is in force or none is known.
	Undo *reports.Run
	Opts struct {
		From, Focus string
		Summary     *struct{ Author, Note string }
	}
	Texts bool
}

// summaryOn is a summary beside the messages that it stands for.
type summaryOn struct {
	reports.Summary
	Sources []message
	More    bool
}

// keptOn is the part of the messages taken out that can still be read.
type keptOn struct {
	*reports.Kept
	Hidden          bool
	Tenant, Session string
}

// Title implements the title of a page.
func (r runOn) Title() string { return fmt.Sprintf("Run %d", r.ID) }

// Seconds returns how long the run took, and how long it waited before; 0 if it has not ended.
func (r runOn) Seconds() (out struct{ Took, Waited float64 }) {
	if r.StartedAt != nil && r.EndedAt != nil {
		out.Took, out.Waited = r.EndedAt.Sub(*r.StartedAt).Seconds(), r.StartedAt.Sub(r.QueuedAt).Seconds()
	}
	return out
}

// Rejected counts the answers of models that were refused, by code.
func (r runOn) Rejected() map[string]int {
	codes := map[string]int{}
	for _, s := range r.Steps {
		if p := reports.StepReport(s.StepResult); p != nil {
			for _, c := range p.Calls {
				if c.Rejected != "" {
					codes[c.Rejected]++
				}
			}
		}
	}
	return codes
}

// Report returns the report of the summary of a step.
func (r runOn) Report(i int) *summary.Provenance { return reports.StepReport(r.Steps[i].StepResult) }

// changeOn is a change of a view, by reason and by kind: it is short, whatever was written.
type changeOn struct {
	store.RunDiff
	Wrote []wroteOn
}

// wroteOn sums the messages of a kind that a run wrote.
type wroteOn struct {
	Kind     chat.Kind
	Messages int64
	Tokens   chat.Tokens
	For      chat.Ranges
}

func newChange(d store.RunDiff) *changeOn {
	out := &changeOn{RunDiff: d}
	out.Out = nil
	for _, p := range d.Out {
		i := slices.IndexFunc(out.Out, func(x store.DiffPart) bool {
			return x.Reason == p.Reason && (x.SummarizedBy == "") == (p.SummarizedBy == "")
		})
		if i < 0 {
			out.Out = append(out.Out, p)
			continue
		}
		out.Out[i].Messages, out.Out[i].Tokens = out.Out[i].Messages+p.Messages, out.Out[i].Tokens+p.Tokens
	}
	for _, m := range d.Wrote {
		i := slices.IndexFunc(out.Wrote, func(x wroteOn) bool { return x.Kind == m.Kind })
		if i < 0 {
			i, out.Wrote = len(out.Wrote), append(out.Wrote, wroteOn{Kind: m.Kind})
		}
		w := &out.Wrote[i]
		w.Messages, w.Tokens = w.Messages+1, w.Tokens+m.Tokens
		if r, err := chat.ParseRanges(m.SummaryOf); err == nil {
			w.For = w.For.Union(r)
		}
	}
	return out
}

// texts reports whether the page shows texts of messages.
func (q *request) texts() bool { return !q.HideTexts || q.param("texts") == "1" }

// So many summaries of a run are shown, with so many sources each.
const mostSummaries, mostSources = 4, 60

func showRun(q *request) (any, error) {
	out := runOn{Texts: q.texts()}
	id, err := strconv.ParseInt(q.param("run"), 10, 64)
	if err != nil {
		return nil, &api.Problem{Status: http.StatusNotFound, Code: "not_found", Detail: "The address names no run."}
	}
	path := fmt.Sprintf("/v1/runs/%d", id)
	if err := q.get(&out.Run, path); err != nil {
		return nil, err
	}
	defer func(tenant string) { q.Tenant = tenant }(q.Tenant) // the page is not limited to it
	q.Tenant = out.Tenant
	_ = json.Unmarshal(out.Options, &out.Opts) // of another version: they are not shown
	if out.Status != store.StatusApplied {
		return out, nil
	}
	var diff store.RunDiff
	if err := q.get(&diff, path+"/diff"); err != nil {
		return nil, err
	}
	out.Diff = newChange(diff)
	out.Kept = keptOn{Hidden: !out.Texts, Tenant: out.Tenant, Session: out.Session}
	if len(out.Diff.Out) > 0 && out.Kind == "compact" {
		err := q.get(&out.Kept.Kept, path+"/kept")
		if p, ok := errors.AsType[*api.Problem](err); ok && p.Code != "archived" && p.Code != "purged" {
			return nil, err
		}
	}
	if !out.InForce {
		if err := out.undoneBy(q); err != nil {
			return nil, err
		}
	}
	for _, id := range out.Run.Summaries[:min(len(out.Run.Summaries), mostSummaries)] {
		s, err := q.summary(out.Run, id)
		if err != nil {
			return nil, err
		}
		out.Summaries = append(out.Summaries, s)
	}
	return out, nil
}

// undoneBy finds the undo among the latest of the session.
func (r *runOn) undoneBy(q *request) error {
	var undos listed[reports.Run]
	if err := q.get(&undos, "/v1/runs", "session", r.Session, "outcome", "undone", "limit", "20"); err != nil {
		return err
	}
	for i, u := range undos.Items {
		if u.Undoes <= r.ID && u.ID > r.ID { // the newest come first
			r.Undo = &undos.Items[i]
		}
	}
	return nil
}

// summary reads a summary or replacement of a run with the messages that it covers.
func (q *request) summary(r reports.Run, id string) (out summaryOn, err error) {
	path := api.Path("summaries", id)
	if err := q.get(&out.Summary, path, "session", r.Session); err != nil || !q.texts() {
		return out, err
	}
	var sources listed[store.MessageRow]
	err = q.get(&sources, path+"/sources", "session", r.Session, "limit", strconv.Itoa(mostSources))
	for _, m := range sources.Items {
		out.Sources = append(out.Sources, newMessage(m, true, listText))
	}
	out.More = sources.Next != ""
	return out, err
}
