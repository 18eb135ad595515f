package builtin

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/text"
	"github.com/sessionstore/compactor/strategies/plan"
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

func TestHermesTurns(t *testing.T) {
	t.Parallel()
	said := func(r chat.Role, s string) *chat.Message {
		return &chat.Message{Role: r, Content: chat.TextContent(s)}
	}
	asks := said(chat.RoleAssistant, "looking")
	asks.ToolCalls = []chat.ToolCall{
		{ID: "1", Name: "read", Arguments: `{"path":"a"}`}, {ID: "2", Name: "write", Arguments: strings.Repeat("ü", 1501)},
	}
	answer := said(chat.RoleTool, "OPENAI_API_KEY=sk-abcdefghijklmnopqrstuvwxyz123456")
	answer.ToolCallID = "1"
	long := said(chat.RoleUser, strings.Repeat("ä", 4000)+strings.Repeat("x", 501)+strings.Repeat("ö", 1500))
	task, _ := plan.Task{Messages: []*chat.Message{said(chat.RoleUser, "hi"), asks, answer, long}}.Redact()
	got := hermesTurns(task.Messages)
	want := "[USER]: hi\n\n[ASSISTANT]: looking\n[Tool calls:\n  read({\"path\":\"a\"})\n  write(" + strings.Repeat("ü", 1200) + "...)\n]\n\n"
	rest, ok := strings.CutPrefix(got, want)
	if !ok {
		t.Fatalf("%q", got)
	}
	if !strings.HasPrefix(rest, "[TOOL RESULT 1]: OPENAI_API_KEY=") || strings.Contains(rest, "mnopq") {
		t.Errorf("%q", rest)
	}
	if !strings.HasSuffix(rest, "[USER]: "+strings.Repeat("ä", 4000)+"\n...[truncated]...\n"+strings.Repeat("ö", 1500)) {
		t.Errorf("the long message is not cut in the middle: %q", rest)
	}
	if hermesTurns(nil) != "" {
		t.Error("no turns")
	}
	atLimit := said(chat.RoleUser, strings.Repeat("ä", 6000))
	if n := utf8.RuneCountInString(hermesTurns([]*chat.Message{atLimit})); n != 6000+len("[USER]: ") {
		t.Errorf("%d characters of a message that is not too long", n)
	}
}
