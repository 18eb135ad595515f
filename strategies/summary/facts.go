package summary

import (
	"fmt"
	"math"
	"slices"
	"sort"
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
	// as facts, pinnedShare that of pinned messages, and mostPinned that which they take rather
	// than be cut to fewer tokens than leastPinned.
	factShare, pinnedShare, mostPinned = 8, 32, 4
	leastPinned                        = 100
	// maxFacts is the most tokens of the user's messages. Of those that a prompt shows among the
	// messages too, it is repeatShare of the messages, or leastRepeated if that is more: a list of
	// what was asked may repeat them, pasted texts need not stand there twice.
	maxFacts                   = 16_000
	repeatShare, leastRepeated = 16, 1000
	// appendedLabel labels what assemble appends.
	appendedLabel = "appended to the notes by the program"
	// earlierLabel stands for messages of the user that no log holds.
	earlierLabel = "what the user said before the following is known from the notes written so far alone"
)

// setFacts sets the facts of prompts with a budget for their input, and returns what they leave
// of it for messages: half, or almost minPartTokens, at least. Messages that stay come first, as
// nothing else shows them. Otherwise facts make no second prompt necessary where one has room for
// all messages; of the user's they then are those that earlier summaries cover, and the others as
// well if they are few.
func (m *input) setFacts(budget int) int {
	staying := m.staying()
	most, pins := min(budget/2, budget-minPartTokens*9/10), len(staying)*leastPinned // tokens
	left := budget - messagesTokens(m.messages)
	one := left >= 0 && countUsers(m.messages) == countUsers(m.covered)
	if one && left >= min(pins, budget/mostPinned) {
		most = min(most, left)
	}
	others := pinnedFacts(staying, min(most, max(budget/pinnedShare, min(pins, budget/mostPinned))))
	most -= factsTokens(others)
	share := min(budget/factShare, maxFacts)
	users := m.said.given(0, min(most, share))
	if !one {
		most -= factsTokens(users)
	}
	appendix := m.appendix
	if !one && estimateTokens(appendix) > share { // each prompt repeats it
		appendix = m.fit(share, math.MaxInt, m.block)
	}
	appended := Fact{Label: appendedLabel, Text: strings.ReplaceAll("\n"+appendix, "\n## ", "\n")[1:]}
	if appended.shorten(most); appendix != "" && appended.tokens() <= most {
		others = append(others, appended)
		most -= appended.tokens()
	}
	if one {
		older := m.said.given(countSaid(m.covered), min(most, share))
		repeated := min(most, factsTokens(older)+max(messagesTokens(m.messages)/repeatShare, leastRepeated))
		if users = m.said.given(0, share); factsTokens(users) > repeated {
			users = older
		}
	}
	if m.unknown && len(users) > 0 {
		users = slices.Insert(users, 0, Fact{Label: earlierLabel})
	}
	m.facts = append(users, others...)
	return budget - factsTokens(m.facts)
}

// countSaid counts the messages in which the user says something.
func countSaid(messages []*chat.Message) (n int) {
	for _, m := range messages {
		if wordsOfUser(m) != "" {
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

// maxPinned is how many characters of a pinned message are shown at most, minPinned how many if
// there is little room.
const maxPinned, minPinned = 2000, 60

// staying returns the messages that stay in the view beside the summary: the user's current one,
// and those that are pinned.
func (m *input) staying() (out []Fact) {
	add := func(label string, message *chat.Message) {
		if said := text.Trim(message.Content.String()); said != "" {
			out = append(out, Fact{Label: label + ", which stays in the conversation", Text: said, At: message.CreatedAt})
		}
	}
	if c := m.task.Current; c != nil && wordsOfUser(c) != "" {
		add("newest message of the user", c)
	}
	for _, p := range m.task.Pinned {
		if p.Role == chat.RoleUser && wordsOfUser(p) == "" {
			add("pinned text that a program gave", p)
			continue
		}
		add("pinned message of the "+oneLine(string(p.Role)), p)
	}
	return out
}

// pinnedFacts returns messages that stay, in at most budget tokens: long ones are cut, all to the same
// length, and if there is no room even then, a fact tells how many more there are.
func pinnedFacts(all []Fact, budget int) []Fact {
	within := func(limit int) []Fact {
		out := slices.Clone(all)
		for i := range out {
			out[i].Text = cutCenter(out[i].Text, limit)
		}
		return out
	}
	limit := minPinned + sort.Search(maxPinned-minPinned, func(n int) bool { return factsTokens(within(minPinned+n+1)) > budget })
	out := within(limit)
	if factsTokens(out) <= budget {
		return out
	}
	more := func(n int) Fact {
		return Fact{Label: fmt.Sprintf("%d more pinned messages, which stay in the conversation", n)}
	}
	last := more(len(all))
	budget -= last.tokens()
	n := 0
	for n < len(out) && out[n].tokens() <= budget {
		budget -= out[n].tokens()
		n++
	}
	if budget < 0 {
		return nil
	}
	return append(out[:n], more(len(all)-n))
}
