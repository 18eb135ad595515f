package worker

import (
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/llm/llmtest"
	"github.com/sessionstore/compactor/strategies/policy"
)

// What a run stored in the place of calls and results is read from the log for the model of a later
// run.
func TestTheModelOfALaterRunSeesTheSources(t *testing.T) {
	t.Parallel()
	collapse, summarize := modelPolicy(), modelPolicy()
	collapse.Pipeline = []policy.Step{{Strategy: "tool_result", Params: map[string]any{"keep_last_tool_call_groups": 0}}}
	collapse.StartTokens, collapse.TargetTokens = 7200, 6900
	f, server := modelled(t, database(t), collapse, llmtest.Step{Behaviour: llmtest.Normal})
	if row := f.run(f.event()); row.Outcome != OutcomeApplied || !strings.Contains(f.words(), "[Tool results: read_file: func handle") {
		t.Fatalf("the first run ended %s %s", row.Outcome, row.Steps)
	}
	f.w.planner.Policy = summarize
	f.talk("s", 20)
	if row := f.run(f.event()); row.Outcome != OutcomeApplied || len(server.Requests()) != 1 {
		t.Fatalf("the second run ended %s %s", row.Outcome, row.Steps)
	}
	user := server.Requests()[0].User
	for _, path := range []string{"src/part_4/main.go", "src/part_40/main.go", "src/part_76/main.go"} {
		if strings.Count(user, `read_file: {"path":"`+path+`"}`) != 1 {
			t.Errorf("no call of %s, or two, in\n%s", path, user)
		}
	}
	if strings.Contains(user, "[Tool results:") {
		t.Errorf("a stand-in in\n%s", user)
	}
}

// words returns the texts in the view of session s.
func (f *fixture) words() string {
	f.t.Helper()
	var b strings.Builder
	for _, m := range f.stored("s") {
		b.WriteString(m.Content.String() + "\n")
	}
	return b.String()
}
