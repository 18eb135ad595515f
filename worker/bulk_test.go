package worker

import (
	"testing"
	"time"

	"github.com/sessionstore/compactor/store"
)

// A run of a bulk recompaction is one as an operator requests it: over the whole log, whether
// the session is due or not. It waits for the end of a pause.
func TestABulkRecompactionPlansAsAnOperatorDoes(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.append("s", "suauauauauaua")
	policy := f.run(f.operator("s", store.Options{}))
	want := f.view("s")
	f.run(f.operator("s", store.Options{Pipeline: []store.Step{{Strategy: "truncation", Params: map[string]any{"max_n": 4, "compact_to": 3}}}}))
	if got := f.view("s"); len(got) >= len(want) {
		t.Fatalf("view %s, want it shorter than %s", got, want)
	}
	recompact := func(o store.Options) store.RunID {
		t.Helper()
		id := must(f.store.Operator.StartBulkCompact(t.Context(), "", store.RunMatch{Policy: "default"}, o, 0, "", "ada"))(t)
		page, more, err := f.store.Scheduler.BulkCompactPage(t.Context(), id, 10, time.Minute)
		if err != nil || more || len(page) != 1 {
			t.Fatalf("%v, more %v, %v", page, more, err)
		}
		return page[0].Run
	}
	if row := f.run(recompact(store.Options{})); row.Outcome != OutcomeWouldGrow {
		t.Errorf("ended %s %s", row.Status, row.Outcome)
	}
	if row := f.run(recompact(store.Options{From: "view"})); row.Outcome != OutcomeNothingToCompact {
		t.Errorf("over the view it ended %s %s", row.Status, row.Outcome)
	}
	run := recompact(store.Options{AllowGrowth: true})
	scope := store.PauseScope{Policy: "default"}
	f.must(f.store.Operator.PauseRuns(t.Context(), scope, "", "ada"))
	if row := f.run(run); row.Status != "queued" || row.ErrorCode != store.CodePaused {
		t.Errorf("while it is paused: %s %s", row.Status, row.ErrorCode)
	}
	f.must(f.store.Operator.ResumeRuns(t.Context(), scope, "ada"))
	if row := f.run(run); row.Outcome != policy.Outcome || f.view("s") != want {
		t.Errorf("ended %s %s with the view %s, want %s", row.Status, row.Outcome, f.view("s"), want)
	}
}
