package worker

import (
	"testing"
	"time"

	"github.com/sessionstore/compactor/store"
)

func TestAPausedSessionIsLeftAlone(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.append("s", "suauauauauaua")
	pause := func() {
		t.Helper()
		f.must(f.store.Operator.PauseRuns(t.Context(), store.PauseScope{Tenant: "default"}, "why", "ada"))
	}
	resume := func() {
		t.Helper()
		f.must(f.store.Operator.ResumeRuns(t.Context(), store.PauseScope{Tenant: "default"}, "ada"))
	}
	// An automatic run that was queued before ends; the session stays due, and is found after the pause.
	event := f.event()
	pause()
	if row := f.run(event); row.Status != "skipped" || row.Outcome != OutcomePaused {
		t.Errorf("ended %s %s", row.Status, row.Outcome)
	}
	if runs, err := f.store.Scheduler.Forgotten(t.Context(), 10, time.Minute); err != nil || len(runs) > 0 {
		t.Errorf("the reconciler queued %v, %v", runs, err)
	}
	resume()
	runs, err := f.store.Scheduler.Forgotten(t.Context(), 10, time.Minute)
	if err != nil || len(runs) != 1 {
		t.Fatalf("the reconciler queued %v, %v", runs, err)
	}
	// A requested one waits, however often it is delivered. So it does when its first worker has died.
	asked := f.operator("s", store.Options{})
	pause()
	for range 3 {
		if row := f.run(asked); row.Status != "queued" || row.ErrorCode != store.CodePaused || row.Failures != 0 {
			t.Errorf("the requested run is %s %s %s", row.Status, row.Outcome, row.ErrorCode)
		}
	}
	if c, err := f.store.Worker.Claim(t.Context(), asked, "dead", time.Nanosecond); err != nil || !c.Paused {
		t.Fatalf("%+v, %v", c, err)
	}
	if row := f.run(asked); row.Status != "queued" || row.ErrorCode != store.CodePaused {
		t.Errorf("the orphan is %s %s %s", row.Status, row.Outcome, row.ErrorCode)
	}
	if view := f.view("s"); view != "suauauauauaua" {
		t.Errorf("view %s", view)
	}
	resume()
	if row := f.run(asked); row.Outcome != OutcomeApplied {
		t.Errorf("ended %s %s", row.Status, row.Outcome)
	}
	f.append("s", "uauauauaua")
	pause()
	if row := f.run(f.operator("s", store.Options{Force: true})); row.Outcome != OutcomeApplied {
		t.Errorf("the forced run ended %s %s", row.Status, row.Outcome)
	}
}
