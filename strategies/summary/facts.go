package summary

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/text"
	"github.com/sessionstore/compactor/strategies/plan"
)

const (
	// factShare is the share of the input of a prompt that messages of the user may take which it
	// does not show, maxFacts the most tokens of them. pinnedShare is the share of messages that
	// stay in the view.
	factShare, maxFacts, pinnedShare = 8, 4000, 8
	// maxValues is how many tokens of identifiers are given.
	maxValues = 300
	// earlierLabel stands for messages of the user that no log holds.
	earlierLabel = "what the user said before the following is known from the notes written so far alone"
	valuesLabel  = "values that the last messages used"
)

// setFacts sets the facts of prompts with a budget for their input, and returns what they leave
// of it for messages: half, or almost minPartTokens, at least.
func (m *input) setFacts(budget int) int {
	most := max(0, min(budget/2, budget-minPartTokens*9/10)) // tokens
	m.beside = m.pinned(min(most, budget/pinnedShare))
	if values := (fact{label: valuesLabel, text: lastValues(m.messages, maxValues)}); values.text != "" && values.tokens()+factsTokens(m.beside) <= most {
		m.beside = append(m.beside, values)
	}
	m.users = max(0, min(most-factsTokens(m.beside), budget/factShare, maxFacts))
	shown := map[string]bool{}
	if messagesTokens(m.messages) <= budget-factsTokens(m.beside)-m.users { // in one prompt
		shown = saidIn(m.messages)
	}
	if len(m.said.given(shown, m.users)) == 0 {
		m.users = 0
	}
	return budget - factsTokens(m.beside) - m.users
}

// facts returns the facts of a prompt that shows a part of the messages.
func (m *input) facts(part []*chat.Message) []fact {
	users := m.said.given(saidIn(part), m.users)
	if m.unknown && len(users) > 0 {
		users = slices.Insert(users, 0, fact{label: earlierLabel})
	}
	return append(users, m.beside...)
}

// lastValues returns the identifiers of the newest messages, the newest first, in at most so many
// tokens.
func lastValues(messages []*chat.Message, most int) string {
	const maxMessages, maxScanned = 12, 2000
	var out []string
	seen, left := map[string]bool{}, most*bytesPerToken
	scan := func(s string) {
		for w := range identifiers(text.Ends(s, maxScanned, maxScanned/2, maxScanned/2)) {
			if !seen[w] && len(w)+2 <= left {
				seen[w] = true
				left -= len(w) + 2
				out = append(out, w)
			}
		}
	}
	for i, m := range slices.Backward(messages) {
		if i < len(messages)-maxMessages {
			break
		}
		for _, c := range m.ToolCalls {
			scan(c.Arguments)
		}
		if m.Role != chat.RoleTool { // of a result, what is used is named by others
			scan(m.Content.String())
		}
	}
	return strings.Join(out, ", ")
}

// addStaying sets the messages that stay in the view beside the summary, with their numbers, and
// indexes them.
func (m *input) addStaying(t plan.Task) {
	add := func(q chat.Seq, message *chat.Message) {
		if !m.seqs {
			q = 0
		}
		shown := *message
		shown.ID = numberOf(q)
		m.staying = append(m.staying, &shown)
		m.sources.addBeside(q, &shown)
	}
	if t.Current != nil && wordsOfUser(t.Current) != "" {
		add(t.CurrentSeq, t.Current)
	}
	for i, p := range t.Pinned {
		q := chat.Seq(0)
		if i < len(t.PinnedSeqs) {
			q = t.PinnedSeqs[i]
		}
		add(q, p)
	}
}

// maxPinned is how many characters of a message that stays are shown, minPinned how many if there
// is little room.
const maxPinned, minPinned = 2000, 120

// pinned returns the messages that stay in at most budget tokens: all cut to the same length, or
// the first ones.
func (m *input) pinned(budget int) []fact {
	var all []fact
	for _, message := range m.staying {
		label := "message of the " + string(message.Role)
		if message.Role == chat.RoleUser && wordsOfUser(message) == "" {
			label = "text that a program gave"
		}
		if said := text.Trim(message.Content.String()); said != "" {
			all = append(all, fact{message.ID, oneLine(label) + ", which stays in the conversation", said, message.CreatedAt})
		}
	}
	out := slices.Clone(all)
	for limit := maxPinned; ; limit /= 2 {
		for i := range out {
			out[i].text = cutCenter(all[i].text, limit)
		}
		if factsTokens(out) <= budget || limit/2 < minPinned {
			break
		}
	}
	n := len(out)
	for n > 0 && factsTokens(out) > budget {
		n--
		out = append(out[:n:n], fact{label: fmt.Sprintf("%d more messages, which stay in the conversation", len(all)-n)})
	}
	if factsTokens(out) > budget {
		return nil
	}
	return out
}
