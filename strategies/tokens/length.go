package tokens

import (
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
)

// wordLength is how many characters a message has in its texts and calls.
func MessageLength(m *chat.Message) int {
	n := ContentLength(m.Content)
	for _, c := range m.ToolCalls {
		n += utf8.RuneCountInString(c.Name) + utf8.RuneCountInString(c.Arguments)
	}
	return n
}

// textLength is how many characters the texts of content have.
func ContentLength(c chat.Content) int {
	n := utf8.RuneCountInString(c.Text)
	for _, p := range c.Parts {
		n += utf8.RuneCountInString(p.Text)
	}
	return n
}
