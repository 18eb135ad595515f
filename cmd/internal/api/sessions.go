package api

import (
	"cmp"
	"context"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/policies"
	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/policy"
)

// sessions registers the operations on sessions.
func (a *api) sessions() {
	const one = "/v1/sessions/{session}"
	register(a, operation{
		scope: reads, method: http.MethodGet, path: "/v1/sessions", id: "list-sessions",
		summary: "List sessions with their size and whether they are due",
	}, listSessions)
	register(a, operation{
		scope: reads, method: http.MethodGet, path: one, id: "get-session",
		summary: "The state of a session, and why it is, or is not, due",
	}, getSession)
	register(a, operation{
		scope: appends, method: http.MethodPatch, path: one, id: "change-session",
		summary: "Set the model, labels, parent or, with scope operate, policy of a session",
		more: func(op *huma.Operation) {
			op.Description = "What is absent stays. labels replaces all labels; an empty parent or policy takes it away."
			conflicts(op)
		},
	}, changeSession)
	register(a, operation{
		scope: admins, method: http.MethodDelete, path: one, id: "erase-session",
		summary: "Erase all that was said in a session: a preview, and with its token the erasure", more: conflicts,
	}, eraseSession)
	register(a, operation{
		scope: operates, method: http.MethodPost, path: "/v1/compactions", id: "compact-sessions",
		summary: "Compact the sessions of a list, or count them",
	}, compactSessions)
	register(a, operation{
		scope: operates, method: http.MethodPost, path: one + "/compact", id: "compact-session",
		summary: "Compact a session, or preview that",
		more:    accepts[Compaction](a),
	}, compactSession)
}

// conflicts adds the statuses of operations that the state of a session may not allow.
var conflicts = fails(http.StatusConflict, http.StatusGone, http.StatusPreconditionFailed)

// accepts adds to conflicts that an operation answers 202 with the same body while its run goes on.
func accepts[T any](a *api) func(*huma.Operation) {
	return func(op *huma.Operation) {
		conflicts(op)
		schema := a.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[T](), true, "")
		op.Responses = map[string]*huma.Response{"202": {
			Description: "The run has not ended yet.",
			Content:     map[string]*huma.MediaType{"application/json": {Schema: schema}},
		}}
	}
}

// SessionsFilter selects sessions; without a part, all.
type SessionsFilter struct {
	Due         bool     `query:"due" doc:"Only those that are due."`
	Held        string   `query:"held" doc:"Only those that this reason holds back: a reason of GET /v1/held-back."`
	Quarantined bool     `query:"quarantined" doc:"Only those that automatic runs leave alone, as they cannot be made small enough."`
	Label       []string `query:"label,explode" doc:"Only those with this label, as name=value, all of several; those of the parent count."`
	Model       string   `query:"model" doc:"Only those with this model."`
	Policy      string   `query:"policy" doc:"Only those with this policy."`
	Query       string   `query:"q" maxLength:"1000" doc:"Only those with this text in their id, whatever the case."`
	Parent      string   `query:"parent" doc:"Only children of this session."`
	ID          string   `query:"id" doc:"Only those with this id: one in each tenant."`
	Cursor      []int64  `query:"cursor,explode" doc:"Only these, by their cursors."`
}

// filter returns the filter for the store.
func (in *SessionsFilter) filter(c *caller) (store.SessionFilter, error) {
	f := store.SessionFilter{
		Tenant: c.tenant, Due: in.Due, Held: in.Held, Quarantined: in.Quarantined, Model: in.Model, Policy: in.Policy, Text: in.Query,
		ChildrenOf: in.Parent, ID: in.ID, SIDs: in.Cursor, Labels: map[string]string{},
	}
	for _, l := range in.Label {
		name, value, ok := strings.Cut(l, "=")
		if !ok {
			return f, invalid("query.label", "label: want name=value")
		}
		f.Labels[name] = value
	}
	var reasons []string
	for _, r := range store.HeldReasons {
		reasons = append(reasons, r.Reason)
	}
	if f.Held != "" && !slices.Contains(reasons, f.Held) {
		return f, invalid("query.held", "held: want one of %s", strings.Join(reasons, ", "))
	}
	return f, nil
}

type listSessionsIn struct {
	Page
	SessionsFilter
	After  string `query:"after" doc:"next of the page before."`
	Order  string `query:"order" enum:"created,over" default:"created" doc:"over: those that are due, furthest over their start first, on one page."`
	Detail bool   `query:"detail" doc:"Also their state, last run, next check, window and target; of at most 100."`
	Names  bool   `query:"names" doc:"With detail: also the first request of each."`
}

// maxDetailed is the number of sessions of a page with details: what holds each back is computed.
const maxDetailed = 100

