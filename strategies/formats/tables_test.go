package formats_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/formats"
)

// tableSample is a file of a format that is only read. Each word such as said7 in it is a part of
// what was said, and has to be in a message.
type tableSample struct {
	format, name, in string
	want             []string
	other, dropped   map[string]int
	model, title     string
}

// tableSamples are made up after the files and sources that the tables name.
var tableSamples = []tableSample{
	{
		format: "qwen-code", name: "a branch",
		in: lines(
			`{"uuid":"0","parentUuid":null,"sessionId":"q","type":"system","subtype":"session_source","systemPayload":{"sourceType":"cli"}}`,
			`{"uuid":"1","parentUuid":"0","sessionId":"q","timestamp":"2026-09-08T10:00:00Z","type":"user","cwd":"/w","version":"0.21.13","message":{"role":"user","parts":[{"text":"said1"}]}}`,
			`{"uuid":"x","parentUuid":"1","sessionId":"q","type":"assistant","message":{"role":"model","parts":[{"text":"taken back"}]}}`,
			`{"uuid":"2","parentUuid":"1","sessionId":"q","type":"assistant","model":"qwen3","usageMetadata":{"totalTokenCount":9},"message":{"role":"model","parts":[{"text":"said2","thought":true},{"text":"said3"},{"functionCall":{"id":"c1","name":"read_file","args":{"path":"said4"}}}]}}`,
			`{"uuid":"3","parentUuid":"2","sessionId":"q","type":"tool_result","toolCallResult":{"status":"success"},"message":{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"read_file","response":{"output":"said5"}}}]}}`,
			`{"uuid":"4","parentUuid":"3","sessionId":"q","type":"user","subtype":"notification","message":{"role":"user","parts":[{"text":"said6"}]}}`,
			`{"uuid":"5","parentUuid":"4","sessionId":"q","type":"system","subtype":"custom_title","systemPayload":{"customTitle":"A title"}}`,
		),
		want:  []string{"user 1 said1", `assistant 2 said3 (said2) c1=read_file({"path":"said4"})`, "tool 3 said5 for c1", "user 4 said6 is_meta=true"},
		other: map[string]int{"abandoned": 1, "system:session_source": 1, "system:custom_title": 1}, dropped: map[string]int{"toolCallResult": 1}, model: "qwen3", title: "A title",
	},
	{
		format: "gemini-cli", name: "a document",
		in: `{"sessionId":"g","projectHash":"h","startTime":"2026-09-08T10:00:00Z","lastUpdated":"2026-09-08T10:00:00Z","summary":"A title","messages":[
 {"id":"1","timestamp":"2026-09-08T10:00:00Z","type":"user","content":"said1"},
 {"id":"2","timestamp":"2026-09-08T10:00:01Z","type":"gemini","content":"said2","thoughts":[{"subject":"said3","description":"said4","timestamp":"2026-09-08T10:00:01Z"}],"tokens":{"total":7},"model":"gemini-3","toolCalls":[
  {"id":"c1","name":"ls","args":{"dir":"said5"},"status":"success","result":[{"functionResponse":{"id":"c1","name":"ls","response":{"output":"said6"}}}],"resultDisplay":"said6"},
  {"id":"c2","name":"ls","args":{},"status":"error","result":[{"functionResponse":{"id":"c2","name":"ls","response":{"error":"said7"}}}]},
  {"id":"c3","name":"ls","args":{},"status":"cancelled"}]},
 {"id":"3","timestamp":"2026-09-08T10:00:02Z","type":"info","content":"Update available"}]}`,
		want: []string{
			"user 1 said1", "assistant 2 said2 (said3\n\nsaid4) c1=ls({\"dir\":\"said5\"}) c2=ls({}) c3=ls({})", "tool 2#2 said6 for c1", "tool 2#3 said7 for c2 is_error=true", "tool 2#4 for c3 is_error=true",
		},
		other: map[string]int{"info": 1}, model: "gemini-3", title: "A title",
	},
	{
		format: "gemini-cli", name: "lines",
		in: lines(
			`{"sessionId":"g","projectHash":"h","startTime":"2026-09-08T10:00:00Z","kind":"main"}`,
			`{"id":"1","timestamp":"2026-09-08T10:00:00Z","type":"user","content":[{"text":"said1"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}`,
			`{"id":"2","type":"gemini","content":"","model":"gemini-3"}`,
			`{"id":"2","type":"gemini","content":[{"text":"said2"},{"functionCall":{"name":"ls","args":{}}}],"model":"gemini-3","toolCalls":[{"id":"c1","name":"ls","args":{},"status":"success","result":["said3"]}]}`,
			`{"$set":{"lastUpdated":"2026-09-08T10:00:01Z"}}`,
			`{"id":"3","type":"user","content":"taken back"}`,
			`{"id":"4","type":"gemini","content":"taken back"}`,
			`{"$rewindTo":"3"}`,
			`{"id":"5","type":"user","content":"said4"}`,
		),
		want:  []string{"user 1 said1 +image_url", "assistant 2 said2 c1=ls({})", `tool 2#2 said3 for c1`, "user 5 said4"},
		other: map[string]int{"header": 1, "$set": 1, "$rewindTo": 1, "duplicate": 1, "abandoned": 2}, model: "gemini-3",
	},
	{
		format: "gemini", name: "a request",
		in:      `{"model":"gemini-3","systemInstruction":{"parts":[{"text":"said1"}]},"contents":[{"role":"user","parts":[{"text":"said2"},{"fileData":{"fileUri":"https://x/y.png","mimeType":"image/png"}}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":"said3"}},"thoughtSignature":"AA=="},{"functionCall":{"name":"g","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"said4"}}},{"functionResponse":{"name":"g","response":{"n":"said5","m":1}}}]},{"role":"model","parts":[{"text":"said6"}]}],"generationConfig":{"temperature":0}}`,
		want:    []string{"system said1", "user said2 +image_url", `assistant call_1=f({"a":"said3"}) call_2=g({})`, "tool said4 for call_1", `tool {"n":"said5","m":1} for call_2`, "assistant said6"},
		dropped: map[string]int{"generationConfig": 1, "parts.thoughtSignature": 1}, model: "gemini-3",
	},
	{
		format: "gemini", name: "a checkpoint of the Gemini CLI",
		in:   "[\n {\n  \"role\": \"user\",\n  \"parts\": [\n   {\n    \"text\": \"said1\"\n   }\n  ]\n },\n {\n  \"role\": \"model\",\n  \"parts\": [\n   {\n    \"text\": \"said2\"\n   }\n  ]\n }\n]",
		want: []string{"user said1", "assistant said2"},
	},
	{
		format: "gemini", name: "lines", in: lines(`{"role":"user","parts":[{"text":"said1"}]}`, `{"role":"model","parts":[{"text":"said2"},{"executableCode":{"language":"PYTHON","code":"said3"}}]}`),
		want: []string{"user said1", "assistant said2\nsaid3"},
	},
	{
		format: "copilot-cli", name: "events",
		in: lines(
			`{"type":"session.start","data":{"sessionId":"s","version":1,"producer":"copilot-agent","copilotVersion":"0.0.420","selectedModel":"gpt-5"},"id":"e1","timestamp":"2026-09-08T10:00:00Z","parentId":null}`,
			`{"type":"system.message","data":{"content":"said1","role":"system"},"id":"e2","timestamp":"2026-09-08T10:00:00Z","parentId":"e1"}`,
			`{"type":"user.message","data":{"content":"said2","transformedContent":"said2 and the date","attachments":[{"type":"blob","data":"AAAA","mimeType":"image/png"},{"type":"file","path":"/w/a"}]},"id":"e3","timestamp":"2026-09-08T10:00:00Z","parentId":"e2"}`,
			`{"type":"assistant.turn_start","data":{"turnId":"0"},"id":"e4","timestamp":"2026-09-08T10:00:00Z","parentId":"e3"}`,
			`{"type":"assistant.message","data":{"messageId":"m","content":"said3","reasoningText":"said4","reasoningOpaque":"AA","toolRequests":[{"toolCallId":"c1","name":"bash","arguments":{"command":"said5"},"type":"function"}]},"id":"e5","timestamp":"2026-09-08T10:00:00Z","parentId":"e4"}`,
			`{"type":"assistant.message","agentId":"a","data":{"messageId":"n","content":"of a sub-agent","toolRequests":[]},"id":"e6","timestamp":"2026-09-08T10:00:00Z","parentId":"e5"}`,
			`{"type":"tool.execution_complete","data":{"toolCallId":"c1","success":false,"error":{"message":"said6","code":"failure"}},"id":"e7","timestamp":"2026-09-08T10:00:00Z","parentId":"e6"}`,
			`{"type":"assistant.message","data":{"messageId":"o","content":"","toolRequests":[{"toolCallId":"c2","name":"bash"}]},"id":"f1","timestamp":"2026-09-08T10:00:00Z","parentId":"e7"}`,
			`{"type":"tool.execution_complete","data":{"toolCallId":"c2","success":true,"result":{"content":""}},"id":"f2","timestamp":"2026-09-08T10:00:00Z","parentId":"f1"}`,
			`{"type":"user.message","data":{"content":"taken back"},"id":"e8","timestamp":"2026-09-08T10:00:00Z","parentId":"e7"}`,
			`{"type":"session.snapshot_rewind","data":{"upToEventId":"e8","eventsRemoved":1},"id":"e9","timestamp":"2026-09-08T10:00:00Z","parentId":"e8"}`,
			`{"type":"session.compaction_complete","data":{"success":true,"summaryContent":"said7","messagesRemoved":3},"id":"e10","timestamp":"2026-09-08T10:00:00Z","parentId":"e9"}`,
			`{"type":"novelty","data":{},"id":"e11","timestamp":"2026-09-08T10:00:00Z","parentId":"e10"}`,
		),
		want:    []string{"system e2 said1", "user e3 said2 +image_url", `assistant e5 said3 (said4) c1=bash({"command":"said5"})`, "tool e7 said6 for c1 is_error=true", "assistant f1 c2=bash({})", "tool f2 for c2", "user e10 said7 is_compact_summary=true"},
		other:   map[string]int{"session.start": 1, "assistant.turn_start": 1, "subagent": 1, "abandoned": 1, "session.snapshot_rewind": 1, "novelty": 1},
		dropped: map[string]int{"data.transformedContent": 1, "data.reasoningOpaque": 1, "data.attachments file": 1}, model: "gpt-5",
	},
	{
		format: "kimi", name: "Kimi Code",
		in: lines(
			`{"type":"metadata","protocol_version":"1.4","created_at":1785612803281}`,
			`{"type":"config.update","profileName":"agent","systemPrompt":"said1","time":1785612803281}`,
			`{"type":"config.update","modelAlias":"kimi-k2.7","thinkingEffort":"on","time":1785612803282}`,
			`{"type":"turn.prompt","input":[{"type":"text","text":"said2"}],"origin":{"kind":"user"},"time":1785612812819}`,
			`{"type":"context.append_message","message":{"role":"user","content":[{"type":"text","text":"said2"}],"toolCalls":[],"origin":{"kind":"user"}},"time":1785612812820}`,
			`{"type":"context.append_loop_event","event":{"type":"step.begin","uuid":"s1","turnId":"0","step":1},"time":1785612812825}`,
			`{"type":"llm.request","kind":"loop","model":"k","time":1785612812829}`,
			`{"type":"context.append_loop_event","event":{"type":"content.part","uuid":"p1","turnId":"0","step":1,"stepUuid":"s1","part":{"type":"think","think":"said3"}},"time":1785612812830}`,
			`{"type":"context.append_loop_event","event":{"type":"content.part","uuid":"p2","turnId":"0","step":1,"stepUuid":"s1","part":{"type":"text","text":"said4"}},"time":1785612812830}`,
			`{"type":"context.append_loop_event","event":{"type":"tool.call","uuid":"Bash_0","turnId":"0","step":1,"stepUuid":"s1","toolCallId":"Bash_0","name":"Bash","args":{"command":"said5"},"description":"x"},"time":1785612812831}`,
			`{"type":"context.append_loop_event","event":{"type":"tool.result","parentUuid":"Bash_0","toolCallId":"Bash_0","result":{"output":"said6","isError":true}},"time":1785612812832}`,
			`{"type":"context.append_loop_event","event":{"type":"tool.call","uuid":"Bash_1","turnId":"0","step":1,"stepUuid":"s1","toolCallId":"Bash_1","name":"Bash","args":{}},"time":1785612812833}`,
			`{"type":"context.append_loop_event","event":{"type":"tool.result","parentUuid":"Bash_1","toolCallId":"Bash_1","result":{"output":[{"type":"text","text":"said7"}]}},"time":1785612812834}`,
			`{"type":"context.append_message","message":{"role":"user","content":[{"type":"text","text":"said8"}],"toolCalls":[],"origin":{"kind":"injection"}},"time":1785612812835}`,
			`{"type":"context.append_message","message":{"role":"user","content":[{"type":"text","text":"taken back"}],"toolCalls":[],"origin":{"kind":"user"}},"time":1785612812836}`,
			`{"type":"context.undo","count":1,"time":1785612812837}`,
			`{"type":"context.apply_compaction","summary":"said9","compactedCount":3,"tokensBefore":9,"tokensAfter":1,"time":1785612812838}`,
		),
		want: []string{
			"system system said1", "user said2", `assistant said4 (said3) Bash_0=Bash({"command":"said5"}) Bash_1=Bash({})`, "tool said6 for Bash_0 is_error=true", "tool said7 for Bash_1",
			"user said8 is_meta=true", "user said9 is_compact_summary=true",
		},
		other: map[string]int{"metadata": 1, "config.update": 1, "turn.prompt": 1, "context.append_loop_event:step.begin": 1, "llm.request": 1, "joined": 3, "abandoned": 1, "context.undo": 1}, model: "kimi-k2.7",
	},
	{
		format: "kimi", name: "Kimi CLI",
		in: lines(
			`{"role":"_system_prompt","content":"said1"}`, `{"role":"_checkpoint","id":0}`, `{"role":"user","content":"said2"}`,
			`{"role":"assistant","content":[{"type":"think","think":"said3","encrypted":"AA"},{"type":"text","text":"said4"}],"tool_calls":[{"type":"function","id":"c","function":{"name":"f","arguments":"{\"a\":\"said5\"}"}}]}`,
			`{"role":"tool","content":[{"type":"text","text":"said6"}],"tool_call_id":"c"}`, `{"role":"_usage","token_count":7}`,
		),
		want:  []string{"system said1", "user said2", `assistant said4 (said3) c=f({"a":"said5"})`, "tool said6 for c"},
		other: map[string]int{"_checkpoint": 1, "_usage": 1}, dropped: map[string]int{"content.encrypted": 1},
	},
	{
		format: "grok", name: "a history",
		in: lines(
			`{"type":"system","content":"said1"}`, `{"type":"user","content":[{"type":"text","text":"said2"}],"synthetic_reason":"environment_context"}`,
			`{"type":"user","content":[{"type":"text","text":"said3"},{"type":"image","url":"data:image/png;base64,AAAA"}],"prompt_index":0}`,
			`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"said4"}],"encrypted_content":"AA","status":"completed"}`,
			`{"type":"assistant","content":"said5","tool_calls":[{"id":"c","name":"read_file","arguments":"{\"a\":\"said6\"}"}],"model_id":"grok-4.5"}`,
			`{"type":"tool_result","tool_call_id":"c","content":"said7"}`, `{"type":"backend_tool_call","kind":{"tool_type":"web_search"}}`,
			`{"type":"assistant","content":"","tool_calls":[{"id":"d","name":"ls","arguments":"{}"}],"model_id":"grok-4.5"}`, `{"type":"tool_result","tool_call_id":"d","content":""}`,
		),
		want: []string{
			"system said1", "user said2 is_meta=true", "user said3 +image_url", `assistant said5 (said4) c=read_file({"a":"said6"})`, "tool said7 for c",
			"assistant d=ls({})", "tool for d",
		},
		other: map[string]int{"joined": 1, "backend_tool_call": 1}, dropped: map[string]int{"encrypted_content": 1}, model: "grok-4.5",
	},
	{
		format: "cline", name: "Cline and Roo Code",
		in: `[{"role":"user","content":[{"type":"text","text":"said1"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}],"ts":1757325600000},
{"type":"reasoning","role":"assistant","content":"","summary":[{"type":"summary_text","text":"said2"}],"encrypted_content":"AA","id":"rs_1","ts":1757325601000},
{"role":"assistant","content":[{"type":"thinking","thinking":"said3","signature":"sig"},{"type":"text","text":"said4"},{"type":"tool_use","id":"c","name":"read_file","input":{"path":"said5"}}],"ts":1757325602000,"modelInfo":{"modelId":"claude","providerId":"anthropic"}},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"said6"}],"is_error":true},{"type":"text","text":"said7"}],"ts":1757325603000},
{"role":"user","content":[{"type":"text","text":"said8"}],"isSummary":true,"condenseId":"x","ts":1757325604000}]`,
		want: []string{
			"user said1 +image_url", `assistant said4 (said2) +thinking c=read_file({"path":"said5"})`, "tool said6 for c is_error=true", "user said7", "user said8 is_compact_summary=true",
		},
		other: map[string]int{"joined": 1}, dropped: map[string]int{"encrypted_content": 1}, model: "claude",
	},
	{
		format: "goose", name: "an export",
		in: `{"id":"20260908_1","working_dir":"/w","name":"A title","conversation":[{"id":"m1","role":"user","created":1757325600,"content":[{"type":"text","text":"said1"}],"metadata":{"userVisible":true,"agentVisible":true}},
{"id":"m2","role":"assistant","created":1757325601,"content":[{"type":"thinking","thinking":"said2","signature":"sig"},{"type":"text","text":"said3"},{"type":"toolRequest","id":"c","toolCall":{"status":"success","value":{"name":"shell","arguments":{"command":"said4"}}}},{"type":"systemNotification","notificationType":"inlineMessage","msg":"x"}],"metadata":{"userVisible":true,"agentVisible":true}},
{"id":"m3","role":"user","created":1757325602,"content":[{"type":"toolResponse","id":"c","toolResult":{"status":"success","value":{"content":[{"type":"text","text":"said5","annotations":{}},{"type":"image","data":"AAAA","mimeType":"image/png"}],"isError":false}}}],"metadata":{"userVisible":true,"agentVisible":true}},
{"id":"m4","role":"user","created":1757325603,"content":[{"type":"text","text":"said6"}],"metadata":{"userVisible":false,"agentVisible":true}}],"message_count":4,"model_config":{"model_name":"gpt-5"}}`,
		want: []string{
			"user m1 said1", `assistant m2 said3 +thinking c=shell({"command":"said4"})`, "tool m3 said5 +image_url for c", "user m4 said6 is_meta=true",
		},
		dropped: map[string]int{"content systemNotification": 1}, model: "gpt-5", title: "A title",
	},
	{
		format: "goose", name: "lines",
		in: lines(
			`{"working_dir":"/w","description":"A title","message_count":3,"total_tokens":10}`, `{"role":"user","created":1757325600,"content":[{"type":"text","text":"said1"}]}`,
			`{"role":"assistant","created":1757325601,"content":[{"type":"toolRequest","id":"c","toolCall":{"status":"success","value":{"name":"shell","arguments":{}}}},{"type":"toolRequest","id":"d","toolCall":{"status":"error","error":"said2"}}]}`,
			`{"role":"user","created":1757325602,"content":[{"type":"toolResponse","id":"c","toolResult":{"status":"error","error":"said3"}}]}`,
			`{"role":"user","created":1757325602,"content":[{"type":"toolResponse","id":"c","toolResult":{"status":"success","value":[{"type":"text","text":"said4"}]}}]}`,
		),
		want:  []string{"user said1", "assistant said2 c=shell({})", "tool said3 for c is_error=true", "tool said4 for c"},
		other: map[string]int{"header": 1}, title: "A title",
	},
	{
		format: "opencode", name: "an export",
		in: `{"info":{"id":"ses_1","title":"A title","directory":"/w"},"messages":[{"info":{"id":"m1","role":"user","sessionID":"ses_1","time":{"created":1757325600000},"agent":"build","model":{"providerID":"p","modelID":"m"}},"parts":[{"type":"text","text":"said1","id":"p1","sessionID":"ses_1","messageID":"m1"},{"type":"text","text":"said2","synthetic":true},{"type":"file","mime":"application/pdf","filename":"a.pdf","url":"data:application/pdf;base64,AAAA"},{"type":"file","mime":"text/plain","filename":"a","url":"file:///w/a"}]},
{"info":{"id":"m2","role":"assistant","parentID":"m1","time":{"created":1757325601000,"completed":1757325602000},"modelID":"x","providerID":"p","cost":0,"error":{"name":"APIError"}},"parts":[{"type":"step-start","snapshot":"h"},{"type":"reasoning","text":"said3","time":{"start":1}},{"type":"text","text":"said4"},{"type":"tool","callID":"c1","tool":"bash","state":{"status":"completed","input":{"command":"said5"},"output":"said6","title":"t","metadata":{},"time":{"start":1,"end":2}}},{"type":"step-finish","reason":"tool-calls","cost":0},{"type":"step-start"},{"type":"tool","callID":"c2","tool":"bash","state":{"status":"error","input":{},"error":"said7","time":{"start":1,"end":2}}},{"type":"patch","hash":"h","files":[]},{"type":"text","text":"said8"}]},
{"info":{"id":"m3","role":"assistant","summary":true,"time":{"created":1757325603000}},"parts":[{"type":"text","text":"said9"}]}],"todos":[]}`,
		want: []string{
			"user m1 said1\nsaid2 +file", `assistant m2 said4 (said3) c1=bash({"command":"said5"})`, "tool m2#2 said6 for c1", "assistant m2#3 c2=bash({})", "tool m2#4 said7 for c2 is_error=true", "assistant m2#5 said8",
			"assistant m3 said9 is_compact_summary=true",
		},
		dropped: map[string]int{"parts file": 1, "info.error": 1}, model: "x", title: "A title",
	},
	{
		format: "openhands", name: "events of the SDK",
		in: lines(
			`{"kind":"SystemPromptEvent","id":"0","timestamp":"2026-09-08T10:00:00.123456","source":"agent","system_prompt":{"type":"text","text":"said1","cache_prompt":false},"tools":[{"title":"bash"}]}`,
			`{"kind":"MessageEvent","id":"1","timestamp":"2026-09-08T10:00:01","source":"user","llm_message":{"role":"user","content":[{"type":"text","text":"said2"},{"type":"image","image_urls":["https://x/y.png"]}]},"extended_content":[{"type":"text","text":"said3"}]}`,
			`{"kind":"ActionEvent","id":"2","timestamp":"2026-09-08T10:00:02","source":"agent","thought":[{"type":"text","text":"said4"}],"reasoning_content":"said5","thinking_blocks":[],"action":{"kind":"ExecuteBashAction","command":"said6"},"tool_name":"bash","tool_call_id":"c1","tool_call":{"id":"c1","name":"bash","arguments":"{\"command\":\"said6\"}","origin":"completion"},"llm_response_id":"r1","security_risk":"LOW"}`,
			`{"kind":"ActionEvent","id":"3","timestamp":"2026-09-08T10:00:02","source":"agent","thought":[],"action":null,"tool_name":"bash","tool_call_id":"c2","tool_call":{"id":"c2","name":"bash","arguments":"{}","origin":"completion"},"llm_response_id":"r1"}`,
			`{"kind":"ObservationEvent","id":"4","timestamp":"2026-09-08T10:00:03","source":"environment","tool_name":"bash","tool_call_id":"c1","action_id":"2","observation":{"kind":"ExecuteBashObservation","content":[{"type":"text","text":"said7"}],"is_error":false,"exit_code":0}}`,
			`{"kind":"AgentErrorEvent","id":"5","timestamp":"2026-09-08T10:00:03","source":"agent","tool_name":"bash","tool_call_id":"c2","error":"said8"}`,
			`{"kind":"ConversationStateUpdateEvent","id":"6","timestamp":"2026-09-08T10:00:03","source":"environment","key":"x","value":1}`,
			`{"kind":"Condensation","id":"7","timestamp":"2026-09-08T10:00:04","source":"environment","forgotten_event_ids":["1"],"summary":"said9","llm_response_id":"r2"}`,
		),
		want: []string{
			"system 0 said1", "user 1 said2\nsaid3 +image_url", `assistant 2 said4 (said5) c1=bash({"command":"said6"}) c2=bash({})`, "tool 4 said7 for c1", "tool 5 said8 for c2 is_error=true",
			"user 7 said9 is_compact_summary=true",
		},
		other: map[string]int{"joined": 1, "ConversationStateUpdateEvent": 1}, dropped: map[string]int{"observation.exit_code": 1},
	},
	{
		format: "openhands", name: "events of version 0",
		in: `[{"id":0,"timestamp":"2026-09-08T10:00:00.1","source":"agent","action":"system","message":"said1","args":{"content":"said1","tools":null}},
{"id":1,"source":"user","message":"said2","action":"message","args":{"content":"said2","image_urls":["https://x/y.png"],"wait_for_response":false}},
{"id":2,"source":"agent","message":"Running","action":"run","args":{"command":"said3","thought":"said4"},"tool_call_metadata":{"tool_call_id":"c1","function_name":"execute_bash","model_response":{"id":"r1"},"total_calls_in_response":2}},
{"id":3,"source":"agent","action":"read","args":{"path":"said5"},"tool_call_metadata":{"tool_call_id":"c2","function_name":"read","model_response":{"id":"r1"},"total_calls_in_response":2}},
{"id":4,"source":"agent","cause":2,"observation":"run","content":"said6","extras":{"exit_code":0},"success":true,"tool_call_metadata":{"tool_call_id":"c1","function_name":"execute_bash"}},
{"id":5,"source":"agent","cause":3,"observation":"error","content":"said7","tool_call_metadata":{"tool_call_id":"c2","function_name":"read"}},
{"id":6,"source":"environment","observation":"agent_state_changed","content":"","extras":{"agent_state":"running"}},
{"id":7,"source":"agent","action":"run","args":{"command":"ls"}},{"id":8,"source":"agent","cause":7,"observation":"run","content":"said8"},
{"id":9,"source":"agent","action":"finish","args":{"final_thought":"said9","outputs":{}}}]`,
		want: []string{
			"system 0 said1", "user 1 said2 +image_url", `assistant 2 said4 c1=execute_bash({"command":"said3"}) c2=read({"path":"said5"})`, "tool 4 said6 for c1", "tool 5 said7 for c2 is_error=true",
			`assistant 7 7=run({"command":"ls"})`, "tool 8 said8 for 7", "assistant 9 said9",
		},
		other: map[string]int{"joined": 1, "agent_state_changed": 1},
	},
	{
		format: "langchain", name: "dicts",
		in:   `[{"type":"human","data":{"content":"said1"}},{"type":"ai","data":{"content":"said2","tool_calls":[{"name":"f","args":{"a":"said3"},"id":"c","type":"tool_call"}]}},{"type":"tool","data":{"content":"said4","tool_call_id":"c","artifact":{"x":1}}}]`,
		want: []string{"user said1", `assistant said2 c=f({"a":"said3"})`, "tool said4 for c"}, dropped: map[string]int{"data.artifact": 1},
	},
	{
		format: "langchain", name: "a state with flat messages",
		in:   `{"thread_id":"t","messages":[{"type":"human","content":"said1","id":"1"},{"type":"ai","content":[{"type":"text","text":"said2"},{"type":"reasoning","reasoning":"said3"}],"tool_calls":[],"invalid_tool_calls":[{"name":"f","args":"said4","id":"c","error":"x"}]}]}`,
		want: []string{"user 1 said1", "assistant said2 (said3) c=f(said4)"}, dropped: map[string]int{"invalid_tool_calls.error": 1},
	},
	{
		format: "langchain", name: "flat lines", in: lines(`{"type":"system","content":"said1","additional_kwargs":{}}`, `{"type":"human","content":"said2"}`, `{"type":"ai","content":"said3"}`),
		want: []string{"system said1", "user said2", "assistant said3"},
	},
	{
		format: "langchain", name: "a dump",
		in:   `[{"lc":1,"type":"constructor","id":["langchain","schema","messages","HumanMessage"],"kwargs":{"content":"said1","type":"human"}},{"lc":1,"type":"constructor","id":["langchain","schema","messages","ToolMessage"],"kwargs":{"content":"said2","tool_call_id":"c","type":"tool"}}]`,
		want: []string{"user said1", "tool said2 for c"},
	},
	{
		format: "vercel", name: "UI messages",
		in:   `{"id":"c","messages":[{"id":"1","role":"user","parts":[{"type":"text","text":"said1"},{"type":"file","mediaType":"image/png","url":"data:image/png;base64,AAAA"}]},{"id":"2","role":"assistant","metadata":{"x":1},"parts":[{"type":"step-start"},{"type":"reasoning","text":"said2","providerMetadata":{"anthropic":{"signature":"sig"}}},{"type":"tool-f","toolCallId":"t","state":"output-available","input":{"a":"said3"},"output":"said4"},{"type":"source-url","url":"https://x"},{"type":"step-start"},{"type":"text","text":"said5"}]}]}`,
		want: []string{"user 1 said1 +image_url", `assistant 2 +thinking t=f({"a":"said3"})`, "tool 2#2 said4 for t", "assistant 2#3 said5"}, dropped: map[string]int{"metadata": 1, "parts source-url": 1},
	},
	{
		format: "vercel", name: "UI messages of version 4",
		in:   `[{"id":"1","role":"user","content":"said1","parts":[{"type":"text","text":"said1"}],"createdAt":"2026-09-08T10:00:00Z"},{"id":"2","role":"assistant","content":"said3","toolInvocations":[{"state":"result","toolCallId":"t","toolName":"f","args":{},"result":{"x":"said2"}}]}]`,
		want: []string{"user 1 said1", "assistant 2 t=f({})", `tool 2#2 {"x":"said2"} for t`, "assistant 2#3 said3"},
	},
	{
		format: "vercel", name: "model messages",
		in:   `{"session_id":"v","messages":[{"role":"user","content":"said1"},{"role":"assistant","content":[{"type":"text","text":"said2"},{"type":"tool-call","toolCallId":"t","toolName":"f","input":{}}]},{"role":"tool","content":[{"type":"tool-result","toolCallId":"t","toolName":"f","output":{"type":"text","value":"said3"}}]}]}`,
		want: []string{"user said1", "assistant said2 t=f({})", "tool said3 for t"},
	},
	{
		format: "vercel", name: "lines", in: lines(`{"role":"user","content":"said1"}`, `{"role":"assistant","content":"said2"}`, `{"role":"user","content":"said3"}`, `{"role":"assistant","content":[{"type":"tool-call","toolCallId":"t","toolName":"f","input":{}}]}`),
		want: []string{"user said1", "assistant said2", "user said3", "assistant t=f({})"},
	},
	{
		format: "mastra", name: "messages",
		in:   `[{"id":"1","role":"user","createdAt":"2026-09-08T10:00:00Z","threadId":"t","resourceId":"r","content":{"format":2,"parts":[{"type":"text","text":"said1"}],"content":"said1"}},{"id":"2","role":"assistant","threadId":"t","content":{"format":2,"parts":[{"type":"reasoning","reasoning":"said2","details":[{"type":"text","text":"said2"}]},{"type":"tool-invocation","toolInvocation":{"state":"result","toolCallId":"c","toolName":"f","args":{},"result":"said3"}},{"type":"text","text":"said4"}]}}]`,
		want: []string{"user 1 said1", "assistant 2 said2 c=f({})", "tool 2#2 said3 for c", "assistant 2#3 said4"},
	},
	{
		format: "bedrock", name: "a request",
		in: `{"modelId":"claude","system":[{"text":"said1"},{"cachePoint":{"type":"default"}}],"messages":[{"role":"user","content":[{"text":"said2"},{"image":{"format":"png","source":{"bytes":"AAAA"}}}]},{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"said3","signature":"sig"}}},{"text":"said4"},{"toolUse":{"toolUseId":"t","name":"f","input":{"a":"said5"}}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"t","content":[{"text":"said6"},{"json":{"x":"said7"}}],"status":"error"}},{"text":"said8"},{"video":{"format":"mp4"}}]}],"inferenceConfig":{"maxTokens":9}}`,
		want: []string{
			"system said1", "user said2 +image_url", `assistant said4 +thinking t=f({"a":"said5"})`, "tool said6\n{\"x\":\"said7\"} for t is_error=true", "user said8",
		},
		dropped: map[string]int{"inferenceConfig": 1, "content video": 1}, model: "claude",
	},
	{
		format: "bedrock", name: "messages alone", in: `[{"role":"user","content":[{"text":"said1"}]}]`, want: []string{"user said1"},
	},
	{
		format: "chatgpt", name: "two calls, and more results",
		in: `[{"title":"","mapping":{"a":{"id":"a","parent":null,"message":{"author":{"role":"assistant"},"recipient":"web.run","content":{"content_type":"code","text":"said1"}}},
"b":{"id":"b","parent":"a","message":{"author":{"role":"assistant"},"recipient":"web.run","content":{"content_type":"code","text":"said2"}}},
"c":{"id":"c","parent":"b","message":{"author":{"role":"tool","name":"web.run"},"content":{"content_type":"text","parts":["said3"]}}},
"d":{"id":"d","parent":"c","message":{"author":{"role":"tool","name":"web.run"},"content":{"content_type":"text","parts":["said4"]}}},
"e":{"id":"e","parent":"d","message":{"author":{"role":"tool","name":"web.run"},"content":{"content_type":"tether_quote","url":"https://x","text":"said5"}}}},"current_node":"e"}]`,
		want:  []string{"assistant a call_1=web.run(said1) call_2=web.run(said2)", "tool c said3 for call_1", "tool d said4\nsaid5 for call_2"},
		other: map[string]int{"joined": 2},
	},
	{
		format: "chatgpt", name: "an export",
		in: `[{"title":"A title","create_time":1757325600.1,"update_time":1757325600.2,"mapping":{"n1":{"id":"n1","parent":null,"children":["n2"],"message":null},
"z":{"id":"z","parent":"n2","children":[],"message":{"id":"z","author":{"role":"assistant"},"content":{"content_type":"text","parts":["another answer"]}}},
"n2":{"id":"n2","parent":"n1","children":["z","n3"],"message":{"id":"n2","author":{"role":"user"},"create_time":1757325601.5,"content":{"content_type":"multimodal_text","parts":[{"content_type":"image_asset_pointer","asset_pointer":"sediment://1"},"said1"]}}},
"n3":{"id":"n3","parent":"n2","children":["n4"],"message":{"id":"n3","author":{"role":"assistant"},"content":{"content_type":"thoughts","thoughts":[{"summary":"said2","content":"said3"}]},"metadata":{"model_slug":"gpt-5"}}},
"n4":{"id":"n4","parent":"n3","children":["n5"],"message":{"id":"n4","author":{"role":"assistant","metadata":{}},"content":{"content_type":"code","language":"python","text":"said4"},"recipient":"python","status":"finished_successfully","weight":1}},
"n5":{"id":"n5","parent":"n4","children":["n6"],"message":{"id":"n5","author":{"role":"tool","name":"python"},"content":{"content_type":"execution_output","text":"said5"}}},
"n6":{"id":"n6","parent":"n5","children":["n7"],"message":{"id":"n6","author":{"role":"tool","name":"python"},"content":{"content_type":"text","parts":["said6"]}}},
"n7":{"id":"n7","parent":"n6","children":[],"message":{"id":"n7","author":{"role":"assistant"},"content":{"content_type":"text","parts":["said7"]},"recipient":"all"}}},"current_node":"n7","conversation_id":"c-1"}]`,
		want: []string{
			"user n2 said1", "assistant n3 (said2\n\nsaid3)", "assistant n4 call_1=python(said4)", "tool n5 said5\nsaid6 for call_1", "assistant n7 said7",
		},
		other: map[string]int{"root": 1, "abandoned": 1, "joined": 1}, dropped: map[string]int{"message.content image_asset_pointer": 1}, model: "gpt-5", title: "A title",
	},
}

