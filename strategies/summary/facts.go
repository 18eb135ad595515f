package summary

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/text"
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
		shown = numbersOf(m.messages)
	}
	if len(m.said.given(shown, m.users)) == 0 {
		m.users = 0
	}
	return budget - factsTokens(m.beside) - m.users
}

// facts returns the facts of a prompt that shows a part of the messages.
func (m *input) facts(part []*chat.Message) []fact {
	users := m.said.given(numbersOf(part), m.users)
	if m.unknown && len(users) > 0 {
		users = slices.Insert(users, 0, fact{label: earlierLabel})
	}
	return append(users, m.beside...)
}

// numbersOf returns the numbers of messages in prompts, which are their ids.
func numbersOf(messages []*chat.Message) map[string]bool {
	out := make(map[string]bool, len(messages))
	for _, m := range messages {
		out[m.ID] = true
	}
	return out
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

// eachBeside calls f with the messages that stay in the view beside the summary, and their numbers,
// 0 where they are unknown.
func (m *input) eachBeside(f func(n chat.Seq, message *chat.Message)) {
	number := func(q chat.Seq) chat.Seq {
		if !m.seqs {
			return 0
		}
		return q
	}
	if m.task.Current != nil {
		f(number(m.task.CurrentSeq), m.task.Current)
	}
	for i, p := range m.task.Pinned {
		n := chat.Seq(0)
		if i < len(m.task.PinnedSeqs) {
			n = number(m.task.PinnedSeqs[i])
		}
		f(n, p)
	}
}

// maxPinned is how many characters of a message that stays are shown, minPinned how many if there
// is little room.
const maxPinned, minPinned = 2000, 120

// pinned returns the messages that stay in the view beside the summary, the user's current one and
// those that are pinned, in at most budget tokens: all cut to the same length, or the first ones.
func (m *input) pinned(budget int) []fact {
	var all []fact
	m.eachBeside(func(n chat.Seq, message *chat.Message) {
		label := "pinned message of the " + oneLine(string(message.Role))
		switch said := wordsOfUser(message) != ""; {
		case message == m.task.Current && said:
			label = "newest message of the user"
		case message == m.task.Current:
			return
		case message.Role == chat.RoleUser && !said:
			label = "pinned text that a program gave"
		}
		f := fact{label: label + ", which stays in the conversation", text: text.Trim(message.Content.String()), at: message.CreatedAt}
		if n > 0 {
			f.number = numberOf(n)
		}
		if f.text != "" {
			all = append(all, f)
		}
	})
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
		out = append(out[:n:n], fact{label: fmt.Sprintf("%d more pinned messages, which stay in the conversation", len(all)-n)})
	}
	if factsTokens(out) > budget {
		return nil
	}
	return out
}