// listSessions answers a page, which has fewer rows than its limit, or none, where a filter has looked
// at as many sessions as it may.
func listSessions(ctx context.Context, c *caller, in *listSessionsIn) (*body[list[reports.SessionItem]], error) {
	limit, after, err := in.numbered(c, in.After)
	if err != nil {
		return nil, err
	}
	f, err := in.filter(c)
	if err != nil {
		return nil, err
	}
	f.After, f.Limit, f.Furthest = after, limit, in.Order == "over"
	if in.Detail {
		f.Limit = min(limit, maxDetailed)
	}
	rows, next, err := c.store.Operator.Sessions(ctx, f)
	items := make([]reports.SessionItem, len(rows))
	for i, r := range rows {
		items[i].SessionRow = reports.WithStart(c.server.o.Config, r)
	}
	if err == nil && in.Detail {
		err = reports.Details(ctx, c.store, c.server.o.Config, items, in.Names, in.Held)
	}
	return page(items, next, err)
}

// SessionState is a session with the state that decides about its runs.
type SessionState struct {
	store.SessionRow
	Labels           map[string]string   `json:"labels" doc:"Its own and, under other keys, those of its parent."`
	State            string              `json:"state" enum:"active,quarantined,service_managed"`
	QuarantineReason string              `json:"quarantine_reason,omitempty"`
	PolicyOverride   string              `json:"policy_override,omitempty" doc:"The policy that was named for it."`
	IneffectiveRuns  int                 `json:"ineffective_runs,omitempty"`
	Explanation      reports.Explanation `json:"explanation" doc:"Why it is, or is not, due, what holds it back, and when it runs next."`
}

func getSession(ctx context.Context, c *caller, in *SessionPath) (*body[SessionState], error) {
	st, k := c.of(in.Session)
	return sessionState(ctx, c, st, k)
}

func sessionState(ctx context.Context, c *caller, st *store.Store, k store.Key) (*body[SessionState], error) {
	x, out, err := reports.Explain(ctx, st, k, c.server.o.Config, c.server.o.Registry, time.Now())
	return answer(SessionState{
		SessionRow: reports.WithStart(c.server.o.Config, x.SessionRow), Labels: x.Labels, State: cmp.Or(x.State, "active"),
		QuarantineReason: x.QuarantineReason, PolicyOverride: x.PolicyOverride, IneffectiveRuns: x.IneffectiveRuns, Explanation: out,
	}, err)
}

type changeSessionIn struct {
	SessionPath
	Body store.SessionChange
}

func changeSession(ctx context.Context, c *caller, in *changeSessionIn) (*body[SessionState], error) {
	st, k := c.of(in.Session)
	if in.Body.Policy != nil && !c.may(operates) {
		return nil, forbidden(operates, c.key.Scope)
	}
	if err := st.Configure(ctx, k, in.Body); err != nil {
		return nil, err
	}
	return sessionState(ctx, c, st, k)
}

type eraseSessionIn struct {
	SessionPath
	Note    string `query:"note" required:"true" minLength:"1" maxLength:"1000" doc:"Why, for the record."`
	Confirm string `query:"confirm" doc:"confirm of a preview: what it showed is erased, or else nothing."`
}

// SessionErasure is an erasure that was made, or without a token the preview of one.
type SessionErasure struct {
	DryRun  bool                  `json:"dry_run"`
	Preview *store.ErasurePreview `json:"preview,omitempty"`
	Erased  *store.Erasure        `json:"erased,omitempty"`
}

func eraseSession(ctx context.Context, c *caller, in *eraseSessionIn) (*body[SessionErasure], error) {
	st, k := c.of(in.Session)
	if in.Confirm == "" {
		found, err := st.Admin.Erase(ctx, k, nil, in.Note, c.by(), true)
		preview := found.Preview()
		return answer(SessionErasure{DryRun: true, Preview: &preview}, err)
	}
	done, err := st.Admin.EraseShown(ctx, k, nil, in.Note, c.by(), in.Confirm)
	return answer(SessionErasure{Erased: &done}, err)
}

type compactSessionIn struct {
	SessionPath
	Wait string             `query:"wait" doc:"How long to wait for the end of the run, such as 10s; at most 30s."`
	Body *CompactionRequest `required:"false"`
}

// CompactionRequest are the options of a run; by default it is one of the session's policy.
type CompactionRequest struct {
	Strategies  []string     `json:"strategies,omitempty" doc:"The strategies of the run, in order, with the parameters of the policy."`
	Pipeline    []store.Step `json:"pipeline,omitempty" doc:"The same with parameters."`
	Policy      string       `json:"policy,omitempty" doc:"The steps of this policy, in place of that of the session."`
	Preset      string       `json:"preset,omitempty" doc:"The steps of this preset."`
	From        string       `json:"from,omitempty" enum:"log,view" doc:"Plan over the whole log, the default, or over the view."`
	Focus       string       `json:"focus,omitempty" maxLength:"1000" doc:"What a summary should keep."`
	DryRun      bool         `json:"dry_run,omitempty" doc:"Answer the change that it would make, with an extract for a model's summary."`
	AllowGrowth bool         `json:"allow_growth,omitempty" doc:"Apply the result even if the view grows."`
	Force       bool         `json:"force,omitempty" doc:"Execute the run although its session is paused."`
	Summary     *struct {
		Text string `json:"text" minLength:"1"`
		Note string `json:"note,omitempty"`
	} `json:"summary,omitempty" doc:"The summary, in place of a model's. [m12] at the end of a line names the message with the seq 12."`
}

