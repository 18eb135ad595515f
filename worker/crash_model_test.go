package worker

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// A worker that is killed at any moment between the stored answer and the applied plan
// leaves a run that the next delivery ends with that answer: it is paid for once, there is
// one summary, and nothing is lost (I9).
func TestNoAnswerIsPaidForTwiceAfterACrash(t *testing.T) {
	t.Parallel()
	kills := 12 // each step at two moments, and six moments after the answer was stored
	if sessiontest.Long() {
		kills = 100
	}
	dsn := database(t)
	server, url := started(t)
	f := asking(t, dsn, modelPolicy(), url)
	runs := make([]store.RunID, kills)
	for i := range runs {
		session := "killed-" + strconv.Itoa(i)
		f.talk(session, 8)
		runs[i] = f.operator(session, store.Options{From: "view"})
	}
	died := make([]bool, kills)
	var g errgroup.Group
	g.SetLimit(4)
	for i, run := range runs {
		// At a step, or some microseconds after the answer was stored.
		at := []string{stepStored, stepPlanned, stepChecked}[i%3]
		if i%2 == 0 {
			at = afterStored + strconv.Itoa(rand.IntN(8000)) //nolint:gosec // any moment will do
		}
		g.Go(func() error {
			died[i] = dies(t, dsn, at, url, run)
			return nil
		})
	}
	_ = g.Wait() // its functions return nothing
	dead, tries := 0, 0
	for i, run := range runs {
		if died[i] {
			dead++
		}
		row := f.finish(run)
		tries += row.Attempts
		session := "killed-" + strconv.Itoa(i)
		if row.Outcome != OutcomeApplied || row.Calls != 1 || strings.Join(f.calls(run), ", ") != "answered" {
			t.Errorf("run %d ended %s with calls %v", run, row.Outcome, f.calls(run))
		}
		if n := len(f.summaries(session)); n != 1 || strings.Count(f.view(session), "S") != 1 {
			t.Errorf("session %s has %d summaries", session, n)
		}
	}
	if server.Paid() != kills || server.Calls() != kills {
		t.Errorf("%d requests, %d paid, for %d summaries", server.Calls(), server.Paid(), kills)
	}
	// Of the later moments some come after the end.
	if dead < kills*2/3 || tries < kills+kills/2 {
		t.Errorf("only %d of %d workers died, runs were tried %d times", dead, kills, tries)
	}
	t.Logf("%d of %d workers died, %d attempts, %d paid", dead, kills, tries, server.Paid())
}

// afterStored in front of microseconds is that long after the answer was stored.
const afterStored = "after stored "

// dieAt is the probe of a worker that dies at a step, or some time after it.
func dieAt(step string) func(string) {
	delay, timed := strings.CutPrefix(step, afterStored)
	return func(at string) {
		switch {
		case timed && at == stepStored:
			micros, err := strconv.Atoi(delay)
			if err != nil {
				panic(err)
			}
			time.AfterFunc(time.Duration(micros)*time.Microsecond, func() { os.Exit(crashed) })
		case at == step:
			os.Exit(crashed)
		}
	}
}
