package cli

import (
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/plan"
)

func TestStrategies(t *testing.T) {
	t.Parallel()
	all := builtin.Registry().Describe()
	list := invoke(t, nil, "strategies").want(t, 0)
	for _, s := range all {
		if !strings.Contains(list.stdout, s.Name+"\n") {
			t.Errorf("the list lacks %s", s.Name)
		}
		one := invoke(t, nil, "strategies", s.Name).want(t, 0)
		for _, p := range s.Params {
			if !strings.Contains(one.stdout, "    "+p.Name+"\n        "+p.Type+"; ") {
				t.Errorf("%s lacks the parameter %s:\n%s", s.Name, p.Name, one.stdout)
			}
		}
	}
	golden(t, "strategies_sliding_window", invoke(t, nil, "strategies", "sliding_window").want(t, 0).stdout)
	got := decode[struct{ Strategies []plan.Info }](t, invoke(t, nil, "strategies", "token_budget", "--json").want(t, 0))
	if len(got.Strategies) != 1 || got.Strategies[0].Name != "token_budget" || len(got.Strategies[0].Params) == 0 {
		t.Errorf("--json: %+v", got)
	}
	invoke(t, nil, "strategies", "slidng_window").want(t, exitUsage, `unknown strategy "slidng_window", did you mean sliding_window?`)
	invoke(t, nil, "strategies", "sliding").want(t, exitUsage, `unknown strategy "sliding", want one of`, "sliding_window")
}
