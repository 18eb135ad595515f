package builtin_test

import (
	"context"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest"
)

// No strategy sends a secret to a model, or keeps one that a model has written (I12).
func TestSecretsReachNoSummarizer(t *testing.T) {
	t.Parallel()
	secret := func(fill string) string { return "gh" + "p_" + strings.Repeat(fill, 9) } // 36 characters, as they have
	said, invented := secret("aB3x"), secret("Zq7k")
	ms := []chat.Message{{Role: chat.RoleSystem, Content: chat.TextContent("Be brief.")}}
	for range 12 {
		ms = append(ms,
			chat.Message{Role: chat.RoleUser, Content: chat.TextContent("Use " + said + " for it.")},
			chat.Message{Role: chat.RoleAssistant, ToolCalls: []chat.ToolCall{{ID: "c", Type: "function", Name: "push", Arguments: `{"key":"` + said + `"}`}}},
			chat.Message{Role: chat.RoleTool, ToolCallID: "c", Content: chat.TextContent("pushed with " + said)},
			chat.Message{Role: chat.RoleAssistant, Content: chat.TextContent("Done with " + said)})
	}
	l := strategiestest.Of(ms)
	registry := strategiestest.Registry()
	asked := ""
	registry.Summarizer = plan.Func(func(_ context.Context, r plan.Request) (string, error) {
		asked += r.System + r.User + r.Focus
		return "They used " + invented + " for it.", nil
	})
	for _, info := range registry.Describe() {
		if !info.Summarizer {
			continue
		}
		asked = ""
		params := plan.Params{}
		switch info.Name {
		case "handoff":
			params["tail_token_budget"], params["protect_last_n"], params["focus"] = 50, 3, "what "+said+" is for"
		case "summarize":
			params["threshold"] = 4
		}
		s, err := registry.New(info.Name, params)
		if err != nil {
			t.Fatal(err)
		}
		r := compact(t, l, s)
		if asked == "" {
			t.Errorf("%s asked for no summary", info.Name)
		}
		if strings.Contains(asked, said) {
			t.Errorf("%s sent a secret to the model", info.Name)
		}
		for _, a := range r.Plan.Additions {
			if strings.Contains(a.Message.Content.String(), invented) {
				t.Errorf("%s kept a secret that the model wrote", info.Name)
			}
		}
	}
}
