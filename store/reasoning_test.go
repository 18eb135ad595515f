package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/agent"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// signed returns the message with signed reasoning; n must be different for each.
func signed(m NewMessage, n int) NewMessage {
	m.Message = sessiontest.Sign(m.Message, n%sessiontest.SignedForms, n)
	return m
}

// thoughtful returns n messages, user and assistant by turns, whose answers have signed
// reasoning and 100 tokens.
func thoughtful(prefix string, first, n int) []NewMessage {
	out := talk(prefix, n)
	for i := range out {
		if out[i].Role == chat.RoleAssistant {
			out[i] = counted(signed(out[i], first+i), 100)
		}
	}
	return out
}

// reasoning returns the ids of the messages in the view with signed reasoning.
func reasoning(t fataler, s *Store, k Key) []string {
	t.Helper()
	view, _ := must2(s.View(context.Background(), k))(t)
	var out []string
	for _, m := range view {
		if meta := m.Meta(m.Seq); meta.Signed() {
			out = append(out, m.ID)
		}
	}
	return out
}

// behind completes a plan as the pipeline does for the view of a claim.
func (c *Claim) behind(p chat.Plan, from chat.Seq) chat.Plan {
	gone := p.Gone()
	p.DropReasoning = chat.StaleReasoning(slices.DeleteFunc(slices.Clone(c.View), func(m chat.Meta) bool { return gone.Has(m.Seq) }), from)
	return p
}

func applyBehind(t fataler, s *Store, k Key, p chat.Plan, from chat.Seq, meanwhile func()) RunID {
	t.Helper()
	c := start(t, s, k)
	ch := must(c.change(s, c.behind(p, from)))(t)
	if meanwhile != nil {
		meanwhile()
	}
	must(s.Worker.Apply(context.Background(), c.Run, c.Fence, ch))(t)
	return c.Run
}

func wantReasoning(t *testing.T, s *Store, k Key, what string, want ...string) {
	t.Helper()
	equal(t, want, reasoning(t, s, k), "reasoning in the view %s", what)
	none(t, must(s.Admin.Violations(t.Context(), session(t, s, k).SID))(t), "%s", what)
	wantConsistent(t, s)
}

func TestSignedReasoningBehindAChangeLeavesTheViewUntilTheUndo(t *testing.T) {
	s, k := freshSession(t)
	add(t, s, k, thoughtful("m", 0, 8)...)
	add(t, s, k, signed(NewMessage{Message: chat.Message{ID: "alone", Role: chat.RoleAssistant, Content: chat.Content{Null: true}}}, 20))
	wantReasoning(t, s, k, "before", "m2", "m4", "m6", "m8", "alone")
	before := session(t, s, k).LiveTokens
	run := applyBehind(t, s, k, exclude(span(3, 3)), 3, func() {
		// Written on the view before.
		add(t, s, k, thoughtful("n", 30, 2)...)
	})
	wantReasoning(t, s, k, "after the run", "m2")
	equal(t, []chat.Seq{1, 2, 4, 5, 6, 7, 8, 10, 11}, liveSeqs(t, s, k), "view")
	if after := session(t, s, k).LiveTokens; after >= before {
		t.Errorf("%d tokens became %d, although reasoning has left", before, after)
	}
	all := must(s.All(t.Context(), k))(t)
	for _, m := range all {
		meta := m.Meta(m.Seq)
		switch {
		case m.ID == "alone" && (m.Included || m.ExcludeReason != "stale_reasoning" || m.ExcludedBy != run):
			t.Errorf("a message of reasoning alone: included %t, %s by %d", m.Included, m.ExcludeReason, m.ExcludedBy)
		case m.Included && meta.Signed() && m.ID != "m2":
			t.Errorf("%s is shown with its reasoning", m.ID)
		}
	}
	explained := list[string](t, s, `SELECT id FROM compactor.messages WHERE reasoning_excluded_by = $1 ORDER BY seq`, run)
	equal(t, []string{"m4", "m6", "m8", "n2"}, explained, "messages without reasoning by the run")
	for _, m := range must(s.Worker.Messages(t.Context(), session(t, s, k).SID, []chat.Seq{4, 6}))(t) {
		if meta := m.Meta(1); meta.Signed() {
			t.Errorf("a strategy reads the reasoning of a message without it in the view: %s", m.AppendJSON(nil))
		}
	}

	add(t, s, k, thoughtful("o", 40, 2)...) // written on the new view
	wantReasoning(t, s, k, "after a new answer", "m2", "o2")
	undo := must(s.Undo(t.Context(), k, run, false, ""))(t)
	wantReasoning(t, s, k, "after the undo", "m2", "m4", "m6", "m8", "alone", "n2")
	add(t, s, k, thoughtful("p", 50, 2)...)
	must(s.Undo(t.Context(), k, undo, false, ""))(t)
	wantReasoning(t, s, k, "after the undo of the undo", "m2", "o2")
}

