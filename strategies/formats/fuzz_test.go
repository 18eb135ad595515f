package formats_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/formats"
	"github.com/sessionstore/compactor/strategies/strategiestest/growth"
)

// readOnly returns the names of the formats that are only read.
func readOnly() []string {
	return slices.DeleteFunc(formats.Names(), func(name string) bool { return slices.Contains(formats.WrittenNames(), name) })
}

// FuzzTables reads any input in the format that it shows, or in one of those that are only read.
func FuzzTables(f *testing.F) {
	var seeds []string
	for _, x := range tableSamples {
		seeds = append(seeds, x.in)
	}
	fuzz(f, "", seeds...)
}

// fuzz reads any input as a format: reading ends, errors name a line, the report adds up, and
// every session can be written in every format and is stable in its own.
func fuzz(f *testing.F, format string, seeds ...string) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Add([]byte("[\n{}]\n{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		format := format
		detected, _ := formats.Lookup(formats.Detect(data))
		switch names := readOnly(); {
		case format != "":
		case !detected.Written():
			format = detected.Name
		default:
			format = names[len(data)%len(names)]
		}
		r, err := formats.NewReader(bytes.NewReader(data), format)
		if err != nil {
			t.Fatal(err)
		}
		for range 2*len(data) + 2 {
			s, err := r.Next()
			var fault *chat.LineError
			switch {
			case errors.As(err, &fault):
				if most := bytes.Count(data, []byte("\n")) + 1; fault.Line < 1 || fault.Line > most && format != "chatgpt" { // which counts conversations
					t.Errorf("line %d of %q", fault.Line, data)
				}
				continue
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				t.Fatal(err)
			}
			if s.Report.Values != s.Report.Messages+sum(s.Report.Other) {
				t.Errorf("%+v does not add up", s.Report)
			}
			for _, other := range formats.WrittenNames() {
				out, losses := write(t, s.Session, other)
				if other == format {
					stable(t, s.Session, out, format, len(losses) == 0)
				}
			}
		}
		t.Errorf("no end of %q", data)
	})
}

// stable fails the test if a written session changes when it is read and written again, or
// differs from the original although no loss was reported.
func stable(t *testing.T, was chat.Session, out, format string, whole bool) {
	all := read(t, out, format)
	if len(all) == 0 {
		if whole && len(was.Messages) > 0 {
			t.Errorf("nothing is left of %+v", was)
		}
		return
	}
	first := all[0].Session
	if diff := cmp.Diff(canon(t, was), canon(t, first)); whole && diff != "" {
		t.Errorf("lost in silence (-was +is):\n%s", diff)
	}
	again, _ := write(t, first, format)
	if second := read(t, again, format); len(second) != 1 || !cmp.Equal(canon(t, first), canon(t, second[0].Session)) {
		t.Errorf("not stable:\n%s\n%s", out, again)
	}
}

func FuzzAnthropic(f *testing.F) {
	fuzz(f, "anthropic",
		`{"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"A"}}]},{"type":"text","text":"x"}]},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}},{"type":"thinking","thinking":"t","signature":"s"}]}]}`,
		`{"role":"user","content":"x"}`+"\n"+`{"role":"assistant","content":["y",{"type":"text"}]}`, `[{"role":"x","content":null}]`)
}

func FuzzResponses(f *testing.F) {
	fuzz(f, "responses",
		`{"instructions":"i","input":[{"role":"user","content":[{"type":"input_image","image_url":"u","detail":"low"}]},{"type":"reasoning","summary":[]},{"type":"custom_tool_call","call_id":"c","name":"f","input":"x"},{"type":"custom_tool_call_output","call_id":"c","output":{"type":"x"}}]}`,
		`{"type":"local_shell_call","call_id":"c","action":{}}`+"\n"+`{"type":"function_call_output","call_id":"c","output":"x"}`, `{"input":"x","output":[{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"no"}]}]}`)
}

func FuzzShareGPT(f *testing.F) {
	fuzz(f, "sharegpt",
		`{"conversations":[{"from":"human","value":"x"},{"from":"gpt","value":"t\n<tool_call>\n{\"name\":\"f\",\"arguments\":{}}\n</tool_call>"},{"from":"tool","value":"<tool_response>\n{\"content\":1}\n</tool_response>"}]}`,
		`{"from":"function_call","value":"{\"name\":\"f\",\"arguments\":\"x\"}"}`+"\n"+`{"from":"observation","value":"<tool_response>a</tool_response><tool_response>b</tool_response>"}`)
}

func FuzzClaudeCode(f *testing.F) {
	fuzz(f, "claude-code",
		lines(line("user", "u", "", says("user", `"x"`)), line("assistant", "a", "u", part("m", `{"type":"text","text":"x"}`)),
			line("assistant", "b", "a", part("m", `{"type":"tool_use","id":"c","name":"f","input":{}}`)), line("user", "v", "u", says("user", `"y"`))),
		lines(line("user", "u", "", says("user", `[{"type":"tool_result","tool_use_id":"c"},{"type":"text","text":"x"}]`)+`,"isSidechain":true,"agentId":"a"`)),
		lines(`{"type":"system","subtype":"compact_boundary","compactMetadata":{}}`, line("user", "u", "", says("user", `"x"`)+`,"isCompactSummary":true`)))
}

