package reports

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/policies"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/tokens"
	"github.com/sessionstore/compactor/worker"
)

// Explanation is why a session is, or is not, due, and when it runs next.
type Explanation struct {
	Session    string            `json:"session"`
	Tenant     string            `json:"tenant"`
	Model      string            `json:"model"`
	Labels     map[string]string `json:"labels"` // and those of the parent
	Parent     string            `json:"parent,omitempty"`
	Children   int64             `json:"children,omitempty"`
	Policy     string            `json:"policy"`
	Version    int               `json:"policy_version"` // 0: that of the configuration
	Why        string            `json:"policy_why"`
	Follows    bool              `json:"follows"` // the session has the thresholds of the policy
	PassedOver []PassedOver      `json:"passed_over"`
	Window     chat.Tokens       `json:"window"`
	Start      chat.Tokens       `json:"start"`
	Target     chat.Tokens       `json:"target"`
	// DueAbove is the size above which the session is due: the start, or more after a run that
	// could not reach it; 0 if no size makes it due.
	DueAbove chat.Tokens `json:"due_above"`
	Tokens   chat.Tokens `json:"tokens"`
	Count    string      `json:"count"` // where Tokens is from
	Due      bool        `json:"due"`
	WhyDue   string      `json:"why_due"`
	Steps    []string    `json:"steps"`
	// Triggers are those of the policy with the values that they compare; without any, DueAbove decides.
	Triggers []worker.TriggerState `json:"triggers,omitempty"`
	HeldBack []Hold                `json:"held_back"`
	NextRun  string                `json:"next_run"`
	NextAt   *time.Time            `json:"next_run_at,omitempty"`
	LastRun  *LastRun              `json:"last_run,omitempty"`
}

// PassedOver is a policy that another one was chosen before.
type PassedOver struct {
	Policy string `json:"policy"`
	Match  string `json:"match"`
	Why    string `json:"why"`
}

// Hold is a reason for which a session gets no automatic runs.
type Hold struct {
	Code  string     `json:"code"`
	Text  string     `json:"text"`
	Since *time.Time `json:"since,omitempty"`
	Until *time.Time `json:"until,omitempty"`
	// EndsBy is the command or the event that ends it; empty for a run.
	EndsBy string `json:"ends_by,omitempty"`
}

// LastRun is the last run of a session that has ended.
type LastRun struct {
	Run     store.RunID `json:"run"`
	Outcome string      `json:"outcome"`
	Policy  string      `json:"policy,omitempty"`
	Fired   string      `json:"fired,omitempty"` // the trigger of the policy that held
	EndedAt *time.Time  `json:"ended_at,omitempty"`
	// ErrorCode is of a run that failed, or of a model that wrote no summary for it, and Calls
	// are its calls of models.
	ErrorCode string                 `json:"error_code,omitempty"`
	Calls     []store.SummaryCallRow `json:"calls,omitempty"`
}

// Explain explains why a session is, or is not, due, and when it runs next. The clock of now is that
// of the database.
func Explain(ctx context.Context, st *store.Store, k store.Key, cfg config.Config, registry *plan.Registry, now time.Time,
) (x Explainer, out Explanation, err error) {
	if x.Explanation, err = st.Operator.Explain(ctx, k); err != nil {
		return x, out, err
	}
	x.Now, x.Config = now, cfg
	list, err := st.Policies(ctx, x.Tenant)
	if err != nil {
		return x, out, err
	}
	if x.Limits, err = st.Operator.Spending(ctx, x.Tenant); err != nil {
		return x, out, err
	}
	if err := x.choose(ctx, st, list); err != nil {
		return x, out, err
	}
	if len(x.InForce.Triggers) > 0 {
		c, err := st.Reader.Snapshot(ctx, k)
		if err != nil {
			return x, out, err
		}
		planner := worker.Planner{Registry: registry, Window: cfg.Models.Window, BindsReasoning: tokens.BindsReasoning}
		x.Triggers = planner.Triggers(c, x.InForce)
	}
	if g := x.InForce.Guards; g.Rates() {
		runs, age := g.Lookback()
		if x.Ages, err = st.Worker.AppliedAges(ctx, x.SID, runs, age); err != nil {
			return x, out, err
		}
	}
	out = x.Explain(registry)
	if x.Last != nil {
		out.LastRun.Calls, err = st.Reader.SummaryCalls(ctx, x.Last.ID)
	}
	return x, out, err
}

// Explainer evaluates an Explanation.
type Explainer struct {
	store.Explanation
	Limits     []store.Spending // of its tenant and of all
	Now        time.Time
	Config     config.Config
	Version    store.PolicyVersion
	Candidates []policy.Candidate
	InForce    policy.Policy
	Unreadable error
	Triggers   []worker.TriggerState
	Ages       []time.Duration // of the automatic runs that the policy's guards count
}

