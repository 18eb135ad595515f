package store

import (
	"errors"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/formats"
)

// Views of other sessions are given out without being decoded.
func TestASessionKnowsWhetherItsMessagesHaveKeysOfFormats(t *testing.T) {
	s := fresh(t)
	const plain = `{"role":"assistant","content":"\"pi\": is_error","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"pi\":1}"}}],"pies":{"pi":1}}`
	noKeys := func(session string) bool {
		return !must(s.Reader.RawView(t.Context(), Key{Session: session}, false))(t).FormatKeys
	}
	appendTo := func(session, messages string) {
		exec(t, s, `SELECT compactor.append(NULL, $1, $2::json)`, session, messages)
	}
	appendTo("plain", `{"role":"user","content":"\"pi\":"}`)
	appendTo("plain", "["+plain+"]")
	appendTo("plain", "["+plain+","+plain+"]")
	if !noKeys("plain") {
		t.Error("keys in a text, or of an object of the application")
	}
	message := map[string]string{"call": strings.Replace(plain, `"type"`, `"responses":{"id":"x"},"type"`, 1)}
	for _, key := range formats.KeptKeys() {
		message[key] = `{"role":"user","content":"x","` + key + `":1}`
	}
	for name, m := range message {
		appendTo("one "+name, m)
		appendTo("many "+name, "["+plain+","+m+"]")
		appendTo("many "+name, plain)
		exec(t, s, `SELECT compactor.fork(NULL, $1, $2)`, "many "+name, "fork "+name)
		for _, session := range []string{"one ", "many ", "fork "} {
			if noKeys(session + name) {
				t.Errorf("%s%s: not known", session, name)
			}
		}
	}
	exec(t, s, `UPDATE compactor.sessions SET format_keys = NULL WHERE id = 'plain'`) // from before
	if noKeys("plain") {
		t.Error("not known is known")
	}
}

