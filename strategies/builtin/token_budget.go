package builtin

import (
	"context"
	"fmt"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
)

// reasonFallbackStrict is the reason of system messages that the fallback drops.
const reasonFallbackStrict = "token_budget_fallback_strict"

// tokenBudget runs strategies until the view is within a budget, then drops the oldest
// groups if it still is not.
type tokenBudget struct {
	budget    chat.Tokens
	steps     []plan.Strategy
	earlyStop bool
	// fallback drops the oldest groups.
	fallback plan.Strategy
}

func newTokenBudget(a *plan.Args) (plan.Strategy, error) {
	if p, ok := a.Policy(); ok {
		a.Fill("token_budget", int(p.Target))
	}
	budget := chat.Tokens(a.Int(plan.Int{
		Name: "token_budget", Required: true, Min: plan.MinInt,
		Doc: "how many tokens the view may have",
	}))
	return &tokenBudget{
		budget: budget, fallback: dropOldest(budget),
		steps:     a.Strategies("strategies", "strategies to run in this order before the oldest groups are dropped"),
		earlyStop: a.Bool("early_stop", true, "skip the remaining strategies once the view is within the budget"),
	}, nil
}

func (*tokenBudget) Name() string { return "token_budget" }

func (s *tokenBudget) Plan(ctx context.Context, t *plan.Transcript) (chat.Plan, error) {
	return pipeline.PlanStages(ctx, t, s)
}

// Stage implements pipeline.Stager.
func (s *tokenBudget) Stage(ctx context.Context, d *pipeline.Draft, load plan.Loader) error {
	if d.Within(s.budget) {
		return nil
	}
	for i, step := range s.steps {
		if _, err := d.Run(ctx, step, load); err != nil {
			return fmt.Errorf("strategies[%d]: %w", i, err)
		}
		if s.earlyStop && d.Within(s.budget) {
			return nil
		}
	}
	_, err := d.Run(ctx, s.fallback, load)
	return err
}

// dropOldest drops the oldest groups until the view is within the budget, system messages
// last.
type dropOldest chat.Tokens

func (dropOldest) Name() string { return "token_budget" }

func (s dropOldest) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) {
	system := func(i int) bool { return t.Groups()[i].Kind == chat.GroupSystem }
	var others, systems plan.SeqSet
	_, size := t.Included()
	size = t.DropOldest(&others, size, chat.Tokens(s), func(i int) bool { return !system(i) })
	t.DropOldest(&systems, size, chat.Tokens(s), system)
	p := others.Exclude(pipeline.ReasonFallback)
	p.Exclude = append(p.Exclude, systems.Exclude(reasonFallbackStrict).Exclude...)
	return p, nil
}
