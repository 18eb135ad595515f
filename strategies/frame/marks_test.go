package frame

import (
	"testing"

	"pgregory.net/rapid"
)

// TestNoMarkIsOverlooked: a text in which the letters alone have no words of a mark has none in any form.
func TestNoMarkIsOverlooked(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := ""
		for _, part := range rapid.SliceOfN(rapid.SampledFrom([]string{
			"[", "]", "---", "===", "--", " ", "\n", "*", "_", "<b>", "</b>", "e n d", "end", "End", "of", "the", "o f", "conversation", "context", "session", "chat", "summary", "s u m m a r y", "handoff", "notes",
			"compaction", "reference", "only", "ends", "is over", "resumes", "continues", "new", "user", "messages", "from", "human", ":", "(", "x", "7",
		}), 0, 14).Draw(t, "parts") {
			s += part
		}
		if !mayHoldMark(s) && (looseMarks.MatchString(s) || bareMarks.MatchString(s)) {
			t.Errorf("%q is overlooked", s)
		}
	})
}
