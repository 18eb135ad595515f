package builtin

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

func TestClamp(t *testing.T) {
	t.Parallel()
	log := strings.Repeat("0123456789 a line\n", 40) // 720 characters, 184 tokens
	parts := func(texts ...string) chat.Message {
		m := chat.Message{Role: chat.RoleTool, ToolCallID: "a", Content: chat.Content{Parts: []chat.Part{}}}
		for _, s := range texts {
			p := chat.Part{Type: "text", Text: s}
			if s == "" {
				p = chat.Part{Type: "image_url", Raw: json.RawMessage(`{"type":"image_url"}`)}
			}
			m.Content.Parts = append(m.Content.Parts, p)
		}
		return m
	}
	line := "0123456789 a line"
	rep := func(n int) string { return strings.TrimSuffix(strings.Repeat(line+"\n", n), "\n") }
	steps(t, map[string]step{
		"the middle goes, at line boundaries, and it says how much": {
			messages: []chat.Message{sessiontest.User("go"), sessiontest.Calls("a"), sessiontest.Result("a", log), sessiontest.Says("ok")},
			strategy: "clamp", params: plan.Params{"max_tokens": 60},
			want: []string{"1 user: go", "2 assistant: a=do_a{}", "+3 tool: " + rep(4) + "\n[… 576 characters in 32 lines cut …]\n" + rep(4), "4 assistant: ok"},
		},
		"the head may have it all": {
			messages: []chat.Message{sessiontest.User("go"), sessiontest.Calls("a"), sessiontest.Result("a", log), sessiontest.Says("ok")},
			strategy: "clamp", params: plan.Params{"max_tokens": 60, "head": 1},
			want: []string{"1 user: go", "2 assistant: a=do_a{}", "+3 tool: " + rep(8) + "\n[… 576 characters in 32 lines cut …]", "4 assistant: ok"},
		},
		"characters are counted, not bytes": {
			messages: []chat.Message{sessiontest.User("go"), sessiontest.Says(strings.Repeat("é", 400)), sessiontest.User("x")},
			strategy: "clamp", params: plan.Params{"max_tokens": 0, "max_chars": 280},
			want: []string{"1 user: go", "+2 assistant: " + strings.Repeat("é", 100) + "\n[… 200 characters cut …]\n" + strings.Repeat("é", 100), "3 user: x"},
		},
		"a text without lines is cut where it has to be, over parts, and media stay": {
			messages: []chat.Message{sessiontest.User("go"), sessiontest.Calls("a"), parts(strings.Repeat("a", 150), "", strings.Repeat("b", 300), strings.Repeat("c", 150)), sessiontest.Says("ok")},
			strategy: "clamp", params: plan.Params{"max_tokens": 0, "max_chars": 480},
			want: []string{
				"1 user: go", "2 assistant: a=do_a{}",
				"+3 tool: <text " + strings.Repeat("a", 150) + "><image_url ><text " + strings.Repeat("b", 50) + "\n[… 200 characters cut …]\n" +
					strings.Repeat("b", 50) + "><text " + strings.Repeat("c", 150) + ">", "4 assistant: ok",
			},
		},
		"parts of which nothing stays go": {
			messages: []chat.Message{sessiontest.User("go"), sessiontest.Calls("a"), parts(strings.Repeat("a", 150), strings.Repeat("b", 300), strings.Repeat("c", 150)), sessiontest.Says("ok")},
			strategy: "clamp", params: plan.Params{"max_tokens": 0, "max_chars": 280},
			want: []string{
				"1 user: go", "2 assistant: a=do_a{}",
				"+3 tool: <text " + strings.Repeat("a", 100) + "\n[… 400 characters cut …]\n><text " + strings.Repeat("c", 100) + ">", "4 assistant: ok",
			},
		},
		"what is small enough stays": {
			messages: []chat.Message{sessiontest.User("go"), sessiontest.Says(log), sessiontest.User("x")}, strategy: "clamp", params: plan.Params{"max_tokens": 184},
		},
		"pinned messages and the last user message stay": {
			messages: []chat.Message{sessiontest.User(log), sessiontest.Says(log), sessiontest.User(log)}, pinned: []chat.Seq{1, 2}, strategy: "clamp", params: plan.Params{"max_tokens": 60},
		},
		"only the roles that are named are cut": {
			messages: []chat.Message{sessiontest.User(log), sessiontest.Sys(log), sessiontest.Says(log), sessiontest.User("x")}, strategy: "clamp", params: plan.Params{"max_tokens": 60, "roles": []any{"tool"}},
		},
		"where it is not the text that is large, nothing is cut": {
			messages: []chat.Message{sessiontest.User("go"), toolCalls("a", "write", `{"x":"`+strings.Repeat("y", 900)+`"}`), sessiontest.Result("a", "ok")},
			strategy: "clamp", params: plan.Params{"max_tokens": 60},
		},
	})
}

