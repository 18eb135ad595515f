package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/tokens"
	"github.com/sessionstore/compactor/worker"
)

type policyTestCmd struct {
	Sessions []string `arg:"" optional:"" name:"session" help:"Sessions to plan on."`
	Sample   int      `placeholder:"N" range:"1,100000" help:"Plan on N sessions instead, chosen at random; with --file, among those that match it."`
	File     string   `placeholder:"FILE" help:"Plan under this policy file instead of the policy that a session has."`
}

func (c *policyTestCmd) Validate() error {
	if (len(c.Sessions) > 0) == (c.Sample != 0) {
		return errors.New("want sessions or --sample")
	}
	return nil
}

// previewJSON is a session in the output of --json.
type previewJSON struct {
	Session        string        `json:"session"`
	Model          string        `json:"model"`
	Policy         string        `json:"policy"`
	Version        int           `json:"policy_version,omitempty"` // 0: that of the configuration, or of --file
	Outcome        string        `json:"outcome"`
	TokensBefore   chat.Tokens   `json:"tokens_before"`
	TokensAfter    chat.Tokens   `json:"tokens_after"`
	Start          chat.Tokens   `json:"start"`
	Target         chat.Tokens   `json:"target"`
	TargetMet      bool          `json:"target_met"`
	MessagesBefore int64         `json:"messages_before"`
	MessagesAfter  int64         `json:"messages_after"`
	Gone           []worker.Gone `json:"gone"`
	Steps          []stepJSON    `json:"steps"`
	Calls          callsJSON     `json:"model_calls"`
	// Cache is the effect of the change on the provider's prompt cache, if its prices are known.
	Cache *tokens.Rewrite `json:"cache,omitempty"`

	steps []pipeline.StepResult
}

// callsJSON is an upper bound for calls of models.
type callsJSON struct {
	Name   string  `json:"name,omitempty"`
	Calls  int     `json:"calls"`
	Input  int     `json:"input_tokens"`
	Output int     `json:"output_tokens"`
	Cost   float64 `json:"cost"`
}

// previewTotalsJSON sums up sessions.
type previewTotalsJSON struct {
	Sessions     int            `json:"sessions"`
	Outcomes     map[string]int `json:"outcomes"`
	TargetMet    int            `json:"target_met"`
	TokensBefore chat.Tokens    `json:"tokens_before"`
	TokensAfter  chat.Tokens    `json:"tokens_after"`
	callsJSON
}

func (t *previewTotalsJSON) add(p previewJSON) {
	t.Sessions++
	t.Outcomes[p.Outcome]++
	if p.TargetMet {
		t.TargetMet++
	}
	t.TokensBefore, t.TokensAfter = t.TokensBefore+p.TokensBefore, t.TokensAfter+p.TokensAfter
	if p.Calls.Name != "" {
		t.Name = p.Calls.Name
	}
	t.Calls, t.Input, t.Output, t.Cost = t.Calls+p.Calls.Calls, t.Input+p.Calls.Input, t.Output+p.Calls.Output, t.Cost+p.Calls.Cost
}

func (c *policyTestCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	var file *config.PolicyFile
	if c.File != "" {
		files, err := e.policyFiles(ctx, st, cfg, []string{c.File})
		if err != nil {
			return err
		}
		file = &files[0].PolicyFile
		file.Policy.ModelTable = cfg.Models.Version()
		if tenant := file.Match["tenant"]; tenant != "" && e.flags["tenant"] == "" {
			cfg.Tenant = tenant
		}
	}
	switch v, err := (policyRef{Name: policy.DefaultName}).load(ctx, st); {
	case errors.Is(err, store.ErrNotFound): // no scheduler has saved its configuration yet
	case err != nil:
		return err
	default:
		if p, err := policy.ReadSpec(v.Spec); err == nil {
			cfg.Policy = p
		}
	}
	names, err := c.sessions(ctx, st, cfg, file)
	if err != nil {
		return err
	}
	totals := previewTotalsJSON{Outcomes: map[string]int{}}
	shown := []previewJSON{}
	var progress *term.Progress
	if c.Sample > 0 {
		progress = e.Err.Progress("planning, sessions", int64(len(names)))
	}
	for _, name := range names {
		p, err := preview(ctx, e, st, cfg, name, file)
		if err != nil {
			return err
		}
		totals.add(p)
		if e.JSON || c.Sample == 0 || len(shown) < maxShown {
			shown = append(shown, p)
		}
		if progress != nil {
			progress.Add(1)
		}
	}
	if progress != nil {
		progress.Done("")
	}
	return e.show(map[string]any{"sessions": shown, "totals": totals}, func() {
		switch {
		case len(shown) == 0:
			e.note("no sessions")
		case c.Sample > 0:
			totals.print(e, shown)
		default:
			for i, p := range shown {
				if i > 0 {
					e.say("")
				}
				p.print(e)
			}
		}
	})
}

