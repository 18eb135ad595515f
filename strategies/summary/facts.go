package summary

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/internal/text"
	"github.com/sessionstore/compactor/strategies/plan"
)

const (
	// factShare is the share of the input of a prompt that messages of the user may take which it
	// does not show, and likewise messages that stay in the view. maxFacts limits both in tokens.
	factShare, maxFacts = 8, 4000
	// factChars is how many characters of a message are given.
	factChars = 600
	// maxValues is how many tokens of identifiers are given.
	maxValues = 300
	// maxSaid is how many messages of the user are kept at most, the first and the newest.
	maxSaid = 4000

	saidLabel    = "said by the user before"
	leftOutLabel = "%d messages left out here"
	valuesLabel  = "values that the last messages used"
	// earlierLabel stands for messages of the user that no log holds.
	earlierLabel = "what the user said before the following is known from the notes written so far alone"
)

// factOf returns a message as a fact that a prompt gives in front of the messages.
func factOf(label string, m *chat.Message) passage {
	said := frame.SaidBy(m)
	if m.Role != chat.RoleUser {
		said = text.Trim(m.Content.String())
	}
	return passage{m.ID, label, strings.Clone(cutCenter(said, factChars)), m.CreatedAt}
}

func factsTokens(facts []passage) (n int) {
	for i := range facts {
		f := &facts[i]
		n += messageTokens(&chat.Message{Content: chat.TextContent(f.text), CreatedAt: f.at}) + estimateTokens(f.speaker)
	}
	return n
}

// fitFacts returns the first fact and the newest ones in at most budget tokens, and how many are
// left out with lost ones.
func fitFacts(all []passage, lost, budget int) []passage {
	if factsTokens(all) <= budget && lost == 0 || len(all) == 0 {
		return all
	}
	gap := func(n int) []passage { return []passage{{speaker: fmt.Sprintf(leftOutLabel, n)}} }
	budget -= factsTokens(all[:1]) + factsTokens(gap(maxSaid))
	from := len(all)
	for ; from > 1 && budget >= factsTokens(all[from-1:from]); from-- {
		budget -= factsTokens(all[from-1 : from])
	}
	if budget < 0 {
		return nil
	}
	return slices.Concat(all[:1], gap(from-1+lost), all[from:])
}

// wordsOfUser returns the text of a message of the user, "" for one of others and for one that a
// program wrote in the user's name: notes of an agent, outputs of commands, skills.
func wordsOfUser(m *chat.Message) string {
	said := frame.SaidBy(m)
	_, arguments, _ := strings.Cut(said, "<command-args>")
	arguments = strings.TrimLeft(arguments, " \t\r\n") // that the user adds to a command of an agent
	generated := extract.IsGenerated(said) && (arguments == "" || arguments[0] == '<')
	if generated || strings.HasPrefix(said, chat.SkillPrefix) || extract.IsOutput(said) {
		return ""
	}
	return said
}

// userSaid collects the messages of the user, in order, in bounded memory.
type userSaid struct {
	facts []passage
	lost  int // after the first
}

// add appends a message if it is the user's.
func (s *userSaid) add(m *chat.Message) {
	if wordsOfUser(m) == "" {
		return
	}
	s.facts = append(s.facts, factOf(saidLabel, m))
	if len(s.facts) > maxSaid {
		s.facts = slices.Delete(s.facts, 1, maxSaid/2)
		s.lost += maxSaid/2 - 1
	}
}

// given returns the messages that a prompt for others does not show, in at most budget tokens.
func (s *userSaid) given(others []*chat.Message, budget int) []passage {
	shown := map[string]bool{}
	for _, m := range others {
		if wordsOfUser(m) != "" {
			shown[factOf("", m).text] = true
		}
	}
	all := slices.DeleteFunc(slices.Clone(s.facts), func(f passage) bool { return shown[f.text] })
	return fitFacts(all, s.lost, budget)
}

// setFacts sets the facts of prompts with a budget for their input, and returns the rest of it
// for messages: half, or almost minPartTokens, at least.
func (m *input) setFacts(budget int) int {
	most := max(0, min(budget/2, budget-minPartTokens*9/10)) // tokens
	m.beside = fitFacts(m.staying, 0, min(most, budget/factShare, maxFacts))
	if values := (passage{speaker: valuesLabel, text: lastValues(m.messages)}); values.text != "" && factsTokens([]passage{values})+factsTokens(m.beside) <= most {
		m.beside = append(m.beside, values)
	}
	most -= factsTokens(m.beside)
	m.users = max(0, min(most, budget/factShare, maxFacts))
	shown := m.messages
	if messagesTokens(shown) > budget-factsTokens(m.beside)-m.users { // not in one prompt
		shown = nil
	}
	if len(m.said.given(shown, m.users)) == 0 {
		m.users = 0
	}
	return budget - factsTokens(m.beside) - m.users
}

// facts returns the facts of a prompt that shows a part of the messages.
func (m *input) facts(part []*chat.Message) []passage {
	users := m.said.given(part, m.users)
	if m.unknown && len(users) > 0 {
		users = slices.Insert(users, 0, passage{speaker: earlierLabel})
	}
	return append(users, m.beside...)
}

// lastValues returns the identifiers of the newest messages, the newest first.
func lastValues(messages []*chat.Message) string {
	const maxMessages, maxScanned = 12, 2000
	var out []string
	left := maxValues * bytesPerToken
	for _, m := range slices.Backward(messages[max(0, len(messages)-maxMessages):]) {
		var said []string
		if m.Role != chat.RoleTool { // values of a result that are in use are named by others
			said = append(said, text.Head(m.Content.String(), maxScanned))
		}
		for _, c := range m.ToolCalls {
			said = append(said, text.Head(c.Arguments, maxScanned))
		}
		for w := range Identifiers(strings.Join(said, "\n")) {
			if !slices.Contains(out, w) && len(w)+2 <= left {
				left -= len(w) + 2
				out = append(out, w)
			}
		}
	}
	return strings.Join(out, ", ")
}

// addStaying adds the messages that stay in the view beside the summary, the user's current one
// and those that are pinned: as facts with their numbers, and to the index.
func (m *input) addStaying(t plan.Task) {
	for i, p := range append([]*chat.Message{t.Current}, t.Pinned...) {
		q := t.CurrentSeq
		if i > 0 {
			if q = 0; i <= len(t.PinnedSeqs) {
				q = t.PinnedSeqs[i-1]
			}
		}
		if p == nil || i == 0 && wordsOfUser(p) == "" {
			continue
		}
		if !m.seqs {
			q = 0
		}
		shown := *p
		shown.ID = numberOf(q)
		label := "message of the " + oneLine(string(p.Role))
		if p.Role == chat.RoleUser && wordsOfUser(p) == "" {
			label = "text that a program gave"
		}
		if f := factOf(label+", which stays in the conversation", &shown); f.text != "" {
			m.staying = append(m.staying, f)
		}
		m.sources.addBeside(q, &shown)
	}
}
