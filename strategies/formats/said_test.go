package formats_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/formats"
)

// TestWhatTheUserSaidIsReadWhereverItStands: once each, in its place, and nothing else as the
// user's.
func TestWhatTheUserSaidIsReadWhereverItStands(t *testing.T) {
	t.Parallel()
	const use = `{"type":"tool_use","id":"c1","name":"look","input":{}}`
	start := lines(line("user", "u1", "", says("user", `"go"`)), line("assistant", "a1", "u1", part("x", use)))
	result := line("user", "r1", "a1", says("user", `[{"type":"tool_result","tool_use_id":"c1","content":"found"}]`))
	done := line("assistant", "a2", "r1", part("y", `{"type":"text","text":"done"}`))
	attachment := func(uuid, parent, rest string) string {
		return line("attachment", uuid, parent, `"attachment":{"type":"queued_command",`+rest+`}`)
	}
	queue := func(operation, rest string) string {
		return `{"type":"queue-operation","operation":"` + operation + `","timestamp":"2026-01-02T03:04:05Z","sessionId":"s"` + rest + `}`
	}
	typed := func(text string) string { return `,"content":"` + text + `"` }
	said := []string{"user u1 go", "assistant a1 c1=look({})", "tool r1 found for c1"}
	with := func(more ...string) []string { return append(append([]string{}, said...), more...) }
	item := func(text string) string {
		return `{"type":"message","role":"user","content":[{"type":"input_text","text":"` + text + `"}]}`
	}
	codexItem := func(text string) string { return `{"type":"response_item","payload":` + item(text) + `}` }
	event := func(text string) string {
		return `{"type":"event_msg","payload":{"type":"user_message","message":"` + text + `"}}`
	}
	answer := `{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"so"}]}}`
	compacted := func(message string, history ...string) string {
		return `{"type":"compacted","payload":{"message":"` + message + `","window_number":1,"replacement_history":[` + strings.Join(history, ",") + `]}}`
	}
	for name, tt := range map[string]struct {
		in   string
		want []string
	}{
		"an attachment": {
			start + lines(queue("enqueue", typed("stop")), result, queue("remove", typed("stop")), attachment("q", "r1", `"prompt":"stop","commandMode":"prompt"`), done),
			with("user q stop", `assistant a2 done parent_id="r1"`),
		},
		"an attachment with an image": {
			start + lines(result, attachment("q", "r1", `"prompt":[{"type":"text","text":"like this"},{"type":"image","source":{"type":"url","url":"https://x/y.png"}}]`), done),
			with("user q like this +image_url", `assistant a2 done parent_id="r1"`),
		},
		"attachments that nobody typed": {
			start + lines(result, attachment("q", "r1", `"prompt":"task is done","commandMode":"task-notification"`), attachment("p", "q", `"prompt":"from a peer","commandMode":"prompt","origin":{"kind":"peer"}`),
				attachment("h", "p", `"prompt":"mine","commandMode":"prompt","origin":{"kind":"human"}`), line("attachment", "f", "h", `"attachment":{"type":"file","content":"x"}`)),
			with("user q task is done is_meta=true", "user p from a peer is_meta=true", "user h mine"),
		},
		"the queue alone, between a call and its result": {
			start + lines(queue("enqueue", typed("stop")), result, queue("remove", ""), done), with("user stop", "assistant a2 done"),
		},
		"the queue alone, still waiting": {
			start + lines(result, done, queue("enqueue", typed("and then?"))), with("assistant a2 done", "user and then?"),
		},
		"taken back to edit": {
			start + lines(queue("enqueue", typed("stop")), queue("popAll", typed("stop")), result, done), with("assistant a2 done"),
		},
		"out of the queue, as a line": {
			start + lines(queue("enqueue", typed("stop")), result, done, queue("dequeue", ""), line("user", "u2", "a2", says("user", `"stop"`))),
			with("assistant a2 done", "user u2 stop"),
		},
		"out of the queue, as another text": {
			start + lines(queue("enqueue", typed("/review")), result, done, queue("dequeue", ""), line("user", "u2", "a2", says("user", `"Review the changes"`))),
			with("assistant a2 done", "user u2 Review the changes"),
		},
		"two in one line": {
			start + lines(queue("enqueue", typed("stop")), queue("enqueue", typed("wait")), result, done, line("user", "u2", "a2", says("user", `"stop\nwait"`))),
			with("assistant a2 done", "user u2 stop\nwait"),
		},
		"the queue alone, handed over before another": {
			start + lines(queue("enqueue", typed("stop")), result, queue("remove", typed("stop")), done, queue("enqueue", typed("wait")), queue("dequeue", ""), line("user", "u2", "a2", says("user", `"wait"`))),
			with("user stop", "assistant a2 done", "user u2 wait"),
		},
		"handed over, and another taken back to edit": {
			start + lines(queue("enqueue", typed("stop")), result, queue("remove", ""), queue("enqueue", typed("wait")), queue("popAll", typed("wait")), done),
			with("user stop", "assistant a2 done"),
		},
		"out of the queue and never a line, before another": {
			start + lines(queue("enqueue", typed("stop")), result, queue("dequeue", ""), done, queue("enqueue", typed("wait")), queue("dequeue", ""), line("user", "u2", "a2", says("user", `"wait"`))),
			with("user stop", "assistant a2 done", "user u2 wait"),
		},
		"the same twice in one line": {
			start + lines(queue("enqueue", typed("more")), queue("enqueue", typed("more")), result, done, queue("dequeue", ""), queue("dequeue", ""), line("user", "u2", "a2", says("user", `"more\nmore"`))),
			with("assistant a2 done", "user u2 more\nmore"),
		},
		"the same twice": {
			start + lines(result, queue("enqueue", typed("more")), done, queue("enqueue", typed("more")), line("user", "u2", "a2", says("user", `"more"`))),
			with("assistant a2 done", "user more", "user u2 more"),
		},
		"out of the queue, behind a result on its line": {
			start + lines(queue("enqueue", typed("stop")), line("user", "r1", "a1", says("user", `[{"type":"tool_result","tool_use_id":"c1","content":"found"},{"type":"text","text":"stop"}]`)), done),
			with("user r1#2 stop", "assistant a2 done"),
		},
		"a notice in the queue": {
			start + lines(result, queue("enqueue", typed("<task-notification>x</task-notification>")), done), with("assistant a2 done"),
		},
		"a sub-agent's": {
			lines(line("user", "u1", "", says("user", `"go"`)), line("user", "s1", "", says("user", `"sub"`)+`,"isSidechain":true,"agentId":"ag"`),
				line("attachment", "s2", "s1", `"attachment":{"type":"queued_command","prompt":"hurry"},"isSidechain":true,"agentId":"ag"`)),
			[]string{"user u1 go", "|", "user s1 sub", "user s2 hurry"},
		},
		"lines that are written again": {
			start + lines(result, done, line("user", "u1", "", says("user", `"go"`)), line("assistant", "a1", "u1", part("x", use)), line("user", "u2", "a2", says("user", `"on"`))),
			with("assistant a2 done", "user u2 on"),
		},
		"another message with the same uuid": {
			start + lines(result, done, line("user", "u1", "a2", says("user", `"not go"`))), with("assistant a2 done", "user not go"),
		},
		"a handover in Codex": {
			lines(codexItem("go"), answer, compacted("", item("go"), item("Handover: all of it")), codexItem("on")),
			[]string{"user go", "assistant so", "user Handover: all of it is_compact_summary=true", "user on"},
		},
		"a summary in Codex, and its copies": {
			lines(codexItem("go"), answer, compacted("All of it", item("go"), item("Another model says: All of it")), compacted("", item("go"), item("Another model says: All of it")), codexItem("on")),
			[]string{"user go", "assistant so", "user All of it is_compact_summary=true", "user Another model says: All of it is_compact_summary=true", "user on"},
		},
		"a prompt that only the compaction of Codex holds": {
			lines(codexItem("second"), answer, compacted("", item("first"), item("second")), compacted("", item("first"), item("second")), codexItem("third")),
			[]string{"user second", "assistant so", "user first", "user third"},
		},
		"a whole history in the compaction of Codex": {
			lines(`{"type":"session_meta","payload":{"id":"s"}}`, compacted("", item("<environment_context>x</environment_context>"), `{"type":"message","role":"developer","content":"rules"}`, item("first"),
				`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`, `{"type":"function_call_output","call_id":"c","output":"r"}`,
				`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"ok"}]}`, `{"type":"compaction","encrypted_content":"A"}`), answer, codexItem("on")),
			[]string{"user first", "assistant c=f({})", "tool r for c", "assistant ok", "assistant so", "user on"},
		},
		"a long prompt without its middle": {
			lines(codexItem("begin and much more end"), answer, compacted("", item("begin…7 tokens truncated…more end"), item("Handover"))),
			[]string{"user begin and much more end", "assistant so", "user Handover is_compact_summary=true"},
		},
		"an event of Codex, before its item and after": {
			lines(event("go"), codexItem("go"), answer, codexItem("# Context\\nmore"), event("more"), answer), []string{"user go", "assistant so", "user # Context\nmore", "assistant so"},
		},
		"an event of Codex alone": {
			lines(codexItem("go"), event("go"), answer, event("steer left"), answer, codexItem("on"), event("on")),
			[]string{"user go", "assistant so", "user steer left", "assistant so", "user on"},
		},
		"an event of Codex alone, whose text the next one has, too": {
			lines(event("fix it"), codexItem("fix it now please"), event("fix it now please"), answer), []string{"user fix it", "user fix it now please", "assistant so"},
		},
		"the same, with events before their items": {
			lines(event("fix it"), event("fix it now please"), codexItem("fix it now please"), answer), []string{"user fix it", "user fix it now please", "assistant so"},
		},
		"an event of Codex alone, whose text the context has, too": {
			lines(codexItem("# AGENTS.md: test it"), event("test it"), answer, event("so"), codexItem("<environment_context>so</environment_context>")),
			[]string{"user # AGENTS.md: test it", "user test it", "assistant so", "user so", "user <environment_context>so</environment_context>"},
		},
		"events of Codex in one another": {
			lines(codexItem("a"), codexItem("IDE: a b"), event("a b"), event("a"), answer), []string{"user a", "user IDE: a b", "assistant so"},
		},
		"a compaction that was rolled back": {
			lines(codexItem("go"), answer, compacted("", item("go"), item("Handover")), codexItem("wrong"), answer, `{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":1}}`),
			[]string{"user go", "assistant so", "user Handover is_compact_summary=true"},
		},
		"entries of pi that are written again": {
			lines(`{"type":"session","id":"s","cwd":"/"}`, `{"type":"message","id":"1","parentId":null,"message":{"role":"user","content":"go"}}`, `{"type":"message","id":"1","parentId":null,"message":{"role":"user","content":"go"}}`,
				`{"type":"message","id":"2","parentId":"1","message":{"role":"user","content":"steered"}}`),
			[]string{"user 1 go", "user 2 steered"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for i, s := range read(t, tt.in, formats.Auto) {
				if i > 0 {
					got = append(got, "|")
				}
				got = append(got, outline(s.Session)...)
				if s.Report.Values != s.Report.Messages+sum(s.Report.Other) {
					t.Errorf("%+v does not add up", s.Report)
				}
				// Nothing is said twice or lost when it is written and read again.
				again := one(t, first(write(t, s.Session, map[bool]string{true: "codex", false: "claude-code"}[strings.Contains(tt.in, "payload")])), formats.Auto)
				if diff := cmp.Diff(texts(s.Session), texts(again.Session)); diff != "" {
					t.Errorf("written and read (-want +got):\n%s", diff)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

func first[T, U any](v T, _ U) T { return v }

// texts returns the roles and texts of a session.
func texts(s chat.Session) (out []string) {
	for _, m := range s.Messages {
		out = append(out, string(m.Role)+" "+m.Content.String())
	}
	return out
}

// TestLinesThatWereNotWrittenWholeAreSkipped: in all formats of lines, wherever they stand.
func TestLinesThatWereNotWrittenWholeAreSkipped(t *testing.T) {
	t.Parallel()
	user := chat.Message{Role: chat.RoleUser, Content: chat.TextContent("go")}
	s := chat.Session{ID: "s", Messages: []chat.Message{user, {Role: chat.RoleAssistant, Content: chat.TextContent("so")}, user, {Role: chat.RoleAssistant, Content: chat.TextContent("ok")}}}
	files := map[string]string{
		"chat":      lines(`{"role":"user","content":"go"}`, `{"role":"assistant","content":"so"}`, `{"role":"user","content":"go"}`, `{"role":"assistant","content":"ok"}`),
		"anthropic": lines(`{"role":"user","content":"go"}`, `{"role":"assistant","content":"so"}`, `{"role":"user","content":"go"}`, `{"role":"assistant","content":"ok"}`),
		"responses": lines(`{"type":"message","role":"user","content":"go"}`, `{"type":"message","role":"assistant","content":"so"}`, `{"type":"message","role":"user","content":"go"}`, `{"type":"message","role":"assistant","content":"ok"}`),
		"sharegpt":  lines(`{"from":"human","value":"go"}`, `{"from":"gpt","value":"so"}`, `{"from":"human","value":"go"}`, `{"from":"gpt","value":"ok"}`),
	}
	for _, format := range []string{"claude-code", "codex", "pi"} {
		files[format], _ = write(t, s, format)
	}
	want := texts(s)
	for format, text := range files {
		all := strings.SplitAfter(text, "\n")
		all = all[:len(all)-1]
		cut := all[len(all)-1][:len(all[len(all)-1])/2]
		for name, tt := range map[string]struct {
			text  string
			want  []string
			lines []int
		}{
			"cut off":              {strings.Join(all[:len(all)-1], "") + cut, want[:3], []int{len(all)}},
			"NUL at the end":       {text + strings.Repeat("\x00", 4096), want, []int{len(all) + 1}},
			"NUL in the middle":    {all[0] + strings.Repeat("\x00", 100) + "\n" + strings.Join(all[1:], ""), want, []int{2}},
			"NUL before a line":    {all[0] + strings.Repeat("\x00", 100) + strings.Join(all[1:], ""), want, nil},
			"cut off, NUL, a line": {all[0] + cut + strings.Repeat("\x00", 100) + strings.Join(all[1:], ""), want, []int{2}},
			"no JSON":              {all[0] + "### nonsense\n" + strings.Join(all[1:], ""), want, []int{2}},
			"half a line":          {all[0] + cut + "\n" + strings.Join(all[1:], ""), want, []int{2}},
			"half a first line":    {cut + "\n" + text, want, []int{1}},
			"another value":        {all[0] + "17\n" + strings.Join(all[1:], ""), want, []int{2}},
			"CRLF and blank lines": {"\xef\xbb\xbf" + strings.ReplaceAll(text, "\n", "\r\n\r\n"), want, nil},
			"glued":                {all[0] + strings.TrimSuffix(all[1], "\n") + strings.Join(all[2:], ""), want, nil},
		} {
			r, err := formats.NewReader(strings.NewReader(tt.text), format)
			if err != nil {
				t.Fatal(err)
			}
			r.SkipLines = true
			got, err := r.Next()
			if err != nil {
				t.Errorf("%s: %s: %v", format, name, err)
				continue
			}
			var skipped []int
			for _, line := range got.Report.Skipped {
				skipped = append(skipped, line.Line)
			}
			if diff := cmp.Diff(tt.want, texts(got.Session)); diff != "" || !cmp.Equal(tt.lines, skipped) {
				t.Errorf("%s: %s: skipped %v, want %v; messages (-want +got):\n%s", format, name, got.Report.Skipped, tt.lines, diff)
			}
			if n, fault := outcome(t, tt.text, format, false); (fault != nil) != (tt.lines != nil) {
				t.Errorf("%s: %s: without SkipLines %d sessions, %v", format, name, n, fault)
			}
		}
	}
}

// TestWhatIsLeftOutHasALine: the first of each kind.
func TestWhatIsLeftOutHasALine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]map[string]int{
		lines(`{"type":"file-history-snapshot","snapshot":{}}`, line("user", "u1", "", says("user", `"one"`)), line("attachment", "f", "u1", `"attachment":{"type":"file"}`), line("oddity", "o", "f", `"x":1`),
			line("user", "u2", "u1", says("user", `"left"`)), line("assistant", "a2", "u2", says("assistant", `"left"`)), line("oddity", "o2", "a2", `"x":1`),
			line("user", "u3", "u1", says("user", `"two"`)+`,"toolUseResult":{}`)): {"file-history-snapshot": 1, "attachment:file": 3, "oddity": 4, "abandoned": 5, "toolUseResult": 8},
		lines(`{"type":"session_meta","payload":{"id":"s"}}`, `{"type":"response_item","payload":{"type":"message","role":"user","content":"x"}}`, `{"type":"response_item","payload":{"type":"ghost_snapshot"}}`, `{"type":"novelty","payload":{}}`,
			`{"type":"response_item","payload":{"type":"message","role":"user","content":"y"}}`, `{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":1}}`): {"session_meta": 1, "response_item:ghost_snapshot": 3, "novelty": 4, "abandoned": 5, "event_msg:thread_rolled_back": 6},
		lines(`{"type":"session","id":"s","cwd":"/"}`, `{"type":"message","id":"1","parentId":null,"message":{"role":"user","content":"go"}}`, `{"type":"message","id":"2","parentId":"1","message":{"role":"user","content":"left"}}`,
			`{"type":"custom","id":"3","parentId":"1"}`, `{"type":"message","id":"4","parentId":"3","message":{"role":"user","content":"on"}}`): {"session": 1, "abandoned": 3, "custom": 4},
	} {
		if diff := cmp.Diff(want, one(t, in, formats.Auto).Report.First); diff != "" {
			t.Errorf("first lines (-want +got):\n%s\nof %s", diff, in)
		}
	}
}
