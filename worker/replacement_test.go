package worker

import (
	"slices"
	"testing"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// A message that a replacement has inserted is in the log and in the view.
func TestRunFromTheLogAfterAReplacement(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.append("s", "suauaua")
	between := store.NewMessage{Message: chat.Message{ID: "between", Role: chat.RoleDeveloper, Content: chat.TextContent("x")}, Tokens: 100, Counter: "test"}
	f.replace(func(view []store.NewMessage) []store.NewMessage { return slices.Insert(view, 2, between) })
	cut := []store.Step{{Strategy: "truncation", Params: map[string]any{"max_n": 3, "compact_to": 3}}}
	if row := f.run(f.operator("s", store.Options{Pipeline: cut})); row.Outcome != OutcomeApplied {
		t.Errorf("ended %s, %s (%s), want %s", row.Status, row.Outcome, row.Error, OutcomeApplied)
	}
	if got := f.view("s"); got != "sua" {
		t.Errorf("view is %s, want sua", got)
	}
}

// A replacement may leave a call open that has its result in the log, or that a user message has
// passed by there: no result follows it any more, so the call leaves and its text stays.
func TestCallThatAReplacementLeftOpenIsMended(t *testing.T) {
	t.Parallel()
	for transcript, want := range map[string]string{"suct": "suI", "sucu": "suIu"} {
		t.Run(transcript, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			f.append("s", transcript)
			f.replace(func(view []store.NewMessage) []store.NewMessage { return view[:3] })
			f.run(f.event())
			f.append("s", "u")
			if got := f.view("s"); got != want+"u" {
				t.Errorf("view is %s, want %su", got, want)
			}
		})
	}
}

// A call with a text that a replacement puts in front of reasoning at the end of the log awaits its
// repair, and comes back although nothing else of the view can leave.
func TestACallBeforeTheLastReasoningComesBack(t *testing.T) {
	t.Parallel()
	f := setup(t)
	said := []store.NewMessage{{Message: sessiontest.User("go")}, {Message: sessiontest.Thinks("hm")}}
	said[0].ID, said[1].ID = "u", "r"
	f.write("s", said...)
	call := store.NewMessage{Message: sessiontest.Calls("x")}
	call.ID, call.Content = "c", chat.TextContent("I look.")
	must(f.store.Replace(t.Context(), key("s"), 0, []store.NewMessage{said[0], call, said[1]}, "test"))(t)
	ids := f.sweep()
	if len(ids) != 1 {
		t.Fatalf("a sweep queued %v", ids)
	}
	if row := f.run(ids[0]); row.Outcome == OutcomeWouldGrow {
		t.Errorf("ended %s", row.Outcome)
	}
	all := must(f.store.All(t.Context(), key("s")))(t)
	if i := slices.IndexFunc(all, func(m store.Stored) bool { return m.ExcludeReason == "awaiting_repair" }); i >= 0 {
		t.Errorf("message %s awaits its repair", all[i].ID)
	}
}
