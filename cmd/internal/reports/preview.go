package reports

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/sessionstore/compactor/cmd/internal/config"
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

// Preview is a run that was planned and not made.
type Preview struct {
	Session        string                  `json:"session"`
	Model          string                  `json:"model"`
	Policy         string                  `json:"policy"`
	Version        int                     `json:"policy_version,omitempty"` // 0: that of the configuration, or of --file
	Outcome        string                  `json:"outcome"`
	TokensBefore   chat.Tokens             `json:"tokens_before"`
	TokensAfter    chat.Tokens             `json:"tokens_after"`
	Start          chat.Tokens             `json:"start"`
	Target         chat.Tokens             `json:"target"`
	TargetMet      bool                    `json:"target_met"`
	MessagesBefore int64                   `json:"messages_before"`
	MessagesAfter  int64                   `json:"messages_after"`
	Pinned         string                  `json:"pinned,omitempty"` // messages that applications and operators pinned, as ranges
	Gone           []worker.Gone           `json:"gone"`
	Steps          []strategies.StepCounts `json:"steps"`
	Calls          ModelCalls              `json:"model_calls"`
	// Cache is the effect of the change on the provider's prompt cache, if its prices are known.
	Cache *tokens.Rewrite `json:"cache,omitempty"`
	// Kept is the part that the change would keep of the messages that it takes out; nil if it takes nothing out.
	Kept *Kept `json:"kept,omitempty"`
	// Diff is the change of the view. The messages that it writes have ids of the preview alone.
	Diff store.RunDiff `json:"-"`

	Planned []pipeline.StepResult `json:"-"`
}

// ModelCalls is an upper bound for calls of models.
type ModelCalls struct {
	Name   string  `json:"name,omitempty"`
	Calls  int     `json:"calls"`
	Input  int     `json:"input_tokens"`
	Output int     `json:"output_tokens"`
	Cost   float64 `json:"cost"`
}

// Planning is how to preview a run.
type Planning struct {
	Config   config.Config
	Registry *plan.Registry
	// Other is the policy to plan under, in place of that of the session; nil for none.
	Other *policy.Policy
	// Options are those of the run; nil is a dry run over the view.
	Options *store.Options
}

// Preview plans a run over a session and writes nothing. No model is called: an extract stands for its
// summary, and the calls have the most that they may cost.
func (p Planning) Preview(ctx context.Context, st *store.Store, k store.Key) (Preview, error) {
	claim, err := st.Reader.Snapshot(ctx, k)
	if err != nil {
		return Preview{}, err
	}
	if p.Options != nil {
		claim.Options = *p.Options
	}
	s, cfg := claim.Session, p.Config
	out := Preview{Session: k.Session, Model: s.Model, Policy: s.Policy, Version: s.PolicyVersion, Gone: []worker.Gone{}}
	if len(s.Pinned) > 0 {
		out.Pinned = s.Pinned.String()
	}
	planner := &worker.Planner{
		Policy: cfg.Policy, Registry: p.Registry, Window: cfg.Models.Window, Logger: slog.New(slog.DiscardHandler), BindsReasoning: tokens.BindsReasoning,
		Counter: func(model string) plan.Counter { return cfg.Models.ForModel(model) },
	}
	planner.Policy.ModelTable = cfg.Models.Version()
	var priced *pricedModel
	if len(cfg.LLM.Models) > 0 {
		priced = &pricedModel{profile: cfg.LLM.Models[0]}
		planner.Model = priced
	}
	x, err := planner.Preview(ctx, st.Worker, claim, p.Other)
	if err != nil {
		return out, fmt.Errorf("session %s: %w", k.Session, err)
	}
	out.Outcome, out.TokensBefore, out.TokensAfter, out.Start, out.Target = x.Outcome, x.Before, x.After, x.Limits.Start, x.Limits.Target
	out.TargetMet, out.MessagesBefore, out.MessagesAfter = x.After <= x.Limits.Target, x.MessagesBefore, x.MessagesAfter
	out.Gone, out.Steps, out.Planned, out.Diff = append(out.Gone, x.Gone...), append([]strategies.StepCounts{}, strategies.NewStepCounts(x.Steps)...), x.Steps, x.Diff
	out.Cache = NewRewrite(s.Model, x.Before, x.After, x.Rewritten)
	if priced != nil {
		out.Calls = priced.total(x.Steps)
	}
	return out, nil
}

// pricedModel implements summary.Model without calling a model: it adds up the sizes of calls.
type pricedModel struct {
	profile llm.Profile
	calls   ModelCalls
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
func (m *pricedModel) total(steps []pipeline.StepResult) ModelCalls {
	out, parts := m.calls, 0
	for _, s := range steps {
		if r := StepReport(s); r != nil {
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