func TestAnAnswerToAnEarlierViewIsAppendedWithoutItsReasoning(t *testing.T) {
	s, k := freshSession(t)
	add(t, s, k, thoughtful("m", 0, 4)...)
	add(t, s, k, user("u", "and now?"))
	_, revision := must2(s.View(t.Context(), k))(t)
	run := applyBehind(t, s, k, exclude(span(1, 1)), 1, nil)
	late := []NewMessage{
		counted(signed(NewMessage{Message: chat.Message{ID: "thought", Role: chat.RoleAssistant, Content: chat.Content{Null: true}}}, 11), 50),
		counted(signed(assistant("late", "this"), 12), 50),
	}
	for range 2 {
		must2(s.AppendOn(t.Context(), k, revision, "", late))(t)
		wantReasoning(t, s, k, "after a late answer")
	}
	explained := list[string](t, s, `SELECT id FROM compactor.messages WHERE coalesce(reasoning_excluded_by, excluded_by) = $1 AND seq > 5 ORDER BY seq`, run)
	equal(t, []string{"thought", "late"}, explained, "explained by the run")
	_, revision = must2(s.View(t.Context(), k))(t)
	must2(s.AppendOn(t.Context(), k, revision, "", thoughtful("n", 20, 2)))(t)
	wantReasoning(t, s, k, "after an answer to the new view", "n2")
	must(s.Undo(t.Context(), k, run, false, ""))(t)
	wantReasoning(t, s, k, "after the undo", "m2", "m4")
}

func TestAnAnswerToAViewThatHasNotBeenIsRefused(t *testing.T) {
	s, k := freshSession(t)
	add(t, s, k, talk("m", 2)...)
	for _, session := range []string{k.Session, "none"} {
		_, _, err := s.AppendOn(t.Context(), Key{Tenant: k.Tenant, Session: session}, 1, "", []NewMessage{user("u", "and now?")})
		wantError(t, err, ErrStale, "session %s", session)
	}
	_, err := s.Session(t.Context(), Key{Tenant: k.Tenant, Session: "none"})
	wantError(t, err, ErrNotFound, "a refused append")
	must2(s.AppendOn(t.Context(), k, 0, "", []NewMessage{user("u", "and now?")}))(t)
	wantConsistent(t, s)
}

func TestARunForAModelThatDoesNotBindReasoningKeepsIt(t *testing.T) {
	s, k := freshSession(t)
	add(t, s, k, thoughtful("m", 0, 8)...)
	c := start(t, s, k)
	ch := must(c.change(s, exclude(span(1, 1))))(t)
	ch.FreeReasoning = true
	must(s.Worker.Apply(t.Context(), c.Run, c.Fence, ch))(t)
	wantReasoning(t, s, k, "after the run", "m2", "m4", "m6", "m8")
	if start(t, s, k).Session.ReasoningKnown {
		t.Error("the reasoning counts as valid, although something before it has changed")
	}
}

