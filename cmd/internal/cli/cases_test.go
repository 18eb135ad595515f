package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Cases made after public reports of other programs (testdata/cases): what compact-file writes of them is what a provider takes, and
// nothing that it would miss has gone.
func TestCasesFromPublicReports(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file, to   string
		strategies []string
		has, lacks []string
		check      func(t *testing.T, before, after []byte)
	}{
		"a user message between a call and its result": {file: "04.jsonl", has: []string{"RESULT-42", "also mind the limit"}, lacks: []string{"tool_calls", "tool_call_id"}},
		"call ids that repeat in every turn": {
			file: "06.jsonl", strategies: []string{"tool_result", "keep_last_n_messages:n=7", "prune_tool_results:protect_last_n=9"}, check: resultsFollowTheirCalls,
		},
		"legacy calls": {
			file: "07.json", strategies: []string{"truncation:max_n=11,compact_to=8", "keep_last_n_messages:n=6", "keep_last_n_messages:n=7", "sliding_window:keep_last_groups=5"},
			has: []string{`"function_call"`, `"role":"function"`}, check: legacyPairsAreWhole,
		},
		"ids of items without their reasoning": {file: "08.json", to: "responses", strategies: []string{"keep_last_n_turns:n=4"}, has: []string{"msg_u"}, lacks: []string{"msg_a", "fc_", "rs_", "encrypted_content"}},
		"thinking that was not changed": {
			file: "10.json", to: "anthropic", strategies: []string{"protect_head:groups=1", "keep_last_n_turns:n=3", "prune_tool_results:protect_last_n=6"}, check: answersAreUnchanged,
		},
		"server tools, encrypted results and citations": {
			file: "10.json", to: "anthropic", strategies: []string{"keep_last_n_turns:n=2"},
			has: []string{"server_tool_use", "web_search_tool_result", "encrypted_index", "redacted_thinking"}, check: answersAreUnchanged,
		},
		"fields beside the content of a result":         {file: "39.json", has: []string{`"structuredContent":{"a":1}`, `"isError":false`}},
		"signed thinking beside the content":            {file: "11.json", strategies: []string{"keep_last_n_turns:n=2"}, has: []string{`"content":"answer"`}, lacks: []string{"thinking_blocks", "U0lH"}},
		"an open tool loop with signed reasoning":       {file: "14.json", strategies: []string{"keep_last_n_turns:n=2"}, has: []string{"Q0 pad", `"signature":"U0lH"`}},
		"texts of white space":                          {file: "34.json", to: "anthropic", has: []string{`"id":"t1"`, `"tool_use_id":"t1"`}, lacks: []string{`\n`, `"text":""`}},
		"lone surrogates":                               {file: "35.jsonl", has: []string{"ask 😀 and \uFFFD", "nul"}, lacks: []string{`\ud83d`, `\u0000`}},
		"one id twice in a message, chat-completions":   {file: "49.json", has: []string{`"id":"call_x"`, `"id":"call_x_2"`, `"content":"rb","tool_call_id":"call_x_2"`}},
		"one id twice in a message, Anthropic":          {file: "49.json", to: "anthropic", has: []string{`"tool_use_id":"call_x_2","content":"rb"`}},
		"one id twice in a message, OpenAI's Responses": {file: "49.json", to: "responses", has: []string{`"call_id":"call_x_2","output":"rb"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := filepath.Join("testdata/cases", c.file)
			before, err := os.ReadFile(in)
			if err != nil {
				t.Fatal(err)
			}
			if len(c.strategies) == 0 {
				c.strategies = []string{"keep_last_n_turns:n=100"}
			}
			for _, strategy := range c.strategies {
				dir := t.TempDir()
				out := filepath.Join(dir, "out.json")
				args := []string{"compact-file", in, "--strategy", strategy, "--model", "claude-fable-5.1", "--out", out}
				if c.to != "" {
					args = append(args, "--to", c.to)
				}
				invoke(t, []string{"HOME=" + dir}, args...).want(t, 0)
				after, err := os.ReadFile(out)
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range c.has {
					if !bytes.Contains(after, []byte(s)) {
						t.Errorf("%s: no %s in %s", strategy, s, after)
					}
				}
				for _, s := range c.lacks {
					if bytes.Contains(after, []byte(s)) {
						t.Errorf("%s: %s in %s", strategy, s, after)
					}
				}
				if c.check != nil {
					c.check(t, before, after)
				}
			}
		})
	}
}

func messagesOf(t *testing.T, raw []byte) []chat.Message {
	t.Helper()
	var doc struct{ Messages []chat.Message }
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Messages
}

// resultsFollowTheirCalls checks that each result ("second 3 …") is that of its call ({"n": -3}).
func resultsFollowTheirCalls(t *testing.T, _, after []byte) {
	t.Helper()
	calls := map[string]string{}
	for _, m := range messagesOf(t, after) {
		for _, c := range m.ToolCalls {
			calls[c.ID] = c.Arguments
		}
		var which string
		var n int
		if _, err := fmt.Sscanf(m.Content.Text, "%s %d", &which, &n); err != nil || m.Role != chat.RoleTool {
			continue
		}
		if which == "second" {
			n = -n
		}
		if want := fmt.Sprintf(`{"n": %d}`, n); calls[m.ToolCallID] != want {
			t.Errorf("the result %q follows the call %s, want %s", m.Content.Text, calls[m.ToolCallID], want)
		}
	}
}

func legacyPairsAreWhole(t *testing.T, _, after []byte) {
	t.Helper()
	ms := messagesOf(t, after)
	for i, m := range ms {
		calls := m.Legacy && m.Role == chat.RoleAssistant
		if answered := i+1 < len(ms) && ms[i+1].Role == chat.RoleTool; calls != answered {
			t.Errorf("message %d of %s", i, after)
		}
	}
}

// answersAreUnchanged checks that all messages of the assistant stand in the file as they did.
func answersAreUnchanged(t *testing.T, before, after []byte) {
	t.Helper()
	answers := func(raw []byte) (all []string) {
		var doc struct {
			Messages []struct {
				Role    string
				Content any
			}
		}
		if err := json.Unmarshal(raw, &doc); err != nil {
			t.Fatal(err)
		}
		for _, m := range doc.Messages {
			if m.Role == "assistant" {
				b, _ := json.Marshal(m.Content)
				all = append(all, string(b))
			}
		}
		return all
	}
	had, n := strings.Join(answers(before), "\n"), 0
	for _, a := range answers(after) {
		if n++; !strings.Contains(had, a) {
			t.Errorf("changed: %s", a)
		}
	}
	if n == 0 {
		t.Errorf("no answers in %s", after)
	}
}
