package builtin

import (
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// How much of one message a summarizer is shown, in characters.
const (
	turnLimit, turnHead, turnTail = 6000, 4000, 1500
	argsLimit, argsHead           = 1500, 1200
)

// hermesTurns writes messages down for a summarizer, one paragraph each behind a label
// that says who speaks. Secrets have to be masked before, as half of one is not
// recognised once a text is cut. Media are left out.
func hermesTurns(messages []*chat.Message) string {
	var b strings.Builder
	for i, m := range messages {
		if i > 0 {
			b.WriteString("\n\n")
		}
		hermesTurn(&b, m)
	}
	return b.String()
}

func hermesTurn(b *strings.Builder, m *chat.Message) {
	content := text.Ends(m.Content.String(), turnLimit, turnHead, turnTail)
	if m.Role == chat.RoleTool {
		b.WriteString("[TOOL RESULT " + m.ToolCallID + "]: " + content)
		return
	}
	b.WriteString("[" + strings.ToUpper(string(m.Role)) + "]: " + content)
	if m.Role != chat.RoleAssistant || len(m.ToolCalls) == 0 {
		return
	}
	b.WriteString("\n[Tool calls:\n")
	for _, c := range m.ToolCalls {
		b.WriteString("  " + c.Name + "(" + text.Cut(c.Arguments, argsLimit, argsHead) + ")\n")
	}
	b.WriteString("]")
}
