package summary

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/frame"
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
)

// setFacts sets the facts of prompts with a budget for their input, and returns what they
// leave of it for messages. There are none if they left too little. They make no second
// prompt necessary where one has room for all messages, which has those of the user too.
func (m *input) setFacts(budget int) int {
	users := userFacts(m.covered, min(budget/factShare, maxFacts))
	others := pinnedFacts(m.task.Pinned, budget/pinnedShare)
	if m.appendix != "" {
		others = append(others, Fact{Label: appendedLabel, Text: strings.ReplaceAll("\n"+m.appendix, "\n## ", "\n")[1:]})
	}
	if left := budget - messagesTokens(m.messages); left >= 0 && countUsers(m.messages) == countUsers(m.covered) {
		if left -= factsTokens(others); left < 0 {
			others, users = nil, nil
		} else if left < factsTokens(users) {
			users = nil
		}
	}
	m.facts = append(users, others...)
	left := budget - factsTokens(m.facts)
	if left < max(minPartTokens, budget/2) {
		m.facts, left = nil, budget
	}
	return left
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

// userFacts returns the messages of the user in order, in at most budget tokens: word for
// word if they fit, or else the first and the newest ones, with a fact that tells what is
// left out between them.
func userFacts(messages []*chat.Message, budget int) []Fact {
	var all []Fact
	for _, m := range messages {
		if said := saidBy(m); said != "" {
			all = append(all, Fact{Text: said, At: m.CreatedAt})
		}
	}
	n, size := len(all), 0
	for i := range all {
		all[i].Label = fmt.Sprintf("message of the user, %d of %d", i+1, n)
		size += all[i].tokens()
	}
	if size <= budget {
		return all
	}
	gap := func(n int) []Fact { return []Fact{{Label: fmt.Sprintf("%d messages of the user left out here", n)}} }
	budget -= factsTokens(gap(n))
	if n > 1 && all[0].tokens()+all[n-1].tokens() > budget {
		all[0].shorten(budget / 2)
	}
	if n > 1 {
		budget -= all[0].tokens()
	}
	if all[n-1].shorten(budget); all[n-1].tokens() > budget {
		return nil // not even these two
	}
	from := n
	for from > 1 && all[from-1].tokens() <= budget {
		from--
		budget -= all[from].tokens()
	}
	if from <= 1 {
		return all
	}
	return slices.Concat(all[:1], gap(from-1), all[from:])
}

// shorten cuts the middle out of a fact until it takes at most so many tokens, if it can.
func (f *Fact) shorten(most int) {
	full := f.Text
	for n := most * bytesPerToken; f.tokens() > most && n > 0; n /= 2 {
		f.Text = cutCenter(full, n)
	}
}

// saidBy returns what a message of the user says, without a summary that it begins with, and
// "" for other messages.
func saidBy(m *chat.Message) string {
	if m.Role != chat.RoleUser {
		return ""
	}
	said := m.Content.String()
	if _, rest, ok := frame.Unwrap(said); ok {
		said = rest
	}
	return text.Trim(said)
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
