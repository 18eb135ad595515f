package tokens

import (
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Rough estimates the tokens of messages in a request: one per four characters of their
// approximate JSON, and 1,500 for each media part. An Engine uses it until the provider
// reports a count.
func Rough(messages []chat.Message) chat.Tokens {
	chars := 0
	for i := range messages {
		chars += RequestLength(&messages[i])
	}
	return chat.Tokens((chars + 3) / 4)
}

// Lengths in characters of the JSON around the fields of a message and of a call, and of
// a media part.
const (
	frameLength = 28 // {"role": "…", "content": "…"}
	callLength  = 84 // {"id": "…", "type": "function", "function": {"name": "…", "arguments": "…"}}
	mediaLength = 1500 * 4
)

// RequestLength returns the approximate length in characters of a message's JSON in a
// request.
func RequestLength(m *chat.Message) int {
	n := frameLength + len(m.Role) + len(m.Name) + escaped(m.Content.Text) + escaped(m.Reasoning)
	for _, p := range m.Content.Parts {
		if n += frameLength + escaped(p.Text); p.IsMedia() {
			n += mediaLength
		}
	}
	if len(m.ToolCalls) > 0 {
		n += len(`, "tool_calls": []`)
	}
	for _, c := range m.ToolCalls {
		n += callLength + len(c.ID) + len(c.Name) + escaped(c.Arguments)
	}
	if m.ToolCallID != "" {
		n += len(`, "tool_call_id": ""`) + len(m.ToolCallID)
	}
	return n
}

// escaped returns the length of s in characters, counting escaped ones twice.
func escaped(s string) int {
	return utf8.RuneCountInString(s) + strings.Count(s, "\n") + strings.Count(s, `\`)
}
