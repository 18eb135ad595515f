package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
)

// runs registers the operations on runs and the summaries that they wrote.
func (a *api) runs() {
	register(a, operation{
		scope: reads, method: http.MethodGet, path: "/v1/runs", id: "list-runs",
		summary: "List runs, the newest first",
	}, listRuns)
	register(a, operation{
		scope: reads, method: http.MethodGet, path: "/v1/runs/{run}", id: "get-run",
		summary: "A run, step by step",
	}, getRun)
	register(a, operation{
		scope: reads, method: http.MethodGet, path: "/v1/runs/{run}/diff", id: "get-run-diff",
		summary: "What a run took out of the view, and put in",
		more:    conflicts,
	}, getRunDiff)
	register(a, operation{
		scope: reads, method: http.MethodGet, path: "/v1/runs/{run}/kept", id: "get-run-kept",
		summary: "What a run kept of what it took out of the view: identifiers, requests and demands",
		more:    conflicts,
	}, getRunKept)
	register(a, operation{
		scope: operates, method: http.MethodPost, path: "/v1/runs/{run}/undo", id: "undo-run",
		summary: "Undo a run, or preview that",
		more:    conflicts,
	}, undoRun)
	register(a, operation{
		scope: reads, method: http.MethodGet, path: "/v1/strategies", id: "list-strategies",
		summary: "The strategies that a run may have, with their parameters, and the presets",
	}, listStrategies)
	register(a, operation{
		scope: reads, method: http.MethodGet, path: "/v1/summaries/{id}", id: "get-summary",
		summary: "A summary, its author and its cost",
	}, getSummary)
	register(a, operation{
		scope: reads, method: http.MethodGet, path: "/v1/summaries/{id}/sources", id: "list-sources",
		summary: "The messages that a summary covers",
	}, listSources)
}

type listRunsIn struct {
	Page
	Session string `query:"session" doc:"Only runs of this session."`
	Status  string `query:"status" enum:"queued,running,applied,skipped,failed" doc:"Only runs with this status."`
	Outcome string `query:"outcome" doc:"Only runs with this outcome."`
	Trigger string `query:"trigger" enum:"event,nightly,operator,application,bulk" doc:"Only runs with this trigger; that of sweeps is nightly."`
	Model   string `query:"model" doc:"Only runs that called this model for a summary."`
	Sweep   int64  `query:"sweep" minimum:"1" doc:"Only runs of this sweep."`
	After   string `query:"after" doc:"next of the page before, the number of a run: older ones follow."`
}

// listRuns answers a page, which has fewer rows than its limit, or none, where it has looked at as many
// runs as it may.
func listRuns(ctx context.Context, c *caller, in *listRunsIn) (*body[list[reports.Run]], error) {
	limit, before, err := in.numbered(c, in.After)
	if err != nil {
		return nil, err
	}
	st := c.store
	f := store.RunFilter{
		Key:    store.Key{Tenant: c.tenant},
		Status: in.Status, Outcome: in.Outcome, Trigger: in.Trigger, Model: in.Model, Sweep: in.Sweep, Before: before, Limit: limit,
	}
	if in.Session != "" {
		st, f.Key = c.of(in.Session)
		if _, err := st.Session(ctx, f.Key); err != nil {
			return nil, err
		}
	}
	rows, next, err := st.Reader.RunsPage(ctx, f)
	runs := make([]reports.Run, len(rows))
	for i, r := range rows {
		runs[i] = reports.NewRun(r)
	}
	return page(runs, next, err)
}

// RunPath is the parameter of paths below a run.
type RunPath struct {
	Run store.RunID `path:"run" minimum:"1" doc:"The number of the run."`
}

// find returns the run of a path and the store for it.
func (in *RunPath) find(ctx context.Context, c *caller) (*store.Store, store.RunRow, error) {
	row, err := c.store.Run(ctx, in.Run)
	if err == nil && !c.reaches(row.Tenant) {
		err = fmt.Errorf("run %d: %w", in.Run, store.ErrNotFound)
	}
	return c.bound(row.Tenant), row, err
}

// reaches reports whether a row of a tenant is one for the caller, also without row-level security.
func (c *caller) reaches(tenant string) bool { return c.tenant == "" || c.tenant == tenant }

func getRun(ctx context.Context, c *caller, in *RunPath) (*body[reports.Run], error) {
	st, _, err := in.find(ctx, c)
	if err != nil {
		return nil, err
	}
	return answer(reports.LoadRun(ctx, st, in.Run))
}

func getRunDiff(ctx context.Context, c *caller, in *RunPath) (*body[store.RunDiff], error) {
	st, _, err := in.find(ctx, c)
	if err != nil {
		return nil, err
	}
	return answer(st.Reader.Diff(ctx, in.Run))
}

