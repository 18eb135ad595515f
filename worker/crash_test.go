package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/llm"
)

const (
	envCrashAt  = "COMPACTOR_TEST_CRASH_AT"
	envCrashDSN = "COMPACTOR_TEST_CRASH_DSN"
	envCrashRun = "COMPACTOR_TEST_CRASH_RUN"
	// envCrashModel is where the model is that summarizes, empty for a policy without.
	envCrashModel = "COMPACTOR_TEST_CRASH_MODEL"
	crashed       = 137
)

// crashMain returns a worker process that takes a task and dies at a step of a run of it.
func crashMain(step string) int {
	ctx := context.Background()
	st, err := store.Open(ctx, store.Config{URL: os.Getenv(envCrashDSN)})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var runs []store.RunID
	if err := json.Unmarshal([]byte(os.Getenv(envCrashRun)), &runs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	planner := testPlanner(testPolicy())
	if url := os.Getenv(envCrashModel); url != "" {
		planner = testPlanner(modelPolicy())
		if planner.Model, err = llm.New(modelConfig(url), llm.Deps{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	w := New(st.Worker, planner, Config{Name: "doomed", Lease: 100 * time.Millisecond, Heartbeat: time.Hour})
	w.failpoint = dieAt(step)
	if len(runs) == 1 {
		err = w.execute(ctx, runs[0])
	} else {
		err = w.executePage(ctx, runs)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// dies has a worker process take a task and reports whether it died at the step.
func dies(t *testing.T, dsn, step, model string, runs ...store.RunID) bool {
	t.Helper()
	raw := must(json.Marshal(runs))(t)
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), envCrashAt+"="+step, envCrashDSN+"="+dsn, envCrashRun+"="+string(raw), envCrashModel+"="+model)
	out, err := child.CombinedOutput()
	var exit *exec.ExitError
	died := errors.As(err, &exit) && exit.ExitCode() == crashed
	if err != nil && !died {
		t.Errorf("the worker process ended otherwise: %v\n%s", err, out)
	}
	return died
}

// state is the visible state of a session.
type state struct {
	View      []chat.Meta
	Row       store.SessionRow
	Status    string
	Outcome   string
	Before    int64
	After     int64
	Excluded  map[string]int
	Revisions int64
}

func (f *fixture) state(session string, run store.RunID) state {
	f.t.Helper()
	row := f.session(session)
	s := state{Row: row, Excluded: map[string]int{}, Revisions: row.Revision}
	s.View = must(f.store.Operator.ViewMetas(f.t.Context(), row.SID))(f.t)
	for _, m := range must(f.store.All(f.t.Context(), key(session)))(f.t) {
		s.Excluded[m.ExcludeReason]++
	}
	r := f.row(run)
	s.Status, s.Outcome, s.Before, s.After = r.Status, r.Outcome, r.TokensBefore, r.TokensAfter
	s.Row.SID, s.Row.Session, s.Row.LastMessageAt = 0, "", time.Time{}
	return s
}

func TestWorkerThatDiesBetweenStepsLeavesTheSameEndState(t *testing.T) {
	t.Parallel()
	transcripts := map[string]string{
		"a session that is cut":                "suauctauauctaua",
		"a session that is repaired and cut":   "suautacuauauauaua",
		"a session that turns out to be fine":  "sucta",
		"a session that cannot become smaller": "sssssssssssu",
	}
	for name, transcript := range transcripts {
		for _, step := range []string{stepClaimed, stepPlanned, stepChecked, stepApplied, stepRecorded} {
			t.Run(name+"/dies "+step, func(t *testing.T) {
				t.Parallel()
				dsn := database(t)
				f := setupWith(t, dsn, testPolicy(), Config{})
				f.append("twin", transcript)
				twin := f.operator("twin", store.Options{From: "view"})
				f.run(twin)
				f.append("s", transcript)
				run := f.operator("s", store.Options{From: "view"})

				dies(t, dsn, step, "", run)
				// The next delivery: busy until the lease of the dead has run out.
				f.finish(run)
				if diff := cmp.Diff(f.state("twin", twin), f.state("s", run)); diff != "" {
					t.Errorf("differs from the run that nobody killed (-twin +killed):\n%s", diff)
				}
			})
		}
	}
}

func TestOneRunDeliveredToManyWorkersAtOnceHasOneEffect(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.append("s", "suauauauauaua")
	run := f.event()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := f.w.execute(t.Context(), run); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	f.run(run) // and once more, late
	row := f.session("s")
	if row.Revision != 1 || f.row(run).Attempts != 1 {
		t.Errorf("revision %d after %d attempts, want one of each", row.Revision, f.row(run).Attempts)
	}
}

func TestTwoRunsOfOneSessionTakeTurns(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.append("s", "suauauauauaua")
	first, second := f.event(), f.operator("s", store.Options{})
	f.w.failpoint = func(step string) {
		if step != stepPlanned {
			return
		}
		f.w.failpoint = func(string) {}
		f.run(second)
		if row := f.row(second); row.Status != "queued" || row.ErrorCode != "busy" {
			t.Errorf("the second run is %s (%s) while the first works, want it queued as busy", row.Status, row.ErrorCode)
		}
	}
	f.run(first)
	if row := f.run(second); row.Status == "queued" {
		t.Errorf("the second run is still queued after the first has ended")
	}
}

// A worker that lost its lease while it was planning must not write.
func TestWorkerWithALostLeaseWritesNothing(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	slow := setupWith(t, dsn, testPolicy(), Config{Name: "slow", Lease: time.Millisecond, Heartbeat: time.Hour})
	quick := setupWith(t, dsn, testPolicy(), Config{Name: "quick"})
	slow.append("s", "suauauauauaua")
	run := slow.event()
	slow.w.failpoint = func(step string) {
		if step == stepPlanned {
			quick.finish(run)
		}
	}
	slow.run(run)
	row := slow.row(run)
	if row.Worker != "quick" || row.Outcome != OutcomeApplied {
		t.Errorf("ended %s by %s, want %s by quick", row.Outcome, row.Worker, OutcomeApplied)
	}
	if n := slow.session("s").Revision; n != 1 {
		t.Errorf("revision %d, want 1", n)
	}
}
