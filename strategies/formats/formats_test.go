package formats_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/formats"
)

func lines(all ...string) string { return strings.Join(all, "\n") + "\n" }

// line returns a line of a Claude Code session.
func line(typ, uuid, parent, rest string) string {
	p := "null"
	if parent != "" {
		p = `"` + parent + `"`
	}
	return `{"type":"` + typ + `","uuid":"` + uuid + `","parentUuid":` + p + `,"sessionId":"s","timestamp":"2026-01-02T03:04:05Z",` + rest + `}`
}

func says(role, content string) string {
	return `"message":{"role":"` + role + `","content":` + content + `}`
}

func part(id, block string) string {
	return `"message":{"id":"` + id + `","type":"message","model":"claude","role":"assistant","content":[` + block + `]}`
}

func TestLogs(t *testing.T) {
	t.Parallel()
	const use = `{"type":"tool_use","id":"c1","name":"look","input":{"a":1}}`
	const use2 = `{"type":"tool_use","id":"c2","name":"look","input":{}}`
	result := func(id string) string {
		return says("user", `[{"type":"tool_result","tool_use_id":"`+id+`","content":"found"}]`) + `,"toolUseResult":{"stdout":"found"}`
	}
	tests := map[string]struct {
		in      string
		format  string
		want    [][]string
		other   map[string]int
		dropped map[string]int
	}{
		"lines of one API message are one message": {
			in: lines(
				line("user", "u1", "", says("user", `"go"`)),
				line("assistant", "a1", "u1", part("x", `{"type":"thinking","thinking":"hm","signature":"s"}`)),
				line("assistant", "a2", "a1", part("x", `{"type":"text","text":"looking"}`)),
				line("assistant", "a3", "a2", part("x", use)),
				line("user", "r1", "a3", result("c1")),
				line("assistant", "a4", "a3", part("x", use2)),
				line("user", "r2", "a4", result("c2")),
				line("assistant", "a5", "r2", part("y", `{"type":"text","text":"done"}`))),
			format: "claude-code",
			want: [][]string{{
				"user u1 go", `assistant a1 looking +thinking c1=look({"a":1}) c2=look({})`,
				"tool r1 found for c1", "tool r2 found for c2 parent_id=\"a1\"", "assistant a5 done",
			}},
			other: map[string]int{"joined": 3}, dropped: map[string]int{"toolUseResult": 2},
		},
		"a sub-agent is a session of its own": {
			in: lines(
				line("user", "u1", "", says("user", `"go"`)),
				line("user", "s1", "", says("user", `"sub task"`)+`,"isSidechain":true`),
				line("assistant", "s2", "s1", says("assistant", `"sub done"`)+`,"isSidechain":true`),
				line("user", "t1", "", says("user", `"other"`)+`,"isSidechain":true,"agentId":"ag"`),
				line("assistant", "a1", "u1", says("assistant", `"done"`))),
			format: "claude-code",
			want:   [][]string{{"user u1 go", "assistant a1 done"}, {"user s1 sub task", "assistant s2 sub done"}, {"user t1 other"}},
			other:  map[string]int{"sidechain": 3},
		},
		"a file of a sub-agent alone": {
			in: lines(`{"type":"queue-operation","sessionId":"s"}`,
				line("user", "s1", "", says("user", `"sub task"`)+`,"isSidechain":true,"agentId":"ag"`)),
			format: "claude-code",
			want:   [][]string{{"user s1 sub task"}},
			other:  map[string]int{"queue-operation": 1},
		},
		"meta lines and a compaction": {
			in: lines(
				`{"type":"summary","summary":"A title","leafUuid":"u1"}`,
				line("user", "u1", "", says("user", `"go"`)),
				line("user", "u2", "u1", says("user", `"Caveat"`)+`,"isMeta":true`),
				`{"type":"system","subtype":"compact_boundary","uuid":"b","parentUuid":null,"logicalParentUuid":"u2","compactMetadata":{"trigger":"auto","preTokens":9}}`,
				line("user", "u3", "b", says("user", `"All of it"`)+`,"isCompactSummary":true`),
				line("user", "u4", "u3", says("user", `"on"`))),
			format: "claude-code",
			want:   [][]string{{"user u1 go", "user u2 Caveat is_meta=true", "user u3 All of it is_compact_summary=true", "user u4 on"}},
			other:  map[string]int{"summary": 1, "system:compact_boundary": 1},
		},
		"messages after the one that the user went back to are left out": {
			in: lines(
				line("progress", "p", "", `"data":{}`),
				line("user", "u1", "p", says("user", `"one"`)),
				line("assistant", "a1", "u1", part("x", `{"type":"text","text":"so"}`)),
				line("assistant", "a2", "a1", part("x", use)),
				line("user", "u2", "u1", says("user", `"after one"`)),
				line("user", "u3", "u2", says("user", `"left"`)),
				line("assistant", "a3", "u3", says("assistant", `"left too"`)),
				line("user", "u4", "u2", says("user", `"instead"`)),
				line("assistant", "a4", "u4", says("assistant", `"yes"`))),
			format: "claude-code",
			want: [][]string{{
				"user u1 one", `assistant a1 so c1=look({"a":1})`, `user u2 after one parent_id="u1"`,
				"user u4 instead", "assistant a4 yes",
			}},
			other: map[string]int{"abandoned": 2, "joined": 1, "progress": 1},
		},
		"several results on a line": {
			in: line("user", "u1", "", says("user", `[{"type":"text","text":"and"},{"type":"tool_result","tool_use_id":"c1","is_error":true,"content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA"}}]},{"type":"tool_result","tool_use_id":"c2"}]`)),
			want: [][]string{{
				"tool u1 +image_url for c1 is_error=true", "tool u1#2 for c2", "user u1#3 and",
			}},
			format: "claude-code",
		},
		"a rollout with parallel calls, a compaction and a rollback": {
			in: lines(
				`{"timestamp":"2026-01-02T03:04:05Z","type":"session_meta","payload":{"id":"s","base_instructions":{"text":"You code."}}}`,
				`{"timestamp":"2026-01-02T03:04:05Z","type":"turn_context","payload":{"model":"gpt-5"}}`,
				`{"timestamp":"2026-01-02T03:04:05Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}}`,
				`{"type":"response_item","payload":{"type":"reasoning","summary":[],"encrypted_content":"x"}}`,
				`{"type":"response_item","payload":{"type":"function_call","name":"look","arguments":"{}","call_id":"c1"}}`,
				`{"type":"response_item","payload":{"type":"reasoning","summary":[]}}`,
				`{"type":"response_item","payload":{"type":"custom_tool_call","name":"patch","input":"*** Begin","call_id":"c2"}}`,
				`{"type":"response_item","payload":{"type":"function_call_output","output":"one","call_id":"c1"}}`,
				`{"type":"response_item","payload":{"type":"custom_tool_call_output","output":"two","call_id":"c2"}}`,
				`{"type":"response_item","payload":{"type":"local_shell_call","call_id":"c3","status":"completed","action":{"type":"exec","command":["ls"]}}}`,
				`{"type":"compacted","payload":{"message":"All of it","replacement_history":[]}}`,
				`{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"wrong"}]}}`,
				`{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"left"}]}}`,
				`{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":1}}`,
				`{"type":"response_item","payload":{"type":"ghost_snapshot"}}`),
			format: "codex",
			want: [][]string{{
				"system You code.", "user go", "assistant +reasoning c1=look({})", "tool one for c1",
				"assistant +reasoning c2=patch(*** Begin)", "tool two for c2",
				`assistant c3=local_shell({"type":"exec","command":["ls"]})`, "user All of it is_compact_summary=true",
			}},
			other: map[string]int{
				"turn_context": 1, "joined": 2, "abandoned": 2, "event_msg:thread_rolled_back": 1, "response_item:ghost_snapshot": 1,
			},
		},
		"a rollout of the first versions": {
			in: lines(
				`{"id":"s","timestamp":"2026-01-02T03:04:05Z","instructions":null}`, `{"record_type":"state"}`,
				`{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}`),
			format: "codex", want: [][]string{{"user go"}}, other: map[string]int{"state": 1, "session_meta": 1},
		},
		"the branch of the last entry of a pi session": {
			in: lines(
				`{"type":"session","version":3,"id":"s","timestamp":"2026-01-02T03:04:05Z","cwd":"/"}`,
				`{"type":"message","id":"1","parentId":null,"message":{"role":"user","content":"go"}}`,
				`{"type":"message","id":"2","parentId":"1","message":{"role":"assistant","content":[{"type":"text","text":"left"}]}}`,
				`{"type":"branch_summary","id":"3","parentId":"1","fromId":"2","summary":"tried"}`,
				`{"type":"model_change","id":"4","parentId":"3","provider":"p","modelId":"m"}`,
				`{"type":"custom_message","id":"5","parentId":"4","customType":"x","content":"note","display":true,"details":{}}`,
				`{"type":"message","id":"6","parentId":"5","message":{"role":"bashExecution","command":"ls","output":"a","exitCode":0}}`,
				`{"type":"message","id":"7","parentId":"6","message":{"role":"bashExecution","command":"ls","output":"a","excludeFromContext":true}}`,
				`{"type":"compaction","id":"8","parentId":"7","summary":"All of it","firstKeptEntryId":"5","tokensBefore":9}`),
			format: "pi",
			want: [][]string{{
				"user 1 go", "user 3 tried is_compact_summary=true", "user 5 note is_meta=true",
				"user 6 Ran `ls`\n```\na\n```", "user 8 All of it is_compact_summary=true",
			}},
			other:   map[string]int{"session": 1, "abandoned": 1, "model_change": 1, "message:excluded": 1},
			dropped: map[string]int{"details": 1},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := formats.Detect([]byte(tt.in)); got != tt.format {
				t.Errorf("detected %s", got)
			}
			all := read(t, tt.in, tt.format)
			var got [][]string
			values := 0
			for _, s := range all {
				got = append(got, outline(s.Session))
				values += s.Report.Values
				if s.Report.Values != s.Report.Messages+sum(s.Report.Other) {
					t.Errorf("%+v does not add up", s.Report)
				}
				out, losses := write(t, s.Session, tt.format)
				if len(losses) > 0 {
					t.Errorf("lost %v", losses)
				}
				if diff := cmp.Diff(canon(t, s.Session), canon(t, one(t, out, formats.Auto).Session)); diff != "" {
					t.Errorf("round trip (-want +got):\n%s", diff)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.other, all[0].Report.Other); diff != "" {
				t.Errorf("other (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.dropped, all[0].Report.Dropped); diff != "" {
				t.Errorf("dropped (-want +got):\n%s", diff)
			}
			if want := strings.Count(tt.in, "\n"); values-all[0].Report.Other["sidechain"] != max(want, 1) && strings.HasSuffix(tt.in, "\n") {
				t.Errorf("%d values of %d lines", values, want)
			}
		})
	}
}

// TestDocumentsComeBackExactly: documents of APIs, whole.
func TestDocumentsComeBackExactly(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		format, in string
		want       []string
	}{
		"an Anthropic request": {
			"anthropic",
			`{"session_id":"s","model":"claude","system":[{"type":"text","text":"You help.","cache_control":{"type":"ephemeral"}}],"messages":[` +
				`{"role":"user","content":"go"},` +
				`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"sig=="},{"type":"redacted_thinking","data":"xx"},{"type":"text","text":"so"},` +
				`{"type":"tool_use","id":"c1","name":"look","input":{"a": 1.0},"cache_control":{"type":"ephemeral"}},{"type":"tool_use","id":"c2","name":"look","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"one","is_error":true},{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"two"},{"type":"image","source":{"type":"url","url":"https://x/y.png"}}]},{"type":"text","text":"and"},{"type":"document","source":{"type":"text","data":"d"}}]},` +
				`{"role":"assistant","content":[{"type":"server_tool_use","id":"st","name":"web_search","input":{}},{"type":"tool_use","id":"c3","name":"look","input":{"b":2}},{"type":"text","text":"behind"}]}` +
				`],"max_tokens":100}`,
			[]string{
				"system You help.", "user go", `assistant so +thinking +redacted_thinking c1=look({"a": 1.0}) c2=look({})`,
				"tool one for c1 is_error=true", "tool two +image_url for c2", "user and +document", `assistant behind +server_tool_use c3=look({"b":2})`,
			},
		},
		"a Responses request": {
			"responses",
			`{"session_id":"s","model":"gpt-5","instructions":"You help.","input":[` +
				`{"content":"go","role":"user","type":"message"},` +
				`{"encrypted_content":"x","id":"rs_1","summary":[],"type":"reasoning"},` +
				`{"content":[{"type":"output_text","text":"so"}],"id":"msg_1","role":"assistant","status":"completed","type":"message"},` +
				`{"arguments":"{}","call_id":"c1","id":"fc_1","name":"look","type":"function_call"},` +
				`{"call_id":"c2","input":"free","name":"patch","type":"custom_tool_call"},` +
				`{"call_id":"c1","output":"one","type":"function_call_output"},` +
				`{"call_id":"c2","output":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"https://x/y.png"}],"type":"custom_tool_call_output"},` +
				`{"action":{"query":"q"},"id":"ws_1","status":"completed","type":"web_search_call"}` +
				`],"store":false}`,
			[]string{
				"system You help.", "user go", "assistant msg_1 so +reasoning c1=look({}) c2=patch(free)", "tool one for c1", "tool a +image_url for c2", "assistant +web_search_call",
			},
		},
		"a ShareGPT conversation": {
			"sharegpt",
			`{"session_id":"s","conversations":[{"from":"system","value":"You help."},{"from":"human","value":"go"},` +
				`{"from":"gpt","value":"so\n<tool_call>\n{\"name\":\"look\",\"arguments\":{\"a\": \"</tool_call>\"}}\n</tool_call>\n<tool_call>\n{\"name\":\"look\",\"arguments\":{}}\n</tool_call>"},` +
				`{"from":"tool","value":"<tool_response>\n{\"tool_call_id\":\"t1\",\"name\":\"look\",\"content\":\"one\"}\n</tool_response>\n<tool_response>\n{\"tool_call_id\":\"t2\",\"content\":\"two\"}\n</tool_response>"},` +
				`{"from":"gpt","value":"done","weight":1}]}`,
			[]string{
				"system You help.", "user go", `assistant so t1=look({"a": "</tool_call>"}) t2=look({})`, "tool one for t1", "tool two for t2", "assistant done",
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := one(t, tt.in, formats.Auto)
			if diff := cmp.Diff(tt.want, outline(s.Session)); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
			if faults := chat.Check(chat.Describe(s.Messages)); len(faults) > 0 {
				t.Errorf("faults %v", faults)
			}
			out, losses := write(t, s.Session, tt.format)
			if diff := cmp.Diff(tt.in+"\n", out); diff != "" || len(losses) > 0 {
				t.Errorf("lost %v, written (-want +got):\n%s", losses, diff)
			}
		})
	}
}