// choose finds the session's policy among those in force.
func (x *Explainer) choose(ctx context.Context, st *store.Store, list []store.PolicyVersion) error {
	inForce := map[string]policy.Match{}
	for _, v := range list {
		inForce[v.Name] = v.Match
	}
	name, candidates := policy.Choose(policy.Subject{
		Tenant: x.Tenant, Model: x.Model, Labels: x.Labels,
		Override: x.PolicyOverride,
	}, inForce)
	x.Candidates = candidates
	x.Version = store.PolicyVersion{Name: name}
	x.InForce = x.Config.Policy
	v, err := policies.Ref{Name: name}.Load(ctx, st)
	switch {
	case errors.Is(err, store.ErrNotFound): // no scheduler has saved its configuration yet
	case err != nil:
		return err
	default:
		x.Version = v
		if x.InForce, x.Unreadable = policy.ReadSpec(v.Spec); x.Unreadable != nil {
			x.InForce = x.Config.Policy
		}
	}
	x.InForce.ModelTable = x.Config.Models.Version()
	return nil
}

// Explain returns the explanation of a session.
func (x *Explainer) Explain(registry *plan.Registry) Explanation {
	limits := x.InForce.Limits(x.Model, x.Config.Models.Window)
	out := Explanation{
		Session: x.Session, Tenant: x.Tenant, Model: x.Model, Labels: x.Labels, Parent: x.Parent, Children: x.Children, Policy: x.Version.Name, Version: x.Version.Version,
		Why: x.Candidates[0].Why, Follows: x.Policy == x.Version.Name && (x.PolicyHash == x.InForce.FleetHash() || x.Version.Version == 0),
		PassedOver: []PassedOver{}, Window: limits.Window, Start: limits.Start, Target: limits.Target, DueAbove: cmp.Or(x.DueTokens, limits.Start),
		Tokens: x.ContextTokens, Due: x.Due, Triggers: x.Triggers, HeldBack: []Hold{}, Steps: []string{},
	}
	for _, c := range x.Candidates[1:] {
		out.PassedOver = append(out.PassedOver, PassedOver{c.Name, c.Match.String(), c.Why})
	}
	out.Tokens, out.Count = x.count()
	out.WhyDue = x.whyDue(out)
	for _, s := range x.InForce.Steps(limits, registry.Fill) {
		out.Steps = append(out.Steps, s.Strategy)
	}
	if x.InForce.Fallback {
		out.Steps = append(out.Steps, "fallback")
	}
	out.HeldBack = append(out.HeldBack, x.holds()...)
	out.NextRun, out.NextAt = x.next(out)
	if out.DueAbove >= policy.Never {
		out.DueAbove = 0
	}
	if x.Last != nil {
		out.LastRun = &LastRun{
			Run: x.Last.ID, Outcome: x.Last.Outcome, Fired: x.Last.Fired, EndedAt: UTC(x.Last.EndedAt),
			ErrorCode: x.Last.ErrorCode,
		}
		if x.Last.Policy != "" {
			out.LastRun.Policy = store.PolicyName(x.Last.Policy, x.Last.PolicyVersion)
		}
	}
	return out
}

// count returns the size of the context, as the database compares it, and how it is counted.
func (x *Explainer) count() (chat.Tokens, string) {
	switch {
	case x.ReportedPromptTokens != nil:
		return x.ContextTokens, fmt.Sprintf("%s reported by the application, and %s counted since then",
			term.Count(*x.ReportedPromptTokens), signed(x.TokensSinceReport))
	case x.Line.Scale > 0:
		return x.ContextTokens, fmt.Sprintf("%s counted × %.2f + %s overhead, as %s of usage say", term.Count(x.LiveTokens), x.Line.Scale,
			term.Count(x.Line.Overhead), term.Plural(x.Reports, "report", "reports"))
	case x.LiveEstimatedTokens > 0:
		size := x.LiveTokens - x.LiveEstimatedTokens + x.InForce.Margin(x.LiveEstimatedTokens)
		return size, fmt.Sprintf("%s counted, and %.0f %% more for %s that are estimates", term.Count(x.LiveTokens),
			100*x.InForce.EstimateMargin, term.Count(x.LiveEstimatedTokens))
	}
	return x.ContextTokens, "counted, message by message"
}

func signed(t chat.Tokens) string {
	if t < 0 {
		return "−" + term.Count(-t)
	}
	return term.Count(t)
}

