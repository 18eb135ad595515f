package summary

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

const (
	// firstWords is how many characters of an older message of the user are given where there
	// is no room for all of it.
	firstWords = 120
	// maxSaid is how many messages of the user are kept at most, the first and the newest.
	maxSaid = 4000
)

// userSaid collects what the user said, in order. Its memory is bounded: it keeps the first and
// the newest messages, those up to maxFacts tokens whole and the first words of those before.
type userSaid struct {
	facts []Fact
	// n counts all messages, whole the tokens of those from the index from, which are whole.
	n, from, whole int
}

// wordsOfUser returns what a message of the user says, "" for one of others and for what a program
// wrote in the user's name: notes of an agent, outputs of commands, skills.
func wordsOfUser(m *chat.Message) string {
	said := frame.SaidBy(m)
	if strings.HasPrefix(said, chat.SkillPrefix) || extract.IsOutput(said) || extract.IsGenerated(said) && !commandWords().MatchString(said) {
		return ""
	}
	return said
}

// commandWords matches what the user adds to a command of an agent.
var commandWords = text.Pattern(`<command-args>\s*[^<\s]`)

// add appends the message if it is the user's.
func (s *userSaid) add(m *chat.Message) {
	said := wordsOfUser(m)
	if said == "" {
		return
	}
	f := Fact{Text: strings.Clone(cutCenter(said, maxFacts*bytesPerToken)), At: m.CreatedAt}
	s.n++
	s.facts = append(s.facts, f)
	for s.whole += f.tokens(); s.whole > maxFacts && s.from < len(s.facts)-1; s.from++ {
		s.whole -= s.facts[s.from].tokens()
		if s.from > 0 {
			s.facts[s.from] = s.facts[s.from].begun()
		}
	}
	if len(s.facts) > maxSaid {
		s.facts = slices.Delete(s.facts, 1, maxSaid/2)
		s.from -= maxSaid/2 - 1 // so many are never whole
	}
}

// begun returns the fact with the first words of its text, if that is shorter.
func (f Fact) begun() Fact {
	if head := text.Head(f.Text, firstWords); len(f.Text)-len(head) > len(maxNote) {
		f.Text = cut(f.Text, len(head), len(f.Text), nil)
	}
	return f
}

// given returns the messages but for the newest few in at most budget tokens: word for word if
// they fit, or else the first and the newest ones, the first words of those before, as far as
// there is room, and a fact that tells how many are left out.
func (s *userSaid) given(butFor, budget int) []Fact {
	n, lost := s.n-butFor, s.n-len(s.facts)
	if n-lost <= 0 {
		return nil
	}
	all := slices.Clone(s.facts[:n-lost])
	size := 0
	for i := range all {
		at := i
		if i > 0 {
			at += lost
		}
		all[i].Label = fmt.Sprintf("message of the user, %d of %d", at+1, s.n)
		size += all[i].tokens()
	}
	if size <= budget && lost == 0 {
		return all
	}
	gap := func(n int) []Fact { return []Fact{{Label: fmt.Sprintf("%d messages of the user left out here", n)}} }
	budget -= factsTokens(gap(n))
	last := len(all) - 1
	if last > 0 {
		if all[0].tokens()+all[last].tokens() > budget {
			all[0].shorten(budget / 2)
		}
		budget -= all[0].tokens()
	}
	if all[last].shorten(budget); all[last].tokens() > budget {
		return nil // not even these two
	}
	budget -= all[last].tokens()
	begun := slices.Clone(all)
	words := 0 // of all between the two
	for i := 1; i < last; i++ {
		begun[i] = all[i].begun()
		words += begun[i].tokens()
	}
	spare, from := budget/2, last // for whole ones
	beside := words <= spare      // the first words of all have room beside them
	if beside {
		spare = budget - words
	}
	for ; from > 1; from-- {
		cost := all[from-1].tokens()
		if beside {
			cost -= begun[from-1].tokens()
		}
		if cost > spare {
			break
		}
		spare -= cost
		budget -= all[from-1].tokens()
	}
	for ; from > 1 && begun[from-1].tokens() <= budget; from-- {
		budget -= begun[from-1].tokens()
		all[from-1] = begun[from-1]
	}
	if left := from - 1 + lost; left > 0 && last > 0 {
		return slices.Concat(all[:1], gap(left), all[from:])
	}
	return all
}

// shorten cuts the middle out of a fact until it takes at most so many tokens, if it can.
func (f *Fact) shorten(most int) {
	full := f.Text
	for n := most * bytesPerToken; f.tokens() > most && n > 0; n /= 2 {
		f.Text = cutCenter(full, n)
	}
}
