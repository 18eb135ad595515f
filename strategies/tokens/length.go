package tokens

import (
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
)

// MessageLength returns the number of characters in the text of a message and in the
// names and arguments of its calls.
func MessageLength(m *chat.Message) int {
	n := ContentLength(m.Content)
	for _, c := range m.ToolCalls {
		n += utf8.RuneCountInString(c.Name) + utf8.RuneCountInString(c.Arguments)
	}
	return n
}

// ContentLength returns the number of characters in the text of content.
func ContentLength(c chat.Content) int {
	n := utf8.RuneCountInString(c.Text)
	for _, p := range c.Parts {
		n += utf8.RuneCountInString(p.Text)
	}
	return n
}
