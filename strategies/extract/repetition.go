package extract

import (
	"slices"
	"strings"
	"unicode"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

const (
	// minRepeated is the number of words below which a line is not compared with others.
	minRepeated = 3
	// maxRepeated is the share of the words of a line in another one from which it says the same.
	maxRepeated = 0.75
	// minWord is the size of the words that are compared, maxStem the size of what is compared of them.
	minWord, maxStem = 4, 6
)

// stems are the beginnings of the words of a line, in lower case; those with a digit are whole, and true.
type stems map[string]bool

func stemsOf(line string) stems {
	out := stems{}
	for w := range strings.FieldsFuncSeq(strings.ToLower(line), func(r rune) bool { return !isLetterOrDigit(r) }) {
		switch {
		case strings.ContainsFunc(w, unicode.IsDigit):
			out[w] = true
		case len(w) >= minWord && !isStopWord(w) && !isEmptyLabel(w):
			out[text.Head(w, maxStem)] = false
		}
	}
	return out
}

// within reports whether another line says the same in nearly the same words, with the same numbers.
func (s stems) within(other stems) bool {
	shared := 0
	for w, number := range s {
		if _, ok := other[w]; ok {
			shared++
		} else if number {
			return false
		}
	}
	return len(s) >= minRepeated && float64(shared) >= maxRepeated*float64(len(s))
}

// isStatement reports whether the item is a line of the assistant that may be left out where another
// one says the same: not the state, which is read as a whole.
func (it *item) isStatement() bool {
	switch it.section {
	case sectionGoal, sectionFindings, sectionDecisions:
	case sectionRequests:
		if it.parent == nil || strings.Contains(it.text, repliesMark) {
			return false
		}
	default:
		return false
	}
	return !isQuoted(it.text)
}

// repeats reports whether a placed line says the same as a statement, which it notes if not.
func (p *page) repeats(it *item) bool {
	if !it.isStatement() {
		return false
	}
	said := stemsOf(it.text)
	if slices.ContainsFunc(p.said, said.within) {
		return true
	}
	p.said = append(p.said, said)
	return false
}
