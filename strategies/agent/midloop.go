package agent

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
)

// SplitMidLoop splits the messages of an unfinished tool loop. The tail is the newest
// assistant message and everything after it, whose results the model has not read and which
// must not be compacted; the messages before it are the head. Without an assistant message all messages
// are the head. Both share memory with messages.
//
// A model that binds reasoning to the messages before it wants that of the tail back, which is no
// longer valid after a compacted head. Options.MidLoop of package strategies follows the
// rule for such models.
func SplitMidLoop(messages []chat.Message) (head, tail []chat.Message) {
	for i := range slices.Backward(messages) {
		if messages[i].Role == chat.RoleAssistant {
			return messages[:i:i], messages[i:]
		}
	}
	return messages, nil
}

// JoinMidLoop appends the tail to a compacted head. If that makes two assistant messages
// adjacent, they are merged into one with the content and calls of both. It changes neither
// slice.
func JoinMidLoop(head, tail []chat.Message) []chat.Message {
	out := slices.Concat(head, tail)
	k := len(head)
	if k == 0 || len(tail) == 0 || head[k-1].Role != chat.RoleAssistant || tail[0].Role != chat.RoleAssistant {
		return out
	}
	out[k-1] = mergeMessages(head[k-1], tail[0])
	return slices.Delete(out, k, k+1)
}

// mergeMessages merges two messages. The envelope is that of the second, whose results are
// unread, and so is the reasoning if it has any.
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

// contentParts returns content as parts.
func contentParts(c chat.Content) []chat.Part {
	if c.Parts != nil {
		return c.Parts
	}
	raw, _ := json.Marshal(map[string]string{"type": "text", "text": c.Text}) // strings always marshal
	return []chat.Part{{Type: "text", Text: c.Text, Raw: raw}}
}
