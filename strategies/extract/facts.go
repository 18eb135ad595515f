package extract

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

const (
	maxFacts      = 256
	maxNames      = 4096 // words in the facts of the user
	maxFactWeight = 4    // names in a fact beyond which more do not count
)

// fact is a sentence of a chat with what it names: people, places, numbers, dates.
type fact struct {
	text, day string
	byUser    bool
	names     int
}

// addFacts adds the sentences of the user that name something, and those of the assistant
// that name what the user did. If there are too many, the oldest of those with the fewest
// names goes.
func (s *history) addFacts(said string, byUser bool) {
	if !s.isChat() {
		return
	}
	for _, line := range sentences(text.Head(said, maxRequest)) {
		if len(line) <= minSentence || text.Longer(line, maxLine) || isQuestion(line) || programLine().MatchString(line) {
			continue
		}
		names := namesIn(line)
		known := slices.ContainsFunc(names, func(n string) bool { return s.names[n] })
		if len(names) == 0 || !byUser && !known || slices.ContainsFunc(s.facts, func(f fact) bool { return f.text == line }) {
			continue
		}
		for _, n := range names {
			if byUser && len(s.names) < maxNames {
				s.names[strings.Clone(n)] = true
			}
		}
		s.facts = append(s.facts, fact{strings.Clone(line), s.day, byUser, min(len(names), maxFactWeight)})
	}
	for len(s.facts) > maxFacts {
		least := slices.MinFunc(s.facts, func(a, b fact) int { return cmp.Compare(a.names, b.names) })
		i := slices.Index(s.facts, least)
		s.facts = slices.Delete(s.facts, i, i+1)
	}
}

// namesIn returns the words of a sentence with digits or addresses, and those with a capital
// letter that do not begin it.
func namesIn(sentence string) []string {
	var out []string
	for i, w := range strings.Fields(sentence) {
		w = strings.TrimFunc(w, func(r rune) bool { return !isLetterOrDigit(r) })
		first, size := utf8.DecodeRuneInString(w)
		second, _ := utf8.DecodeRuneInString(w[size:])
		isName := i > 0 && unicode.IsUpper(first) && unicode.IsLetter(second)
		if isName || strings.ContainsFunc(w, unicode.IsDigit) || strings.ContainsRune(w, '@') {
			out = append(out, w)
		}
	}
	return out
}

// isChat reports whether no tool was called.
func (s *history) isChat() bool { return len(s.tools) == 0 && len(s.previous[sectionCompleted]) == 0 }

// addFactItems adds the facts of a chat by the days on which they were said. Where tools are
// called, what they did says more.
func (s *history) addFactItems(b *itemList) {
	if !s.isChat() {
		return
	}
	var day *item
	for i, f := range s.facts {
		if s.manyDays && f.day != "" && (day == nil || day.text != bulletMark+f.day+":\n") {
			day = &item{section: sectionFindings, text: bulletMark + f.day + ":\n", tier: tierDone, order: -1}
		}
		line, worth := formatEntry(f.text), worthConfirmed
		if f.byUser {
			line, worth = requestMark+f.text+"\n", worthFact
		}
		if day != nil {
			line = indentMark + strings.TrimPrefix(line, bulletMark)
		}
		it := b.add(sectionFindings, line, worth*float64(f.names)*decay(len(s.facts)-i, maxFacts))
		it.tier, it.parent = tierChosen, day
	}
}
