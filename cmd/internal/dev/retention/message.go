package retention

import (
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/tokens"
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
func Total(ms []chat.Message) float64 { return Sizer{}.Total(ms) }

// Sizer measures messages with a counter. Without one, as in its zero value, it measures as
// Tokens does.
type Sizer struct{ Counter tokens.Counter }

// Text returns the tokens of a text.
func (s Sizer) Text(text string) float64 {
	if s.Counter == nil {
		return float64(utf8.RuneCountInString(text)) / 4
	}
	return float64(s.Counter.Text(text))
}

// Message returns the tokens of a message.
func (s Sizer) Message(m *chat.Message) float64 {
	if s.Counter == nil {
		return Tokens(m)
	}
	return float64(s.Counter.Message(m))
}

// Total returns the tokens of all messages except system messages.
func (s Sizer) Total(ms []chat.Message) float64 {
	var sum float64
	for i := range ms {
		if !system(&ms[i]) {
			sum += s.Message(&ms[i])
		}
	}
	return sum
}

// Whole returns the counter, or one that rounds Tokens up to integers.
func (s Sizer) Whole() tokens.Counter {
	if s.Counter == nil {
		return quarter{}
	}
	return s.Counter
}

// system reports whether every policy keeps the message and the measure ignores it.
func system(m *chat.Message) bool {
	return m.Role == chat.RoleSystem || m.Role == chat.RoleDeveloper
}

// quarter counts tokens as Tokens does, rounded up to integers.
type quarter struct{}

// Name implements tokens.Counter.
func (quarter) Name() string { return "retention" }

// Text implements tokens.Counter.
func (quarter) Text(s string) chat.Tokens { return chat.Tokens((utf8.RuneCountInString(s) + 3) / 4) }

// Message implements tokens.Counter.
func (quarter) Message(m *chat.Message) chat.Tokens { return chat.Tokens((int64(4*Tokens(m)) + 3) / 4) }