// After a change of the model, or a version that did not know of reasoning, nothing is
// known of the reasoning in the view.
func TestTheFirstRunForAModelThatBindsReasoningTakesOutAllOfIt(t *testing.T) {
	s, k := freshSession(t)
	add(t, s, k, thoughtful("m", 0, 8)...)
	exec(t, s, `UPDATE compactor.sessions SET reasoning_since = NULL`)
	if !start(t, s, k).Session.ReasoningKnown {
		t.Error("nothing has changed, and the reasoning does not count as valid")
	}
	exec(t, s, `UPDATE compactor.runs SET status = 'skipped', outcome = 'test'`)
	c := start(t, s, k)
	ch := must(c.change(s, exclude(span(1, 1))))(t)
	ch.FreeReasoning = true
	must(s.Worker.Apply(t.Context(), c.Run, c.Fence, ch))(t)
	run := applyBehind(t, s, k, exclude(span(7, 7)), 7, nil)
	wantReasoning(t, s, k, "after the run")
	add(t, s, k, thoughtful("n", 20, 2)...)
	wantReasoning(t, s, k, "after a new answer", "n2")
	must(s.Undo(t.Context(), k, run, false, ""))(t)
	wantReasoning(t, s, k, "after the undo")
}

func TestAReplacedViewHoldsSignedReasoningOnlyBeforeItsFirstChange(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{"", 1 << 30, 0, false, Counts{}}, Threshold{"free", 1 << 30, 0, true, Counts{}})
	msgs := thoughtful("m", 0, 8)
	for name, c := range map[string]struct {
		model string
		give  func(view []NewMessage) []NewMessage
		want  []string
	}{
		"without a message": {"", func(v []NewMessage) []NewMessage { return slices.Delete(v, 4, 5) }, []string{"m2", "m4"}},
		"with one put between": {"", func(v []NewMessage) []NewMessage {
			return slices.Insert(v, 4, assistant("x", "put here"))
		}, []string{"m2"}},
		"with one put at its end": {"", func(v []NewMessage) []NewMessage {
			return append(v, user("u", "and now?"), signed(assistant("x", "so"), 99))
		}, []string{"m2", "m4", "m6", "m8", "x"}},
		"of a model that does not bind it": {"free-1", func(v []NewMessage) []NewMessage { return v[4:] }, []string{"m6", "m8"}},
	} {
		k := Key{Session: name}
		must2(s.Append(t.Context(), k, c.model, msgs))(t)
		view, revision := must2(s.View(t.Context(), k))(t)
		given := given(view)
		must(s.Replace(t.Context(), k, revision, c.give(given), ""))(t)
		wantReasoning(t, s, k, name, c.want...)
	}
}

// The application gives messages back as the view has them.
func TestMessagesComeBackWithoutTheReasoningThatHasLeft(t *testing.T) {
	s, k := freshSession(t)
	add(t, s, k, thoughtful("m", 0, 6)...)
	applyBehind(t, s, k, exclude(span(1, 1)), 1, nil)
	view, revision := must2(s.View(t.Context(), k))(t)
	given := given(view)
	add(t, s, k, given...)
	add(t, s, k, given[2])
	must(s.Replace(t.Context(), k, revision, given[1:], ""))(t)
	given[3].Content = chat.TextContent("something else")
	wantError(t, third(s.Append(t.Context(), k, "", given[3:4])), ErrConflict, "other content")
	wantConsistent(t, s)
}

func TestNothingBeforeAnOpenToolLoopIsUndoneOrReplaced(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{"", 1 << 30, 0, false, Counts{}})
	k := Key{Session: "s"}
	add(t, s, k, thoughtful("m", 0, 4)...)
	run := applyBehind(t, s, k, exclude(span(1, 1)), 1, nil)
	add(t, s, k, user("u", "look"), signed(call("c", "a", "b"), 20))
	add(t, s, k, result("r", "a", "seen"))
	given := func() (out []NewMessage, revision int64) {
		view, revision := must2(s.View(t.Context(), k))(t)
		for _, m := range view {
			out = append(out, NewMessage{Message: m.Message})
		}
		return out, revision
	}
	if _, err := s.Undo(t.Context(), k, run, false, ""); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "open tool loop") {
		t.Errorf("undo: %v, want it refused for an open tool loop", err)
	}
	view, revision := given()
	wantError(t, second(s.Replace(t.Context(), k, revision, view[1:], "")), ErrInUse, "replace")
	must(s.Replace(t.Context(), k, revision, append(view, result("late", "b", "behind the reasoning")), ""))(t)
	wantReasoning(t, s, k, "in the loop", "c")
	add(t, s, k, assistant("done", "done"))
	view, revision = given()
	must(s.Replace(t.Context(), k, revision, view[1:], ""))(t)
	wantReasoning(t, s, k, "after the loop")
	must(s.Undo(t.Context(), k, run, true, ""))(t)
	wantReasoning(t, s, k, "after the undo", "m2", "m4")
}

