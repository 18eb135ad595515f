package formats_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/formats"
)

// foreignFiles are files of other programs and APIs, by what their refusal says.
var foreignFiles = map[string][]string{
	"Qwen Code": {lines(
		`{"uuid":"1","parentUuid":null,"sessionId":"q","type":"user","message":{"role":"user","parts":[{"text":"hi"}]}}`,
		`{"uuid":"2","parentUuid":"1","sessionId":"q","type":"assistant","message":{"role":"model","parts":[{"text":"yo"}]}}`,
	)},
	"like that of Claude Code": {lines(`{"uuid":"1","parentUuid":null,"sessionId":"q","type":"user","message":{"role":"user","text":"hi"}}`)},
	"Grok": {lines(
		`{"type":"system","content":"You are an agent."}`, `{"type":"user","content":[{"type":"text","text":"hi"}]}`,
		`{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"A"}`, `{"type":"assistant","content":"yo","tool_calls":[{"id":"c","name":"f","arguments":"{}"}]}`,
		`{"type":"tool_result","tool_call_id":"c","content":"r"}`,
	), lines(`{"type":"user","content":"hi"}`, `{"type":"assistant","content":"yo"}`)},
	"Gemini CLI": {
		`{"sessionId":"g","projectHash":"h","messages":[{"id":"1","type":"user","content":"hi"},{"id":"2","type":"gemini","content":"yo"}]}`,
		lines(`{"sessionId":"g","projectHash":"h","startTime":"2026-09-08T10:00:00Z"}`, `{"id":"1","type":"user","content":[{"text":"hi"}]}`, `{"id":"2","type":"gemini","content":"yo"}`),
	},
	"Gemini API": {
		`{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"text":"yo"}]}]}`,
		`[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]}]`,
		lines(`{"role":"user","parts":[{"text":"hi"}]}`, `{"role":"model","parts":[{"text":"yo"}]}`),
	},
	"Bedrock Converse": {
		`{"modelId":"m","system":[{"text":"S"}],"messages":[{"role":"user","content":[{"text":"hi"}]},{"role":"assistant","content":[{"text":"ok"},{"toolUse":{"toolUseId":"t","name":"f","input":{}}}]}]}`,
		`{"system":[{"text":"S"}],"messages":[{"role":"user","content":[{"text":"hi"}]},{"role":"assistant","content":[{"text":"yo"}]}]}`,
		`[{"role":"user","content":[{"text":"hi"}]}]`,
	},
	"Vercel AI SDK": {
		`{"id":"c","messages":[{"id":"1","role":"user","parts":[{"type":"text","text":"hi"}]}]}`,
		`[{"id":"1","role":"user","parts":[{"type":"text","text":"hi"}]},{"id":"2","role":"assistant","parts":[{"type":"step-start"},{"type":"tool-f","toolCallId":"t"}]}]`,
		`{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool-call","toolCallId":"t","toolName":"f","input":{}}]},{"role":"tool","content":[{"type":"tool-result","toolCallId":"t","toolName":"f","output":{"type":"text","value":"r"}}]}]}`,
		`{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"","toolInvocations":[{"toolCallId":"t","toolName":"f"}]}]}`,
		lines(`{"role":"user","content":"hi"}`, `{"role":"assistant","content":"yo"}`, `{"role":"user","content":"more"}`, `{"role":"assistant","content":[{"type":"tool-call","toolCallId":"t","toolName":"f","input":{}}]}`),
	},
	"LangChain": {
		`[{"type":"human","data":{"content":"hi"}},{"type":"ai","data":{"content":"yo"}}]`,
		`{"messages":[{"type":"human","content":"hi","id":"1"},{"type":"ai","content":"yo","tool_calls":[]}]}`,
		`[{"lc":1,"type":"constructor","id":["langchain","schema","messages","HumanMessage"],"kwargs":{"content":"hi"}}]`,
	},
	"OpenCode":                          {`{"info":{"id":"ses_1"},"messages":[{"info":{"id":"m","role":"user"},"parts":[{"type":"text","text":"hi"}]}]}`, `[{"info":{"id":"m","role":"user"},"parts":[{"type":"text","text":"hi"}]}]`},
	"OpenHands":                         {`[{"id":0,"source":"user","message":"hi","action":"message","args":{"content":"hi"}},{"id":1,"source":"agent","observation":"run","content":"a"}]`, lines(`{"id":"1","source":"user","kind":"MessageEvent","llm_message":{"role":"user","content":[{"type":"text","text":"hi"}]}}`)},
	"Goose":                             {lines(`{"working_dir":"/w","message_count":1}`, `{"role":"user","content":[{"type":"text","text":"hi"}]}`), lines(`{"role":"user","created":1,"content":[{"type":"text","text":"hi"}]}`, `{"role":"assistant","created":1,"content":[{"type":"toolRequest","id":"c","toolCall":{"status":"success"}}]}`), `{"id":"1","working_dir":"/w","conversation":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}`},
	"Crush":                             {`[{"id":"1","role":"user","parts":[{"type":"text","data":{"text":"hi"}}]}]`},
	"Cline":                             {`[{"ts":1,"type":"say","say":"text","text":"hi"},{"ts":2,"type":"ask","ask":"tool","text":"{}"}]`},
	"Cursor":                            {lines(`{"role":"user","message":{"content":[{"type":"text","text":"hi"}]}}`, `{"role":"assistant","message":{"content":[{"type":"text","text":"yo"}]}}`)},
	"Letta":                             {`[{"id":"1","message_type":"user_message","content":"hi"}]`},
	"pydantic-ai":                       {`[{"parts":[{"content":"hi","part_kind":"user-prompt"}],"kind":"request"}]`},
	"ChatGPT":                           {`[{"title":"t","mapping":{"n":{"id":"n","message":null}},"current_node":"n"}]`, `{"title":"t","mapping":{},"current_node":"n"}`},
	"Claude.ai":                         {`[{"uuid":"1","name":"t","chat_messages":[{"text":"hi","sender":"human"}]}]`},
	"Amp":                               {`{"v":1,"id":"T-1","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","toolUseID":"a","run":{"result":"x"}}]}]}`},
	"Copilot CLI":                       {lines(`{"type":"session.start","data":{"sessionId":"s"},"id":"1","timestamp":"2026-09-08T10:00:00Z","parentId":null}`, `{"type":"user.message","data":{"content":"hi"},"id":"2","timestamp":"2026-09-08T10:00:00Z","parentId":"1"}`), lines(`{"type":"user.message","data":{"content":"hi"},"id":"2","parentId":"1"}`)},
	"GitHub Copilot":                    {`{"requesterUsername":"u","requests":[{"message":{"text":"hi"},"response":[{"value":"yo"}]}]}`},
	"Factory Droid":                     {lines(`{"type":"session_start","id":"d"}`, `{"type":"message","id":"1","message":{"role":"user","content":[{"type":"text","text":"hi"}]}}`), lines(`{"type":"message","id":"1","message":{"role":"user","content":[{"type":"text","text":"hi"}]}}`, `{"type":"message","id":"2","parentId":"1","message":{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]}}`)},
	"Kimi CLI":                          {lines(`{"role":"_checkpoint","id":0}`, `{"role":"user","content":"hi"}`), lines(`{"role":"user","content":"hi"}`, `{"role":"assistant","content":"yo"}`, `{"role":"_usage","token_count":7}`)},
	"Continue":                          {`{"sessionId":"1","title":"t","history":[{"message":{"role":"user","content":"hi"},"contextItems":[]}]}`},
	"SWE-agent":                         {`{"trajectory":[{"action":"ls"}],"history":[{"role":"user","content":"hi"}]}`},
	"LlamaIndex":                        {`[{"role":"user","additional_kwargs":{},"blocks":[{"block_type":"text","text":"hi"}]}]`},
	"Agent Framework":                   {`{"messages":[{"role":"user","contents":[{"type":"text","text":"hi"}]}]}`},
	"AutoGen":                           {`[{"source":"user","models_usage":null,"content":"hi","type":"TextMessage"}]`},
	"Cohere":                            {`[{"role":"USER","message":"hi"},{"role":"CHATBOT","message":"yo"}]`},
	"Google AI Studio":                  {`{"runSettings":{},"chunkedPrompt":{"chunks":[{"text":"hi","role":"user"}]}}`},
	"first Codex":                       {`{"session":{"id":"1","instructions":""},"items":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}]}`},
	"history of prompts of Codex":       {lines(`{"session_id":"1","ts":1,"text":"hi"}`)},
	"history of prompts of Claude Code": {lines(`{"display":"hi","pastedContents":{},"timestamp":1,"project":"/w"}`)},
	"a batch of requests":               {lines(`{"custom_id":"1","method":"POST","body":{"messages":[{"role":"user","content":"hi"}]}}`)},
	"an answer of the OpenAI API":       {`{"object":"chat.completion","choices":[{"message":{"role":"assistant","content":"yo"}}]}`},
	"instructions":                      {lines(`{"instruction":"do","input":"x","output":"y"}`, `{"instruction":"do","input":"","output":"z"}`)},
	"inputs and outputs":                {lines(`{"input":"x","output":"y","model":"m"}`)},
	"prompts and answers":               {lines(`{"prompt":"x","completion":"y"}`)},
	// What shows nothing is refused all the same.
	"": {
		lines(`{"kind":"user","body":"hi"}`, `{"kind":"bot","body":"yo"}`), `{"log":[{"who":"user","text":"hi"}]}`, `{"messages":[{"who":"user","text":"hi"}]}`,
		`[{"type":"text","text":"hi"},{"type":"text","text":"yo"}]`, lines(`{"type":"say","text":"hi"}`, `{"type":"reasoning","text":"hm"}`),
		lines(`{"type":"user","uuid":"1","sessionId":"s","content":"hi"}`), lines(`{"type":"entry","id":"1","parentId":null,"text":"hi"}`, `{"type":"entry","id":"2","parentId":"1","text":"yo"}`),
		lines(`{"type":"progress","uuid":"1","sessionId":"s","text":"hi"}`), lines(`{"type":"event_msg","payload":{"type":"token_count"}}`),
		lines(`{"role":"bot","content":"hi"}`), lines(`{"role":"user","content":{"text":"hi"}}`), `{"input":[{"speaker":"user","text":"hi"}],"model":"m"}`,
		`{"output":"hi"}`, lines(`{"from":"human"}`), lines(`{"from":"alice","value":"hi"}`), `"hi"`, `17`, "# A chat\n\nuser: hi\n",
	},
}

