package extract

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

const (
	maxFacts      = 256
	maxNames      = 4096 // words in the facts of the user
	maxOffered    = 5    // sentences with names in an answer, more are an essay
	maxFactWeight = 6    // names in a fact beyond which more do not count
)

// fact is a sentence of a chat with what it names: people, places, numbers, dates.
type fact struct {
	text, day string
	byUser    bool
	// certain reports whether the user said it, asked for it or agreed to it, known whether it
	// names what the user did.
	certain, known bool
	names          int
}

// addUserFacts adds the sentences of the user that name something, and those of the assistant
// that the user does not turn down.
func (s *history) addUserFacts(said string) {
	if !s.isChat() {
		return
	}
	agreed := agreeing().MatchString(said)
	for _, f := range s.offered {
		if prose.IsQuestion(f.text) && !agreed || declining().MatchString(said) && !leaving().MatchString(said) {
			continue
		}
		f.certain = f.certain || agreed
		s.facts = append(s.facts, f)
	}
	s.offered = nil
	for _, f := range s.factsIn(said) {
		if !prose.IsQuestion(f.text) {
			f.byUser, f.certain = true, true
			if takingBack().MatchString(f.text) { // else what it takes back is told as if it were still so
				f.names = maxFactWeight
			}
			s.facts = append(s.facts, f)
			for _, n := range namesIn(f.text) {
				if len(s.names) < maxNames {
					s.names[strings.Clone(n)] = true
				}
			}
		}
	}
	for len(s.facts) > maxFacts { // the oldest of those with the fewest names
		least := slices.MinFunc(s.facts, func(a, b fact) int { return cmp.Compare(a.names, b.names) })
		i := slices.Index(s.facts, least)
		s.facts = slices.Delete(s.facts, i, i+1)
	}
}

// offerFacts notes the sentences of the assistant that name something; of an essay, those that name
// what the user did.
func (s *history) offerFacts(said string) {
	if !s.isChat() {
		return
	}
	asked := lastQuestion(s.currentTurn().request.head) != ""
	facts := s.factsIn(said)
	for _, f := range facts {
		f.certain = asked && !prose.IsQuestion(f.text)
		f.known = slices.ContainsFunc(namesIn(f.text), func(n string) bool { return s.names[n] })
		if (len(facts) <= maxOffered || f.known) && !needing().MatchString(f.text) { // the user has told it since
			s.offered = appendBounded(s.offered, f, maxTurnLines)
		}
	}
}

// factsIn returns the sentences of a text that name something, or that take something back.
func (s *history) factsIn(said string) []fact {
	var out []fact
	for _, line := range prose.Sentences(text.Head(said, maxRequest)) {
		if len(line) <= minSentence || text.Longer(line, maxLine) || programLine().MatchString(line) {
			continue
		}
		names := namesIn(line)
		if (len(names) > 0 || takingBack().MatchString(line)) && !slices.ContainsFunc(s.facts, func(f fact) bool { return f.text == line }) {
			out = append(out, fact{text: strings.Clone(line), day: s.day, names: min(len(names), maxFactWeight)})
		}
	}
	return out
}

var (
	// declining asks for something else than what was offered, leaving is no answer to that.
	declining = text.Pattern(`(?i)^\W*(?:no|nope|nah|nein|non)\b|\b(?:else|another|different|others?|instead|rather|more options|search again|look again|nein|ander(?:e|es|en|er)|autres?|otr[oa]s?|outr[oa]s?|altr[oi])\b|друг|别的|其他|他の|다른`)
	leaving   = text.Pattern(`(?i)^\W*(?:no|nope|nah)\b[,. ]*(?:that'?s|that (?:is|will)|this is|thanks?|thank|i'?m (?:good|fine|done|all)|i am (?:good|fine|done)|nothing|not (?:now|at|today)|it'?s all)\b`)
)

// turningDown asks for another option than the one that was offered.
var turningDown = text.Pattern(`(?i)^\W*(?:no|nope|nah)\b|\b(?:(?:some|any)(?:thing|where|one)? (?:else|others?|different)\b|what else (?:is there|do you have|have you|did you|can you (?:find|offer))\b|another (?:one|option|place|choice|\w+ (?:instead|please))|other (?:ones|options|choices|events|hotels|places|flights|cars|movies|songs|restaurants)|a different|not interested|already (?:seen|watched)|instead\b|(?:search|look|try) again)`)

// refining corrects what was offered, and keeps it.
var refining = text.Pattern(`(?i)^\W*no\b[, ]+(?:for|on|at|to|with|make|change|only|just|i meant)\b`)

// namesIn returns the words of a sentence with digits or addresses, and those with a capital
// letter that do not begin it.
func namesIn(sentence string) []string {
	var out []string
	for i, w := range strings.Fields(sentence) {
		w = strings.TrimFunc(w, func(r rune) bool { return !prose.IsLetterOrDigit(r) })
		first, size := utf8.DecodeRuneInString(w)
		second, _ := utf8.DecodeRuneInString(w[size:])
		isName := i > 0 && unicode.IsUpper(first) && unicode.IsLetter(second) && !nameless[strings.ToLower(w)]
		if isName || strings.ContainsFunc(w, unicode.IsDigit) || strings.ContainsRune(w, '@') {
			out = append(out, w)
		}
	}
	return out
}

// nameless are words in capitals that name nothing.
var nameless = text.Set(`id ids ok okay`)

// isChat reports whether no tool was called.
func (s *history) isChat() bool {
	return len(s.calls) == 0 && len(s.files) == 0 && len(s.previous[sectionCompleted]) == 0
}

// isTalk reports whether the conversation is a chat that is not about programs.
func (s *history) isTalk() bool { return s.isChat() && maxCodeShare*s.withCode < s.messages }

// maxCodeShare is the number of messages of which one has code in a chat about programs.
const maxCodeShare = 10

// addFactItems adds the facts of a chat by the days on which they were said. Where tools are
// called, what they did says more.
func (s *history) addFactItems(b *itemList) {
	if !s.isChat() {
		return
	}
	talk := s.isTalk()
	var former *item // of the fact before
	for i, f := range s.facts {
		line, worth := formatEntry(f.text), worthConfirmed
		switch {
		case f.byUser:
			line, worth = requestMark+f.text+"\n", worthFact
		case talk && f.certain:
			worth = worthFact
		case !talk && !f.known: // of programs there is too much
			continue
		}
		it := b.add(sectionFindings, line, worth*float64(f.names)*decay(len(s.facts)-i, maxFacts))
		if it.tier, it.day = tierChosen, f.day; former != nil && former.day == f.day && len(f.text) < minRequest && referringBack().MatchString(f.text) { // it says of what
			it.follows = former
		}
		former = it
	}
}
