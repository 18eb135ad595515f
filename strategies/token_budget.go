package strategies

import (
	"context"
	"fmt"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Reasons of the deterministic fallback.
const (
	reasonFallbackStrict = "token_budget_fallback_strict"
)

// tokenBudget runs strategies until the view is within a budget and drops the
// oldest groups if it is not by then.
type tokenBudget struct {
	budget    chat.Tokens
	steps     []Strategy
	earlyStop bool
}

func newTokenBudget(a *Args) (Strategy, error) {
	if p, ok := a.Policy(); ok {
		a.Fill("token_budget", int(p.Target))
	}
	return &tokenBudget{
		budget: chat.Tokens(a.Int(Int{
			Name: "token_budget", Required: true, Min: MinInt,
			Doc: "how many tokens the view may have",
		})),
		steps:     a.Strategies("strategies", "what is tried in this order before the oldest groups go"),
		earlyStop: a.Bool("early_stop", true, "skip what is left once the view is within the budget"),
	}, nil
}

// Name implements Strategy.
func (*tokenBudget) Name() string { return "token_budget" }

// Reads implements Reader: what the strategies it is made of would read of this
// transcript. A pipeline does better: it loads for each of them as its turn comes.
func (s *tokenBudget) Reads(t *Transcript) []chat.Seq {
	if _, tokens := t.Included(); tokens <= s.budget {
		return nil
	}
	var out []chat.Seq
	for _, step := range s.steps {
		if r, ok := step.(Reader); ok {
			out = append(out, r.Reads(t)...)
		}
	}
	return out
}

// Plan implements Strategy.
func (s *tokenBudget) Plan(ctx context.Context, t *Transcript) (chat.Plan, error) {
	return planStages(ctx, t, s)
}

// stage implements stager.
func (s *tokenBudget) stage(ctx context.Context, d *Draft, load Loader) error {
	if d.within(s.budget) {
		return nil
	}
	for i, step := range s.steps {
		if _, err := d.Run(ctx, step, load); err != nil {
			return fmt.Errorf("strategies[%d]: %w", i, err)
		}
		if s.earlyStop && d.within(s.budget) {
			return nil
		}
	}
	s.fallback(d)
	return nil
}

// fallback drops the oldest groups until the view is within the budget, system
// messages only when nothing else is left.
func (s *tokenBudget) fallback(d *Draft) {
	t := d.Transcript()
	system := func(i int) bool { return t.Groups()[i].Kind == chat.GroupSystem }
	var others, systems seqSet
	_, size := t.Included()
	size = t.dropOldest(&others, size, s.budget, func(i int) bool { return !system(i) })
	t.dropOldest(&systems, size, s.budget, system)
	plan := others.exclude(reasonFallback)
	plan.Exclude = append(plan.Exclude, systems.exclude(reasonFallbackStrict).Exclude...)
	d.Apply(plan, s.Name())
}
