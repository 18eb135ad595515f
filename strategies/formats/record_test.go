package formats_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/formats"
)

// rowsOf makes rows of lines "role JSON", or of JSON alone.
func rowsOf(all ...string) (rows []formats.Row) {
	for _, line := range all {
		at := strings.IndexAny(line, `{["`)
		rows = append(rows, formats.Row{Role: strings.TrimSpace(line[:at]), Value: json.RawMessage(line[at:])})
	}
	return rows
}

func TestRecords(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		format string
		rows   []formats.Row
		want   []string
		from   [][]int
	}{
		"LangChain JS": {"langchain", rowsOf(
			`{"type":"human","content":"Weather in Paris?","additional_kwargs":{},"response_metadata":{}}`,
			`{"type":"ai","content":"","tool_calls":[{"id":"call_1","args":{"city":"Paris"},"name":"get_weather"}],"usage_metadata":{"input_tokens":10},"additional_kwargs":{},"response_metadata":{},"invalid_tool_calls":[]}`,
			`{"name":"get_weather","type":"tool","content":"18 C","tool_call_id":"call_1","additional_kwargs":{},"response_metadata":{}}`,
			`{"type":"human","content":[{"type":"text","text":"And this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}`,
		), []string{"user Weather in Paris?", `assistant call_1=get_weather({"city":"Paris"})`, "tool 18 C for call_1", "user And this? +image_url"}, [][]int{{0}, {1}, {2}, {3}}},
		"LangChain Python": {"langchain", rowsOf(
			`{"type":"system","data":{"content":"You help.","type":"system"}}`,
			`{"type":"ai","data":{"content":[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"text","text":"so"},{"type":"tool_use","id":"c1","name":"f","input":{}}],"type":"ai","id":"run-1","tool_calls":[{"name":"f","args":{},"id":"c1","type":"tool_call"}]}}`,
			`{"type":"tool","data":{"content":"no","type":"tool","tool_call_id":"c1","status":"error"}}`,
			`{"type":"chat","data":{"content":"hi","role":"user","type":"chat"}}`,
		), []string{"system You help.", "assistant run-1 so +thinking c1=f({})", "tool no for c1 is_error=true", "user hi"}, [][]int{{0}, {1}, {2}, {3}}},
		"LangChain before tools": {"langchain", rowsOf(
			`{"type":"ai","data":{"content":"","additional_kwargs":{"function_call":{"name":"f","arguments":"{\"a\":1}"}}}}`,
			`{"type":"function","data":{"content":"r","name":"f"}}`,
		), []string{`assistant call_1=f({"a":1})`, "tool r for call_1"}, [][]int{{0}, {1}}},
		"a constructor of LangChain": {"langchain", rowsOf(
			`{"lc":1,"type":"constructor","id":["langchain","schema","messages","AIMessage"],"kwargs":{"content":"so","additional_kwargs":{"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}}}`,
		), []string{"assistant so c=f({})"}, [][]int{{0}}},
		"parts of the AI SDK": {"vercel", rowsOf(
			`user [{"type":"text","text":"Weather in Paris?"}]`,
			`assistant [{"type":"step-start"},{"type":"reasoning","text":"hm"},{"type":"tool-getWeather","toolCallId":"call_1","state":"output-available","input":{"city":"Paris"},"output":{"temp":18}},{"type":"dynamic-tool","toolName":"mcp","toolCallId":"call_2","state":"output-error","input":{},"errorText":"down"},{"type":"step-start"},{"type":"text","text":"It is 18 C.","state":"done"}]`,
			`assistant [{"type":"tool-f","toolCallId":"c3","state":"input-available","input":{}}]`,
			`assistant []`,
		), []string{
			"user Weather in Paris?", `assistant (hm) call_1=getWeather({"city":"Paris"}) call_2=mcp({})`, `tool {"temp":18} for call_1`, "tool down for call_2 is_error=true",
			"assistant It is 18 C.", "assistant c3=f({})",
		}, [][]int{{0}, {1}, {1}, {1}, {1}, {2}}},
		"Mastra": {"mastra", rowsOf(
			`user {"format":2,"parts":[{"type":"text","text":"hi"}],"content":"hi"}`,
			`assistant {"format":2,"parts":[{"type":"step-start"},{"type":"tool-invocation","toolInvocation":{"state":"result","step":0,"toolCallId":"call_1","toolName":"get_weather","args":{"city":"Paris"},"result":{"temp":18}}},{"type":"text","text":"It is 18 C."}],"content":"It is 18 C."}`,
			`user "again"`,
		), []string{"user hi", `assistant call_1=get_weather({"city":"Paris"})`, `tool {"temp":18} for call_1`, "assistant It is 18 C.", "user again"}, [][]int{{0}, {1}, {1}, {1}, {2}}},
		"items of the Agents SDK": {"responses", rowsOf(
			`{"content":"Weather?","role":"user"}`,
			`{"arguments":"{}","call_id":"a","name":"f","type":"function_call","id":"fc_1","status":"completed"}`,
			`{"arguments":"{}","call_id":"b","name":"f","type":"function_call","id":"fc_2","status":"completed"}`,
			`{"call_id":"a","output":"1","type":"function_call_output"}`,
			`{"call_id":"b","output":"2","type":"function_call_output"}`,
			`{"id":"msg_1","content":[{"annotations":[],"text":"so","type":"output_text","logprobs":[]}],"role":"assistant","status":"completed","type":"message"}`,
		), []string{"user Weather?", "assistant a=f({}) b=f({})", "tool 1 for a", "tool 2 for b", "assistant msg_1 so"}, [][]int{{0}, {1, 2}, {3}, {4}, {5}}},
		"steps of Laravel AI": {"laravel", rowsOf(
			`user {"id":"1","content":"hi","steps":[]}`,
			`assistant [{"content":"look","tool_calls":[{"id":"c","name":"f","arguments":{"a":1},"result":"r"},{"id":"d","name":"f","arguments":[],"result":null,"failed":true}],"reasoning":"hm","replay_blocks":[]},{"content":"so","tool_calls":[],"reasoning":""}]`,
			`{"role":"assistant","content":"older","tool_calls":[{"id":"c","name":"f","arguments":{}}],"tool_results":[{"id":"c","name":"f","arguments":{},"result":{"x":1}}]}`,
		), []string{
			"user 1 hi", `assistant look (hm) c=f({"a":1}) d=f({})`, "tool r for c", "tool for d is_error=true", "assistant so",
			"assistant c=f({})", `tool {"x":1} for c`, "assistant older",
		}, [][]int{{0}, {1}, {1}, {1}, {1}, {2}, {2}, {2}}},
		"chat-completions": {"chat", rowsOf(`{"role":"user","content":"hi"}`, `assistant "yo"`, `user {"id":7,"content":[{"type":"text","text":"on"}]}`), []string{"user hi", "assistant yo", "user 7 on"}, [][]int{{0}, {1}, {2}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := formats.Records(tt.format, tt.rows)
			if err != nil {
				t.Fatal(err)
			}
			var s chat.Session
			var from [][]int
			for _, m := range got {
				s.Messages = append(s.Messages, m.Message)
				from = append(from, m.Rows)
			}
			if diff := cmp.Diff(tt.want, outline(s)); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.from, from); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRecordsAreRefusedByWhatIsWrong(t *testing.T) {
	t.Parallel()
	for format, bad := range map[string]map[string]string{
		"chat":      {`bot "SECRET"`: `role "bot": want system`, `{"content":"SECRET"}`: "role: missing"},
		"langchain": {`{"type":"remove","content":"SECRET"}`: `role: want AIMessage, AIMessageChunk,`, `{"content":"SECRET"}`: "no record of the format", `"SECRET"`: "want an object, got a string"},
		"vercel":    {`bot [{"type":"text","text":"SECRET"}]`: `role: want assistant, system, tool, user, got "bot"`, `user [{"type":"tool-f","toolCallId":"c"}]`: "parts[0]: a call in a message of the user"},
		"mastra":    {`user {"format":2}`: `no record of the format (role "user")`},
		"responses": {`{"type":"function_call"}`: "function_call: call_id: want a string", `{"__enc__":1,"x":"SECRET"}`: "type: missing"},
		"laravel":   {`tool "SECRET"`: `got "tool"`},
		"xml":       {`{}`: `format "xml": want one of chat, langchain`},
	} {
		for row, want := range bad {
			good := rowsOf(`{"role":"user","content":"hi","steps":[]}`)
			_, err := formats.Records(format, append(good, rowsOf(row)...))
			var fault *formats.RowError
			if !errors.As(err, &fault) || strings.Contains(err.Error(), "SECRET") {
				t.Errorf("%s: %s: %v", format, row, err)
			}
			one := rowsOf(row)[0]
			if _, err = formats.Record(format, one.Value, one.Role); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %s: %v, want %s", format, row, err, want)
			}
		}
	}
}
