package worker

import (
	"strings"
	"testing"

	"github.com/sessionstore/compactor/store"
)

// Beyond a limit automatic and requested runs ask no model, and say so. Operators may.
func TestNoModelIsAskedBeyondALimitOfSpending(t *testing.T) {
	t.Parallel()
	f, server := modelled(t, database(t), modelPolicy())
	calls := int64(1)
	if err := f.store.LimitSpending(t.Context(), store.SpendingLimit{CallsPerHour: &calls}); err != nil {
		t.Fatal(err)
	}
	if row := f.run(f.event()); row.Outcome != OutcomeApplied || server.Calls() != 1 {
		t.Fatalf("below the limit: %s after %d requests", row.Outcome, server.Calls())
	}
	f.talk("other", 20)
	automatic := f.run(f.sweep()[0])
	requested, err := f.store.Request(t.Context(), key("other"), store.TriggerApplication, "test", store.Options{From: "view"})
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]store.RunRow{"automatic": automatic, "requested": f.run(requested)} {
		if row.Outcome != OutcomeNoSummary || !strings.Contains(string(row.Steps), `"no_summary": "spending_limit"`) {
			t.Errorf("%s: %s %s", name, row.Outcome, row.Steps)
		}
	}
	if server.Calls() != 1 {
		t.Errorf("%d requests, want those below the limit", server.Calls())
	}
	asked := f.operator("other", store.Options{From: "view"})
	// As nothing was paid, the session does not wait longer each time.
	if claim, err := f.store.Load(t.Context(), asked); err != nil || claim.Session.IneffectiveRuns != 0 {
		t.Errorf("%d ineffective runs, %v", claim.Session.IneffectiveRuns, err)
	}
	if row := f.run(asked); row.Outcome != OutcomeApplied || server.Calls() != 2 {
		t.Errorf("an operator's run ended %s after %d requests", row.Outcome, server.Calls())
	}
	f.sound()
}
