package eval

import (
	"cmp"
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

// Input holds the messages for a policy to compact.
type Input struct {
	// Session is the name of the session.
	Session string
	// Model is the model of the session, if it has one.
	Model string
	// Messages holds the messages before the cut, or those of a round, which a policy must not
	// change.
	Messages []chat.Message
	// Previous is the text to update, for a Policy that does, and Log everything up to now that
	// it covers, the messages included.
	Previous string
	Log      []chat.Message
	// Budget limits the kept tokens, measured by Size, without system messages.
	Budget float64
	Size   retention.Sizer
}

// Kept holds the result of a policy.
type Kept struct {
	// Messages holds the kept messages, system messages included.
	Messages []chat.Message
	Usage
}

// Usage holds the model calls made for a result.
type Usage struct {
	Calls int `json:"calls"`
	// Failed is the number of calls without an answer.
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

// Policy is a compaction method to measure.
type Policy struct {
	Name string
	// Doc describes the policy in one line.
	Doc string
	// Definition identifies everything besides the input that the result depends on.
	// Measurements stored under another definition are not used.
	Definition string
	// Updates reports that Keep returns one text, after the system messages, and updates that of
	// an earlier round. Others compact what an earlier round kept, unless they have Grow.
	Updates bool
	// Grow, if set, compacts a session that grows by parts, each time within the budget, in
	// place of several calls of Keep. It must be safe for concurrent use, too.
	Grow func(ctx context.Context, in Input, parts [][]chat.Message) (Kept, error)
	// Own, if set, compacts a session that grows as a worker does at the limits of the policy,
	// whatever the budget. It must be safe for concurrent use, too.
	Own func(ctx context.Context, in Input) (Kept, error)
	// Keep must be safe for concurrent use. After an error, the session is counted as
	// failed and left out of the figures of this policy.
	Keep func(ctx context.Context, in Input) (Kept, error)
}

// Baselines returns the baselines of package retention as policies.
func Baselines() []Policy {
	baseline := func(b retention.Baseline, of func(session string) retention.Baseline) Policy {
		return Policy{
			Name: b.Name, Doc: b.Doc, Definition: "baseline/1 " + b.Name,
			Keep: func(_ context.Context, in Input) (Kept, error) {
				return Kept{Messages: of(in.Session).Keep(in.Messages, in.Budget, in.Size)}, nil
			},
		}
	}
	var out []Policy
	for _, b := range retention.Baselines() {
		out = append(out, baseline(b, func(string) retention.Baseline { return b }))
	}
	return append(out, baseline(retention.Random(""), retention.Random))
}

// Summary returns a policy that keeps the system messages and one message with the text
// that write returns, given the text of an earlier round as Input.Previous. definition
// identifies everything besides the input that the text depends on.
func Summary(name, doc, definition string, write func(ctx context.Context, in Input) (string, Usage, error)) Policy {
	return Policy{Name: name, Doc: doc, Definition: "summary/2 " + definition, Updates: true, Keep: func(ctx context.Context, in Input) (Kept, error) {
		text, usage, err := write(ctx, in)
		if err != nil {
			return Kept{}, err
		}
		return Kept{append(systems(in.Messages), said(text)), usage}, nil
	}}
}

// said returns the message of a summary.
func said(text string) chat.Message {
	return chat.Message{Role: chat.RoleAssistant, Content: chat.TextContent(text)}
}

// Fit returns the text that write returns for as many tokens of four characters as the budget
// has room for, "" if even that for one has too many.
func (in *Input) Fit(write func(tokens int) string) string {
	for n := int(in.Budget); n > 0; {
		text := write(n)
		m := said(text)
		size := in.Size.Message(&m)
		if size <= in.Budget {
			return text
		}
		n = min(n-1-n/64, int(float64(n)*in.Budget/size))
	}
	return ""
}

// Build holds the dependencies of pipelines.
type Build struct {
	// Registry creates the steps.
	Registry *plan.Registry
	// Model writes summaries; if nil, they are extracts.
	Model summary.Model
	// Version is the version of the program. It is part of the definition because another
	// version may implement a strategy differently.
	Version string
}

// Pipeline returns a policy that runs the pipeline of p. The target is the budget plus the
// system messages, counted as the measure counts; the window is derived from the target
// with p's ratio of target to window. With p.Fallback, the oldest groups are removed if the
// steps end above the target. At its own limits, it does what automatic runs of a worker do (see
// automatic). Pipeline returns an error for an invalid step.
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
		PinPaths []string
		Summary  policy.Summary
		Model    string
		Version  string
		Own      string
	}{p.Pipeline, share(p), p.Fallback, p.PreserveSystem, p.PinTools, p.PinPaths, p.Summary, model, b.Version, p.FleetHash()})
	if err != nil {
		return Policy{}, fmt.Errorf("policy %s: %w", name, err)
	}
	if _, _, err := pipelineOf(p, b, 10_000); err != nil {
		return Policy{}, fmt.Errorf("policy %s: %w", name, err)
	}
	grow := func(ctx context.Context, in Input, parts [][]chat.Message) (Kept, error) {
		var kept Kept
		c := strategies.NewConversation(strategies.Options{
			Counter: in.Size.Whole(), FreeReasoning: true, // nothing is sent to a model
		})
		target := chat.Tokens(in.Budget)
		for _, part := range parts {
			c.Append(part...)
			for _, m := range systems(part) {
				target += in.Size.Whole().Message(&m)
			}
			run, writers, err := pipelineOf(p, b, max(1, target))
			if err == nil {
				_, err = c.Compact(ctx, run)
			}
			if err != nil {
				return kept, err
			}
			for _, w := range writers {
				if w != nil {
					kept.add(UsageOf(w.Provenance()))
				}
			}
		}
		kept.Messages = c.View()
		return kept, nil
	}
	own := func(ctx context.Context, in Input) (Kept, error) { return ownLimits(ctx, p, b, in) }
	return Policy{Name: name, Definition: "pipeline/2 " + string(definition), Grow: grow, Own: own, Keep: func(ctx context.Context, in Input) (Kept, error) {
		return grow(ctx, in, [][]chat.Message{in.Messages})
	}}, nil
}

// share returns the ratio of the target of p to its window.
func share(p policy.Policy) float64 {
	if p.StartTokens > 0 {
		return float64(p.TargetTokens) / float64(cmp.Or(p.WindowTokens, policy.FallbackWindow))
	}
	return p.Target
}

// pipelineOf returns the pipeline of p for a target and the writers of its summaries.
func pipelineOf(p policy.Policy, b Build, target chat.Tokens) (pipeline.Pipeline, strategies.Writers, error) {
	window := chat.Tokens(math.Ceil(float64(target) / share(p)))
	limits := policy.Limits{Window: window, Start: min(window, target+1), Target: target}
	return strategies.Build(b.Registry, p, limits, summary.Options{Model: b.Model, Manual: true})
}

// UsageOf returns the model calls of a summary; r may be nil.
func UsageOf(r *summary.Provenance) Usage {
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
