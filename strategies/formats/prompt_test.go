package formats_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/formats"
	"github.com/sessionstore/compactor/strategies/strategiestest/growth"
)

const (
	// Two calls of one message have one id, and a later message uses it again.
	twoOfOneID = `{"session_id":"s","messages":[{"role":"user","content":"q"},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"a","arguments":"{}"}},{"id":"x","type":"function","function":{"name":"b","arguments":"{}"},"sig":1},{"id":"x_2","type":"function","function":{"name":"c","arguments":"{}"}}]},` +
		`{"role":"tool","tool_call_id":"x_2","content":"rc"},{"role":"tool","tool_call_id":"x","content":"ra"},{"role":"tool","tool_call_id":"x","content":"rb"},` +
		`{"role":"user","content":"again"},{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"d","arguments":"{}"}}]},{"role":"tool","tool_call_id":"x","content":"rd"}]}`
	legacy = `{"session_id":"s","messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{\"n\":1}"}},` +
		`{"role":"function","name":"f","content":"r"},{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},{"role":"function","name":"f","content":"s"}]}`
	blanks = `{"session_id":"s","messages":[{"role":"system","content":[{"type":"text","text":" "},{"type":"text","text":"S"}]},{"role":"assistant","content":"hello"},{"role":"user","content":"q"},{"role":"assistant","content":"   \n"},` +
		`{"role":"user","content":[{"type":"text","text":"\t"}]},{"role":"assistant","content":[{"type":"text","text":"\n\n"}],"tool_calls":[{"id":"t","type":"function","function":{"name":"f","arguments":""}}]},` +
		`{"role":"tool","tool_call_id":"t","content":" "},{"role":"assistant","content":[{"type":"text","text":" "},{"type":"text","text":"so"}]},{"role":"user","content":"go"}]}`
	// Ids of Kimi and of pi, a result that came first, and one of a name that the other becomes.
	odd = `{"session_id":"s","messages":[{"role":"user","content":"q"},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"f:0","type":"function","function":{"name":"a","arguments":"{}"}},{"id":"f_0_2","type":"function","function":{"name":"b","arguments":"{}"}},{"id":"call|fc","type":"function","function":{"name":"c","arguments":"{}"}}]},` +
		`{"role":"tool","content":"rc","tool_call_id":"call|fc"},{"role":"tool","content":"ra","tool_call_id":"f:0"},{"role":"tool","content":"rb","tool_call_id":"f_0_2"}]}`
	failed = `{"session_id":"s","messages":[{"role":"user","content":"q"},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"a","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"b","arguments":"{}"}},{"id":"c","type":"function","function":{"name":"c","arguments":"{}"}}]},` +
		`{"role":"tool","tool_call_id":"a","content":"","is_error":true},{"role":"tool","tool_call_id":"b","content":[{"type":"text","text":" "}],"is_error":true},{"role":"tool","tool_call_id":"c","content":"no","is_error":true}]}`
	silent = `{"session_id":"s","messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"a","arguments":"{}"}}]},` +
		`{"role":"tool","tool_call_id":"a","content":" ","is_error":true}]}`
	roles = `{"session_id":"s","messages":[{"role":"USER","content":"q"},{"role":"ai","content":"a"},{"role":"critic","content":"c"},{"role":"human","content":"h"}]}`
	// The first response has reasoning, the second has none, the last has nothing but.
	items = `{"session_id":"s","input":[{"content":"go","id":"msg_u","role":"user","type":"message"},{"encrypted_content":"x","id":"rs_1","summary":[],"type":"reasoning"},` +
		`{"content":[{"type":"output_text","text":"so"}],"id":"msg_1","role":"assistant","type":"message"},{"arguments":"{}","call_id":"a","id":"fc_1","name":"f","type":"function_call"},` +
		`{"arguments":"{}","call_id":"b","id":"fc_2","name":"f","type":"function_call"},{"call_id":"a","output":"1","type":"function_call_output"},{"call_id":"b","output":"2","type":"function_call_output"},` +
		`{"content":[{"type":"output_text","text":"done"}],"id":"msg_2","role":"assistant","type":"message"},{"content":"and","role":"user","type":"message"},{"encrypted_content":"x","id":"rs_2","summary":[],"type":"reasoning"}]}`
)

