package strategies_test

import (
	"testing"

	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/summary"
)

// The default and all presets keep instructions; a pipeline that reads no messages does so only
// with pins of its own.
func TestPoliciesPinInstructions(t *testing.T) {
	t.Parallel()
	pinned := func(p policy.Policy) int {
		b, _, err := strategies.Build(builtin.Registry(), p, policy.Limits{Window: 1000, Start: 700, Target: 500}, summary.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return len(b.PinPaths)
	}
	all := len(policy.Default().PinPaths)
	if n := pinned(policy.Default()); n == 0 || n != all {
		t.Errorf("the default pins %d of %d patterns", n, all)
	}
	for _, preset := range policy.Presets() {
		if n := pinned(preset.Over(policy.Default())); n != all {
			t.Errorf("%s pins %d of %d patterns", preset.Name, n, all)
		}
	}
	p := policy.Default()
	p.Pipeline = []policy.Step{{Strategy: "truncation"}}
	if n := pinned(p); n != 0 || p.PinsAnyway() {
		t.Errorf("a truncation pins %d patterns", n)
	}
	p.PinPaths = []string{"RULES.md"}
	if n := pinned(p); n != 1 || !p.PinsAnyway() {
		t.Errorf("with pins of its own, a truncation pins %d patterns", n)
	}
}
