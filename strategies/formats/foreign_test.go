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
	"like that of Claude Code":          {lines(`{"uuid":"1","parentUuid":null,"sessionId":"q","type":"user","message":{"role":"user","text":"hi"}}`)},
	"wire file of the Kimi CLI":         {lines(`{"timestamp":1.5,"message":{"type":"TurnBegin","payload":{"user_input":"hi"}}}`, `{"timestamp":1.6,"message":{"type":"ContentPart","payload":{"type":"text","text":"yo"}}}`)},
	"Crush":                             {`[{"id":"1","role":"user","parts":[{"type":"text","data":{"text":"hi"}}]}]`},
	"Cline":                             {`[{"ts":1,"type":"say","say":"text","text":"hi"},{"ts":2,"type":"ask","ask":"tool","text":"{}"}]`},
	"Cursor":                            {lines(`{"role":"user","message":{"content":[{"type":"text","text":"hi"}]}}`, `{"role":"assistant","message":{"content":[{"type":"text","text":"yo"}]}}`)},
	"Letta":                             {`[{"id":"1","message_type":"user_message","content":"hi"}]`},
	"pydantic-ai":                       {`[{"parts":[{"content":"hi","part_kind":"user-prompt"}],"kind":"request"}]`},
	"Claude.ai":                         {`[{"uuid":"1","name":"t","chat_messages":[{"text":"hi","sender":"human"}]}]`},
	"Amp":                               {`{"v":1,"id":"T-1","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","toolUseID":"a","run":{"result":"x"}}]}]}`},
	"GitHub Copilot":                    {`{"requesterUsername":"u","requests":[{"message":{"text":"hi"},"response":[{"value":"yo"}]}]}`},
	"Factory Droid":                     {lines(`{"type":"session_start","id":"d"}`, `{"type":"message","id":"1","message":{"role":"user","content":[{"type":"text","text":"hi"}]}}`), lines(`{"type":"message","id":"1","message":{"role":"user","content":[{"type":"text","text":"hi"}]}}`, `{"type":"message","id":"2","parentId":"1","message":{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]}}`)},
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
		`[{"type":"text","text":"hi"},{"type":"text","text":"yo"}]`, lines(`{"type":"user","content":"hi"}`, `{"type":"assistant","content":"yo"}`), lines(`{"type":"say","text":"hi"}`, `{"type":"reasoning","text":"hm"}`),
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
