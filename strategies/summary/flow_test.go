package summary

import (
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
)

// TestTwoRounds writes a summary and its update with given answers.
func TestTwoRounds(t *testing.T) {
	t.Parallel()
	secret := made("gh"+"p_", 36)
	first := []*chat.Message{
		said(chat.RoleUser, ask), called("1"), returned("1", strings.Repeat("a line of output\n", 500)+"GITHUB_TOKEN="+secret),
		said(chat.RoleAssistant, long), said(chat.RoleUser, "And use the token "+secret+" for it, but never push to main"),
	}
	round := func(previous string, ms []*chat.Message, answer string) string {
		t.Helper()
		task, _ := plan.Task{Messages: ms, Previous: previous, Focus: "the token " + secret}.Redact()
		previous, ms = task.Previous, task.Messages
		e := &SourceIndex{}
		if previous != "" {
			e.AddPrevious(previous)
		}
		for _, m := range ms {
			e.Add(m)
		}
		short, cuts := trimmed([]policy.PreTrim{{Step: policy.TailLines}, {Step: policy.CapToolContent}}, ms, 0)
		budget := policy.DefaultSize().Budget(e.Tokens(), 128_000)
		p := Prompt{Budget: budget, Focus: task.Focus, Script: e.Script()}
		for _, c := range cuts {
			p.Cut.add(c)
		}
		system, user := p.Render(previous, short)
		if strings.Contains(system+user, secret) {
			t.Error("the model is shown a secret")
		}
		if p.Cut.Outputs > 0 != strings.Contains(user, "were cut to make room") {
			t.Error("the model is not told what was cut")
		}
		g := Validator{Sections: DefaultSections(), Max: policy.DefaultSize().CallTokens(budget), Sources: e}
		got, r := g.Read(StoredAnswer{Text: answer, FinishReason: "stop"})
		if r != nil {
			t.Fatal(r)
		}
		stored := frame.Wrap(InsertRequest(got.Text, e.LastUser()), frame.Options{})
		if strings.Contains(stored, secret) {
			t.Error("a secret is stored")
		}
		return stored
	}
	one := round("", first, strings.Replace(good(), "Goal\n", "Goal\nUse "+secret+".\n", 1))
	if !strings.Contains(one, "> And use the token ") || !strings.Contains(one, "but never push to main") || strings.Contains(one, `"`+ask) {
		t.Errorf("the active task is not the user's: %q", one)
	}
	second := []*chat.Message{said(chat.RoleAssistant, long), said(chat.RoleUser, "now write a test")}
	two := round(one, second, strings.Replace(good(), ask, "never push to main", 1))
	if strings.Count(two, frame.Head) != 1 || strings.Count(two, "## "+ActiveTask) != 1 || !strings.Contains(two, "> now write a test") {
		t.Errorf("%q", two)
	}
}