var saidWord = regexp.MustCompile(`said[0-9]+`)

func TestTables(t *testing.T) {
	t.Parallel()
	for _, tt := range tableSamples {
		t.Run(tt.format+": "+tt.name, func(t *testing.T) {
			t.Parallel()
			if got := formats.Detect([]byte(tt.in)); got != tt.format {
				t.Errorf("detected %s", got)
			}
			s := one(t, tt.in, tt.format)
			if diff := cmp.Diff(tt.want, outline(s.Session)); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.other, s.Report.Other); diff != "" {
				t.Errorf("other (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.dropped, s.Report.Dropped); diff != "" {
				t.Errorf("dropped (-want +got):\n%s", diff)
			}
			if s.Report.Values != s.Report.Messages+sum(s.Report.Other) {
				t.Errorf("%+v does not add up", s.Report)
			}
			if title := strings.Trim(string(s.Extra["title"]), `"`); s.Model != tt.model || title != tt.title {
				t.Errorf("model %q, title %q", s.Model, title)
			}
			var said string
			for i := range s.Messages {
				said += string(s.Messages[i].AppendJSON(nil))
			}
			for _, word := range saidWord.FindAllString(tt.in, -1) {
				if !strings.Contains(said, word) {
					t.Errorf("%s is lost", word)
				}
			}
		})
	}
}

