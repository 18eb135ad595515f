package worker

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// A page waits for no lock: it would make the writers of its other sessions wait.
func TestAPageLeavesASessionThatSomethingLocks(t *testing.T) {
	t.Parallel()
	f := setupPaged(t, truncatingPolicy(), Config{})
	for _, s := range []string{"a", "locked", "c"} {
		f.append(s, "suauauauauauauaua")
	}
	runs := f.sweep()
	tx, err := f.conn.Begin(t.Context())
	f.must(err)
	must(tx.Exec(t.Context(), `SELECT FROM compactor.sessions WHERE id = 'locked' FOR UPDATE`))(t)
	left := must(f.w.executeTogether(t.Context(), runs))(t)
	if len(left) != 1 || f.row(left[0]).Session != "locked" || len(f.st.ended) != 2 {
		t.Errorf("of %v, %v are left", runs, left)
	}
	f.must(tx.Rollback(t.Context()))
	f.page(left...)
	if row := f.row(left[0]); row.Outcome != OutcomeApplied {
		t.Errorf("the run of the locked session is %s", row.Status)
	}
}

func TestAPageDeliveredToManyWorkersAtOnceHasOneEffect(t *testing.T) {
	t.Parallel()
	f := setupPaged(t, truncatingPolicy(), Config{})
	for i := range 40 {
		f.append(fmt.Sprint("s", i), "suauauauauauauaua")
	}
	runs := f.sweep()
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() { f.page(runs...) })
	}
	all.Wait()
	f.page(runs...) // and once more, late
	for _, run := range runs {
		if row := f.row(run); row.Outcome != OutcomeApplied || row.Attempts != 1 {
			t.Errorf("run %d of %s: %s after %d attempts", run, row.Session, row.Outcome, row.Attempts)
		}
	}
}

// A worker that dies in the middle has done what was committed, and the next delivery of the
// task does the rest once.
func TestAPageWhoseWorkerDiesEndsAsWithoutThat(t *testing.T) {
	t.Parallel()
	for _, step := range []string{stepClaimed, stepPlanned, stepChecked, stepApplied} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			f := setupPaged(t, testPolicy(), Config{}) // as the process that dies has it
			for i := range 12 {
				roles := "suauauauauauauaua"
				if i%3 == 0 {
					roles = "suauctauuctaua" // not decided by metadata alone
				}
				f.append(fmt.Sprint("s", i), roles)
			}
			runs := f.sweep()
			if !dies(t, f.dsn, step, "", runs...) {
				t.Fatal("the worker process lives")
			}
			f.await("all runs have ended", func() bool {
				f.page(runs...)
				for _, run := range runs {
					if f.row(run).EndedAt == nil {
						return false
					}
				}
				return true
			})
			for _, run := range runs {
				row := f.row(run)
				s, err := f.store.Session(t.Context(), key(row.Session))
				f.must(err)
				if row.Outcome != OutcomeApplied || s.Revision != 1 {
					t.Errorf("run %d of %s: %s, revision %d", run, row.Session, row.Outcome, s.Revision)
				}
			}
		})
	}
}

// A worker that stops takes up no more runs of its tasks, which go back to the queue.
func TestAPageReturnsWhatAStoppingWorkerHasNotBegun(t *testing.T) {
	t.Parallel()
	f := setupPaged(t, testPolicy(), Config{Concurrency: 1})
	for i := range 3 {
		f.append(fmt.Sprint("s", i), "suauctauuctauauauaua")
	}
	runs := f.sweep()
	f.at(stepPlanned, func() {
		f.w.drain()
	})
	if err := f.w.executePage(t.Context(), runs); !errors.Is(err, ErrStopping) {
		t.Errorf("the task ends with %v, want %v", err, ErrStopping)
	}
	var ended int
	for _, run := range runs {
		if f.row(run).EndedAt != nil {
			ended++
		}
	}
	if ended != 1 {
		t.Errorf("%d runs have ended, want the one that was begun", ended)
	}
}

// An error of a page costs speed alone, so it must be told.
func TestAPageThatFailsIsExecutedOneByOneAndSaysSo(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	f := setupPaged(t, truncatingPolicy(), Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for i := range 3 {
		f.append(fmt.Sprint("s", i), "suauauauauauauaua")
	}
	runs := f.sweep()
	must(f.conn.Exec(t.Context(), `DROP FUNCTION compactor.end_runs`))(t)
	f.page(runs...)
	for _, run := range runs {
		if row := f.row(run); row.Outcome != OutcomeApplied {
			t.Errorf("run %d: %s", run, row.Status)
		}
	}
	if n := strings.Count(log.String(), `msg="runs are executed one by one"`); n != 1 {
		t.Errorf("%d lines about it in %s", n, log.String())
	}
}
