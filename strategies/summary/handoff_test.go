package summary

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

func TestTurns(t *testing.T) {
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
	got := Turns(task.Messages)
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
	if Turns(nil) != "" {
		t.Error("no turns")
	}
	atLimit := said(chat.RoleUser, strings.Repeat("ä", 6000))
	if n := utf8.RuneCountInString(Turns([]*chat.Message{atLimit})); n != 6000+len("[USER]: ") {
		t.Errorf("%d characters of a message that is not too long", n)
	}
}

func TestHandoffRequest(t *testing.T) {
	t.Parallel()
	h := Handoff{Turns: "[USER]: 100 %s of it", Budget: 2001}
	first := h.Request()
	if !strings.Contains(first.User, "TURNS TO CONDENSE:\n[USER]: 100 %s of it") || !strings.Contains(first.User, "about 2001 tokens") || first.MaxTokens != 2601 {
		t.Errorf("%+v", first)
	}
	task, _ := plan.Task{Previous: "before: sk-abcdefghijklmnopqrstuvwxyz123456", Focus: "the deploy"}.Redact()
	h.Previous, h.Focus = task.Previous, task.Focus
	next := h.Request()
	for _, want := range []string{"PREVIOUS SUMMARY:\nbefore: ", "NEW TURNS:\n[USER]", `"the deploy"`} {
		if !strings.Contains(next.User, want) {
			t.Errorf("no %q in %q", want, next.User)
		}
	}
	if next.Focus != h.Focus || strings.Contains(next.User, "abcdefghijklmnop") || next != h.Request() {
		t.Errorf("%+v", next)
	}
}