func TestReasoningIsKeptWholeOrDroppedWhole(t *testing.T) {
	t.Parallel()
	const in = `{"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"tool_use","id":"c","name":"f","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"x"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"only","signature":"sig"}]}]}`
	s := one(t, in, "anthropic").Session
	var b strings.Builder
	losses, err := formats.Write(&b, "anthropic", s, formats.Options{DropReasoning: true})
	if err != nil || losses["reasoning"] != 2 {
		t.Errorf("lost %v, %v", losses, err)
	}
	if strings.Contains(b.String(), "sig") || strings.Contains(b.String(), "thinking") {
		t.Error(b.String())
	}
	if got := len(one(t, b.String(), "anthropic").Messages); got != 3 {
		t.Errorf("%d messages, want the one of reasoning alone gone", got)
	}
	if out, losses := write(t, s, "anthropic"); out != in+"\n" || len(losses) > 0 {
		t.Errorf("the session has changed, or lost %v: %s", losses, out)
	}
	// Thinking without its signature is not written.
	unsigned := one(t, strings.ReplaceAll(in, `,"signature":"sig"`, ""), "anthropic").Session
	if out, losses := write(t, unsigned, "anthropic"); strings.Contains(out, "thinking") || losses["reasoning"] != 2 {
		t.Errorf("lost %v of %s", losses, out)
	}
	// Nor is thinking that another provider has signed.
	if out, losses := write(t, s, "responses"); strings.Contains(out, "sig") || losses["reasoning"] != 2 {
		t.Errorf("lost %v of %s", losses, out)
	}
}

