package worker

import (
	"strings"
	"testing"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
)

// The messages that the runs in work read together stay within a budget; a run that reads more has
// all of it.
func TestRunsReadWithinABudget(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		budget int64
		alone  bool
	}{"a large run": {100, true}, "a small one": {1 << 30, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			f.w = New(f.store, testPlanner(testPolicy()), Config{ReadBudget: policy.Bytes(tt.budget)})
			f.append("s", "suauctauauauaua")
			reached := false
			f.w.failpoint = func(step string) {
				if step != stepPlanned {
					return
				}
				reached = true
				octets := f.w.config.ReadBudget
				if free := f.w.reading.TryAcquire(1); free == tt.alone {
					t.Errorf("of a budget of %s there is room for another run: %v", octets, free)
				} else if free {
					f.w.reading.Release(1)
				}
				if f.w.reading.TryAcquire(tt.budget) {
					t.Error("the run takes nothing of the budget")
				}
			}
			if row := f.run(f.operator("s", store.Options{})); row.Outcome != OutcomeApplied || !reached {
				t.Fatalf("%s, %s", row.Outcome, row.Error)
			}
			if !f.w.reading.TryAcquire(tt.budget) {
				t.Error("the budget is not given back")
			}
			// A worker that stops does not wait for it.
			f.append("s", strings.Repeat("ua", 10))
			f.w.drain()
			if row := f.run(f.operator("s", store.Options{})); row.Status != "queued" || row.ErrorCode != "stopping" {
				t.Errorf("%s, %s, want it back in the queue", row.Status, row.ErrorCode)
			}
		})
	}
}