// TestTablesAreReadAsTheirFormatAlone reads each sample in every other format: none yields a session
// that lacks a text.
func TestTablesAreReadAsTheirFormatAlone(t *testing.T) {
	t.Parallel()
	for _, tt := range tableSamples {
		for _, format := range formats.Names() {
			for _, skip := range []bool{false, true} {
				sessions, fault := outcome(t, tt.in, format, skip)
				if format == tt.format || format == "anthropic" && tt.format == "cline" { // which holds all of it, too
					continue
				}
				if written := slices.Contains(formats.WrittenNames(), format); sessions > 0 || fault == nil && !written {
					t.Errorf("%s: %s as %s: %d sessions, %v", tt.format, tt.name, format, sessions, fault)
				}
			}
		}
	}
}

// TestAnExportIsReadOneByOne: conversations of a list, whatever its white space, with one that is invalid.
func TestAnExportIsReadOneByOne(t *testing.T) {
	t.Parallel()
	one := func(id, text string) string {
		return `{"id":"` + id + `","title":"a, [b] \" {","mapping":{"x":{"id":"x","parent":null,"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["` + text + `"]}}}},"current_node":"x"}`
	}
	long := strings.Repeat("],[ ", 50_000)
	text := "\xef\xbb\xbf [\n" + one("1", "a") + " ,\n" + strings.ReplaceAll(one("2", "b"), `,"`, ",\n\"") + ",\r\n" + strings.Replace(one("3", "c"), `"user"`, `"bot"`, 1) +
		"," + strings.Replace(one("x", "c"), `"current_node":"x"`, `"current_node":"y"`, 1) + "," + one("4", long) + "," + one("5", long) + "," + one("6", long) + "\n]\n"
	in := &counting{in: strings.NewReader(text)}
	r, err := formats.NewReader(in, formats.Auto)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for {
		s, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			got = append(got, err.Error())
			continue
		}
		if got = append(got, s.ID); s.ID == "2" && in.read > len(long)+300<<10 {
			t.Errorf("%d bytes of %d are read", in.read, len(text))
		}
	}
	want := []string{"1", "2", `line 3: mapping[0]: role: want assistant, system, tool, user, got "bot"`, "line 4: current_node: want the id of a record, from which parents lead to the first one", "4", "5", "6"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

type counting struct {
	in   io.Reader
	read int
}

func (c *counting) Read(b []byte) (int, error) {
	n, err := c.in.Read(b)
	c.read += n
	return n, err
}

// TestCases reads files made after public reports, if they are there: each in its format, with all that was said.
func TestCases(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(rawFiles(t)[0]))), "cases")
	for path, want := range map[string]string{
		"24-qwen-code/qwen.jsonl": "qwen-code", "26-grok-history/grok.jsonl": "grok", "29-foreign-shapes-compact-file/bedrock.json": "bedrock",
		"29-foreign-shapes-compact-file/vercel_ui.json": "vercel", "29-foreign-shapes-compact-file/vercel_model.jsonl": "vercel",
		"29-foreign-shapes-compact-file/gemini_checkpoint.json": "gemini", "32-refused-files/chatgpt_export.json": "chatgpt",
		"32-refused-files/gemini_chat.json": "gemini-cli", "32-refused-files/gemini_request.json": "gemini", "32-refused-files/goose.jsonl": "goose",
		"32-refused-files/lc_dict.json": "langchain", "32-refused-files/openhands.json": "openhands", "32-refused-files/opencode_export.json": "opencode",
	} {
		raw, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			t.Skip("no cases beside the recorded sessions")
		}
		if got := formats.Detect(raw); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
			continue
		}
		var said string
		for i, s := 0, one(t, string(raw), want); i < len(s.Messages); i++ {
			said += string(s.Messages[i].AppendJSON(nil))
		}
		for _, text := range regexp.MustCompile(`"(?:text|output|command|path)": ?"([^"]+)"`).FindAllStringSubmatch(string(raw), -1) {
			if !strings.Contains(said, text[1]) {
				t.Errorf("%s: %s is lost", path, text[1])
			}
		}
	}
}
