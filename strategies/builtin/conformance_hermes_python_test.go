package builtin

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
)

// pythonRough returns the estimate of the reference: the length of what Python prints for
// each message, by four.
func pythonRough(messages []chat.Message) chat.Tokens {
	chars := 0
	for i := range messages {
		chars += utf8.RuneCountInString(pythonMessage(&messages[i]))
	}
	return chat.Tokens((chars + 3) / 4)
}

func pythonMessage(m *chat.Message) string {
	content := pythonString(m.Content.Text)
	if m.Content.Null {
		content = "None"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "{'role': %s, 'content': %s", pythonString(string(m.Role)), content)
	for i, c := range m.ToolCalls {
		b.WriteString([]string{", 'tool_calls': [", ", "}[min(i, 1)])
		fmt.Fprintf(&b, "{'id': %s, 'type': 'function', 'function': {'name': %s, 'arguments': %s}}",
			pythonString(c.ID), pythonString(c.Name), pythonString(c.Arguments))
	}
	if len(m.ToolCalls) > 0 {
		b.WriteString("]")
	}
	if m.Role == chat.RoleTool {
		b.WriteString(", 'tool_call_id': " + pythonString(m.ToolCallID))
	}
	b.WriteString("}")
	return b.String()
}

// pythonString returns a string as Python prints it within a list.
func pythonString(s string) string {
	quote := '\''
	if strings.ContainsRune(s, '\'') && !strings.ContainsRune(s, '"') {
		quote = '"'
	}
	var b strings.Builder
	b.WriteRune(quote)
	for _, r := range s {
		switch {
		case r == quote, r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r == '\n' || r == '\r' || r == '\t':
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteRune(quote)
	return b.String()
}