func TestAnthropicRolesAlternate(t *testing.T) {
	t.Parallel()
	in := lines(`{"role":"user","content":"a"}`, `{"role":"user","content":"b"}`, `{"role":"assistant","content":""}`, `{"role":"user","content":"c"}`,
		`{"role":"assistant","content":"d"}`, `{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"system","content":"late"}`, `{"role":"tool","tool_call_id":"x","content":"r"}`, `{"role":"user","content":"e"}`)
	out, losses := write(t, one(t, in, formats.Auto).Session, "anthropic")
	const want = `{"system":"late","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"text","text":"c"}]},` +
		`{"role":"assistant","content":[{"type":"text","text":"d"},{"type":"tool_use","id":"x","name":"f","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"r"},{"type":"text","text":"e"}]}]}` + "\n"
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(formats.Losses{"joined": 3, "empty message": 1, "system message moved": 1}, losses); diff != "" {
		t.Errorf("lost (-want +got):\n%s", diff)
	}
}

func TestDetect(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                              "chat",
		"hello":                         "chat",
		`{"role":"user","content":"x"}`: "chat",
		`{"messages":[{"role":"user","content":"x"},{"role":"tool","content":"x"}],"system":"x"}`: "chat",
		`{"messages":[{"role":"user","content":"x"}],"system":"x"}`:                               "anthropic",
		`[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x"}]}]`:                  "anthropic",
		"{\n \"messages\": [\n{\"role\": \"user\", \"content\": [{\"type\": \"image\"":            "anthropic",
		"no JSON\n" + `{"role":"user","content":[{"type":"tool_result"}]}`:                        "anthropic",
		`[{"type":"function_call","call_id":"x"}]`:                                                "responses",
		`{"object":"response","output":[]}`:                                                       "responses",
		`{"input":"hello","model":"m"}`:                                                           "responses",
		`{"type":"function_call","call_id":"x"}`:                                                  "responses",
		`[{"from":"human","value":"x"}]`:                                                          "sharegpt",
		"{\"broken\n" + `{"from":"human","value":"x"}`:                                            "sharegpt",
		`{"type":"user","sessionId":"x","message":{}}`:                                            "chat",
		`{"type":"user","sessionId":"x","message":{"role":"user","content":"x"}}`:                 "claude-code",
		`{"type":"session_meta","payload":{}}`:                                                    "codex",
		`{"type":"session","cwd":"/"}`:                                                            "pi",
		strings.Repeat("[", 200_000):                                                              "chat",
	} {
		if got := formats.Detect([]byte(in)); got != want {
			t.Errorf("%.100s: %s, want %s", in, got, want)
		}
	}
	if _, err := formats.NewReader(strings.NewReader(""), "xml"); err == nil || !strings.Contains(err.Error(), "want one of chat, responses") {
		t.Error(err)
	}
}

