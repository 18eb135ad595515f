package strategies

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
)

// SplitMidLoop splits the messages of a tool loop that is under way: the tail is the
// newest assistant message and everything behind it, the results that the model has
// not read yet, and must not be compacted; the head may be. Without an assistant
// message all is head. Both are parts of messages, not copies.
func SplitMidLoop(messages []chat.Message) (head, tail []chat.Message) {
	for i := range slices.Backward(messages) {
		if messages[i].Role == chat.RoleAssistant {
			return messages[:i:i], messages[i:]
		}
	}
	return messages, nil
}

// JoinMidLoop puts the tail back behind a compacted head. Where that brings two
// assistant messages together (the results between them were compacted), they become
// one: the words and calls of both, in their order. Neither slice is changed.
func JoinMidLoop(head, tail []chat.Message) []chat.Message {
	out := slices.Concat(head, tail)
	k := len(head)
	if k == 0 || len(tail) == 0 || head[k-1].Role != chat.RoleAssistant || tail[0].Role != chat.RoleAssistant {
		return out
	}
	out[k-1] = mergeMessages(head[k-1], tail[0])
	return slices.Delete(out, k, k+1)
}

// UnresolvedCalls reports whether the newest assistant message made calls that have no
// result yet. A host that resumes a session is in the middle of a loop only then.
func UnresolvedCalls(messages []chat.Message) bool {
	_, tail := SplitMidLoop(messages)
	if len(tail) == 0 {
		return false
	}
	answered := map[string]bool{}
	for _, m := range tail[1:] {
		if m.Role == chat.RoleTool {
			answered[m.ToolCallID] = true
		}
	}
	return slices.ContainsFunc(tail[0].ToolCalls, func(c chat.ToolCall) bool { return !answered[c.ID] })
}

// mergeMessages returns one message of two. The envelope is the second's, whose results
// are still to be read, and so is the reasoning, if it has any.
func mergeMessages(a, b chat.Message) chat.Message {
	m := b
	m.ToolCalls = slices.Concat(a.ToolCalls, b.ToolCalls)
	m.Content = mergeContents(a.Content, b.Content)
	if b.Reasoning == "" {
		m.Reasoning, m.ReasoningKey = a.Reasoning, a.ReasoningKey
	}
	if len(a.Extra) > 0 {
		m.Extra = maps.Clone(a.Extra)
		maps.Copy(m.Extra, b.Extra)
	}
	return m
}

func mergeContents(a, b chat.Content) chat.Content {
	switch {
	case !chat.HasContent(a):
		return b
	case !chat.HasContent(b):
		return a
	}
	return chat.Content{Parts: slices.Concat(contentParts(a), contentParts(b))}
}

// contentParts is content as parts.
func contentParts(c chat.Content) []chat.Part {
	if c.Parts != nil {
		return c.Parts
	}
	// A string and two strings around it are always valid JSON.
	raw, _ := json.Marshal(map[string]string{"type": "text", "text": c.Text})
	return []chat.Part{{Type: "text", Text: c.Text, Raw: raw}}
}
