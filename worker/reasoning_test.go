package worker

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// thinker appends messages of 100 tokens with signed reasoning to a session.
type thinker struct {
	*fixture
	model    string
	prefixes sessiontest.Prefixes
}

// say appends messages; those of the assistant are signed.
func (x *thinker) say(ms ...chat.Message) {
	x.t.Helper()
	var msgs []store.NewMessage
	for i := range ms {
		x.n++
		if ms[i].Role == chat.RoleAssistant {
			ms[i] = sessiontest.Sign(ms[i], x.n%sessiontest.SignedForms, x.n)
		}
		ms[i].ID = fmt.Sprintf("m%d", x.n)
		msgs = append(msgs, store.NewMessage{Message: ms[i], Tokens: 100, Counter: "test"})
	}
	x.prefixes.Written(x.messages(), ms)
	_, _, err := x.store.Append(x.t.Context(), key("s"), x.model, msgs)
	noError(x.t, err)
}

func (x *thinker) messages() []chat.Message {
	x.t.Helper()
	view, _, err := x.store.View(x.t.Context(), key("s"))
	noError(x.t, err)
	out := make([]chat.Message, len(view))
	for i, m := range view {
		out[i] = m.Message
	}
	return out
}

// blocks returns the number of messages in the view with signed reasoning, which must be
// valid.
func (x *thinker) blocks() int {
	x.t.Helper()
	blocks, err := x.prefixes.Valid(x.messages())
	if err != nil {
		x.t.Error(err)
	}
	x.sound()
	return len(blocks)
}

func (x *thinker) due() bool {
	x.t.Helper()
	row := x.session("s")
	return row.Due
}

func (x *thinker) talk(turns int) {
	for range turns {
		x.say(sessiontest.User("and this?"), sessiontest.Says("that"))
	}
}

func newThinker(t *testing.T, pipeline ...policy.Step) (*thinker, *[]plan.Request) {
	p := testPolicy()
	p.Pipeline = pipeline
	f := setupWith(t, database(t), p, Config{})
	var asked []plan.Request
	f.w.planner.Registry.Summarizer = plan.Func(func(_ context.Context, r plan.Request) (string, error) {
		asked = append(asked, r)
		return "what was said", nil
	})
	return &thinker{fixture: f, prefixes: sessiontest.Prefixes{}}, &asked
}

// field.md: 60 messages, of which summarization kept the newest with their signatures.
func TestKeptMessagesLoseTheReasoningOfTheirFormerPrefix(t *testing.T) {
	t.Parallel()
	for name, params := range map[string]map[string]any{"summarization": {"target_count": 4}, "keep_last_n_messages": {"n": 6}} {
		x, _ := newThinker(t, policy.Step{Strategy: name, Params: params})
		x.talk(30)
		run := x.operator("s", store.Options{From: "view"})
		if r := x.run(run); r.Status != "applied" || x.blocks() != 0 {
			t.Errorf("%s: run %s %s, %d messages of %d with reasoning, want none", name, r.Status, r.Outcome, x.blocks(), len(x.messages()))
		}
		x.talk(2)
		if n := x.blocks(); n != 2 {
			t.Errorf("%s: %d messages with reasoning, want the 2 that were written later", name, n)
		}
		x.undo(run)
		if n := x.blocks(); n != 30 {
			t.Errorf("%s: %d messages with reasoning after the undo, want 30", name, n)
		}
	}
}

func TestARunWaitsForTheEndOfAToolLoopWithSignedReasoning(t *testing.T) {
	t.Parallel()
	x, asked := newThinker(t, policy.Step{Strategy: "handoff", Params: map[string]any{"protect_last_n": 2, "tail_token_budget": 100}}, policy.Step{Strategy: "truncation"})
	x.talk(6)
	x.say(sessiontest.User("look"), sessiontest.Calls("a"), sessiontest.Result("a", "x"), sessiontest.Calls("b"))
	before := x.messages()
	for i, run := range []func() store.RunID{
		func() store.RunID { return x.event() },
		func() store.RunID { return x.operator("s", store.Options{}) },
	} {
		if r := x.run(run()); r.Status != "skipped" || r.Outcome != OutcomeOpenToolLoop {
			t.Errorf("run %d ended %s %s, want it to wait", i, r.Status, r.Outcome)
		}
	}
	if diff := cmp.Diff(bodies(before), bodies(x.messages())); diff != "" || len(*asked) > 0 {
		t.Errorf("the model was asked %d times, the view changed (-want +got):\n%s", len(*asked), diff)
	}
	x.say(sessiontest.Result("b", "y"))
	if x.due() {
		t.Error("due before the loop has ended")
	}
	x.say(sessiontest.Says("done"))
	x.run(x.event())
	if len(x.messages()) >= len(before) || x.blocks() > 0 {
		t.Errorf("%d messages after the loop, %d with reasoning", len(x.messages()), x.blocks())
	}
}

