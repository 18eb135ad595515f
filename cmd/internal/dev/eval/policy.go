package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"github.com/sessionstore/compactor/cmd/internal/dev/retention"
	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/summary"
)

// Input is what a policy has to compact.
type Input struct {
	// Model is the session's, "" for none.
	Model string
	// Messages are those before the cut. They must not be changed.
	Messages []chat.Message
	// Budget is how many tokens may be kept, as retention.Tokens counts them, not
	// counting system messages, which are kept for free.
	Budget float64
}

// Kept is what a policy made of it.
type Kept struct {
	// Messages are those that are kept, system messages among them.
	Messages []chat.Message
	Usage
}

// Usage is what models were asked for that.
type Usage struct {
	Calls int `json:"calls"`
	// Failed are the calls of these that gave no answer.
	Failed       int     `json:"failed_calls"`
	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	Cost         float64 `json:"cost"`
}

func (u *Usage) add(v Usage) {
	u.Calls += v.Calls
	u.Failed += v.Failed
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	u.Cost += v.Cost
}

// Policy is one way of compacting that is measured.
type Policy struct {
	Name string
	// Doc is one line, for people.
	Doc string
	// Definition says all that the result depends on besides the input. What was
	// measured under another one is measured again.
	Definition string
	// Keep is called concurrently. An error leaves the session out of this policy's
	// figures, and is counted.
	Keep func(ctx context.Context, in Input) (Kept, error)
}

// Baselines returns the policies of package retention.
func Baselines() []Policy {
	var out []Policy
	for _, b := range retention.Baselines() {
		out = append(out, Policy{
			Name: b.Name, Doc: b.Doc, Definition: "baseline/1 " + b.Name,
			Keep: func(_ context.Context, in Input) (Kept, error) {
				return Kept{Messages: b.Keep(in.Messages, in.Budget)}, nil
			},
		})
	}
	return out
}

// Summary returns the policy that keeps one message, the text that write makes of the
// input, and the system messages. definition names everything the text depends on:
// whoever changes how it is made changes that.
func Summary(name, doc, definition string, write func(ctx context.Context, in Input) (string, Usage, error)) Policy {
	return Policy{Name: name, Doc: doc, Definition: "summary/1 " + definition, Keep: func(ctx context.Context, in Input) (Kept, error) {
		text, usage, err := write(ctx, in)
		if err != nil {
			return Kept{}, err
		}
		kept := Kept{Usage: usage}
		for i := range in.Messages {
			if r := in.Messages[i].Role; r == chat.RoleSystem || r == chat.RoleDeveloper {
				kept.Messages = append(kept.Messages, in.Messages[i])
			}
		}
		kept.Messages = append(kept.Messages, chat.Message{Role: chat.RoleAssistant, Content: chat.TextContent(text)})
		return kept, nil
	}}
}

// Build is what pipelines are made with.
type Build struct {
	// Registry makes the steps.
	Registry *plan.Registry
	// Model writes summaries, if the registry has no summarizer; without one they are
	// extracts.
	Model summary.Model
	// Version is that of the program: another one may have other strategies under the
	// same names, so what it measured does not count.
	Version string
}

// Pipeline returns the policy that runs the pipeline of p. Its target is the budget and
// the system messages, counted as the measure counts; the window, for strategies
// that go by it, is the one of which that target is p's own share. p says whether
// the oldest groups go where the steps end above the target. The error names what is
// wrong with a step.
func Pipeline(name string, p policy.Policy, b Build) (Policy, error) {
	model := ""
	if b.Model != nil {
		model = b.Model.Identity()
	}
	definition, err := json.Marshal(struct {
		Steps    []policy.Step
		Share    float64
		Fallback bool
		System   bool
		PinTools []string
		Summary  policy.Summary
		Model    string
		Version  string
	}{p.Pipeline, share(p), p.Fallback, p.PreserveSystem, p.PinTools, p.Summary, model, b.Version})
	if err != nil {
		return Policy{}, fmt.Errorf("policy %s: %w", name, err)
	}
	if _, _, err := pipelineOf(p, b, 10_000); err != nil {
		return Policy{}, fmt.Errorf("policy %s: %w", name, err)
	}
	return Policy{Name: name, Definition: "pipeline/1 " + string(definition), Keep: func(ctx context.Context, in Input) (Kept, error) {
		var kept Kept
		target := chat.Tokens(in.Budget)
		for i := range in.Messages {
			if r := in.Messages[i].Role; r == chat.RoleSystem || r == chat.RoleDeveloper {
				target += retention.Counter{}.Message(&in.Messages[i])
			}
		}
		run, writers, err := pipelineOf(p, b, max(1, target))
		if err != nil {
			return kept, err
		}
		c, err := strategies.Compact(ctx, in.Messages, run, strategies.Options{Counter: retention.Counter{}})
		kept.Messages = c.Messages
		for _, w := range writers {
			if w != nil {
				kept.add(UsageOf(w.Report()))
			}
		}
		return kept, err
	}}, nil
}

// share returns what the target of p is of its window.
func share(p policy.Policy) float64 {
	if p.StartTokens > 0 {
		return float64(p.TargetTokens) / float64(p.StartTokens)
	}
	return p.Target
}

// pipeline returns the pipeline of p towards a target, with the writers of its summaries.
func pipelineOf(p policy.Policy, b Build, target chat.Tokens) (pipeline.Pipeline, strategies.Writers, error) {
	window := chat.Tokens(math.Ceil(float64(target) / share(p)))
	limits := policy.Limits{Window: window, Start: min(window, target+1), Target: target}
	return strategies.Build(b.Registry, p, limits, summary.Options{Model: b.Model, Manual: true})
}

// UsageOf returns what a summary took.
func UsageOf(r *summary.Report) Usage {
	var u Usage
	if r == nil {
		return u
	}
	for _, c := range r.Calls {
		u.Calls++
		if c.Failed != "" {
			u.Failed++
		}
		u.InputTokens += c.Input
		u.OutputTokens += c.Output
		u.Cost += float64(c.CostMicros) / 1e6
	}
	return u
}
