package worker

import (
	"strings"
	"testing"

	"github.com/sessionstore/compactor/store"
)

// A worker that dies between the arrival of an answer and its insert is the one case in
// which a summary may be paid for again (I9): the question is told as lost, and the run
// ends as without the crash.
func TestAWorkerThatDiesWithItsAnswerAsksOnceMore(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	server, url := started(t)
	f := asking(t, dsn, modelPolicy(), url)
	f.talk("s", 8)
	run := f.operator("s", store.Options{From: "view"})
	if !dies(t, dsn, stepAnswered, url, run) {
		t.Fatal("the worker process lives")
	}
	if server.Paid() != 1 || f.row(run).Outcome != "" {
		t.Fatalf("%d paid, outcome %q", server.Paid(), f.row(run).Outcome)
	}
	f.finish(run)
	if got := strings.Join(f.calls(run), ", "); got != "lost, answered" || server.Paid() != 2 {
		t.Errorf("calls %s, %d paid", got, server.Paid())
	}
	if row := f.row(run); row.Outcome != OutcomeApplied || len(f.summaries("s")) != 1 {
		t.Errorf("%s with %d summaries", row.Outcome, len(f.summaries("s")))
	}
}
