package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/policies"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/tokens"
	"github.com/sessionstore/compactor/worker"
)

type policyExplainCmd struct {
	Session    string     `arg:"" optional:"" help:"The session."`
	ErrorsOnly bool       `help:"Instead of one session, list those whose last run failed or that are quarantined."`
	AllTenants allTenants `help:"With --errors-only: sessions of every tenant."`
	Limit      int        `default:"50" range:"1,100000" help:"With --errors-only: maximum number of sessions."`
}

func (c *policyExplainCmd) Validate() error {
	if (c.Session == "") != c.ErrorsOnly {
		return errors.New("want a session, or --errors-only")
	}
	return nil
}

// explanationJSON is the output of --json.
type explanationJSON struct {
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
	PassedOver []passedOverJSON  `json:"passed_over"`
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
	HeldBack []holdJSON            `json:"held_back"`
	NextRun  string                `json:"next_run"`
	NextAt   *time.Time            `json:"next_run_at,omitempty"`
	LastRun  *lastRunJSON          `json:"last_run,omitempty"`
}

type passedOverJSON struct {
	Policy string `json:"policy"`
	Match  string `json:"match"`
	Why    string `json:"why"`
}

// holdJSON is a reason for which a session gets no automatic runs.
type holdJSON struct {
	Code  string     `json:"code"`
	Text  string     `json:"text"`
	Since *time.Time `json:"since,omitempty"`
	Until *time.Time `json:"until,omitempty"`
	// EndsBy is the command or the event that ends it; empty for a run.
	EndsBy string `json:"ends_by,omitempty"`
}