func TestErrorsNameTheLine(t *testing.T) {
	t.Parallel()
	for format, bad := range map[string]map[string]string{
		"anthropic":   {`{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":7}]}]}`: "messages[0]: content[0]: content: want a string, a list or null, got a number", `{"content":"SECRET"}`: "role: missing"},
		"responses":   {`{"input":[{"content":"SECRET"}]}`: "input[0]: type: missing"},
		"sharegpt":    {`{"conversations":[{"value":"SECRET"}]}`: "conversations[0]: from: missing", `{"from":"gpt","value":[]}`: "value: want a string"},
		"claude-code": {`{"type":"user","message":{"content":{}}}`: "content: want a string or a list, got an object", `"SECRET"`: "want an object"},
		"codex":       {`{"type":"response_item","payload":{"type":"message"}}`: "item: role: want a string", `{"x":"SECRET"}`: "neither a line"},
		"pi":          {`{"type":"message","message":{}}`: "role: missing", `{"type":"message"}`: "message: want an object"},
	} {
		for in, want := range bad {
			r, err := formats.NewReader(strings.NewReader("\n"+in+"\n{cut\n"), format)
			if err != nil {
				t.Fatal(err)
			}
			for i, part := range []string{want, "no valid JSON"} {
				_, err := r.Next()
				var fault *chat.LineError
				if !errors.As(err, &fault) || fault.Line != i+2 || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "SECRET") {
					t.Errorf("%s: %s: %v", format, in, err)
				}
			}
			if _, err := r.Next(); !errors.Is(err, io.EOF) {
				t.Errorf("%s: %v at the end", format, err)
			}
		}
	}
}

