package builtin

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/text"
	"github.com/sessionstore/compactor/strategies/plan"
)

// toolResult collapses all but the newest tool call groups into one message each with their
// results.
type toolResult struct {
	keep   int64
	filter toolFilter
}

func newToolResult(a *plan.Args) (plan.Strategy, error) {
	return &toolResult{keep: keepLastToolCallGroups(a, 1), filter: newToolFilter(a)}, nil
}

func (*toolResult) Name() string { return "tool_result" }

func (s *toolResult) Reads(t *plan.Transcript) []chat.Seq {
	var all plan.SeqSet
	for _, i := range olderToolCalls(t, s.keep) {
		t.GroupSeqs(&all, i)
	}
	return append(s.filter.reads(t, s.keep), all.Ranges().Seqs()...)
}

func (s *toolResult) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) {
	const reason = "tool_result_compaction"
	older, dropped, err := s.filter.apply(t, s.keep)
	if err != nil {
		return chat.Plan{}, err
	}
	var out plan.SeqSet
	for _, i := range dropped {
		t.GroupSeqs(&out, i)
	}
	planned := out.Exclude(reason)
	for _, i := range older {
		a, err := collapsed(t, i, reason)
		if err != nil {
			return chat.Plan{}, err
		}
		planned.Additions = append(planned.Additions, a)
	}
	return planned, nil
}

// collapsed returns the message with the results of group i that replaces the group.
func collapsed(t *plan.Transcript, i int, reason string) (chat.Addition, error) {
	text, err := resultText(t, i)
	var covers plan.SeqSet
	t.GroupSeqs(&covers, i)
	return chat.Addition{
		Kind: chat.KindSummary, Reason: reason, Covers: covers.Ranges(), Position: t.Entries[t.Groups()[i].Start].Position,
		Message: chat.Message{Role: chat.RoleAssistant, Content: chat.TextContent(text)},
	}, err
}

// maxDigest is the maximum length, in characters, of the message with the results of a group.
const maxDigest = 4096

// resultText returns the results of group i that are in the view in one line, each after the
// name of its tool. A line that is too long loses its end.
func resultText(t *plan.Transcript, i int) (string, error) {
	messages, err := t.ReadGroup(i)
	if err != nil {
		return "", err
	}
	names := map[string]string{}
	var results []toolAnswer
	for _, m := range messages {
		results = collectAnswers(results, names, m)
	}
	labels := make([]string, len(results))
	for k, r := range results {
		label := r.text
		if name := names[r.call]; name != "" {
			label = name + ": " + label
		}
		labels[k] = text.Trim(label)
	}
	line := strings.Join(labels, "; ")
	if len(results) == 0 {
		line = "no results"
	}
	const head, end, cut = "[Tool results: ", "]", "... [truncated]"
	if room := maxDigest - len(head) - len(end); text.Longer(line, room) {
		line = strings.TrimRightFunc(text.Head(line, room-len(cut)), text.IsBlank) + cut
	}
	return head + line + end, nil
}

// toolAnswer is the answer of a tool to a call.
type toolAnswer struct{ call, text string }

// collectAnswers adds the answers in a message to out, and the names of called tools to
// names. Calls and answers of hosted tools are parts of a message, mostly the assistant's.
func collectAnswers(out []toolAnswer, names map[string]string, m *chat.Message) []toolAnswer {
	name := func(call, tool string) {
		if call != "" && tool != "" {
			names[call] = tool
		}
	}
	parts := false
	for _, p := range m.Content.Parts {
		switch p.Type {
		case "mcp_server_tool_call", "mcp_tool_use", "function_call":
			h := readHosted(p)
			name(h.CallID+h.ID, h.ToolName+h.Name)
		case "mcp_server_tool_result", "mcp_tool_result", "function_result":
			h := readHosted(p)
			out, parts = append(out, toolAnswer{h.CallID + h.ToolUseID, h.text()}), true
		}
	}
	for _, c := range m.ToolCalls {
		name(c.ID, c.Name)
	}
	if m.Role == chat.RoleTool && !parts {
		out = append(out, toolAnswer{m.ToolCallID, m.Content.String()})
	}
	return out
}

// hosted is a part that calls a tool or holds its answer, with the keys of Agent Framework
// (call_id, tool_name, output, result) or Anthropic (id, name, tool_use_id, content).
type hosted struct {
	CallID    string          `json:"call_id"`
	ToolName  string          `json:"tool_name"`
	Output    json.RawMessage `json:"output"`
	Result    json.RawMessage `json:"result"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
}

func readHosted(p chat.Part) hosted {
	var h hosted
	_ = json.Unmarshal(p.Raw, &h) // fields of another type stay empty
	return h
}

// noOutput stands for the answer of a hosted tool that is null, as Agent Framework writes it.
const noOutput = "None"

// text returns the answer: a string, the texts of a list in lines, noOutput for null, or JSON as it is.
func (h hosted) text() string {
	raw := h.Output
	for _, other := range []json.RawMessage{h.Result, h.Content} {
		if raw == nil {
			raw = other
		}
	}
	var s string
	var parts []struct {
		Type, Text string
	}
	switch {
	case string(h.Output) == "null":
		return noOutput
	case json.Unmarshal(raw, &s) == nil:
		return s
	case json.Unmarshal(raw, &parts) == nil:
		texts := make([]string, 0, len(parts))
		for _, p := range parts {
			if p.Type == "text" {
				texts = append(texts, p.Text)
			}
		}
		return strings.Join(texts, "\n")
	}
	return string(raw)
}
