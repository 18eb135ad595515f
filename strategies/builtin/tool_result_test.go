package builtin

import (
	"encoding/json"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

func TestToolResultTakesAnswersOfHostedTools(t *testing.T) {
	t.Parallel()
	var call chat.Message
	if err := json.Unmarshal([]byte(`{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f"}}],"content":[
		{"type":"mcp_server_tool_call","call_id":"m","tool_name":"search"},
		{"type":"mcp_server_tool_result","call_id":"m","output":[{"type":"text","text":"one"},{"type":"image","text":"no text"},{"type":"text","text":"two"}]},
		{"type":"mcp_tool_use","id":"n","name":"fetch"},
		{"type":"mcp_tool_result","tool_use_id":"n","content":"page"},
		{"type":"mcp_tool_result","tool_use_id":"x","content":{"k":1}},
		{"type":"mcp_server_tool_result","call_id":"y","output":null}]}`), &call); err != nil {
		t.Fatal(err)
	}
	got, err := planOf(t, Registry(), "tool_result", plan.Params{"keep_last_tool_call_groups": 0}, whole(sessiontest.Of(call, sessiontest.Result("a", "r"))))
	if err != nil {
		t.Fatal(err)
	}
	const want = "[Tool results: search: one\ntwo; fetch: page; {\"k\":1}; None; f: r]"
	if text := got.Additions[0].Message.Content.Text; text != want {
		t.Errorf("got %q, want %q", text, want)
	}
}
