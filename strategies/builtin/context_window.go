package builtin

import (
	"context"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
)

// contextWindow keeps a view within a model's context window in two phases with limits of
// their own: it collapses older tool calls into their results, then it drops the oldest
// groups.
type contextWindow struct{ pipeline.Pipeline }

func newContextWindow(a *plan.Args) (plan.Strategy, error) {
	if p, ok := a.Policy(); ok {
		a.Fill("max_context_window_tokens", int(p.Window))
		a.Fill("max_output_tokens", 0)
	}
	window := a.Int(plan.Int{
		Name: "max_context_window_tokens", Required: true, Min: 1,
		Doc: "the model's context window in tokens",
	})
	output := a.Int(plan.Int{
		Name: "max_output_tokens", Required: true, Min: 0,
		Doc: "how many of them are reserved for the answer; less than max_context_window_tokens",
	})
	budget := float64(window - output)
	tool, toolLimit := share(a, "tool_eviction_threshold", 0.5, budget,
		"share of the remaining tokens above which older tool calls are collapsed; above 0")
	all, limit := share(a, "truncation_threshold", 0.8, budget,
		"share of the remaining tokens above which the oldest groups are dropped, down to the other share; not below it")
	keep := keepLastToolCallGroups(a, 4)
	switch {
	case window > 0 && output >= window:
		a.Fault("max_output_tokens", output, "less than max_context_window_tokens (%d)", window)
	case all < tool:
		a.Fault("truncation_threshold", all, "at least tool_eviction_threshold (%g)", tool)
	}
	return &contextWindow{pipeline.Pipeline{Steps: []plan.Strategy{
		pipeline.Pipeline{Target: toolLimit, Steps: []plan.Strategy{&toolResult{keep: keep}}},
		pipeline.Pipeline{Target: limit, Steps: []plan.Strategy{
			&truncation{maxN: int64(limit), compactTo: int64(toolLimit), tokens: true, preserveSystem: true},
		}},
	}}}, nil
}

// share reads a threshold and returns it with the limit it implies.
func share(a *plan.Args, name string, def, budget float64, doc string) (float64, chat.Tokens) {
	f := a.Float(plan.Float{Name: name, Default: def, Min: 0, Max: 1, Doc: doc})
	limit := chat.Tokens(budget * f)
	switch {
	case f == 0:
		a.Fault(name, f, "a number above 0, at most 1")
	case budget > 0 && limit < 1:
		a.Fault(name, f, "a share that allows at least 1 of the remaining %g tokens", budget)
	}
	return f, limit
}

func (*contextWindow) Name() string { return "context_window" }

func (s *contextWindow) Plan(ctx context.Context, t *plan.Transcript) (chat.Plan, error) {
	return pipeline.PlanStages(ctx, t, s)
}
