package retention

import (
	"github.com/sessionstore/compactor/strategies/chat"
)

// Recorded is a summary that stands in a session, because the agent that recorded it
// compacted itself, and what it retained.
type Recorded struct {
	Case  *Case
	Score Score
	// Share is what its tokens are of those it stands for.
	Share float64
}

// around is how many messages have to stand before and behind a summary.
const around = 3

// RecordedSummaries measures the summaries of a session: each is taken for what was
// kept of the messages since the one before it, that one included, against those up
// to the next one. Messages that carry "is_compact_summary": true are summaries.
func RecordedSummaries(ms []chat.Message) []Recorded {
	var at []int
	for i := range ms {
		if string(ms[i].Extra["is_compact_summary"]) == "true" {
			at = append(at, i)
		}
	}
	var out []Recorded
	for k, i := range at {
		if i <= around || i >= len(ms)-around {
			continue
		}
		from, to := 0, len(ms)
		if k > 0 {
			from = at[k-1]
		}
		if k+1 < len(at) {
			to = at[k+1]
		}
		c := NewCaseOf(ms[from:i], ms[i+1:to])
		if c == nil {
			continue
		}
		kept := Tokens(&ms[i])
		score := c.Score([]chat.Message{{Role: ms[i].Role, Content: ms[i].Content}})
		score.Tokens = kept
		out = append(out, Recorded{c, score, kept / c.Tokens})
	}
	return out
}
