package worker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
)

// The small runs in work read no more together than half of the budget; of large ones, one is in work.
func TestRunsReadWithinABudget(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		budget int64
		large  bool
	}{"a large run": {100, true}, "a small one": {1 << 30, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			f.w = New(f.store.Worker, testPlanner(testPolicy()), Config{ReadBudget: policy.Bytes(tt.budget)})
			taken, other, all, none := f.w.small, f.w.large, tt.budget/2, int64(1)
			if tt.large {
				taken, other, all, none = f.w.large, f.w.small, 1, tt.budget/2
			}
			f.append("s", "suauctauauauaua")
			reached := false
			f.w.failpoint = func(step string) {
				if step != stepPlanned {
					return
				}
				reached = true
				if taken.TryAcquire(all) {
					t.Error("the run takes nothing of the budget")
				}
				if !other.TryAcquire(none) {
					t.Error("the run takes of the budget of other runs")
				} else {
					other.Release(none)
				}
			}
			if row := f.run(f.operator("s", store.Options{})); row.Outcome != OutcomeApplied || !reached {
				t.Fatalf("%s, %s", row.Outcome, row.Error)
			}
			if !taken.TryAcquire(all) {
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

// hurried is a context whose deadline is always near and never comes: a small run waits for a quarter of the time left.
type hurried struct{ context.Context }

func (hurried) Deadline() (time.Time, bool) { return time.Now().Add(40 * time.Millisecond), true }

// A run that finds no room returns to the queue, however often, without a failure, and says why it waits.
func TestARunWithoutRoomWaitsInTheQueue(t *testing.T) {
	t.Parallel()
	for name, budget := range map[string]policy.Bytes{"a large run": 100, "a small one": 1 << 30} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			f.w = New(f.store.Worker, testPlanner(testPolicy()), Config{ReadBudget: budget})
			f.append("s", "suauctauauauaua")
			run := f.operator("s", store.Options{})
			places, all := f.w.small, int64(budget/2)
			if budget == 100 {
				places, all = f.w.large, 1
			}
			if !places.TryAcquire(all) {
				t.Fatal("no room from the beginning")
			}
			f.must(f.w.execute(hurried{t.Context()}, run))
			row := f.row(run)
			if row.Status != "queued" || row.ErrorCode != store.CodeReadBudget || row.Failures != 0 || row.Snoozes != 0 {
				t.Errorf("%s, %s, %d failures, %d snoozes", row.Status, row.ErrorCode, row.Failures, row.Snoozes)
			}
			held, err := f.store.Operator.HeldBack(t.Context(), "")
			if err != nil || !slices.ContainsFunc(held, func(h store.Held) bool { return h.Reason == store.CodeReadBudget }) {
				t.Errorf("held back: %v, %v", held, err)
			}
			places.Release(all)
			if row := f.run(run); row.Outcome != OutcomeApplied {
				t.Errorf("with room: %s, %s", row.Outcome, row.Error)
			}
		})
	}
	if v := classify(errReadBudget, 0, maxSnoozes); v.action != snooze {
		t.Errorf("after %d waits: %+v", maxSnoozes, v)
	}
}

// A run reads the whole log if it plans from it, and otherwise the view and what has to come back to it.
func TestARunReservesWhatItReads(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.append("s", "suauctauauauaua")
	if row := f.run(f.operator("s", store.Options{})); row.Outcome != OutcomeApplied {
		t.Fatalf("%s, %s", row.Outcome, row.Error)
	}
	f.pin("s-3") // no longer in the view
	reserved := func(o store.Options) int64 {
		c := must(f.store.Worker.Claim(t.Context(), f.operator("s", o), "w", time.Minute))(t)
		a := &attempt{w: f.w, runContext: f.w.planner.newRunContext(c, namedPolicy{policy: testPolicy()})}
		if !a.pinsMissing() {
			t.Fatal("the pinned message is in the view")
		}
		f.must(errors.Join(a.buildTranscript(t.Context(), f.store.Worker), a.reserve(t.Context())))
		defer a.release()
		f.must(f.w.giveBack(t.Context(), c.Run, c.Fence, "test"))
		return a.reserved
	}
	if log, view := reserved(store.Options{}), reserved(store.Options{From: "view"}); view >= log {
		t.Errorf("a run from the view reserves %d bytes, one from the log %d", view, log)
	}
}