func getRunKept(ctx context.Context, c *caller, in *RunPath) (*body[reports.Kept], error) {
	st, row, err := in.find(ctx, c)
	if err != nil {
		return nil, err
	}
	d, err := st.Reader.Diff(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	kept, err := reports.LoadKept(ctx, st, store.Key{Tenant: row.Tenant, Session: row.Session}, d)
	if err == nil && kept == nil {
		err = fmt.Errorf("the messages that run %d took out: %w", in.Run, store.ErrArchived)
	}
	if err != nil {
		return nil, err
	}
	return answer(*kept, nil)
}

type undoRunIn struct {
	RunPath
	Body *UndoRequest `required:"false"`
}

// UndoRequest are the options of an undo.
type UndoRequest struct {
	Cascade bool `json:"cascade,omitempty" doc:"Also undo the later runs of the session; without it, they prevent the undo."`
	DryRun  bool `json:"dry_run,omitempty" doc:"Answer what an undo with cascade would do."`
}

// RunUndo is an undo, or the preview of one.
type RunUndo struct {
	DryRun  bool               `json:"dry_run"`
	Preview *store.UndoPreview `json:"preview,omitempty"`
	Run     *reports.Run       `json:"run,omitempty" doc:"The run that records the undo."`
}

func undoRun(ctx context.Context, c *caller, in *undoRunIn) (*body[RunUndo], error) {
	st, row, err := in.find(ctx, c)
	if err != nil {
		return nil, err
	}
	k, o := store.Key{Tenant: row.Tenant, Session: row.Session}, in.Body
	if o == nil {
		o = &UndoRequest{}
	}
	if o.DryRun {
		p, err := st.Reader.PreviewUndo(ctx, k, in.Run)
		return answer(RunUndo{DryRun: true, Preview: &p}, err)
	}
	id, err := st.Undo(ctx, k, in.Run, o.Cascade, c.by())
	if err != nil {
		return nil, err
	}
	undo, err := reports.LoadRun(ctx, st, id)
	return answer(RunUndo{Run: &undo}, err)
}

// SummaryPath is the parameter of paths below a summary.
type SummaryPath struct {
	ID      string `path:"id" minLength:"1" doc:"The id of a summary or a replacement, such as summary-120-7."`
	Session string `query:"session" doc:"The session that has it, such as a fork. Without it, the one that it was written in."`
}

func (in *SummaryPath) of(c *caller) (k store.Key) {
	if in.Session != "" {
		_, k = c.of(in.Session)
	}
	return k
}

func getSummary(ctx context.Context, c *caller, in *SummaryPath) (*body[reports.Summary], error) {
	out, err := reports.LoadSummary(ctx, c.store, in.of(c), in.ID)
	if err == nil && !c.reaches(out.Tenant) {
		err = fmt.Errorf("summary %q: %w", in.ID, store.ErrNotFound)
	}
	return answer(out, err)
}

type listSourcesIn struct {
	SummaryPath
	Page
	After string `query:"after" doc:"next of the page before."`
}

func listSources(ctx context.Context, c *caller, in *listSourcesIn) (*body[list[store.MessageRow]], error) {
	limit, after, err := in.numbered(c, in.After)
	if err != nil {
		return nil, err
	}
	row, covered, err := c.store.Reader.Sources(ctx, in.of(c), in.ID)
	if err == nil && !c.reaches(row.Key.Tenant) {
		err = fmt.Errorf("summary %q: %w", in.ID, store.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	seqs := covered.Minus(chat.Ranges{{Lo: 0, Hi: chat.Seq(after) + 1}}).Seqs()
	next := int64(0)
	if len(seqs) > limit {
		if seqs = seqs[:limit]; limit > 0 {
			next = int64(seqs[limit-1])
		}
	}
	msgs, err := c.bound(row.Key.Tenant).Among(ctx, row.Key, chat.RangesOf(seqs...))
	return page(store.MessageRows(msgs), next, err)
}

// Strategies are what pipelines are made of.
type Strategies struct {
	Items   []plan.Info `json:"items"`
	Presets []Preset    `json:"presets"`
}

// Preset is a named policy for one kind of application.
type Preset struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
}

func listStrategies(_ context.Context, c *caller, _ *struct{}) (*body[Strategies], error) {
	out := Strategies{Items: c.server.o.Registry.Describe(), Presets: []Preset{}}
	for _, p := range policy.Presets() {
		out.Presets = append(out.Presets, Preset{p.Name, p.Doc})
	}
	return answer(out, nil)
}