// The call of a pinned result stays as it is, though it is not pinned itself.
func TestClampLeavesTheCallOfAPinnedResult(t *testing.T) {
	t.Parallel()
	long := callsAndSays(strings.Repeat("0123456789 a line\n", 40), "a")
	for pinned, want := range map[bool]int{true: 0, false: 1} {
		s := sessiontest.Of(sessiontest.User("go"), long, sessiontest.Result("a", "ok"), sessiontest.Says("done"))
		s.Pinned[3] = pinned
		tr := s.Transcript(true)
		tr.Entries[1].Message = s.Messages[2]
		got, err := planOf(t, Registry(), "clamp", plan.Params{"max_tokens": 60}, tr)
		if err != nil || len(got.Additions) != want {
			t.Errorf("result pinned %v: %v, %d messages are rewritten, want %d", pinned, err, len(got.Additions), want)
		}
	}
}

func TestClampHoldsItsLimitAndItsWords(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SampledFrom([]string{"word ", "línea\n", "\n", "日本語", "[x] "})
		text := strings.Repeat(strings.Join(rapid.SliceOfN(words, 1, 20).Draw(t, "words"), ""), rapid.IntRange(1, 60).Draw(t, "times"))
		limit := rapid.IntRange(minClamped, 900).Draw(t, "limit")
		head := rapid.Float64Range(0, 1).Draw(t, "head")
		m := sessiontest.Says(text)
		e := plan.Entry{Meta: m.Meta(1)}
		e.Tokens = sessiontest.Quarter{}.Message(&m)
		short, n, ok := clampMessage(sessiontest.Quarter{}, &e, &m, 0, limit, head)
		if chars := utf8.RuneCountInString(text); chars <= limit {
			if ok {
				t.Fatalf("%d characters were cut to %d", chars, limit)
			}
			return
		}
		got := short.Content.Text
		if !ok || utf8.RuneCountInString(got) > limit || n != (sessiontest.Quarter{}).Message(&short) || !utf8.ValidString(got) {
			t.Fatalf("%v: %d tokens, %q", ok, n, got)
		}
		before, after, _ := strings.Cut(got, "\n[…")
		_, after, _ = strings.Cut(after, "cut …]\n")
		if !strings.HasPrefix(text, before) || !strings.HasSuffix(text, after) {
			t.Fatalf("%q is not the beginning and the end of %q", got, text)
		}
		tokens := chat.Tokens(rapid.IntRange(60, 200).Draw(t, "tokens"))
		if short, n, ok := clampMessage(sessiontest.Quarter{}, &e, &m, tokens, 0, head); ok && (n > tokens || n != (sessiontest.Quarter{}).Message(&short)) {
			t.Fatalf("%d tokens, want %d", n, tokens)
		}
	})
}