// TestWhatProvidersWriteIsRead: items and blocks of tools that a provider runs itself.
func TestWhatProvidersWriteIsRead(t *testing.T) {
	t.Parallel()
	const (
		itemTypes = "reasoning compaction item_reference tool_search_call tool_search_output program program_output additional_tools web_search_call file_search_call " +
			"computer_call code_interpreter_call image_generation_call local_shell_call shell_call apply_patch_call mcp_call mcp_list_tools mcp_approval_request mcp_approval_response"
		blockTypes = "server_tool_use web_search_tool_result web_fetch_tool_result code_execution_tool_result bash_code_execution_tool_result text_editor_code_execution_tool_result " +
			"tool_search_tool_result advisor_tool_result mcp_tool_use mcp_tool_result mcp_tool_listing tool_reference tool_addition tool_removal container_upload search_result compaction"
	)
	for typ := range strings.FieldsSeq(itemTypes) {
		one(t, `{"input":[{"role":"user","content":"q"},{"type":"`+typ+`","summary":[]},{"type":"message","role":"assistant","content":"a"}]}`, "responses")
	}
	for typ := range strings.FieldsSeq(blockTypes) {
		one(t, `{"messages":[{"role":"user","content":[{"type":"text","text":"q"},{"type":"`+typ+`"}]},{"role":"assistant","content":[{"type":"`+typ+`"},{"type":"text","text":"a"}]}]}`, "anthropic")
	}
}

// TestLongFirstMessagesAreDetected: the beginning of a file that detection reads ends within them.
func TestLongFirstMessagesAreDetected(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300_000)
	for in, want := range map[string]string{
		`{"role":"user","content":[{"text":"` + long + `","type":"text"}]}`:                                                             "chat",
		`{"messages":[{"role":"user","content":[{"text":"` + long + `","type":"text"}]}]}`:                                              "chat",
		`[{"role":"user","content":"q"},{"role":"assistant","parts":[{"type":"text","text":"` + long + `"}],"content":"` + long + `"}]`: "vercel",
	} {
		r, err := formats.NewReader(strings.NewReader(in), formats.Auto)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = r.Next(); err != nil || r.Format().Name != want {
			t.Errorf("%.60s…: %s, %v", in, r.Format().Name, err)
		}
	}
}
