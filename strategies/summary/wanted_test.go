package summary_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/summary"
)

// The size of a summary is set by the policy, within the limits of the strategy.
func TestSizes(t *testing.T) {
	t.Parallel()
	ms := conversation(400)
	for name, tt := range map[string]struct {
		size   func(*policy.Size)
		window int
		task   plan.Task
		want   func(covered int) int
	}{
		"two fifths of what is covered":  {nil, 0, plan.Task{}, func(n int) int { return min(12_000, 2*n/5) }},
		"two fifths of the window":       {nil, 12_000, plan.Task{}, func(int) int { return 4800 }},
		"a share of the policy's":        {func(s *policy.Size) { s.Share = 0.01 }, 0, plan.Task{Most: 9000, Budget: 9000}, func(n int) int { return n / 100 }},
		"the policy's most":              {func(s *policy.Size) { s.Min, s.Max = 100, 2500 }, 0, plan.Task{Most: 9000, Budget: 9000}, func(int) int { return 2500 }},
		"the strategy's most":            {nil, 0, plan.Task{Most: 900, Budget: 2000}, func(int) int { return 900 }},
		"what the strategy wants":        {nil, 0, plan.Task{Budget: 700}, func(int) int { return 700 }},
		"what the strategy lets it have": {nil, 0, plan.Task{MaxTokens: 600}, func(int) int { return 600 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := policy.DefaultSummary()
			if tt.size != nil {
				tt.size(&s.Size)
			}
			w := summary.New(summary.Options{Settings: s, Window: tt.window})
			tt.task.Messages = ms
			text, err := w.Write(t.Context(), tt.task)
			r := w.Provenance()
			tokens := utf8.RuneCountInString(text) / 4 // as package extract counts
			if want := tt.want(r.CoveredTokens); err != nil || r.Budget < want-1 || r.Budget > want || tokens > want {
				t.Errorf("%v, %d tokens of at most %d for %d, want %d", err, tokens, r.Budget, r.CoveredTokens, want)
			}
		})
	}
}

// A summary alone is not summarized again: nothing is asked, and nothing changes.
func TestWithoutNewMessagesThereIsNoSummary(t *testing.T) {
	t.Parallel()
	client, server := model(t, nil)
	old := "[CONTEXT SUMMARY]:\n" + strings.Repeat("They looked into src/module_1/handler.go again. ", 200)
	for _, m := range []summary.Model{nil, client} {
		s := policy.DefaultSummary()
		s.OnFailure = policy.OnFailureExtractive
		w := summary.New(summary.Options{Settings: s, Model: m, Last: true})
		text, err := w.Write(t.Context(), plan.Task{Previous: "Notes.", Messages: []*chat.Message{{Role: chat.RoleUser, Content: chat.TextContent(old)}}})
		var failure *plan.Failure
		if !errors.As(err, &failure) || failure.Code != "nothing_new" || text != "" || server.Calls() > 0 {
			t.Errorf("%q, %v after %d requests", text, err, server.Calls())
		}
	}
}

// A topic reaches the extract, too; that of the run goes before that of the policy.
func TestExtractsHaveATopic(t *testing.T) {
	t.Parallel()
	s := policy.DefaultSummary()
	s.Focus = "module_39"
	for focus, file := range map[string]string{"": "src/module_39/handler.go", "what became of module_7": "src/module_7/handler.go"} {
		w := summary.New(summary.Options{Settings: s, Focus: focus})
		text, err := w.Write(t.Context(), plan.Task{Messages: conversation(60), Budget: 150})
		if err != nil || !strings.Contains(text, file) {
			t.Errorf("%q: %v\n%s", focus, err, text)
		}
	}
}
