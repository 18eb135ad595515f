package plan_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// repeats answers with a text of its own behind the prompt.
type repeats string

func (r repeats) Summarize(_ context.Context, q plan.Request) (string, error) {
	return q.User + string(r), nil
}

func TestTaskMasksASecretInAllTexts(t *testing.T) {
	t.Parallel()
	secret := "winter" + "2031"
	encoded := base64.StdEncoding.EncodeToString([]byte("admin:" + secret))
	text := func(r chat.Role, s string) *chat.Message { return &chat.Message{Role: r, Content: chat.TextContent(s)} }
	for name, shown := range map[string]chat.ToolCall{
		"a flag":           {Name: "shell", Arguments: `{"command":"migrate --target-token ` + secret + `"}`},
		"behind an escape": {Name: "shell", Arguments: `{"command":"migrate \u002d-target-token ` + secret + `"}`},
	} {
		task := plan.Task{
			Previous: "test: " + secret, Focus: "why " + secret + " fails", Instruction: "keep " + secret,
			Messages: []*chat.Message{
				text(chat.RoleUser, "it was "+secret+", or "+encoded),
				{Role: chat.RoleAssistant, ToolCalls: []chat.ToolCall{shown}},
				text(chat.RoleTool, "test: "+secret),
				text(chat.RoleAssistant, "nothing to mask"),
			},
			Prompt: func(previous string, ms []*chat.Message) (string, string) {
				var b strings.Builder
				for _, m := range ms {
					b.WriteString(m.Content.String() + fmt.Sprint(m.ToolCalls))
				}
				return previous, b.String()
			},
		}
		got, found := task.Redact()
		all := got.Previous + got.Focus + got.Instruction
		_, prompt := got.Prompt("", got.Messages)
		if all += prompt; strings.Contains(all, secret) || strings.Contains(all, encoded) || found.Total() < 6 {
			t.Errorf("%s: %q (%v)", name, all, found)
		}
		if got.Messages[3] != task.Messages[3] {
			t.Errorf("%s: a message without secrets was copied", name)
		}
		answer, err := plan.Do(t.Context(), repeats(" and "+secret), task)
		if err != nil || strings.Contains(answer, secret) || !strings.Contains(answer, " and ***") {
			t.Errorf("%s: %q, %v", name, answer, err)
		}
	}
}
