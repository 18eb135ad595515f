package eval_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/cmd/internal/dev/eval"
	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
)

// At the limits of a policy, what a worker discards or does not start changes nothing.
func TestPoliciesAtTheirOwnLimits(t *testing.T) {
	t.Parallel()
	in := eval.Input{Model: "gpt-4o"}
	for i := range 40 { // 60 tokens each
		in.Messages = append(in.Messages, say(chat.RoleUser, "question %d %s", i, strings.Repeat("word ", 45)), say(chat.RoleAssistant, "answer %d %s", i, strings.Repeat("word ", 45)))
	}
	whole := in.Size.Total(in.Messages)
	base := policy.Default()
	base.StartTokens, base.TargetTokens, base.MinGainTokens = 1000, 500, 50
	base.Pipeline = []policy.Step{{Strategy: "truncation"}}
	for name, c := range map[string]struct {
		change   func(p *policy.Policy)
		from, to float64
	}{
		"from the start to the target": {func(*policy.Policy) {}, 400, 1000},
		"below the start":              {func(p *policy.Policy) { p.StartTokens, p.TargetTokens = 9000, 500 }, whole, whole},
		"the window of the model":      {func(p *policy.Policy) { p.StartTokens, p.TargetTokens = 0, 0 }, whole, whole},
		"a smaller window": {func(p *policy.Policy) {
			p.StartTokens, p.TargetTokens, p.WindowTokens, p.Windows = 0, 0, 0, map[string]chat.Tokens{"gpt-4o": 2000}
		}, 900, 1500},
		"too little to save":            {func(p *policy.Policy) { p.MinGainTokens = 100_000 }, whole, whole},
		"a service manages the history": {func(p *policy.Policy) { p.Guards.ServiceManaged = true }, whole, whole},
		"a trigger that holds earlier":  {func(p *policy.Policy) { p.Triggers = triggers("messages > 10") }, 400, 800},
		"a trigger that does not hold":  {func(p *policy.Policy) { p.Triggers = triggers("idle >= 1 * hour") }, whole, whole},
	} {
		p := base
		c.change(&p)
		pipeline, err := eval.Pipeline(name, p, eval.Build{Registry: builtin.Registry()})
		if err != nil {
			t.Fatal(err)
		}
		kept, err := pipeline.Own(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if got := in.Size.Total(kept.Messages); got < c.from || got > c.to {
			t.Errorf("%s: %v tokens of %v, want %v to %v", name, got, whole, c.from, c.to)
		}
	}
	r, err := eval.Run(t.Context(), sequence(talks(10)), eval.Options{Cuts: []float64{0.5}, OwnLimits: true, Policies: []eval.Policy{pipelineOf(t, base)}})
	if err != nil || len(r.Figures) != 1 || *r.Figures[0].TokensKept != 1 || r.Figures[0].Limit() != "of the policy" {
		t.Errorf("%v, %+v", err, r)
	}
}

func pipelineOf(t *testing.T, p policy.Policy) eval.Policy {
	t.Helper()
	out, err := eval.Pipeline("own", p, eval.Build{Registry: builtin.Registry()})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func triggers(when ...string) []policy.Trigger {
	var out []policy.Trigger
	for i, w := range when {
		out = append(out, policy.Trigger{Name: fmt.Sprint(i), When: policy.When(w)})
	}
	return out
}
