package summary_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/summary"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// A truncation or the fallback after a summary drops other messages first, although the
// summary is the oldest in the view.
func TestASummaryOutlastsTheTruncationBehindIt(t *testing.T) {
	t.Parallel()
	var messages []chat.Message
	for i := range 60 {
		role := chat.RoleUser
		if i%2 == 1 {
			role = chat.RoleAssistant
		}
		text := fmt.Sprintf("Step %d: look at /srv/app/config_%d.yaml. %s", i, i, strings.Repeat("It was looked at and it was fine. ", 60))
		messages = append(messages, chat.Message{ID: fmt.Sprint("m", i), Role: role, Content: chat.TextContent(text)})
	}
	for _, last := range []string{"truncation", "fallback"} {
		p := policy.Default()
		p.StartTokens, p.TargetTokens = 12_000, 6_000
		p.Pipeline[0] = policy.Step{Strategy: "summarization", Params: map[string]any{"target_count": 30}} // leaves much
		if last != "fallback" {
			p.Pipeline = append(p.Pipeline, policy.Step{Strategy: last})
		}
		limits := p.Limits("gpt-4o", tokens.Window)
		run, writers, err := strategies.Build(builtin.Registry(), p, limits, summary.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c, err := strategies.Compact(t.Context(), messages, run, strategies.Options{Counter: tokens.ForModel("gpt-4o")})
		if err != nil {
			t.Fatal(err)
		}
		ran := c.Steps
		if n := len(ran); n != 2 || !strings.HasSuffix(ran[n-1].Strategy, last) || !ran[n-1].Changed || writers[0].Provenance() == nil {
			t.Fatalf("%s: nothing was left to it: %+v", last, ran)
		}
		if got := c.After.IncludedTokens; got > limits.Target {
			t.Errorf("%s: %d tokens, target %d", last, got, limits.Target)
		}
		if first := c.Messages[0].Content.String() + c.Messages[1].Content.String(); !strings.Contains(first, "without a model") {
			t.Errorf("%s: the view begins with %.80q", last, first)
		}
	}
}
