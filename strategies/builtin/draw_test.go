package builtin

import (
	"context"
	"errors"
	"math/rand/v2"

	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/plan"
)

// drawSummarizer draws one that writes something, nothing, or fails.
func drawSummarizer(t *rapid.T) plan.Summarizer {
	answer := rapid.SampledFrom([]string{"what was said", "what was said", " \n", "", "!"}).Draw(t, "summary")
	return plan.Func(func(context.Context, plan.Request) (string, error) {
		if answer == "!" {
			return "", errors.New("no answer")
		}
		return answer, nil
	})
}

// drawStrategy draws a registered strategy, one of the names if there are any, with
// parameters drawn by their description.
func drawStrategy(t *rapid.T, names ...string) plan.Strategy {
	registry := Registry().With(drawSummarizer(t))
	if len(names) == 0 {
		names = registry.Names()
	}
	name := rapid.SampledFrom(names).Draw(t, "strategy")
	seed := rapid.Uint64().Draw(t, "parameters")
	random := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 24)})
	var err error
	for range 100 { // some parameters are not allowed together
		d := make(dice, 100)
		_, _ = random.Read(d)
		var s plan.Strategy
		if s, err = registry.New(name, d.params(registry, name, 0)); err == nil {
			return s
		}
	}
	t.Fatalf("no parameters for %s: %v", name, err)
	return nil
}
