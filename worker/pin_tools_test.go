package worker

import (
	"testing"

	"github.com/sessionstore/compactor/store"
)

// The tool of these sessions is called look.
func TestPinnedToolsStayInTheView(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		tools   []string
		slow    bool
		outcome string
		view    string
	}{
		"no tool is pinned":   {nil, false, OutcomeApplied, "uauaua"},
		"another tool is":     {[]string{"load_policy"}, true, OutcomeApplied, "uauaua"},
		"the tool is pinned":  {[]string{"load_policy", "look"}, true, OutcomeApplied, "ctuaua"},
		"and what is with it": {[]string{"look"}, true, OutcomeApplied, "ctuaua"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := testPolicy()
			p.Pipeline, p.PinTools = p.Pipeline[1:], tt.tools // truncation, which reads nothing itself
			f := setupWith(t, database(t), p, Config{})
			f.append("s", "uctauauauaua")
			id := f.event()
			claim := must(f.store.Worker.Load(t.Context(), id))(t)
			if got := f.w.planner.needsClaim(f.w.planner.newRunContext(claim, namedPolicy{policy: f.w.planner.Policy})); got != tt.slow {
				t.Errorf("slow: %v", got)
			}
			row := f.run(id)
			if row.Outcome != tt.outcome {
				t.Errorf("outcome %s, want %s", row.Outcome, tt.outcome)
			}
			if got := f.view("s"); got != tt.view {
				t.Errorf("view %s, want %s", got, tt.view)
			}
			f.run(f.operator("s", store.Options{AllowGrowth: true}))
			if got := f.view("s"); got != tt.view {
				t.Errorf("view %s after another run, want %s", got, tt.view)
			}
		})
	}
}
