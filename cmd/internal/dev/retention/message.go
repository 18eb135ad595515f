package retention

import (
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Text returns the content of a message and a line for each tool call with its name and
// unescaped arguments (see unescape). Reasoning is left out.
func Text(m *chat.Message) string {
	s := m.Content.String()
	if len(m.ToolCalls) == 0 {
		return s
	}
	b := []byte(s)
	for _, c := range m.ToolCalls {
		b = append(b, '\n')
		b = append(b, c.Name...)
		b = append(b, ' ')
		b = append(b, unescape(c.Arguments)...)
	}
	return string(b)
}

// Tokens returns a quarter of the number of characters in the content and in the names
// and raw arguments of the tool calls. The result is exact up to 2^51 tokens.
func Tokens(m *chat.Message) float64 {
	n := utf8.RuneCountInString(m.Content.String())
	for _, c := range m.ToolCalls {
		n += utf8.RuneCountInString(c.Name) + utf8.RuneCountInString(c.Arguments)
	}
	return float64(n) / 4
}

// Total returns the tokens of all messages except system messages.
func Total(ms []chat.Message) float64 {
	var sum float64
	for i := range ms {
		if !system(&ms[i]) {
			sum += Tokens(&ms[i])
		}
	}
	return sum
}

// system reports whether every policy keeps the message and the measure ignores it.
func system(m *chat.Message) bool {
	return m.Role == chat.RoleSystem || m.Role == chat.RoleDeveloper
}

// Counter counts tokens as the measure does, rounded up to integers.
type Counter struct{}

// Name implements tokens.Counter.
func (Counter) Name() string { return "retention" }

// Text implements tokens.Counter.
func (Counter) Text(s string) chat.Tokens { return chat.Tokens((utf8.RuneCountInString(s) + 3) / 4) }

// Message implements tokens.Counter.
func (Counter) Message(m *chat.Message) chat.Tokens { return chat.Tokens((int64(4*Tokens(m)) + 3) / 4) }