// Compaction is a run that was asked for, or the preview of one.
type Compaction struct {
	DryRun  bool             `json:"dry_run"`
	Run     *reports.Run     `json:"run,omitempty"`
	Preview *reports.Preview `json:"preview,omitempty"`
	Diff    *store.RunDiff   `json:"diff,omitempty" doc:"Of a preview: the change of the view. What it writes has ids of its own."`
}

type compactionOut struct {
	Status int
	Body   Compaction
}

func compactSession(ctx context.Context, c *caller, in *compactSessionIn) (*compactionOut, error) {
	st, k := c.of(in.Session)
	wait, err := time.ParseDuration(cmp.Or(in.Wait, "0s"))
	if err != nil || wait < 0 || wait > config.MaxWait {
		return nil, invalid("query.wait", "wait: want a duration of at most %s, such as 10s", config.MaxWait)
	}
	o, dryRun, err := in.options(ctx, c, st, k)
	if err != nil {
		return nil, err
	}
	planning := reports.Planning{Config: c.server.o.Config, Registry: c.server.o.Registry, Options: &o}
	if dryRun {
		p, err := planning.Preview(ctx, st, k)
		if err == nil && len(p.Diff.Out) > 0 {
			p.Kept, err = reports.LoadKept(ctx, st, k, p.Diff)
		}
		return &compactionOut{http.StatusOK, Compaction{DryRun: true, Preview: &p, Diff: &p.Diff}}, err
	}
	pauses, err := st.Operator.PausesOf(ctx, k)
	if err != nil {
		return nil, err
	}
	if len(pauses) > 0 && !o.Force {
		return nil, problem(http.StatusConflict, "paused", "the session is paused (pause %d); force runs it anyway", pauses[0].ID)
	}
	if err := planning.CheckSummary(ctx, st, k); err != nil {
		return nil, invalid("body.summary.text", "summary: %s", err)
	}
	id, err := c.all().Request(ctx, k, store.TriggerOperator, c.by(), o) // bound to the tenant, force would not pass a pause of all tenants
	if err != nil {
		return nil, err
	}
	row, err := reports.AwaitRun(ctx, st, id, wait)
	run := reports.NewRun(row)
	out := &compactionOut{http.StatusAccepted, Compaction{Run: &run}}
	if row.Ended() {
		out.Status = http.StatusOK
	}
	return out, err
}

// options returns the options of the run that is asked for.
func (in *compactSessionIn) options(
	ctx context.Context, c *caller, st *store.Store, k store.Key,
) (o store.Options, dryRun bool, err error) {
	b := in.Body
	if b == nil {
		b = &CompactionRequest{}
	}
	session, err := st.Session(ctx, k)
	if err != nil {
		return o, false, err
	}
	o = store.Options{From: b.From, Focus: b.Focus, AllowGrowth: b.AllowGrowth, Force: b.Force, Pipeline: b.Pipeline}
	for _, name := range b.Strategies {
		o.Pipeline = append(o.Pipeline, store.Step{Strategy: name})
	}
	given := c.server.o.Config.Policy
	switch n := len(o.Pipeline); {
	case n > 0 && b.Policy+b.Preset != "" || b.Policy != "" && b.Preset != "" || len(b.Pipeline) > 0 && len(b.Strategies) > 0:
		return o, false, invalid("body", "want one of strategies, pipeline, policy and preset")
	case b.Preset != "":
		preset, err := policy.PresetNamed(b.Preset)
		if err != nil {
			return o, false, invalid("body.preset", "%s", err.Error())
		}
		o.Pipeline = c.steps(preset.Over(given), session.Model)
	case b.Policy != "":
		v, err := policies.Ref{Name: b.Policy}.Load(ctx, st)
		if err != nil {
			return o, false, err
		}
		if given, err = policy.ReadSpec(v.Spec); err != nil {
			return o, false, invalid("body.policy", "policy %s cannot be read by this version", b.Policy)
		}
		o.Pipeline = c.steps(given, session.Model)
	case n > 0:
		given.Pipeline = nil
		for _, s := range o.Pipeline {
			given.Pipeline = append(given.Pipeline, policy.Step(s))
		}
		if faults := strategies.CheckSteps(c.server.o.Registry, given); len(faults) > 0 {
			p := invalid("body.pipeline", "")
			for _, fault := range faults {
				p.Errors = append(p.Errors, Fault{Field: p.Field, Detail: fault.Error()})
			}
			return o, false, p.first()
		}
	}
	if b.Summary != nil {
		if o.Summary, err = reports.WrittenSummary(b.Summary.Text, c.by(), b.Summary.Note); err != nil {
			return o, false, invalid("body.summary.text", "summary: %s", err)
		}
	}
	return o, b.DryRun, nil
}

// steps returns the steps of a policy for a model.
func (c *caller) steps(p policy.Policy, model string) (out []store.Step) {
	for _, s := range p.Steps(p.Limits(model, c.server.o.Config.Models.Window), c.server.o.Registry.Fill) {
		out = append(out, store.Step(s))
	}
	return out
}
