package summary

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// fact is a text that a prompt gives in front of the messages: a message of the user, or what
// stands beside the notes in the end. It is redacted.
type fact struct {
	// number is that of a message, "" for none.
	number string
	// label describes it, on one line.
	label, text string
	// at is the time of a message, zero if unknown.
	at time.Time
}

// tokens returns the estimated tokens of a fact in a prompt.
func (f *fact) tokens() int {
	return messageTokens(&chat.Message{Content: chat.TextContent(f.text), CreatedAt: f.at}) + estimateTokens(f.label)
}

func factsTokens(facts []fact) (n int) {
	for i := range facts {
		n += facts[i].tokens()
	}
	return n
}

// wordsOfUser returns what a message of the user says, "" for one of others and for what a program
// wrote in the user's name: notes of an agent, outputs of commands, skills.
func wordsOfUser(m *chat.Message) string {
	said := frame.SaidBy(m)
	if strings.HasPrefix(said, chat.SkillPrefix) || extract.IsOutput(said) || extract.IsGenerated(said) && !hasArguments(said) {
		return ""
	}
	return said
}

// hasArguments reports whether a command of an agent has words that the user added.
func hasArguments(said string) bool {
	_, arguments, ok := strings.Cut(said, "<command-args>")
	arguments = strings.TrimLeft(arguments, " \t\r\n")
	return ok && arguments != "" && arguments[0] != '<'
}

const (
	// wholeChars is how many characters of an older message of the user are given, firstChars how
	// many where there is no room for more.
	wholeChars, firstChars = 600, 120
	// maxSaid is how many messages of the user are kept at most, the first and the newest.
	maxSaid = 4000
)

// userSaid collects what the user said, in order, in bounded memory.
type userSaid struct {
	facts []fact
	n     int // all messages
}

// add appends a message if it is the user's.
func (s *userSaid) add(m *chat.Message) {
	said := wordsOfUser(m)
	if said == "" {
		return
	}
	s.n++
	s.facts = append(s.facts, fact{m.ID, "said by the user before", strings.Clone(cutCenter(said, wholeChars)), m.CreatedAt})
	if len(s.facts) > maxSaid {
		s.facts = slices.Delete(s.facts, 1, maxSaid/2)
	}
}

// saidIn returns what the user says in messages, as facts have it.
func saidIn(messages []*chat.Message) map[string]bool {
	out := map[string]bool{}
	for _, m := range messages {
		out[cutCenter(wordsOfUser(m), wholeChars)] = true
	}
	return out
}

// given returns the messages that a prompt does not show in at most budget tokens: the first, the
// newest ones, the first words of those before, and how many are left out.
func (s *userSaid) given(shown map[string]bool, budget int) []fact {
	all := slices.DeleteFunc(slices.Clone(s.facts), func(f fact) bool { return shown[f.text] })
	if len(all) == 0 {
		return nil
	}
	first := all[0]
	if budget -= first.tokens() + 2*estimateTokens(leftOutLabel) + 16; budget < 0 {
		return nil
	}
	whole := budget / 2
	n := len(all) - 1 // facts from here on are taken
	for ; n > 0; n-- {
		f := &all[n]
		if size := f.tokens(); size <= whole {
			whole -= size
		} else {
			whole = 0
			if head := text.Head(f.text, firstChars); len(f.text)-len(head) > len(maxNote) {
				f.text = cut(f.text, len(head), len(f.text), nil)
			}
		}
		if budget -= f.tokens(); budget < 0 {
			break
		}
	}
	left := n + s.n - len(s.facts)
	switch rest := all[n+1:]; {
	case left == 0:
		return append([]fact{first}, rest...)
	default:
		return append([]fact{first, {label: fmt.Sprintf(leftOutLabel, left)}}, rest...)
	}
}

const leftOutLabel = "%d messages of the user left out here"
