package builtin

import (
	"context"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
)

// contextWindow keeps a view within a model's context window in two phases with limits of
// their own: first it collapses older tool calls into their results, then it drops the
// oldest groups.
type contextWindow struct{ phases [2]phase }

// phase is a strategy that runs if the view has more than limit tokens.
type phase struct {
	limit    chat.Tokens
	strategy plan.Strategy
}

func newContextWindow(a *plan.Args) (plan.Strategy, error) {
	if p, ok := a.Policy(); ok {
		a.Fill("max_context_window_tokens", int(p.Window))
		a.Fill("max_output_tokens", 0)
	}
	window := a.Int(plan.Int{
		Name: "max_context_window_tokens", Required: true, Min: 1,
		Doc: "how many tokens the model takes in all",
	})
	output := a.Int(plan.Int{
		Name: "max_output_tokens", Required: true, Min: 0,
		Doc: "how many of them are kept free for the answer; less than max_context_window_tokens",
	})
	budget := float64(window - output)
	tool, toolLimit := share(a, "tool_eviction_threshold", 0.5, budget,
		"the share of what is left above which older tool calls are collapsed; above 0")
	all, limit := share(a, "truncation_threshold", 0.8, budget,
		"the share of what is left above which the oldest groups go, down to the other one; not below it")
	keep := keepLastToolCallGroups(a, 4)
	switch {
	case window > 0 && output >= window:
		a.Fault("max_output_tokens", output, "less than max_context_window_tokens (%d)", window)
	case all < tool:
		a.Fault("truncation_threshold", all, "at least tool_eviction_threshold (%g)", tool)
	}
	evict := &toolResult{keep: keep}
	truncate := &truncation{maxN: int64(limit), compactTo: int64(toolLimit), tokens: true, preserveSystem: true}
	return &contextWindow{phases: [2]phase{{toolLimit, evict}, {limit, truncate}}}, nil
}

// share reads a threshold and returns it with the limit it implies.
func share(a *plan.Args, name string, def, budget float64, doc string) (float64, chat.Tokens) {
	f := a.Float(plan.Float{Name: name, Default: def, Min: 0, Max: 1, Doc: doc})
	limit := chat.Tokens(budget * f)
	switch {
	case f == 0:
		a.Fault(name, f, "a number above 0, at most 1")
	case budget > 0 && limit < 1:
		a.Fault(name, f, "a share of the %g tokens that are left for the context that is at least 1", budget)
	}
	return f, limit
}

// Name implements Strategy.
func (*contextWindow) Name() string { return "context_window" }

// Reads implements plan.Reader for the phases that apply to the transcript.
func (s *contextWindow) Reads(t *plan.Transcript) []chat.Seq {
	var out []chat.Seq
	for _, p := range s.phases {
		r, ok := p.strategy.(plan.Reader)
		if _, tokens := t.Included(); ok && tokens > p.limit {
			out = append(out, r.Reads(t)...)
		}
	}
	return out
}

// Plan implements Strategy.
func (s *contextWindow) Plan(ctx context.Context, t *plan.Transcript) (chat.Plan, error) {
	return pipeline.PlanStages(ctx, t, s)
}

// Stage implements pipeline.Stager.
func (s *contextWindow) Stage(ctx context.Context, d *pipeline.Draft, load plan.Loader) error {
	for _, p := range s.phases {
		if d.Within(p.limit) {
			continue
		}
		if _, err := d.Run(ctx, p.strategy, load); err != nil {
			return err
		}
	}
	return nil
}