func TestDedupeReads(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("package main\n", 20)
	steps(t, map[string]step{
		"the older of two equal reads names the newer": {
			messages: []chat.Message{
				sessiontest.User("go"), toolCalls("a", "read_file", `{"path":"m.go","n":1}`), sessiontest.Result("a", big), toolCalls("b", "read_file", `{"n": 1, "path": "m.go"}`), sessiontest.Result("b", big), sessiontest.Says("ok"),
			},
			strategy: "dedupe_reads",
			want: []string{
				"1 user: go", `2 assistant: a=read_file{"path":"m.go","n":1}`, "+3 tool: [read_file m.go: the same was read again later, see the result of call b]",
				`4 assistant: b=read_file{"n": 1, "path": "m.go"}`, "5 tool: " + strings.TrimSpace(big), "6 assistant: ok",
			},
		},
		"a later write puts what was read out of date, whatever part it was": {
			messages: []chat.Message{
				sessiontest.User("go"), toolCalls("a", "Read", `{"file_path":"m.go","offset":1}`, "b", "Read", `{"file_path":"o.go"}`), sessiontest.Result("b", big), sessiontest.Result("a", big),
				toolCalls("c", "Edit", `{"file_path":"m.go"}`), sessiontest.Result("c", "done"), sessiontest.Says("ok"),
			},
			strategy: "dedupe_reads",
			want: []string{
				"1 user: go", `2 assistant: a=Read{"file_path":"m.go","offset":1} b=Read{"file_path":"o.go"}`, "3 tool: " + strings.TrimSpace(big),
				"+4 tool: [Read m.go: out of date, the file was changed later by call c]", `5 assistant: c=Edit{"file_path":"m.go"}`, "6 tool: done", "7 assistant: ok",
			},
		},
		"of three equal reads both older ones name the newest": {
			messages: []chat.Message{
				sessiontest.User("go"), toolCalls("a", "cat", `{"path":"m"}`), sessiontest.Result("a", big), toolCalls("a", "cat", `{"path":"m"}`), sessiontest.Result("a", big), toolCalls("c", "cat", `{"path":"m"}`), sessiontest.Result("c", big),
			},
			strategy: "dedupe_reads",
			want: []string{
				"1 user: go", `2 assistant: a=cat{"path":"m"}`, "+3 tool: [cat m: the same was read again later, see the result of call c]",
				`4 assistant: a=cat{"path":"m"}`, "+5 tool: [cat m: the same was read again later, see the result of call c]", `6 assistant: c=cat{"path":"m"}`, "7 tool: " + strings.TrimSpace(big),
			},
		},
		"another part, another tool, a newer call that failed or has no result supersede nothing": {
			messages: []chat.Message{
				sessiontest.User("go"), toolCalls("a", "read", `{"path":"m","offset":1}`), sessiontest.Result("a", big), toolCalls("b", "read", `{"path":"m","offset":2}`), sessiontest.Result("b", big),
				toolCalls("c", "cat", `{"path":"m","offset":1}`), sessiontest.Result("c", big),
				toolCalls("d", "write", `{"path":"m"}`), sessiontest.Result("d", "Error: disk full"), toolCalls("e", "read", `{"path":"m","offset":1}`),
			},
			strategy: "dedupe_reads",
		},
		"a pinned result stays": {
			messages: []chat.Message{sessiontest.User("go"), toolCalls("a", "read", `{"path":"m"}`), sessiontest.Result("a", big), toolCalls("b", "read", `{"path":"m"}`), sessiontest.Result("b", big)},
			pinned:   []chat.Seq{3}, strategy: "dedupe_reads",
		},
		"a result that is shorter than the stub stays": {
			messages: []chat.Message{sessiontest.User("go"), toolCalls("a", "read", `{"path":"m"}`), sessiontest.Result("a", "tiny"), toolCalls("b", "read", `{"path":"m"}`), sessiontest.Result("b", "tiny")},
			strategy: "dedupe_reads",
		},
		"tools may be named": {
			messages: []chat.Message{sessiontest.User("go"), toolCalls("a", "slurp", `not json`), sessiontest.Result("a", big), toolCalls("b", "SLURP", `not json`), sessiontest.Result("b", big)},
			strategy: "dedupe_reads", params: plan.Params{"read_tools": "slurp"},
			want: []string{
				"1 user: go", "2 assistant: a=slurpnot json", "+3 tool: [slurp: the same was read again later, see the result of call b]",
				"4 assistant: b=SLURPnot json", "5 tool: " + strings.TrimSpace(big),
			},
		},
	})
}