// whyDue returns the reason for which the session is due, or is not yet.
func (x *Explainer) whyDue(out Explanation) string {
	if len(x.Triggers) > 0 {
		holds := slices.ContainsFunc(x.Triggers, func(t worker.TriggerState) bool { return t.Holds })
		switch {
		case x.Due && x.Suspect:
		case holds && x.Due:
			return "a trigger holds"
		case holds:
			return "a trigger holds, but a run has looked at it, or it is held back"
		case x.Due:
			return "a run has to look at its triggers"
		default:
			return "no trigger holds"
		}
	}
	switch {
	case x.Due && x.Suspect:
		return "its view may be invalid, so a run repairs it"
	case out.Tokens > out.DueAbove && !x.Due:
		return "above the limit, but held back"
	case out.Tokens > out.DueAbove:
		return "above the limit"
	case x.Due:
		return "a message or a pin has changed what its view must hold"
	case out.DueAbove > out.Start && x.LoopSeq != nil && (x.LoopOpen || x.AwaitsAnswer):
		return fmt.Sprintf("it waits, as long as it fits: %s are left", term.Plural(out.DueAbove-out.Tokens, "token", "tokens"))
	case out.DueAbove > out.Start:
		return fmt.Sprintf("the last run stayed above the start; %s are left", term.Plural(out.DueAbove-out.Tokens, "token", "tokens"))
	}
	return term.Plural(out.DueAbove-out.Tokens, "token", "tokens") + " are left"
}

// UTC returns a time in UTC, nil for none.
func UTC(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

// holds returns the reasons for which the session gets no automatic runs: those that the database
// lists, and shorter ones.
func (x *Explainer) holds() []Hold {
	var out []Hold
	if x.Unreadable != nil {
		out = append(out, Hold{
			Code: "invalid_policy", Text: "this version cannot read its policy: " + x.Unreadable.Error(),
			EndsBy: "a policy that it can read",
		})
	}
	cools := false
	for _, h := range x.Held {
		out = append(out, Hold{Code: h.Reason, Text: h.Text(), EndsBy: h.EndsBy, Since: UTC(h.Since), Until: UTC(h.Until)})
		cools = cools || x.CooldownUntil != nil && h.Until != nil && h.Until.Equal(*x.CooldownUntil)
	}
	if code, wait := x.InForce.Guards.Rate(x.Ages); code != "" && !cools {
		until := x.Now.Add(wait)
		out = append(out, Hold{Code: code, Text: store.Held{Reason: code}.Text(), EndsBy: "its time", Until: UTC(&until)})
	}
	for _, l := range x.Limits {
		if l.Reached() && len(x.Config.LLM.Models) > 0 && !slices.ContainsFunc(out,
			func(h Hold) bool { return h.Code == worker.CodeSpendingLimit }) {
			of := TenantText(l.Tenant)
			out = append(out, Hold{
				Code: worker.CodeSpendingLimit,
				Text: "no model is asked for " + of + ": see compactor limit list", EndsBy: "compactor limit set",
			})
		}
	}
	for _, r := range x.Active {
		if r.ErrorCode == store.CodeRunLimit {
			continue
		}
		h := Hold{Code: r.Status, Since: UTC(&r.QueuedAt), Text: fmt.Sprintf("run %d waits for a worker", r.ID)}
		if r.Status == "running" {
			h.Since, h.Text = UTC(r.StartedAt), fmt.Sprintf("run %d is at work on %s", r.ID, r.Worker)
		}
		out = append(out, h)
	}
	return out
}

// settled returns when the relay takes the session's writes.
func (x *Explainer) settled() time.Time {
	quiet := x.WrittenAt.Add(x.Config.Policy.Debounce)
	if most := x.FirstWrittenAt.Add(x.Config.Policy.MaxDelay); most.Before(quiet) {
		quiet = most
	}
	return quiet
}

// next says when an automatic run may come.
func (x *Explainer) next(out Explanation) (string, *time.Time) {
	at := func(what string, t time.Time) (string, *time.Time) { return what, UTC(&t) }
	for _, h := range out.HeldBack {
		switch {
		case h.Code == worker.CodeSpendingLimit && h.Since == nil: // other runs go on
		case h.EndsBy == "":
			return h.Text, nil
		case h.Until != nil:
			return at("when what holds it back is over, if it is due then", *h.Until)
		default:
			return "when what holds it back has ended", nil
		}
	}
	switch {
	case !x.Due && x.NextCheckAt != nil:
		return at("when it is due, or at the next time that a trigger waits for", *x.NextCheckAt)
	case !x.Due:
		return "when it is due", nil
	case x.WrittenAt != nil:
		quiet := x.settled()
		if !quiet.After(x.Now) {
			return "now, by its writes: is a scheduler running?", nil
		}
		return at("when its writes have settled", quiet)
	}
	return "within " + policy.Text(x.Config.Scheduler.ReconcileInterval) + ": schedulers look for sessions that are due", nil
}

// TenantText names a tenant, or all with an empty one.
func TenantText(tenant string) string {
	if tenant == "" {
		return "all tenants"
	}
	return "tenant " + tenant
}

// WithStart returns a session with its start, stored or by policy, and its time in UTC. The
// start is 0 if no size makes it due.
func WithStart(c config.Config, r store.SessionRow) store.SessionRow {
	r.LastMessageAt = r.LastMessageAt.UTC()
	switch {
	case r.DueTokens == 0:
		r.DueTokens = c.Policy.Limits(r.Model, c.Models.Window).Start
	case r.DueTokens >= policy.Never:
		r.DueTokens = 0
	}
	return r
}
