package formats_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/formats"
)

func TestModelMessagesHoldWhatTheSDKTakes(t *testing.T) {
	var s chat.Session
	for _, raw := range []string{
		`{"role":"developer","content":[{"type":"text","text":"be "},{"type":"text","text":"brief"}]}`,
		`{"id":"u1","role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"sig"}],"tool_calls":[{"id":"c.1","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}},{"id":"c2","type":"function","function":{"name":"g","arguments":"not JSON"}}]}`,
		`{"role":"tool","tool_call_id":"c.1","content":"one"}`,
		`{"role":"tool","tool_call_id":"c2","is_error":true,"content":[{"type":"text","text":"two"}]}`,
		`{"role":"assistant","reasoning_content":"so","content":"done"}`,
		`{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}}]}`,
	} {
		var m chat.Message
		if err := json.Unmarshal([]byte(raw), &m); err != nil {
			t.Fatal(err)
		}
		s.Messages = append(s.Messages, m)
	}
	var out bytes.Buffer
	losses, err := formats.WriteModelMessages(&out, s)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"messages":[{"role":"system","content":"be brief"},` +
		`{"role":"user","content":[{"type":"text","text":"look"},{"type":"image","image":"data:image/png;base64,AA=="}]},` +
		`{"role":"assistant","content":[{"type":"reasoning","text":"hm","providerOptions":{"anthropic":{"signature":"sig"}}},` +
		`{"type":"tool-call","toolCallId":"c.1","toolName":"f","input":{"a": 1}},{"type":"tool-call","toolCallId":"c2","toolName":"g","input":{"arguments":"not JSON"}}]},` +
		`{"role":"tool","content":[{"type":"tool-result","toolCallId":"c.1","toolName":"f","output":{"type":"text","value":"one"}}]},` +
		`{"role":"tool","content":[{"type":"tool-result","toolCallId":"c2","toolName":"g","output":{"type":"error-text","value":"two"}}]},` +
		`{"role":"assistant","content":[{"type":"reasoning","text":"so"},{"type":"text","text":"done"}]}]}` + "\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(formats.Losses{"arguments": 1, "part input_audio": 1, "empty message": 1}, losses); diff != "" {
		t.Error(diff)
	}
}