// TestFilesOfOthersAreRefusedByName reads files of other programs in every format: none yields a
// session, and detection says what each looks like.
func TestFilesOfOthersAreRefusedByName(t *testing.T) {
	t.Parallel()
	for name, files := range foreignFiles {
		for _, text := range files {
			for _, format := range append(formats.Names(), formats.Auto) {
				for _, skip := range []bool{false, true} {
					sessions, fault := outcome(t, text, format, skip)
					switch {
					case format == formats.Auto && (sessions > 0 || fault == nil || name != "" && !strings.Contains(fault.Error(), name)):
						t.Errorf("%s: skip %v: %d sessions, %v in\n%s", name, skip, sessions, fault, text)
					case sessions > 0:
						t.Errorf("%s as %s: %d sessions, %v in\n%s", name, format, sessions, fault, text)
					}
				}
			}
		}
	}
}

// outcome reads a text and returns the number of sessions and the first fault. A session of which
// each message has a text is none where a format is named, as nothing is lost.
func outcome(t *testing.T, text, format string, skip bool) (sessions int, fault error) {
	t.Helper()
	r, err := formats.NewReader(strings.NewReader(text), format)
	if err != nil {
		t.Fatal(err)
	}
	r.SkipLines = skip
	for {
		s, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return sessions, fault
		case err == nil && (skip || fault == nil) && (format == formats.Auto || slices.ContainsFunc(s.Messages, func(m chat.Message) bool { return m.Content.String() == "" })):
			sessions++
		case err != nil && fault == nil:
			fault = err
		}
	}
}
