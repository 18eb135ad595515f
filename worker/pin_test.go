package worker

import (
	"strings"
	"testing"
)

func TestPinnedMessageComesBackAndStays(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.append("s", "suctauauauauaua")
	f.run(f.event())
	if got := f.view("s"); strings.Contains(got, "c") {
		t.Fatalf("the tool call is still in the view: %s", got)
	}
	if err := f.store.Pin(t.Context(), key("s"), "s-4"); err != nil { // the result: its call comes with it
		t.Fatal(err)
	}
	f.run(f.event())
	if got := f.view("s"); !strings.HasPrefix(got, "sct") {
		t.Errorf("view is %s, want it to hold the pinned result and its call", got)
	}
	f.append("s", "uauauauauaua")
	f.run(f.event())
	if got := f.view("s"); !strings.HasPrefix(got, "sct") {
		t.Errorf("view is %s after another run, want it to hold the pinned group", got)
	}
}

// A pinned message that cannot stand in a view as it is cannot be kept verbatim:
// it is repaired once, after which nothing is left to do.
func TestPinnedMessageThatBreaksTheViewIsMendedOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ transcript, pinned, view string }{
		"a result without its call": {"sutu", "s-3", "suIu"},
		"a call without an answer":  {"sucu", "s-3", "suIu"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			f.append("s", c.transcript)
			f.must(f.store.Pin(t.Context(), key("s"), c.pinned))
			if row := f.run(f.event()); row.Outcome != OutcomeRepaired {
				t.Errorf("ended %s, %s (%s %s), want %s", row.Status, row.Outcome, row.ErrorCode, row.Error, OutcomeRepaired)
			}
			if got := f.view("s"); got != c.view {
				t.Errorf("view is %s, want %s", got, c.view)
			}
			st := &reading{Worker: f.store.Worker}
			for range 2 {
				for _, id := range f.sweep() {
					f.must(New(st, testPlanner(testPolicy()), Config{}).execute(t.Context(), id))
					if row := f.row(id); row.Outcome != OutcomeUnchanged || st.messages.Load()+st.logs.Load() > 0 {
						t.Errorf("ended %s, having read content %d times and the log %d times; want %s and no reading",
							row.Outcome, st.messages.Load(), st.logs.Load(), OutcomeUnchanged)
					}
				}
			}
		})
	}
}

// What a run has found to fit into no valid view makes the session due no more, whatever is
// appended behind it, and its log is not read again.
func TestAppendsBehindAPinThatCannotBeKeptDecideNothing(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.append("s", "sutu")
	f.must(f.store.Pin(t.Context(), key("s"), "s-3"))
	if row := f.run(f.event()); row.Outcome != OutcomeRepaired {
		t.Fatalf("ended %s, %s (%s)", row.Status, row.Outcome, row.Error)
	}
	for _, role := range "auau" {
		f.append("s", string(role))
		if f.session("s").Due {
			t.Error("due after an append")
		}
	}
	st := &reading{Worker: f.store.Worker}
	f.w.store = st
	f.append("s", "auaua")
	if row := f.run(f.event()); row.Outcome != OutcomeApplied || row.Kind == "repair" || st.logs.Load() > 0 {
		t.Errorf("over the start: %s %s, the log was read %d times; want a run over the view", row.Kind, row.Outcome, st.logs.Load())
	}
	// Another pin that is out comes back nevertheless.
	f.must(f.store.Pin(t.Context(), key("s"), "s-5"))
	f.run(f.event())
	if got := f.view("s"); got != "saauaua" {
		t.Errorf("view is %s, want the pinned message in it", got)
	}
}
