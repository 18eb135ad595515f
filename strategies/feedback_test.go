package strategies

import (
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
)

func TestFeedback(t *testing.T) {
	t.Parallel()
	two := []chat.Message{user("a"), says("b")}
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
		"other words": {two, []chat.Message{user("a"), says("c")}, 1, 2, Feedback{
			Headline: "Compressed: 2 → 2 messages", TokenLine: "Rough transcript estimate: ~1 → ~2 tokens",
		}},
	} {
		if got := FeedbackOn(test.before, test.after, test.from, test.to); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

func TestThresholds(t *testing.T) {
	t.Parallel()
	for window, want := range map[chat.Tokens]Thresholds{
		200_000:   {100_000, 20_000, 10_000},
		128_000:   {64_000, 12_800, 6_400},
		1_000_000: {500_000, 100_000, 12_000},
		8_000:     {64_000, 12_800, 400},
	} {
		if got := ThresholdsOf(window, 0.5, 0.2); got != want {
			t.Errorf("%d: %v, want %v", window, got, want)
		}
	}
	if got := ThresholdsOf(200_000, 0.5, 0.95).Tail; got != 80_000 {
		t.Errorf("a ratio above 0.8 gives %d", got)
	}
}