// What an open loop holds is decided once: neither an append within the loop nor the time
// that passes brings another run, but its end does, and so does a model that does not care.
func TestAFaultThatAnOpenLoopHoldsIsRepairedAtItsEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*thinker){
		"the model answers": func(x *thinker) { x.say(sessiontest.Says("done")) },
		"the user speaks":   func(x *thinker) { x.say(sessiontest.User("stop")) },
		"another model": func(x *thinker) {
			x.must(x.store.SetModel(x.t.Context(), key("s"), "free"))
		},
	} {
		x, _ := newThinker(t, policy.Step{Strategy: "truncation"})
		x.w.planner.BindsReasoning = func(model string) bool { return model != "free" }
		x.say(sessiontest.User("hello"), sessiontest.Result("lost", "of no call"), sessiontest.Says("yes"))
		x.say(sessiontest.User("look"), sessiontest.Calls("a"))
		if r := x.run(x.event()); r.Status != "skipped" || r.Outcome != OutcomeOpenToolLoop || x.due() {
			t.Errorf("%s: run %s %s, due %t, want it to wait", name, r.Status, r.Outcome, x.due())
		}
		if !x.session("s").Suspect {
			t.Errorf("%s: the view is invalid and not marked", name)
		}
		x.say(sessiontest.Result("a", "x"))
		if x.due() {
			t.Errorf("%s: due within the loop", name)
		}
		end(x)
		if !x.due() {
			t.Errorf("%s: not due after the loop", name)
			continue
		}
		if r := x.run(x.event()); r.Outcome != OutcomeRepaired || x.due() {
			t.Errorf("%s: run %s %s, due %t, want the view repaired", name, r.Status, r.Outcome, x.due())
		}
	}
}

func TestAPinThatAnOpenLoopKeepsOutComesBackAtItsEnd(t *testing.T) {
	t.Parallel()
	x, _ := newThinker(t, policy.Step{Strategy: "keep_last_n_messages", Params: map[string]any{"n": 4}})
	x.talk(6)
	x.run(x.event())
	x.say(sessiontest.User("look"), sessiontest.Calls("a"))
	x.must(x.store.Pin(t.Context(), key("s"), "m1"))
	if r := x.run(x.event()); r.Outcome != OutcomeOpenToolLoop || x.due() {
		t.Errorf("run %s %s, due %t, want it to wait", r.Status, r.Outcome, x.due())
	}
	x.say(sessiontest.Result("a", "x"), sessiontest.Says("done"))
	x.run(x.event())
	if view := x.messages(); view[0].ID != "m1" || x.due() {
		t.Errorf("the view begins with %s, due %t", view[0].ID, x.due())
	}
}

// A result that is too large to be sent would keep the loop from ever ending.
func TestWhatIsBehindTheReasoningOfAnOpenLoopIsCompacted(t *testing.T) {
	t.Parallel()
	x, _ := newThinker(t, policy.Step{Strategy: "clamp", Params: map[string]any{"max_tokens": 100}})
	x.talk(6)
	x.say(sessiontest.User("look"), sessiontest.Calls("a"))
	x.write("s", store.NewMessage{Message: sessiontest.Result("a", strings.Repeat("long ", 2000))})
	r := x.run(x.event())
	if last := x.messages()[len(x.messages())-1]; r.Status != "applied" || len(last.Content.String()) > 1000 || x.blocks() != 7 {
		t.Errorf("run %s %s; the result has %d characters, %d messages their reasoning, want all 7", r.Status, r.Outcome, len(last.Content.String()), x.blocks())
	}
}

func TestAModelThatDoesNotBindReasoningIsCompactedInALoop(t *testing.T) {
	t.Parallel()
	x, _ := newThinker(t, policy.Step{Strategy: "keep_last_n_messages", Params: map[string]any{"n": 4}})
	x.w.planner.BindsReasoning = func(model string) bool { return model == "binds" }
	x.model = "free"
	x.talk(6)
	x.say(sessiontest.User("look"), sessiontest.Calls("a"), sessiontest.Result("a", "x"), sessiontest.Calls("b"))
	if r := x.run(x.event()); r.Status != "applied" {
		t.Fatalf("run %s %s", r.Status, r.Outcome)
	}
	for _, m := range x.messages() {
		if meta := m.Meta(1); m.Role == chat.RoleAssistant && !meta.Signed() {
			t.Errorf("%s has lost its reasoning", m.ID)
		}
	}
}

func bodies(ms []chat.Message) []string {
	out := make([]string, len(ms))
	for i, m := range ms {
		out[i] = string(m.AppendJSON(nil))
	}
	return out
}

// No provider takes an invalid view before an open tool loop, so the loop could never end: a run
// repairs a view that the append has not repaired.
func TestAnInvalidViewBeforeAnOpenToolLoopIsRepaired(t *testing.T) {
	t.Parallel()
	for _, unrepaired := range []bool{true, false} {
		dsn := database(t)
		x := &thinker{fixture: setupWith(t, dsn, testPolicy(), Config{}), prefixes: sessiontest.Prefixes{}}
		if unrepaired {
			conn := must(pgx.Connect(t.Context(), dsn))(t)
			t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
			const query = `CREATE OR REPLACE FUNCTION compactor.repair_view(s compactor.sessions) RETURNS compactor.sessions LANGUAGE sql AS 'UPDATE compactor.sessions SET suspect_seq = last_seq WHERE sid = s.sid RETURNING *'`
			must(conn.Exec(t.Context(), query))(t)
		}
		x.say(sessiontest.User("hello"), sessiontest.Result("never", "found"), sessiontest.User("fix it"), sessiontest.Calls("c"), sessiontest.Result("c", "package main"))
		if got := strict(x.messages()); (got != nil) != unrepaired {
			t.Errorf("without the repair of append %t: a provider says %v of the view", unrepaired, got)
		}
		if r := x.run(x.event()); r.Status != "applied" || r.Outcome != OutcomeRepaired {
			t.Errorf("without the repair of append %t: the run ended %s %s", unrepaired, r.Status, r.Outcome)
		}
		view := x.messages()
		if err := strict(view); err != nil || len(view) != 5 || !strings.Contains(view[1].Content.String(), "found") {
			t.Errorf("without the repair of append %t: view %v, a provider says %v", unrepaired, view, err)
		}
		if n := x.blocks(); n != 0 {
			t.Errorf("without the repair of append %t: the reasoning of another prefix is in the view", unrepaired)
		}
	}
}