type lastRunJSON struct {
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

func (c *policyExplainCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	if c.ErrorsOnly {
		return c.errors(ctx, e, st, cfg)
	}
	s, err := st.Operator.Explain(ctx, key(cfg, c.Session))
	if err != nil {
		return err
	}
	list, err := st.Policies(ctx, s.Tenant)
	if err != nil {
		return err
	}
	limits, err := st.Operator.Spending(ctx, s.Tenant)
	if err != nil {
		return err
	}
	x := explainer{Explanation: s, limits: limits, now: e.now(), cfg: cfg}
	if err := x.choose(ctx, st, list); err != nil {
		return err
	}
	if len(x.policy.Triggers) > 0 {
		c, err := st.Operator.Snapshot(ctx, key(cfg, c.Session))
		if err != nil {
			return err
		}
		planner := worker.Planner{Registry: e.Registry, Window: cfg.Models.Window, BindsReasoning: tokens.BindsReasoning}
		x.triggers = planner.Triggers(c, x.policy)
	}
	if g := x.policy.Guards; g.Rates() {
		runs, age := g.Lookback()
		if x.ages, err = st.Worker.AppliedAges(ctx, s.SID, runs, age); err != nil {
			return err
		}
	}
	out := x.explain(e)
	if x.Last != nil {
		if out.LastRun.Calls, err = st.Operator.SummaryCalls(ctx, x.Last.ID); err != nil {
			return err
		}
	}
	shown := out
	out.DueAbove = when(out.DueAbove < policy.Never, out.DueAbove)
	return e.show(out, func() { shown.print(e, x) })
}

// errors lists the sessions that need a look.
func (c *policyExplainCmd) errors(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	rows, err := st.Operator.Errors(ctx, c.AllTenants.tenant(cfg), c.Limit)
	if err != nil {
		return err
	}
	return list(e, "errors", rows, "no session is quarantined, and no last run has failed", columns[store.ErrorRow]{
		{"session", term.Text("SESSION"), func(r store.ErrorRow) any { return store.Key{Tenant: r.Tenant, Session: r.Session}.String() }},
		{"policy", term.Text("POLICY"), nil},
		{"code", term.Text("CODE"), func(r store.ErrorRow) any { return term.Styled{Value: r.Code, As: e.Out.Red} }},
		{"run", term.ID("RUN"), func(r store.ErrorRow) any { return when(r.Run > 0, any(r.Run)) }},
		{"since", term.Num("SINCE"), func(r store.ErrorRow) any {
			if r.Since == nil {
				return nil
			}
			return e.since(*r.Since)
		}},
		{"error", term.Text("ERROR"), nil},
	})
}

// explainer evaluates an Explanation.
type explainer struct {
	store.Explanation
	limits     []store.Spending // of its tenant and of all
	now        time.Time
	cfg        config.Config
	version    store.PolicyVersion
	candidates []policy.Candidate
	policy     policy.Policy
	unreadable error
	triggers   []worker.TriggerState
	ages       []time.Duration // of the automatic runs that the policy's guards count
}

// choose finds the session's policy among those in force.
func (x *explainer) choose(ctx context.Context, st *store.Store, list []store.PolicyVersion) error {
	inForce := map[string]policy.Match{}
	for _, v := range list {
		inForce[v.Name] = v.Match
	}
	name, candidates := policy.Choose(policy.Subject{
		Tenant: x.Tenant, Model: x.Model, Labels: x.Labels,
		Override: x.PolicyOverride,
	}, inForce)
	x.candidates = candidates
	x.version = store.PolicyVersion{Name: name}
	x.policy = x.cfg.Policy
	v, err := policies.Ref{Name: name}.Load(ctx, st)
	switch {
	case errors.Is(err, store.ErrNotFound): // no scheduler has saved its configuration yet
	case err != nil:
		return err
	default:
		x.version = v
		if x.policy, x.unreadable = policy.ReadSpec(v.Spec); x.unreadable != nil {
			x.policy = x.cfg.Policy
		}
	}
	x.policy.ModelTable = x.cfg.Models.Version()
	return nil
}

// explain returns the explanation of a session.
func (x *explainer) explain(e *Env) explanationJSON {
	limits := x.policy.Limits(x.Model, x.cfg.Models.Window)
	out := explanationJSON{
		Session: x.Session, Tenant: x.Tenant, Model: x.Model, Labels: x.Labels, Parent: x.Parent, Children: x.Children, Policy: x.version.Name, Version: x.version.Version,
		Why: x.candidates[0].Why, Follows: x.Policy == x.version.Name && (x.PolicyHash == x.policy.FleetHash() || x.version.Version == 0),
		PassedOver: []passedOverJSON{}, Window: limits.Window, Start: limits.Start, Target: limits.Target, DueAbove: cmp.Or(x.DueTokens, limits.Start),
		Tokens: x.ContextTokens, Due: x.Due, Triggers: x.triggers, HeldBack: []holdJSON{},
	}
	for _, c := range x.candidates[1:] {
		out.PassedOver = append(out.PassedOver, passedOverJSON{c.Name, c.Match.String(), c.Why})
	}
	out.Tokens, out.Count = x.count()
	out.WhyDue = x.whyDue(out)
	for _, s := range x.policy.Steps(limits, e.Registry.Fill) {
		out.Steps = append(out.Steps, s.Strategy)
	}
	if x.policy.Fallback {
		out.Steps = append(out.Steps, "fallback")
	}
	out.HeldBack = append(out.HeldBack, x.holds()...)
	out.NextRun, out.NextAt = x.next(out)
	if x.Last != nil {
		out.LastRun = &lastRunJSON{
			Run: x.Last.ID, Outcome: x.Last.Outcome, Fired: x.Last.Fired, EndedAt: utc(x.Last.EndedAt),
			ErrorCode: x.Last.ErrorCode,
		}
		if x.Last.Policy != "" {
			out.LastRun.Policy = store.PolicyName(x.Last.Policy, x.Last.PolicyVersion)
		}
	}
	return out
}

// count returns the size of the context, as the database compares it, and how it is counted.
func (x *explainer) count() (chat.Tokens, string) {
	switch {
	case x.ReportedPromptTokens != nil:
		return x.ContextTokens, fmt.Sprintf("%s reported by the application, and %s counted since then",
			term.Count(*x.ReportedPromptTokens), signed(x.TokensSinceReport))
	case x.Line.Scale > 0:
		return x.ContextTokens, fmt.Sprintf("%s counted × %.2f + %s overhead, as %s of usage say", term.Count(x.LiveTokens), x.Line.Scale,
			term.Count(x.Line.Overhead), plural(x.Reports, "report"))
	case x.LiveEstimatedTokens > 0:
		size := x.LiveTokens - x.LiveEstimatedTokens + x.policy.Margin(x.LiveEstimatedTokens)
		return size, fmt.Sprintf("%s counted, and %.0f %% more for %s that are estimates", term.Count(x.LiveTokens),
			100*x.policy.EstimateMargin, term.Count(x.LiveEstimatedTokens))
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
func (x *explainer) whyDue(out explanationJSON) string {
	if len(x.triggers) > 0 {
		holds := slices.ContainsFunc(x.triggers, func(t worker.TriggerState) bool { return t.Holds })
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
		return fmt.Sprintf("it waits, as long as it fits: %s are left", plural(out.DueAbove-out.Tokens, "token"))
	case out.DueAbove > out.Start:
		return fmt.Sprintf("the last run stayed above the start; %s are left", plural(out.DueAbove-out.Tokens, "token"))
	}
	return plural(out.DueAbove-out.Tokens, "token") + " are left"
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

// print writes the explanation for people, in lines of at most 80 columns.
func (out explanationJSON) print(e *Env, x explainer) {
	pairs := []pair{
		{"session", store.Key{Tenant: out.Tenant, Session: out.Session}.String()},
		{"parent", out.Parent},
		{"children", when(out.Children > 0, term.Count(out.Children))},
		{"model", fmt.Sprintf("%s, window %s", orDash(out.Model), term.Count(out.Window))},
		{"labels", policy.Match(out.Labels).String()},
		{"policy", fmt.Sprintf("%s: %s", policies.Title(x.version), out.Why)},
	}
	add := func(name string, value any) { pairs = append(pairs, pair{name, value}) }
	for _, p := range out.PassedOver {
		add("", fmt.Sprintf("not %s (%s): %s", p.Policy, cmp.Or(p.Match, "no match"), p.Why))
	}
	if !out.Follows {
		add("", "its limits are not those of the policy yet: see compactor policy list")
	}
	if out.DueAbove >= policy.Never {
		add("size", fmt.Sprintf("%s tokens of a window of %s (%s)", term.Count(out.Tokens), term.Count(out.Window),
			term.Percent(out.Tokens, out.Window)))
	} else {
		add("size", fmt.Sprintf("%s of %s tokens (%s)", term.Count(out.Tokens), term.Count(out.DueAbove),
			term.Percent(out.Tokens, out.DueAbove)))
	}
	add("", out.Count)
	if out.Due {
		add("due", term.Styled{Value: "yes: " + out.WhyDue, As: e.Out.Yellow})
	} else {
		add("due", term.Styled{Value: "no: " + out.WhyDue, As: e.Out.Green})
	}
	for i, t := range out.Triggers {
		add(when(i == 0, "triggers"), fmt.Sprintf("%s, %s: %s", t.Name, yesOrNo(t.Holds), t.When))
		add("", strings.Join(t.Values, ", "))
	}
	turns := x.policy.TargetTurns
	add("a run", fmt.Sprintf("%s, down to %s tokens%s", strings.Join(out.Steps, " → "), term.Count(out.Target),
		when(turns > 0, fmt.Sprintf(" or less, for %d turns", turns))))
	for i, h := range out.HeldBack {
		text := h.Code
		if h.Since != nil {
			text += ", for " + term.Duration(e.since(*h.Since))
		}
		add(when(i == 0, "held back"), term.Styled{Value: text, As: e.Out.Yellow})
		add("", h.Text)
		if h.EndsBy != "" {
			pairs = append(pairs, endedBy(h.EndsBy)...)
		}
	}
	add("next run", out.NextRun)
	if out.NextAt != nil {
		add("", fmt.Sprintf("in %s (%s)", term.Duration(max(0, out.NextAt.Sub(x.now))), timeText(*out.NextAt)))
	}
	if r := out.LastRun; r != nil {
		under := when(r.Policy != "", " under "+r.Policy) + when(r.Fired != "", ", trigger "+r.Fired)
		add("last run", fmt.Sprintf("%d%s: %s", r.Run, under, joined(r.Outcome, modelFailure(*x.Last))))
		pairs = append(pairs, failedCalls(r.Calls)...)
	}
	e.pairs(pairs...)
}

// holds returns the reasons for which the session gets no automatic runs: those that the database
// lists, and shorter ones.
func (x *explainer) holds() []holdJSON {
	var out []holdJSON
	if x.unreadable != nil {
		out = append(out, holdJSON{
			Code: "invalid_policy", Text: "this version cannot read its policy: " + x.unreadable.Error(),
			EndsBy: "a policy that it can read",
		})
	}
	cools := false
	for _, h := range x.Held {
		out = append(out, holdJSON{Code: h.Reason, Text: h.Text(), EndsBy: h.EndsBy, Since: utc(h.Since), Until: utc(h.Until)})
		cools = cools || x.CooldownUntil != nil && h.Until != nil && h.Until.Equal(*x.CooldownUntil)
	}
	if code, wait := x.policy.Guards.Rate(x.ages); code != "" && !cools {
		until := x.now.Add(wait)
		out = append(out, holdJSON{Code: code, Text: store.Held{Reason: code}.Text(), EndsBy: "its time", Until: utc(&until)})
	}
	for _, l := range x.limits {
		if l.Reached() && len(x.cfg.LLM.Models) > 0 && !slices.ContainsFunc(out,
			func(h holdJSON) bool { return h.Code == worker.CodeSpendingLimit }) {
			of := tenantText(l.Tenant)
			out = append(out, holdJSON{
				Code: worker.CodeSpendingLimit,
				Text: "no model is asked for " + of + ": see compactor limit list", EndsBy: "compactor limit set",
			})
		}
	}
	for _, r := range x.Active {
		if r.ErrorCode == store.CodeRunLimit {
			continue
		}
		h := holdJSON{Code: r.Status, Since: utc(&r.QueuedAt), Text: fmt.Sprintf("run %d waits for a worker", r.ID)}
		if r.Status == "running" {
			h.Since, h.Text = utc(r.StartedAt), fmt.Sprintf("run %d is at work on %s", r.ID, r.Worker)
		}
		out = append(out, h)
	}
	return out
}

// settled returns when the relay takes the session's writes.
func (x *explainer) settled() time.Time {
	quiet := x.WrittenAt.Add(x.cfg.Policy.Debounce)
	if most := x.FirstWrittenAt.Add(x.cfg.Policy.MaxDelay); most.Before(quiet) {
		quiet = most
	}
	return quiet
}

// next says when an automatic run may come.
func (x *explainer) next(out explanationJSON) (string, *time.Time) {
	at := func(what string, t time.Time) (string, *time.Time) { return what, utc(&t) }
	for _, h := range out.HeldBack {
		switch {
		case h.Code == worker.CodeSpendingLimit && h.Until == nil: // other runs go on
		case h.EndsBy == "":
			return h.Text, nil
		case h.Until != nil:
			return at("when that is over, if it is due then", *h.Until)
		default:
			return "when that has ended", nil
		}
	}
	switch {
	case !x.Due && x.NextCheckAt != nil:
		return at("when it is due, or at the next time that a trigger waits for", *x.NextCheckAt)
	case !x.Due:
		return "when it is due", nil
	case x.WrittenAt != nil:
		quiet := x.settled()
		if !quiet.After(x.now) {
			return "now, by its writes: is a scheduler running?", nil
		}
		return at("when its writes have settled", quiet)
	}
	return "within " + policy.Text(x.cfg.Scheduler.ReconcileInterval) + ": schedulers look for sessions that are due", nil
}
