package summarize

import (
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
)

// How much of one message a summarizer is shown, in characters.
const (
	turnLimit, turnHead, turnTail = 6000, 4000, 1500
	argsLimit, argsHead           = 1500, 1200
	turnGap                       = "\n...[truncated]...\n"
)

// Turns writes messages down for a summarizer, one paragraph each behind a label
// that says who speaks. What looks like a secret is masked before anything is cut,
// so that no half of one is left. Media are left out.
func Turns(messages []*chat.Message) string {
	var b strings.Builder
	for i, m := range messages {
		if i > 0 {
			b.WriteString("\n\n")
		}
		turn(&b, m)
	}
	return b.String()
}

func turn(b *strings.Builder, m *chat.Message) {
	text, _ := Redact(m.Content.String())
	text = middleOut(text)
	if m.Role == chat.RoleTool {
		b.WriteString("[TOOL RESULT " + m.ToolCallID + "]: " + text)
		return
	}
	b.WriteString("[" + strings.ToUpper(string(m.Role)) + "]: " + text)
	if m.Role != chat.RoleAssistant || len(m.ToolCalls) == 0 {
		return
	}
	b.WriteString("\n[Tool calls:\n")
	for _, c := range m.ToolCalls {
		args, _ := Redact(c.Arguments)
		if utf8.RuneCountInString(args) > argsLimit {
			args = args[:offset(args, argsHead)] + "..."
		}
		b.WriteString("  " + c.Name + "(" + args + ")\n")
	}
	b.WriteString("]")
}

// middleOut leaves the ends of a text that is too long.
func middleOut(s string) string {
	if len(s) <= turnLimit {
		return s
	}
	n := utf8.RuneCountInString(s)
	if n <= turnLimit {
		return s
	}
	return s[:offset(s, turnHead)] + turnGap + s[offset(s, n-turnTail):]
}

// offset is where the character with index n begins.
func offset(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}