func TestASessionThatAwaitsTheEndOfALoopIsDueThen(t *testing.T) {
	s, k := freshSession(t)
	add(t, s, k, user("u", "look"), signed(call("c", "a", "b"), 1))
	c := start(t, s, k)
	err := s.Worker.Finish(t.Context(), c, StatusSkipped, Ledger{Kind: "compact", Outcome: "open_tool_loop"}, &PostRunState{DueTokens: 1 << 30, AwaitsLoop: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range []NewMessage{result("ra", "a", "x"), result("rb", "b", "x"), call("d", "c"), result("rc", "c", "x")} {
		add(t, s, k, m)
		if session(t, s, k).Due {
			t.Fatalf("due after message %d, while the loop is open", i)
		}
	}
	add(t, s, k, assistant("end", "done"))
	if !session(t, s, k).Due || len(gens(t, s)) != 1 {
		t.Error("not due after the loop has ended")
	}
}

// The rule of the database is that of package chat.
func TestReasoningIsTakenOutInSQLAsInGo(t *testing.T) {
	s := fresh(t)
	equal(t, chat.ReasoningKeys, one[[]string](t, s, `SELECT compactor.reasoning_keys()`), "keys of reasoning")
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		k := Key{Session: fmt.Sprint(n)}
		var msgs []NewMessage
		for range rapid.IntRange(1, 12).Draw(t, "messages") {
			m := drawMessage(t)
			if rapid.Bool().Draw(t, "signed") {
				m = signed(m, rapid.IntRange(0, 99).Draw(t, "form"))
			}
			msgs = append(msgs, m)
		}
		add(t, s, k, msgs...)
		wantDescribed(t, s, k)
		sid := one[int64](t, s, `SELECT sid FROM compactor.sessions WHERE id = $1`, k.Session)
		view := must(s.Operator.ViewMetas(context.Background(), sid))(t)
		metas := must(s.metas(context.Background(), "log", sid, &chat.Ranges{}, chat.Open, queryLog, sid))(t)
		from := chat.Seq(rapid.IntRange(1, len(msgs)).Draw(t, "from"))
		got, want := one[string](t, s, `SELECT compactor.stale_reasoning($1, '{[1,)}', $2)::text`, sid, from), chat.StaleReasoning(metas, from)
		if got != want.String() {
			t.Fatalf("stale from %d in SQL %s, in Go %s", from, got, want)
		}
		open := one[chat.Seq](t, s, `SELECT coalesce(compactor.open_reasoning(s), 0) FROM compactor.sessions s WHERE sid = $1`, sid)
		if want := chat.OpenReasoning(view); open != want {
			t.Fatalf("open up to %d in SQL, %d in Go", open, want)
		}
		bodies := list[string](t, s, `SELECT body FROM compactor.message_body WHERE sid = $1 ORDER BY seq`, sid)
		for i, rest := range list[string](t, s, `SELECT compactor.without_reasoning(body) FROM compactor.message_body WHERE sid = $1 ORDER BY seq`, sid) {
			var m, got chat.Message
			if err := errors.Join(json.Unmarshal([]byte(bodies[i]), &m), json.Unmarshal([]byte(rest), &got)); err != nil {
				t.Fatalf("%s: %v", rest, err)
			}
			want := m.WithoutReasoning()
			if diff := cmp.Diff(string(want.AppendJSON(nil)), string(got.AppendJSON(nil))); diff != "" {
				t.Fatalf("%s without reasoning (-Go +SQL):\n%s", bodies[i], diff)
			}
			if meta := metas[i]; meta.Signed() && (meta.ReasoningTokens < 0 || meta.ReasoningTokens > meta.Tokens) || !meta.Signed() && meta.ReasoningTokens != 0 {
				t.Fatalf("%s has %d tokens, its reasoning %d", bodies[i], meta.Tokens, meta.ReasoningTokens)
			}
		}
	})
	wantConsistent(t, s)
}