func TestPromptsAreWhatProvidersTake(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in, to string
		o      formats.Options
		want   string
		losses formats.Losses
	}{
		"chat: two calls of one message have two ids": {
			in: twoOfOneID, to: "chat", losses: formats.Losses{"call id": 1},
			want: `{"session_id":"s","messages":[{"role":"user","content":"q"},` +
				`{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"a","arguments":"{}"}},{"function":{"name":"b","arguments":"{}"},"id":"x_3","sig":1,"type":"function"},{"id":"x_2","type":"function","function":{"name":"c","arguments":"{}"}}]},` +
				`{"role":"tool","content":"rc","tool_call_id":"x_2"},{"role":"tool","content":"ra","tool_call_id":"x"},{"role":"tool","content":"rb","tool_call_id":"x_3"},` +
				`{"role":"user","content":"again"},{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"d","arguments":"{}"}}]},{"role":"tool","content":"rd","tool_call_id":"x"}]}`,
		},
		"anthropic: all calls have ids of their own": {
			in: twoOfOneID, to: "anthropic", losses: formats.Losses{"call id": 2, "call extra": 1},
			want: `{"session_id":"s","messages":[{"role":"user","content":"q"},` +
				`{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"a","input":{}},{"type":"tool_use","id":"x_3","name":"b","input":{}},{"type":"tool_use","id":"x_2","name":"c","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"x_2","content":"rc"},{"type":"tool_result","tool_use_id":"x","content":"ra"},{"type":"tool_result","tool_use_id":"x_3","content":"rb"},{"type":"text","text":"again"}]},` +
				`{"role":"assistant","content":[{"type":"tool_use","id":"x_4","name":"d","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"x_4","content":"rd"}]}]}`,
		},
		"anthropic: ids of other servers": {
			in: odd, to: "anthropic", losses: formats.Losses{"call id": 2},
			want: `{"session_id":"s","messages":[{"role":"user","content":"q"},` +
				`{"role":"assistant","content":[{"type":"tool_use","id":"f_0_3","name":"a","input":{}},{"type":"tool_use","id":"f_0_2","name":"b","input":{}},{"type":"tool_use","id":"call_fc_2","name":"c","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_fc_2","content":"rc"},{"type":"tool_result","tool_use_id":"f_0_3","content":"ra"},{"type":"tool_result","tool_use_id":"f_0_2","content":"rb"}]}]}`,
		},
		"chat: ids of other servers": {in: odd, to: "chat", want: odd, losses: formats.Losses{}},
		"anthropic: failures without a word": {
			in: failed, to: "anthropic", losses: formats.Losses{"empty text": 2},
			want: `{"session_id":"s","messages":[{"role":"user","content":"q"},` +
				`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"a","input":{}},{"type":"tool_use","id":"b","name":"b","input":{}},{"type":"tool_use","id":"c","name":"c","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"[The call failed without a message.]","is_error":true},` +
				`{"type":"tool_result","tool_use_id":"b","content":"[The call failed without a message.]","is_error":true},{"type":"tool_result","tool_use_id":"c","content":"no","is_error":true}]}]}`,
		},
		"claude-code: failures without a word": {
			in: silent, to: "claude-code", losses: formats.Losses{"empty text": 1},
			want: `{"isSidechain":false,"message":{"content":"q","role":"user"},"parentUuid":null,"sessionId":"s","type":"user"}` + "\n" +
				`{"isSidechain":false,"message":{"content":[{"type":"tool_use","id":"a","name":"a","input":{}}],"role":"assistant","type":"message"},"parentUuid":null,"sessionId":"s","type":"assistant"}` + "\n" +
				`{"isSidechain":false,"message":{"content":[{"type":"tool_result","tool_use_id":"a","content":"[The call failed without a message.]","is_error":true}],"role":"user"},"parentUuid":null,"sessionId":"s","type":"user"}`,
		},
		"a log is written as it is": {in: legacy, to: "chat", o: formats.Options{Log: true}, want: legacy, losses: formats.Losses{}},
		"chat: legacy calls":        {in: legacy, to: "chat", want: legacy, losses: formats.Losses{}},
		"responses: legacy calls": {
			in: legacy, to: "responses", losses: formats.Losses{"legacy call": 4, "call id": 2, "name": 2},
			want: `{"session_id":"s","input":[{"content":"q","role":"user","type":"message"},{"arguments":"{\"n\":1}","call_id":"call_2","name":"f","type":"function_call"},{"call_id":"call_2","output":"r","type":"function_call_output"},` +
				`{"arguments":"{}","call_id":"call_3","name":"f","type":"function_call"},{"call_id":"call_3","output":"s","type":"function_call_output"}]}`,
		},
		"anthropic: blank texts": {
			in: blanks, to: "anthropic", losses: formats.Losses{"empty message": 2, "empty text": 6, "first message added": 1},
			want: `{"session_id":"s","system":"S","messages":[{"role":"user","content":"[Earlier messages are not shown.]"},{"role":"assistant","content":"hello"},{"role":"user","content":"q"},` +
				`{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]},{"role":"assistant","content":"so"},{"role":"user","content":"go"}]}`,
		},
		"chat: roles of other programs": {
			in: roles, to: "chat", losses: formats.Losses{"role": 4},
			want: `{"session_id":"s","messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"},{"role":"user","content":"c"},{"role":"user","content":"h"}]}`,
		},
		"responses: ids stand behind their reasoning": {
			in: items, to: "responses", losses: formats.Losses{"id": 1, "reasoning": 1},
			want: `{"session_id":"s","input":[{"content":"go","id":"msg_u","role":"user","type":"message"},{"encrypted_content":"x","id":"rs_1","summary":[],"type":"reasoning"},` +
				`{"content":[{"type":"output_text","text":"so"}],"id":"msg_1","role":"assistant","type":"message"},{"arguments":"{}","call_id":"a","id":"fc_1","name":"f","type":"function_call"},` +
				`{"arguments":"{}","call_id":"b","id":"fc_2","name":"f","type":"function_call"},{"call_id":"a","output":"1","type":"function_call_output"},{"call_id":"b","output":"2","type":"function_call_output"},` +
				`{"content":[{"type":"output_text","text":"done"}],"role":"assistant","type":"message"},{"content":"and","role":"user","type":"message"}]}`,
		},
		"responses: no ids without reasoning": {
			in: items, to: "responses", o: formats.Options{DropSigned: true}, losses: formats.Losses{"id": 2, "item id": 2, "signed reasoning": 2},
			want: `{"session_id":"s","input":[{"content":"go","id":"msg_u","role":"user","type":"message"},{"content":[{"type":"output_text","text":"so"}],"role":"assistant","type":"message"},` +
				`{"arguments":"{}","call_id":"a","name":"f","type":"function_call"},{"arguments":"{}","call_id":"b","name":"f","type":"function_call"},{"call_id":"a","output":"1","type":"function_call_output"},{"call_id":"b","output":"2","type":"function_call_output"},` +
				`{"content":[{"type":"output_text","text":"done"}],"role":"assistant","type":"message"},{"content":"and","role":"user","type":"message"}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s chat.Session
			if c.in == roles { // of a version that stored them: reading refuses them
				var doc struct{ Messages []chat.Message }
				if err := json.Unmarshal([]byte(c.in), &doc); err != nil {
					t.Fatal(err)
				}
				s = chat.Session{ID: "s", Messages: doc.Messages}
			} else {
				s = one(t, c.in, formats.Auto).Session
			}
			var b bytes.Buffer
			losses, err := formats.Write(&b, c.to, s, c.o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want+"\n", b.String()); diff != "" || !maps.Equal(losses, c.losses) {
				t.Errorf("lost %v, want %v, written (-want +got):\n%s", losses, c.losses, diff)
			}
		})
	}
}

func BenchmarkRepeatedIDsGrowth(b *testing.B) {
	growth.Report(b, 500, 8, func(n int) func() {
		calls := make([]chat.ToolCall, n)
		for i := range calls {
			calls[i] = chat.ToolCall{ID: "x", Type: "function", Name: "f", Arguments: "{}"}
		}
		s := chat.Session{ID: "s", Messages: []chat.Message{{Role: chat.RoleAssistant, Content: chat.Content{Null: true}, ToolCalls: calls}}}
		return func() {
			if losses, err := formats.Write(io.Discard, "chat", s, formats.Options{}); err != nil || losses["call id"] != n-1 {
				b.Fatal(losses, err)
			}
		}
	})
}