func TestThePrefixHasChangedIfWhatWasSeenStandsOtherwise(t *testing.T) {
	s, k := freshTalk(t, 10)
	want := func(what string, revision int64, seen chat.Seq, changed bool) {
		t.Helper()
		if got := must(s.Reader.PrefixChanged(t.Context(), k, revision, seen))(t); got != changed {
			t.Errorf("%s: changed since revision %d up to %d is %v", what, revision, seen, got)
		}
	}
	want("nothing", 0, 0, false)
	add(t, s, k, talk("later", 2)...)
	want("messages were appended", 0, 10, false)
	run := apply(t, s, k, summarize(span(5, 8), "in short"))
	want("a summary of messages 5 to 8", 0, 4, false)
	want("a summary of messages 5 to 8", 0, 5, true)
	want("a summary of messages 5 to 8", 0, 0, true)
	want("a summary of messages 5 to 8", 1, 0, false)
	must(s.Undo(t.Context(), k, run, false, ""))(t)
	want("undone", 0, 0, false)
	want("undone", 1, 0, true)
	want("undone", 1, 4, false)
	view, revision := must2(s.View(t.Context(), k))(t)
	msgs := given(view)
	// A message at the end changes nothing, one in the middle what stands behind it.
	must(s.Replace(t.Context(), k, revision, append(given(view), user("end", "x")), ""))(t)
	want("replaced, with one more at the end", revision, 0, false)
	must(s.Replace(t.Context(), k, revision+1, append(append(append([]NewMessage{}, msgs[:6]...), user("middle", "x")), msgs[6:]...), ""))(t)
	want("replaced, with one behind the sixth", revision, 5, false)
	want("replaced, with one behind the sixth", revision, 7, true)
	want("replaced, with one behind the sixth", revision+1, 0, true)
	want("a revision that is none", 99, 0, true)
	if _, err := s.Reader.PrefixChanged(t.Context(), Key{Session: "none"}, 0, 0); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

func TestTheRawViewIsTheView(t *testing.T) {
	s, k := freshTalk(t, 6)
	apply(t, s, k, summarize(span(2, 4), "in short"))
	view, revision := must2(s.View(t.Context(), k))(t)
	whole := must(s.Reader.WholeView(t.Context(), k))(t)
	for _, ids := range []bool{false, true} {
		raw := must(s.Reader.RawView(t.Context(), k, ids))(t)
		equal(t, ViewState{revision, 7}, raw.ViewState, "state")
		equal(t, raw.ViewState, whole.ViewState, "state")
		equal(t, raw.ViewState, must(s.Reader.ViewState(t.Context(), k))(t), "state")
		var want []string
		for _, m := range view {
			body := m.Body()
			if ids {
				body.ID = m.ID
			}
			want = append(want, string(body.AppendJSON(nil)))
		}
		equal(t, "["+strings.Join(want, ",")+"]", string(raw.Messages), "messages")
	}
	equal(t, len(view), len(whole.Messages), "messages")
	summaries, kept, tail := whole.Parts()
	if len(summaries) != 1 || len(kept) != 1 || kept[0].ID != "m1" || len(tail) != 2 || tail[0].ID != "m5" {
		t.Errorf("%v, %v, %v", summaries, kept, tail)
	}
	// After an undo, no run has changed anything.
	run := one[int64](t, s, `SELECT max(id) FROM compactor.runs`)
	must(s.Undo(t.Context(), k, run, false, ""))(t)
	undone := must(s.Reader.WholeView(t.Context(), k))(t)
	if summaries, kept, tail := undone.Parts(); len(summaries)+len(kept) != 0 || len(tail) != 6 || undone.TailStart != 1 {
		t.Errorf("%d: %v, %v, %v", undone.TailStart, summaries, kept, tail)
	}
	apply(t, s, k, summarize(span(2, 4), "in short"))
	view, revision = must2(s.View(t.Context(), k))(t)
	// What a replacement put before others is no tail, though it came later.
	must(s.Replace(t.Context(), k, revision, []NewMessage{given(view)[0], user("mine", "x"), given(view)[2], given(view)[3]}, ""))(t)
	_, kept, tail = must(s.Reader.WholeView(t.Context(), k))(t).Parts()
	if len(kept) != 2 || kept[1].ID != "mine" || len(tail) != 2 || tail[0].ID != "m5" {
		t.Errorf("%v, %v", kept, tail)
	}
	add(t, s, k, user("next", "x"))
	if _, _, tail = must(s.Reader.WholeView(t.Context(), k))(t).Parts(); len(tail) != 3 || tail[2].ID != "next" {
		t.Errorf("%v", tail)
	}
	for _, err := range []error{
		errorOf(s.Reader.RawView(t.Context(), Key{Session: "none"}, true)), errorOf(s.Reader.WholeView(t.Context(), Key{Session: "none"})), errorOf(s.Reader.ViewState(t.Context(), Key{Session: "none"})),
	} {
		if !errors.Is(err, ErrNotFound) {
			t.Error(err)
		}
	}
}

// A host that begins a prompt with the tail would send a result without its call.
func TestATailBeginsWithTheCallOfItsFirstResult(t *testing.T) {
	s, k := freshSession(t)
	add(t, s, k, user("u1", "x"), user("u2", "x"), call("calls", "a", "b"), result("r1", "a", strings.Repeat("long ", 100)), result("r2", "b", "x"), assistant("end", "x"))
	plan := summarize(span(1, 1), "in short")
	stub := replacement(chat.Meta{Seq: 4, Position: 4}, "short").Additions[0]
	stub.Message.Role, stub.Message.ToolCallID = chat.RoleTool, "a"
	plan.Additions = append(plan.Additions, stub)
	c := start(t, s, k)
	must(s.Worker.Apply(t.Context(), c.Run, c.Fence, must(c.change(s, plan))(t)))(t)
	whole := must(s.Reader.WholeView(t.Context(), k))(t)
	summaries, kept, tail := whole.Parts()
	if len(summaries) != 1 || len(kept) != 1 || kept[0].ID != "u2" || len(tail) != 4 || tail[0].ID != "calls" || tail[2].ID != "r2" {
		t.Errorf("from %d on: %v, %v, %v", whole.TailStart, summaries, kept, tail)
	}
}

func errorOf[T any](_ T, err error) error { return err }

func TestWhatACacheHadIsSummedUpByRevision(t *testing.T) {
	s, k := freshTalk(t, 6)
	tokens := func(n chat.Tokens) *chat.Tokens { return &n }
	first := int64(0)
	report := func(u Usage, counted bool) {
		t.Helper()
		if got := must(s.ReportCache(t.Context(), k, u))(t); got != counted {
			t.Errorf("%+v counts: %v", u, got)
		}
	}
	report(Usage{PromptTokens: 10}, true) // says nothing of a cache
	report(Usage{PromptTokens: 100, CachedTokens: tokens(0), WrittenTokens: tokens(90), MissReason: "first"}, true)
	report(Usage{PromptTokens: 200, CachedTokens: tokens(90)}, true)
	apply(t, s, k, exclude(span(1, 2)))
	report(Usage{PromptTokens: 150, MissReason: "messages_changed"}, true)
	report(Usage{PromptTokens: 300, CachedTokens: tokens(90), Revision: &first}, false) // a late answer
	report(Usage{PromptTokens: 300, CachedTokens: tokens(90), Seq: 3}, false)           // of a view that is not known
	const query = `SELECT concat_ws(' ', revision, reports, prompt_tokens, cached_tokens, written_tokens, miss_reason) FROM compactor.cache_usage ORDER BY 1`
	equal(t, []string{"0 3 600 180 90 first", "1 1 150 0 0 messages_changed"}, list[string](t, s, query), "sums")
	equal(t, 150, one[int64](t, s, `SELECT reported_prompt_tokens FROM compactor.sessions`), "report")
	late := int64(9)
	for _, u := range []Usage{{PromptTokens: 5, CachedTokens: tokens(6)}, {PromptTokens: 5, WrittenTokens: tokens(-1)}, {PromptTokens: 5, Revision: &late}, {PromptTokens: 5, MissReason: strings.Repeat("x", 1001)}} {
		if _, err := s.ReportCache(t.Context(), k, u); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", u, err)
		}
	}
	must(s.Admin.Erase(t.Context(), k, nil, "asked for", "test", false))(t)
	equal(t, 0, one[int64](t, s, `SELECT count(*) FROM compactor.cache_usage WHERE miss_reason IS NOT NULL`), "reasons after an erasure")
}
