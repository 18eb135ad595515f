package summary

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// Fact is a text that a prompt gives in front of the messages: a message of the user, or what
// stands beside the notes in the end. It is redacted.
type Fact struct {
	// Label says what it is, on one line.
	Label, Text string
	// At is the time of a message, zero if unknown.
	At time.Time
}

const (
	// factShare is the share of the input of a prompt that the messages of the user may take
	// as facts, pinnedShare that of pinned messages.
	factShare, pinnedShare = 8, 32
	// maxFacts is the most tokens of the user's messages, which the messages repeat.
	maxFacts = 16_000
	// appendedLabel labels what assemble appends.
	appendedLabel = "appended to the notes by the program"
	// earlierLabel stands for messages of the user that no log holds.
	earlierLabel = "what the user said before the following is known from the notes written so far alone"
)

// setFacts sets the facts of prompts with a budget for their input, and returns what they
// leave of it for messages. There are none if they left too little. They make no second
// prompt necessary where one has room for all messages; of the user's it then gives those that
// earlier summaries cover.
func (m *input) setFacts(budget int) int {
	share := min(budget/factShare, maxFacts)
	users := m.said.given(0, share)
	others := pinnedFacts(m.task.Pinned, budget/pinnedShare)
	if m.appendix != "" {
		others = append(others, Fact{Label: appendedLabel, Text: strings.ReplaceAll("\n"+m.appendix, "\n## ", "\n")[1:]})
	}
	if left := budget - messagesTokens(m.messages); left >= 0 && countUsers(m.messages) == countUsers(m.covered) {
		if left -= factsTokens(others); left < 0 {
			others, users = nil, nil
		} else if left < factsTokens(users) {
			users = m.said.given(countSaid(m.covered), min(left, share))
		}
	}
	if m.unknown && len(users) > 0 {
		users = slices.Insert(users, 0, Fact{Label: earlierLabel})
	}
	m.facts = append(users, others...)
	left := budget - factsTokens(m.facts)
	if left < max(minPartTokens, budget/2) {
		m.facts, left = nil, budget
	}
	return left
}

// countSaid counts the messages in which the user says something.
func countSaid(messages []*chat.Message) (n int) {
	for _, m := range messages {
		if saidBy(m) != "" {
			n++
		}
	}
	return n
}

func countUsers(messages []*chat.Message) (n int) {
	for _, m := range messages {
		if m.Role == chat.RoleUser {
			n++
		}
	}
	return n
}

func factsTokens(facts []Fact) (n int) {
	for i := range facts {
		n += facts[i].tokens()
	}
	return n
}

// tokens returns the estimated tokens of a fact in a prompt.
func (f *Fact) tokens() int {
	return messageTokens(&chat.Message{Content: chat.TextContent(f.Text), CreatedAt: f.At}) + estimateTokens(f.Label)
}

// maxPinned is how many characters of a pinned message are shown.
const maxPinned = 2000

// pinnedFacts returns pinned messages, in at most budget tokens.
func pinnedFacts(messages []*chat.Message, budget int) []Fact {
	var out []Fact
	for _, m := range messages {
		f := Fact{
			Label: "pinned message of the " + oneLine(string(m.Role)) + ", which stays in the conversation",
			Text:  cutCenter(text.Trim(m.Content.String()), maxPinned), At: m.CreatedAt,
		}
		if budget -= f.tokens(); budget < 0 {
			return append(out, Fact{Label: fmt.Sprintf("%d more pinned messages, which stay in the conversation", len(messages)-len(out))})
		}
		if strings.TrimSpace(f.Text) != "" {
			out = append(out, f)
		}
	}
	return out
}