// A provider in the application's process follows the rule, too.
func TestAProviderReadsSignedReasoningOnlyOnItsPrefix(t *testing.T) {
	s := fresh(t)
	n := 0
	steps := []plan.Strategy{
		makes(t, "keep_last_n_messages", plan.Params{"n": 4}), makes(t, "sliding_window", plan.Params{"keep_last_groups": 3}),
		makes(t, "tool_result", plan.Params{"keep_last_tool_call_groups": 0}), makes(t, "clear_tool_arguments", plan.Params{"keep_last_tool_call_groups": 0}), nil,
	}
	rapid.Check(t, func(t *rapid.T) {
		n++
		k := Key{Session: fmt.Sprint("p", n)}
		source := agent.NewSource("chat", s.History(k, "", "host"))
		source.StoreExcluded, source.SkipExcluded = rapid.Bool().Draw(t, "store excluded"), rapid.IntRange(0, 3).Draw(t, "skip excluded") > 0
		strategy := func(what string) plan.Strategy { return steps[rapid.IntRange(0, len(steps)-1).Draw(t, what)] }
		p, err := agent.NewProvider(agent.ProviderConfig{Sources: []agent.Source{source}, New: strategy("new"), After: strategy("after")})
		if err != nil {
			t.Fatalf("%v", err)
		}
		prefixes := sessiontest.Prefixes{}
		said := 0
		for range rapid.IntRange(1, 5).Draw(t, "exchanges") {
			read := must(p.Read(context.Background()))(t)
			for i := range read.Messages {
				read.Messages[i].SourceID = ""
			}
			if _, err := prefixes.Valid(read.Messages); err != nil {
				t.Fatalf("%v", err)
			}
			x := agent.Exchange{Inputs: plain(user("", "go on"))}
			for range rapid.IntRange(1, 3).Draw(t, "answers") {
				said += 2
				answer := signed(assistant("", "done"), said)
				if rapid.Bool().Draw(t, "call") {
					answer = signed(call("", fmt.Sprint("c", said)), said)
				}
				x.Outputs = append(x.Outputs, answer.Message)
				for _, c := range answer.ToolCalls {
					x.Outputs = append(x.Outputs, result("", c.ID, strings.Repeat("seen ", 50)).Message)
				}
			}
			if rapid.IntRange(0, 3).Draw(t, "ends") > 0 {
				x.Outputs = append(x.Outputs, signed(assistant("", "that is all"), said+1).Message)
			}
			prefixes.Written(read.Messages, slices.Concat(x.Inputs, x.Outputs))
			must(p.Write(context.Background(), x))(t)
		}
		view, _ := must2(s.View(context.Background(), k))(t)
		var stored []chat.Message
		for _, m := range view {
			stored = append(stored, m.Message)
		}
		if _, err := prefixes.Valid(stored); err != nil && source.SkipExcluded {
			t.Fatalf("%v", err)
		}
	})
	wantConsistent(t, s)
}

// TestReasoningThatIsErasedWhileItIsRead reads the metadata of a signed message whose reasoning an erasure has taken.
func TestReasoningThatIsErasedWhileItIsRead(t *testing.T) {
	s := fresh(t)
	k := Key{Session: "s"}
	add(t, s, k, thoughtful("m", 0, 4)...)
	sid := must(s.Session(t.Context(), k))(t).SID
	byHand(t, s, sid, `UPDATE message_log SET reasoning_tokens = NULL`)
	equal(t, 4, len(must(s.Operator.ViewMetas(t.Context(), sid))(t)), "messages of the view")
}