// sessions returns the names of the sessions to plan on.
func (c *policyTestCmd) sessions(ctx context.Context, st *store.Store, cfg config.Config, file *config.PolicyFile) ([]string, error) {
	if c.Sample == 0 {
		return c.Sessions, nil
	}
	labels := map[string]string{}
	most := c.Sample
	if file != nil {
		for key, value := range file.Match {
			if key != "tenant" && key != "model" {
				labels[key] = value
			}
		}
		most *= 20 // of which the model may rule out most
	}
	rows, err := st.Operator.Sample(ctx, cfg.Tenant, labels, most)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, r := range rows {
		if len(names) < c.Sample && (file == nil || file.Match.Fits(policy.Subject{Tenant: cfg.Tenant, Model: r.Model, Labels: r.Labels})) {
			names = append(names, r.Session)
		}
	}
	return names, nil
}

// preview plans on a session.
func preview(ctx context.Context, e *Env, st *store.Store, cfg config.Config, session string,
	file *config.PolicyFile,
) (previewJSON, error) {
	claim, err := st.Operator.Snapshot(ctx, key(cfg, session))
	if err != nil {
		return previewJSON{}, err
	}
	e.noteUnknown(cfg, claim.Session.Model)
	s := claim.Session
	out := previewJSON{Session: session, Model: s.Model, Policy: s.Policy, Version: s.PolicyVersion, Gone: []worker.Gone{}}
	planner := &worker.Planner{
		Policy: cfg.Policy, Registry: e.Registry, Window: cfg.Models.Window, Logger: slog.New(slog.DiscardHandler), BindsReasoning: tokens.BindsReasoning,
		Counter: func(model string) plan.Counter { return cfg.Models.ForModel(model) },
	}
	planner.Policy.ModelTable = cfg.Models.Version()
	var other *policy.Policy
	if file != nil {
		out.Policy, out.Version, other = file.Name, 0, &file.Policy
	}
	var priced *pricedModel
	if len(cfg.LLM.Models) > 0 {
		priced = &pricedModel{profile: cfg.LLM.Models[0]}
		planner.Model = priced
	}
	p, err := planner.Preview(ctx, st.Worker, claim, other)
	if err != nil {
		return out, fmt.Errorf("session %s: %w", term.Clean(session), err)
	}
	out.Outcome, out.TokensBefore, out.TokensAfter, out.Start, out.Target = p.Outcome, p.Before, p.After, p.Limits.Start, p.Limits.Target
	out.TargetMet, out.MessagesBefore, out.MessagesAfter = p.After <= p.Limits.Target, p.MessagesBefore, p.MessagesAfter
	out.Gone, out.Steps, out.steps = append(out.Gone, p.Gone...), strategies.NewStepCounts(p.Steps), p.Steps
	out.Cache = newRewrite(s.Model, p.Before, p.After, p.Rewritten)
	if priced != nil {
		out.Calls = priced.total(p.Steps)
	}
	return out, nil
}

// pricedModel implements summary.Model without calling a model: it adds up the sizes of calls.
type pricedModel struct {
	profile llm.Profile
	calls   callsJSON
}

var errNotCalled = errors.New("a preview calls no model")

// Complete implements summary.Model.
func (m *pricedModel) Complete(_ context.Context, c llm.Call) (llm.Answer, error) {
	m.calls.Calls++
	m.calls.Input += c.InputTokens
	m.calls.Output += c.MaxTokens + m.profile.ReasoningTokens
	return llm.Answer{}, errNotCalled
}

