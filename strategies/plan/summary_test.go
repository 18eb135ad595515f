package plan_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/redact"
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

func TestMaskKeepsArgumentsJSON(t *testing.T) {
	t.Parallel()
	word := "pelican" + "lamp"
	for name, arguments := range map[string]string{
		"input of a command": `{"command":"echo \"web:%\" | chpasswd","timeout":5}`,
		"option of a user":   `{"command":"curl -u \"bo:%\" https://h.example"}`,
		"quoted option":      `{"command":"sshpass -p \"%\" ssh web"}`,
		"joined option":      `{"command":"mysql -uroot -p\"%\" shop"}`,
		"a file of accounts": `{"command":"printf \"%s\\n\" \"db:5432:shop:bo:%\" > ~/.pgpass"}`,
		"an attribute":       `{"path":"a.xml","content":"<add user=\"bo\" password=\"%\"/>\n"}`,
		"three times within": `{"a":"{\"b\":\"{\\\"c\\\":\\\"sshpass -p '%' ssh web\\\"}\"}"}`,
		"an escaped letter":  `{"command":"DB_PASS\u0057ORD=%"}`,
	} {
		in := strings.Replace(arguments, "%", word, 1)
		if name == "a file of accounts" {
			in = strings.Replace(arguments, ":%", ":"+word, 1)
		}
		m := &chat.Message{Role: chat.RoleAssistant, ToolCalls: []chat.ToolCall{{Name: "shell", Arguments: in}}}
		got, found := plan.Task{Messages: []*chat.Message{m}}.Redact()
		masked := got.Messages[0].ToolCalls[0].Arguments
		if want := strings.Replace(in, word, "***", 1); masked != want || !json.Valid([]byte(masked)) || found.Total() != 1 {
			t.Errorf("%s: %s became %s (%v)", name, in, masked, found)
		}
	}
	number := &chat.Message{Role: chat.RoleAssistant, ToolCalls: []chat.ToolCall{{Name: "login", Arguments: `{"user":"bo","password": 482017}`}}}
	if got := plan.Mask(number, &redact.Secrets{}).ToolCalls[0].Arguments; got != `{"user":"bo","password": "***"}` {
		t.Errorf("a number became %s", got)
	}
}
