package agent

import (
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

func TestFeedback(t *testing.T) {
	t.Parallel()
	two := []chat.Message{sessiontest.User("a"), sessiontest.Says("b")}
	for name, test := range map[string]struct {
		before, after []chat.Message
		from, to      chat.Tokens
		want          Feedback
	}{
		"nothing": {two, two, 1234, 1234, Feedback{
			Noop: true, Headline: "No changes from compression: 2 messages", TokenLine: "Rough transcript estimate: ~1,234 tokens (unchanged)",
		}},
		"less": {two, two[:1], 1_234_567, 12, Feedback{
			Headline: "Compressed: 2 → 1 messages", TokenLine: "Rough transcript estimate: ~1,234,567 → ~12 tokens",
		}},
		"fewer but larger": {two, two[:1], 999, 1000, Feedback{
			Headline: "Compressed: 2 → 1 messages", TokenLine: "Rough transcript estimate: ~999 → ~1,000 tokens",
			Note: "Note: there are fewer messages, but the summary that was written is larger than what it replaces.",
		}},
		"other words": {two, []chat.Message{sessiontest.User("a"), sessiontest.Says("c")}, 1, 2, Feedback{
			Headline: "Compressed: 2 → 2 messages", TokenLine: "Rough transcript estimate: ~1 → ~2 tokens",
		}},
	} {
		if got := FeedbackOn(test.before, test.after, test.from, test.to); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}
