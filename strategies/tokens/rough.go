package tokens

import (
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Rough estimates what messages come to in a request: a token for every four
// characters of their JSON, more or less, media at 1,500 tokens each. It is what an
// Engine goes by where the provider has not counted yet.
func Rough(messages []chat.Message) chat.Tokens {
	chars := 0
	for i := range messages {
		chars += RequestLength(&messages[i])
	}
	return chat.Tokens((chars + 3) / 4)
}

const (
	roughFrame = 28 // {"role": "…", "content": "…"}
	roughCall  = 84 // {"id": "…", "type": "function", "function": {"name": "…", "arguments": "…"}}
	roughMedia = 1500 * 4
)

func RequestLength(m *chat.Message) int {
	n := roughFrame + len(m.Role) + len(m.Name) + escaped(m.Content.Text) + escaped(m.Reasoning)
	for _, p := range m.Content.Parts {
		if n += roughFrame + escaped(p.Text); p.IsMedia() {
			n += roughMedia
		}
	}
	if len(m.ToolCalls) > 0 {
		n += len(`, "tool_calls": []`)
	}
	for _, c := range m.ToolCalls {
		n += roughCall + len(c.ID) + len(c.Name) + escaped(c.Arguments)
	}
	if m.ToolCallID != "" {
		n += len(`, "tool_call_id": ""`) + len(m.ToolCallID)
	}
	return n
}

// escaped returns the length of s in characters, escapes counted as two.
func escaped(s string) int {
	return utf8.RuneCountInString(s) + strings.Count(s, "\n") + strings.Count(s, `\`)
}
