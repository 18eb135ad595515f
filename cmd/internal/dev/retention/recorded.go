package retention

import (
	"github.com/sessionstore/compactor/strategies/chat"
)

// Recorded holds the score of a summary that an agent wrote of its own session.
type Recorded struct {
	Case *Case
	// Summary is the message with the summary.
	Summary *chat.Message
	Score   Score
}

// around is the least number of messages before and after a measured summary.
const around = 3

// RecordedSummaries scores the summaries of a session: the messages that carry
// "is_compact_summary": true. Each is scored as the result of compacting the messages
// from the previous summary on, against the messages up to the next one.
func RecordedSummaries(ms []chat.Message) []Recorded {
	at := []int{0} // and those of the summaries, and the end
	for i := range ms {
		if isRecorded(&ms[i]) {
			at = append(at, i)
		}
	}
	at = append(at, len(ms))
	var out []Recorded
	for k, i := range at[1 : len(at)-1] {
		if i <= around || i >= len(ms)-around {
			continue
		}
		c := NewCaseOf(ms[at[k]:i], ms[i+1:at[k+2]])
		if c == nil {
			continue
		}
		score := c.Score([]chat.Message{{Role: ms[i].Role, Content: ms[i].Content}})
		score.Tokens = Tokens(&ms[i]) // even of a system message
		out = append(out, Recorded{c, &ms[i], score})
	}
	return out
}

// isRecorded reports whether an agent wrote the message as a summary.
func isRecorded(m *chat.Message) bool { return string(m.Extra["is_compact_summary"]) == "true" }