func TestStripMedia(t *testing.T) {
	t.Parallel()
	media := func(m chat.Message, types ...string) chat.Message {
		m.Content = chat.Content{Parts: []chat.Part{{Type: "text", Text: m.Content.Text}}}
		for _, k := range types {
			m.Content.Parts = append(m.Content.Parts, chat.Part{Type: k, Raw: json.RawMessage(`{"type":"` + k + `"}`)})
		}
		return m
	}
	messages := []chat.Message{
		media(sessiontest.User("one"), "image_url", "input_audio"), sessiontest.Calls("a"), media(sessiontest.Result("a", "shot"), "image"), sessiontest.Says("ok"),
		media(sessiontest.User("two"), "input_image"), sessiontest.Says("ok"), media(sessiontest.User("three"), "file"),
	}
	tail := []string{"6 assistant: ok", "7 user: <text three><file >"}
	head := []string{
		"+1 user: <text one><text [image left out]><text [audio left out]>", "2 assistant: a=do_a{}",
		"+3 tool: <text shot><text [image left out]>", "4 assistant: ok",
	}
	steps(t, map[string]step{
		"media outside the newest turns become a text each": {
			messages: messages, strategy: "strip_media", params: plan.Params{"keep_last_turns": 2},
			want: slices.Concat(head, []string{"5 user: <text two><input_image >"}, tail),
		},
		"the last user message keeps its own": {
			messages: messages, strategy: "strip_media", params: plan.Params{"keep_last_turns": 0},
			want: slices.Concat(head, []string{"+5 user: <text two><input_text [image left out]>"}, tail),
		},
		"pinned messages keep theirs": {
			messages: messages, strategy: "strip_media", pinned: []chat.Seq{1, 3, 5},
		},
	})
}

func TestClearToolArguments(t *testing.T) {
	t.Parallel()
	long := `{"path":"m.go","text":"` + strings.Repeat("x", 600) + `"}`
	short := `{"path":"m.go","text":"xxxxxxxxxx...[truncated]"}`
	messages := []chat.Message{
		sessiontest.User("go"), toolCalls("a", "write", long, "b", "note", long, "c", "write", `{}`), sessiontest.Result("a", "ok"), sessiontest.Result("b", "ok"), sessiontest.Result("c", "ok"),
		toolCalls("d", "write", long), sessiontest.Result("d", "ok"),
	}
	steps(t, map[string]step{
		"large arguments of older calls are shortened": {
			messages: messages, strategy: "clear_tool_arguments", params: plan.Params{"value_chars": 10, "exclude_tools": []any{"no*"}},
			want: []string{"1 user: go", "+2 assistant: a=write" + short + " b=note" + long + " c=write{}", "3 tool: ok", "4 tool: ok", "5 tool: ok", "6 assistant: d=write" + long, "7 tool: ok"},
		},
		"the call of a pinned result stays": {
			messages: messages, strategy: "clear_tool_arguments", pinned: []chat.Seq{4},
		},
		"what is small enough stays": {
			messages: messages, strategy: "clear_tool_arguments", params: plan.Params{"max_chars": 1000},
		},
	})
	t.Run("what else came with a call stays", func(t *testing.T) {
		t.Parallel()
		for raw, want := range map[string]string{
			`{"id":"a","type":"function","function":{"name":"w","arguments":"{\"x\":1}"},"extra_content":{"sig":"s"}}`: `{"extra_content":{"sig":"s"},"function":{"arguments":"{\"x\":2}","name":"w"},"id":"a","type":"function"}`,
			`{"id":"a","type":"custom","custom":{"name":"w","input":"x"}}`:                                             `{"custom":{"input":"{\"x\":2}","name":"w"},"id":"a","type":"custom"}`,
			`{"id":"a","function":{"name":"w","arguments":{"x":1},"strict":true},"index":0}`:                           `{"function":{"arguments":{"x":2},"name":"w","strict":true},"id":"a","index":0}`,
			`{"id":"a","function":null}`: ``,
			``:                           ``,
		} {
			c := withArguments(chat.ToolCall{ID: "a", Raw: json.RawMessage(raw)}, `{"x":2}`)
			if diff := cmp.Diff(want, string(c.Raw)); diff != "" || c.Arguments != `{"x":2}` {
				t.Errorf("%s: %s", raw, diff)
			}
		}
	})
}
