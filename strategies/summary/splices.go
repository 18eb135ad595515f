package summary

import (
	"bytes"
	"sort"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// negations matches a negation in front of what it denies, denials one behind it, in words.
var (
	negations = text.Pattern(`(?i)(?:^|[^\pL\pN'’])(?:` + strings.Join(negatives, "|") + `|can['’]?t|\pL+n['’]t|instead\s+of|rather\s+than)\s+|(?:不要|别|別|勿|不准|禁止)\s*`)
	denials   = text.Pattern(`^ (?:nicht|niet|inte|ikke)(?: |$)`)
)

// negatives are words in front of what they deny, as appendWords makes them, with what is left of n't.
var negatives = strings.Fields("never no not cannot t dont without stop avoid nicht kein keine keinen keinem keiner niemals nie ne pas jamais nunca non não niet nooit inte ikke nem tidak jangan không не никогда ніколи 不 别 別 勿 没")

// maxNegated is how many negations of the user are kept, maxClause how many characters one denies.
const maxNegated, maxClause = 1 << 15, 400

// addWords adds words of the user, and which of them a negation denies.
func (e *SourceIndex) addWords(said string) {
	e.words = append(e.words, " | "...)
	for _, sentence := range sentencesOf(said) {
		at := 0
		for _, m := range negations().FindAllStringIndex(sentence, -1) {
			if len(e.negated) == maxNegated {
				break
			}
			e.words = appendWords(e.words, sentence[at:m[1]])
			at = m[1]
			denied := text.Head(sentence[at:], maxClause)
			if end := clauseEnds().FindStringIndex(denied); end != nil {
				denied = denied[:end[0]]
			}
			e.negated = append(e.negated, [2]int{len(e.words), len(e.words) + len(appendWords(nil, denied))})
		}
		e.words = appendWords(e.words, sentence[at:])
	}
}

// find returns the index of some words, which may be few, among those of the user between two
// indexes, or -1.
func (e *SourceIndex) find(words string, from, to int) int {
	for i := from; i < to; i++ {
		n := bytes.Index(e.words[i:to], []byte(words))
		if n < 0 {
			return -1
		}
		i += n
		end := i + len(words)
		if unspacedLetters(words) > 0 || (i == 0 || e.words[i-1] == ' ') && (end == len(e.words) || e.words[end] == ' ') {
			return i
		}
	}
	return -1
}

// maxPlaces is in how many places a quotation is looked at, maxOmitted how many bytes it may omit.
const maxPlaces, maxOmitted = 200, 4000

// splices reports whether a quotation leaves out the negation of the user's words, directly
// beside them or where it omits some, gives one to other words, or joins words of several
// messages, in all places where they are.
func (e *SourceIndex) splices(quote string) bool {
	var parts []string
	for _, s := range quotedParts(quote) {
		if w := wordsOf(s); w != "" {
			parts = append(parts, w)
		}
	}
	if len(parts) == 0 {
		return false
	}
	at := -1
	for n := 0; ; n++ {
		if at = e.find(parts[0], at+1, len(e.words)); at < 0 {
			return n > 0
		}
		if n == maxPlaces || !e.deniedAt(parts, at) {
			return false
		}
	}
}

// deniedAt reports whether the parts of a quotation, the first of which is at an index, leave
// out a negation.
func (e *SourceIndex) deniedAt(parts []string, at int) bool {
	negation := func(at int) int { // where the last one before at ends, if it denies what is there
		i := sort.Search(len(e.negated), func(i int) bool { return e.negated[i][0] > at }) - 1
		if i < 0 || e.negated[i][1] <= at {
			return -1
		}
		return e.negated[i][0]
	}
	if from := negation(at); from >= 0 && bytes.Count(e.words[from:at], []byte(" ")) < 2 {
		return true
	}
	end := at + len(parts[0])
	message := e.words[end:min(len(e.words), end+maxOmitted)]
	message, _, _ = bytes.Cut(message, []byte(" | "))
	last := end + len(message)
	for _, part := range parts[1:] {
		own := negation(end + 1) // that the part in front ends in
		if at = e.find(part, min(end, last), last); at < 0 {
			return e.said(part)
		}
		if from := negation(at); from > end+1 || own == end+1 && from != own { // behind a blank it is in the quotation
			return true
		}
		end = at + len(part)
	}
	return denials().Match(e.words[end:min(len(e.words), end+20)])
}