func FuzzCodex(f *testing.F) {
	fuzz(f, "codex",
		lines(`{"timestamp":"2026-01-02T03:04:05Z","type":"session_meta","payload":{"id":"s","base_instructions":{"text":"x"}}}`,
			`{"type":"response_item","payload":{"type":"message","role":"user","content":"x"}}`, `{"type":"compacted","payload":{"message":"x"}}`,
			`{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":1}}`, `{"type":"turn_context","payload":{"model":"m"}}`),
		lines(`{"id":"s","timestamp":"2026-01-02T03:04:05Z","instructions":"x"}`, `{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`))
}

func FuzzPi(f *testing.F) {
	fuzz(f, "pi",
		lines(`{"type":"session","id":"s","modelId":"m"}`, `{"type":"message","id":"1","parentId":null,"message":{"role":"assistant","content":[{"type":"thinking","thinking":"t","thinkingSignature":"s"},{"type":"toolCall","id":"c","name":"f","arguments":{}}]}}`,
			`{"type":"message","id":"2","parentId":"1","message":{"role":"toolResult","toolCallId":"c","toolName":"f","content":[{"type":"image","data":"A","mimeType":"image/png"}],"isError":true}}`,
			`{"type":"compaction","id":"3","parentId":"2","summary":"x"}`),
		lines(`{"type":"custom_message","content":"x"}`, `{"type":"message","message":{"role":"compactionSummary","summary":"x"}}`, `{"type":"session_info","name":"n"}`))
}

func itoa(i int) string { return strconv.Itoa(i) }

func FuzzDetect(f *testing.F) {
	for _, seed := range []string{"{", `{"messages":[{"role":"user"`, "x\n[1]\n", "\xef\xbb\xbf{}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := formats.Lookup(formats.Detect(data)); err != nil {
			t.Error(err)
		}
	})
}

// BenchmarkReadGrowth reads lines that refer to each other in ways that a reader might
// search for again and again.
func BenchmarkReadGrowth(b *testing.B) {
	const prompt = `"message":{"role":"user","content":"x"}`
	for name, tt := range map[string]struct {
		format string
		line   func(i int) string
	}{
		"a user who goes back each time": {"claude-code", func(i int) string {
			return line("user", "u"+itoa(i), "u"+itoa(max(i-2, 0)), prompt)
		}},
		"parts of one message": {"claude-code", func(i int) string {
			return line("assistant", "a"+itoa(i), "", part("m", `{"type":"text","text":"x"},{"type":"tool_use","id":"c","name":"f","input":{}}`))
		}},
		"results far from their calls": {"codex", func(i int) string {
			if i%2 == 0 {
				return `{"type":"response_item","payload":{"type":"function_call","name":"f","arguments":"{}","call_id":"c` + itoa(i) + `"}}`
			}
			return `{"type":"response_item","payload":{"type":"function_call_output","output":"x","call_id":"c` + itoa(i/4*2) + `"}}`
		}},
		"rollbacks": {"codex", func(i int) string {
			if i%2 == 0 {
				return `{"type":"response_item","payload":{"type":"message","role":"assistant","content":"x"}}`
			}
			return `{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":9}}`
		}},
		"parts of one step, and prompts that are taken back": {"kimi", func(i int) string {
			switch i % 3 {
			case 0:
				return `{"type":"context.append_loop_event","event":{"type":"content.part","stepUuid":"s","part":{"type":"think","think":"xxxxxxxx"}},"time":1}`
			case 1:
				return `{"type":"context.append_message","message":{"role":"user","content":[{"type":"text","text":"x"}]},"time":1}`
			}
			return `{"type":"context.undo","count":` + itoa(1+i%2) + `,"time":1}`
		}},
		"a document": {"opencode", func(i int) string {
			return `{"info":{"id":"m` + itoa(i) + `","role":"assistant"},"parts":[{"type":"tool","callID":"c","tool":"f","state":{"status":"completed","input":{},"output":"x"}}]}`
		}},
		"a chain of a table": {"qwen-code", func(i int) string {
			return `{"uuid":"m` + itoa(i) + `","parentUuid":"m` + itoa(i-1) + `","sessionId":"s","type":"user","message":{"role":"user","parts":[{"text":"x"}]}}`
		}},
		"a chain": {"pi", func(i int) string {
			return `{"type":"message","id":"m` + itoa(i) + `","parentId":"m` + itoa(i-1) + `","message":{"role":"user","content":"x"}}`
		}},
	} {
		b.Run(name, func(b *testing.B) {
			growth.Report(b, 2_000, 10, func(n int) func() {
				var text strings.Builder
				for i := range n {
					text.WriteString(tt.line(i) + "\n")
				}
				return func() { read(b, text.String(), tt.format) }
			})
		})
	}
}