// Usable implements summary.Model.
func (m *pricedModel) Usable(context.Context) llm.Profile { return m.profile }

// Identity implements summary.Model.
func (m *pricedModel) Identity() string { return m.profile.Name }

// total returns the sum of the calls. Of a summary in parts only the first is asked for
// here; the others are as large.
func (m *pricedModel) total(steps []pipeline.StepResult) callsJSON {
	out, parts := m.calls, 0
	for _, s := range steps {
		if r := stepReport(s); r != nil {
			parts = max(parts, r.Parts)
		}
	}
	if parts > 1 && out.Calls > 0 {
		out.Calls, out.Input, out.Output = out.Calls*parts, out.Input*parts, out.Output*parts
	}
	if out.Calls > 0 {
		out.Name = m.profile.Name
		out.Cost = (float64(out.Input)*m.profile.Price.Input + float64(out.Output)*m.profile.Price.Output) / 1e6
	}
	return out
}

// print writes a session for people.
func (p previewJSON) print(e *Env) {
	e.pairs(append([]pair{
		{"session", p.Session},
		{"model", p.Model},
		{"policy", store.PolicyName(p.Policy, p.Version)},
		{"would end", joined(p.Outcome, outcomeText(store.RunRow{Outcome: p.Outcome}))},
		{"tokens", change(int64(p.TokensBefore), int64(p.TokensAfter))},
		{"target", fmt.Sprintf("%s, %s (start %s)", term.Count(p.Target), p.met(), term.Count(p.Start))},
		{"messages", change(p.MessagesBefore, p.MessagesAfter)},
		{"model calls", p.Calls.String()},
	}, cachePairs(p.Cache)...)...)
	writeSteps(e, p.steps)
	if len(p.Gone) == 0 {
		return
	}
	e.say("")
	columns[worker.Gone]{
		{"reason", term.Text("EXCLUDED BY"), nil},
		{"covered", term.Text("HOW"), func(g worker.Gone) any { return cmp.Or(when(g.Covered, "in a summary or replaced"), "dropped") }},
		{"messages", term.Num("MESSAGES"), nil},
		{"tokens", term.Num("TOKENS"), nil},
	}.write(e, p.Gone)
}

// met reports in words whether the target is met.
func (p previewJSON) met() string { return when(!p.TargetMet, "not ") + "met" }

// String describes the calls, "" for none.
func (c callsJSON) String() string {
	if c.Calls == 0 {
		return ""
	}
	return fmt.Sprintf("%s of %s: %s tokens in, up to %s out, cost up to %.4f", plural(c.Calls, "call"), term.Clean(c.Name),
		term.Count(c.Input), term.Count(c.Output), c.Cost)
}

// maxShown is the number of sessions of a sample that are shown.
const maxShown = 20

// print writes a sample for people: some of its sessions, and the sum.
func (t previewTotalsJSON) print(e *Env, shown []previewJSON) {
	columns[previewJSON]{
		{"session", term.Text("SESSION"), nil},
		{"policy", term.Text("POLICY"), func(p previewJSON) any { return store.PolicyName(p.Policy, p.Version) }},
		{"outcome", term.Text("WOULD END"), nil},
		{"tokens_after", term.Num("TOKENS"), func(p previewJSON) any { return brief(int64(p.TokensBefore), int64(p.TokensAfter)) }},
		{"target_met", term.Num("TARGET"), func(p previewJSON) any { return p.met() }},
	}.write(e, shown)
	if n := t.Sessions - len(shown); n > 0 {
		e.say("and %s more", term.Count(n))
	}
	e.say("")
	e.pairs(
		pair{"sessions", t.Sessions},
		pair{"would end", strings.TrimSpace(listCounts(t.Outcomes))},
		pair{"tokens", fmt.Sprintf("%s, %s less", change(int64(t.TokensBefore), int64(t.TokensAfter)),
			term.Percent(t.TokensBefore-t.TokensAfter, t.TokensBefore))},
		pair{"target met", fmt.Sprintf("%s of %s", term.Count(t.TargetMet), term.Count(t.Sessions))},
		pair{"model calls", t.String()},
	)
}
