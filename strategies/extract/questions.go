package extract

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// lastQuestion returns the last question among the last three sentences of a text, or "".
func lastQuestion(s string) string {
	all := prose.Sentences(text.Tail(s, 1000))
	for i, x := range slices.Backward(all) {
		if i < len(all)-3 {
			break
		}
		if !prose.IsQuestion(x) && !asking().MatchString(x) {
			continue
		}
		if len(x) <= minSentence { // not understood without what it is about
			if i == 0 || !strings.Contains(s, all[i-1]+" "+x) {
				continue
			}
			x = all[i-1] + " " + x
		}
		return prose.Excerpt(strings.ReplaceAll(x, "**", ""), maxLine)
	}
	return ""
}

// inContext returns a short question of a text with the sentence before it if it points to that.
func inContext(s, question string) string {
	if len(question) > maxShort/2 || !pointing().MatchString(question) {
		return question
	}
	all := prose.Sentences(text.Tail(s, 1000))
	i := slices.IndexFunc(all, func(x string) bool { return strings.HasPrefix(question, text.Head(x, minRequest)) })
	if i < 1 || !strings.ContainsAny(all[i-1][len(all[i-1])-1:], ".:!?") { // which may be an entry of a list
		return question
	}
	return prose.Excerpt(strings.ReplaceAll(all[i-1], "**", ""), maxLine) + " " + question
}

// asking begins a sentence that wants an answer without being a question.
var asking = text.Pattern(`(?i)^(?:(?:if (?:so|yes),? |could you |can you )*please (?:confirm|verify|choose|pick|tell me|specify|approve|provide|let me know|share|give me|send me|enter)|(?:(?:i am|i['’]?m|still) )*(?:waiting (?:for|on)|standing by for|awaiting|holding (?:for|on)) your (?:\w+ )?(?:go|ok(?:ay)?|answer|reply|approval|confirmation|decision|input|choice|response|feedback|word))\b`)

// maxOptionLines is the number of lines around a question that answeredLines returns.
const maxOptionLines = 6

// maxBelowOption is the number of lines below an option that are told with it.
const maxBelowOption = 12

// picking is a reply that picks from a list.
var picking = text.Pattern(`(?i)^\W*(?:(?:let'?s|do|go|with|for|take|try|i|i'?d|would|like|want|to|prefer|pick|choose|select|book|reserve|yes|ok|please|flight|hotel|option|options|number|choice|approach|nr|the|step|item)[\s.,#]+)*(\d{1,2}|[a-h]|first|second|third|fourth|last|latter|former|both|all)\b`)

// answeredLines returns the last question of a text with the list of what it offers, which may
// stand before other lines if the reply picks from it.
func answeredLines(s, reply string) []string {
	lines := prose.SplitLines(text.Tail(s, maxReply))
	at := -1
	for i, l := range slices.Backward(lines) {
		if slices.ContainsFunc(prose.Sentences(l), prose.IsQuestion) {
			at = i
			break
		}
	}
	if at < 0 {
		return nil
	}
	from, to := at, at+1
	takes := picking().MatchString(reply) || agreeing().MatchString(prose.FirstLine(reply)) || referring().MatchString(reply)
	for takes && from > 0 && prose.IsListed(lines[from-1]) && at-from < maxOptionLines {
		from--
	}
	for to < len(lines) && prose.IsListed(lines[to]) && to-at < maxOptionLines {
		to++
	}
	if heads := options(lines[:at]); len(heads) > 1 && (to-from == 1 && picking().MatchString(reply) || from < at && !choiceLine().MatchString(lines[from])) {
		return append(heads, lines[at]) // not the last of what stands below them
	}
	return lines[from:to]
}

// chosen returns what a reply decides of a list with numbers or letters in a text: the entry that it
// picks, or entries with the answers that it numbers like them.
func chosen(s, reply string) []string {
	lines, list := prose.SplitLines(text.Tail(s, maxReply)), map[string]string{}
	entries := options(lines)
	if len(entries) < 2 {
		entries = inlineOptions(lines)
	}
	for _, l := range entries {
		number, _ := cutNumber(l)
		list[number] = strings.ReplaceAll(l, "**", "")
	}
	var out []string
	for _, l := range prose.SplitLines(text.Head(reply, maxRequest)) {
		number, said := cutNumber(l)
		x := list[number]
		switch {
		case number == "" || said == "" || !slices.ContainsFunc(prose.Sentences(x), prose.IsQuestion):
		case asksAbove(lines, entries): // it may answer the question of the other list
			return nil
		default:
			out = append(out, prose.Truncate(x, maxLine/2)+" → the user: "+prose.Truncate(said, maxLine/2))
		}
	}
	if len(out) > 0 {
		return out
	}
	if slices.ContainsFunc(lines, func(l string) bool { return stepsNext().MatchString(l) }) { // what was to be done then, not how
		return nil
	}
	for _, number := range picks(prose.FirstLine(reply)) {
		if x := list[number]; x != "" {
			out = append(out, chosenMark+prose.Truncate(x, maxLine))
		}
	}
	if said := prose.FirstLine(reply); len(out) == 0 && depending().MatchString(said) && picking().MatchString(said) {
		for _, number := range entryNumber().FindAllString(said, -1) {
			if x := list[number]; x != "" {
				out = append(out, prose.Truncate(x, maxLine/2)+" → the user: "+prose.Truncate(said, maxLine/2))
			}
		}
	}
	return out
}

// stepsNext is in a question about the order of the work.
var stepsNext = text.Pattern(`(?i)\b(?:(?:do|be|come|goes?|tackle|work on|focus on|take on|up) next|(?:start|begin) with|(?:do|tackle) first|next (?:step|task))\b[^.!?]*\?`)

// picks returns the numbers, or letters, of the entries that a reply takes of a list, nil if that depends on something.
func picks(said string) []string {
	if none().MatchString(said) {
		return nil
	}
	if all := correction().FindAllStringIndex(said, -1); all != nil {
		if rest := said[all[len(all)-1][1]:]; picking().MatchString(rest) { // instead of those before it
			said = rest
		}
	}
	if depending().MatchString(said) {
		return nil
	}
	var out []string
	for next := picking(); ; next = alsoPicking() {
		m := next.FindStringSubmatchIndex(said)
		if m == nil {
			return out
		}
		filler, number := said[:m[2]], strings.ToLower(said[m[2]:m[3]])
		said = said[m[3]:]
		at := slices.Index([]string{"first", "second", "third", "fourth"}, number)
		switch named := optionWord().MatchString(filler); {
		case at >= 0 && (named || afterPick().MatchString(said)):
			number = strconv.Itoa(at + 1)
		case at >= 0, number[0] > '9' && len(number) == 1 && !named && !afterPick().MatchString(said), number[0] <= '9' && !named && isCount(said):
			return out // "first of all", "a lamp", "3 lamps"
		}
		out = append(out, number)
	}
}

// isCount reports whether a number before such words tells how many there are of something.
func isCount(rest string) bool {
	m := countOf().FindStringSubmatch(rest)
	return m != nil && !pickVerb().MatchString(m[1])
}

var (
	// none turns all entries down, correction is between what was written first and what is meant, depending leaves it open
	// which of them is taken.
	none       = text.Pattern(`(?i)\b(?:none|neither|keine[nrs]?|ninguno|ninguna|aucune?)\b`)
	correction = text.Pattern(`(?i)\b(?:no,? wait|wait|actually|scratch that|or rather|i mean(?:t)?|make (?:it|that)|sorry|no,|nein,?|doch)\W+`)
	depending  = text.Pattern(`(?i)\b(?:\d{1,2}|[a-h]|first|second|third|fourth|one)\b\)?[\s,;:.–—-]*(?:(?:only|but) )?(?:if|unless|or|no|not|is(?:n['’]t| not)|when|once|provided|depending|wenn|falls|oder|nicht|nein)\b|\b(?:otherwise|sonst|sinon)\b`)
	// alsoPicking begins what follows an entry where another one is taken with it.
	alsoPicking = text.Pattern(`(?i)^\)?\s*(?:[,+&/]|,? ?\b(?:and|plus|und|et|y|then)\b)\s*(?:(?:also|then|maybe|the|option|number)\s+)*(\d{1,2}|[a-h]|first|second|third|fourth)\b`)
	// optionWord is before the number of an entry, afterPick behind its letter or word.
	optionWord  = text.Pattern(`(?i)\b(?:options?|number|choice|approach|nr|step|item)\W*$`)
	afterPick   = text.Pattern(`(?i)^(?:\W*$|[^\w\s'’]| (?:one|options?|choice|approach|and|please|then|is|was|looks|sounds|seems|works|with|but|for|because|since|as|thanks|together|too|both|would|will|it)\b| [^\w\s])`)
	countOf     = text.Pattern(`(?i)^ +(?:more |other |new |of )?([a-z]+s|people|men|women|children|euros?|%)(?:\W|$)`)
	pickVerb    = text.Pattern(`(?i)^(?:is|was|as|has|looks|sounds|seems|works|makes|feels|fits|wins|does|thanks|plus|yes|this|these|us)$`)
	entryNumber = text.Pattern(`\b(?:\d{1,2}|[b-h])\b`)
)

// inlineOptions returns the options that the last line with several of them gives within its sentences: (a) …, (b) ….
func inlineOptions(lines []string) []string {
	for _, l := range slices.Backward(lines) {
		var out []string
		marks := inlineMark().FindAllStringSubmatchIndex(l, maxOptionLines)
		for i, m := range marks {
			end := len(l)
			if i+1 < len(marks) {
				end = marks[i+1][0]
			}
			if number := strings.ToLower(l[m[2]:m[3]]); number != string(rune('a'+i)) && number != strconv.Itoa(i+1) {
				break
			}
			out = append(out, strings.TrimRight(optionEnd().ReplaceAllString(prose.FirstSentence(l[m[2]:end]), ""), " ,;?"))
		}
		if len(out) > 1 {
			return out
		}
	}
	return nil
}

var (
	inlineMark = text.Pattern(`(?i)(?:^|[\s(])([a-h]|\d)\)\s+\w`)
	optionEnd  = text.Pattern(`(?i)[\s,;]+(?:or|and|oder|und|ou|o)?[\s(]*$`)
)

// asksAbove reports whether an entry with a number above the list of the given entries, or what stands below that, asks
// something: not what leads the list.
func asksAbove(lines, entries []string) bool {
	if len(entries) == 0 || !beginsList(entries[0]) { // it has more
		return false
	}
	at := 0 // where the list begins
	for i, l := range lines {
		if strings.HasPrefix(entries[0], l) {
			at = i
		}
	}
	numbered := false
	for _, l := range lines[:max(at-1, 0)] {
		numbered = numbered || choiceLine().MatchString(l)
		if numbered && slices.ContainsFunc(prose.Sentences(l), prose.IsQuestion) {
			return true
		}
	}
	return false
}

// agreed returns what a reply decides that agrees to a proposal, "" for none: not that work goes on,
// which needs no decision.
func agreed(question, reply string) string {
	m := offering().FindStringSubmatch(question)
	if m == nil || text.Longer(reply, maxShort) || !agreeingOnly().MatchString(reply) || goingOn().MatchString(m[1]) {
		return ""
	}
	return agreedMark + m[1]
}

// overrules reports whether a reply wants something else than the question before it offers to do.
func overrules(question, reply string) bool {
	return offeringToAct().MatchString(question) && takingBack().MatchString(reply)
}

var (
	offeringToAct = text.Pattern(`(?i)^\W*(?:(?:so|ok|then)\b,? )?(?:shall i|should i|may i|can i|(?:do you )?want me to|would you like me to|soll ich|sollen wir|quieres que|veux-tu que)\b`)
	// offering asks whether to do a thing that takes some words to say.
	offering = text.Pattern(`(?i)^(?:(?:so|ok|then),? )?(?:should i|shall i|(?:do you )?want me to|would you like me to) (.{40,})\?$`)
	// agreeingOnly is a reply that agrees and says nothing else.
	agreeingOnly = text.Pattern(`(?i)^\W*(?:(?:yes|yep|yeah|yup|sure|ok(?:ay)?|please|agreed|absolutely|definitely|of course|perfect|great|sounds? (?:good|great)|good idea|(?:please |let'?s )?(?:do|try) (?:it|that|this|so)|go ahead|go for it|give it a try|thanks|thank you)\b\W*)+$`)
	goingOn      = text.Pattern(`(?i)^(?:go ahead|proceed|continue|start|commit|push|check|look|show|run|test|explain)\b|\bor\b`)
)

// choiceLine is an entry of a list with numbers or letters, which may have a title in brackets.
var choiceLine = text.Pattern(`(?i)^\W*(?:(?:option|approach|choice)\s+)?(?:(\d{1,2})(?: \([^)]{1,40}\))?[.):](?:\D|$)|([a-h])(?: \([^)]{1,40}\))?[.):](?:[^a-z]|$))`)

// cutNumber returns the number or the letter of an entry of such a list, and what follows; "" for other lines.
func cutNumber(l string) (number, said string) {
	m := choiceLine().FindStringSubmatchIndex(l)
	if m == nil {
		return "", ""
	}
	from, to := max(m[2], m[4]), max(m[3], m[5]) // of the one that is there
	return strings.ToLower(l[from:to]), strings.TrimSpace(l[to+1:])
}

// beginsList reports whether an entry is the first of a list.
func beginsList(l string) bool {
	number, _ := cutNumber(l)
	return number == "1" || number == "a"
}

// options returns the entries of the last list with numbers or letters, without what stands below
// them.
func options(lines []string) []string {
	var out []string
	for i, l := range slices.Backward(lines) {
		if !choiceLine().MatchString(l) {
			continue
		}
		if out = append(out, withBelow(l, lines[i+1:])); len(out) == maxOptionLines || beginsList(l) {
			break
		}
	}
	slices.Reverse(out)
	return out
}

// withBelow returns a line that ends with a colon with the entries of the list below it, other lines as they are.
func withBelow(line string, below []string) string {
	if !strings.HasSuffix(strings.TrimRight(line, "* "), ":") {
		return line
	}
	var entries []string
	for _, l := range below {
		if choiceLine().MatchString(l) || !prose.IsListed(l) {
			break
		}
		if entries = append(entries, prose.Unmarked(l)); len(entries) > maxBelowOption {
			entries[maxBelowOption] = strings.TrimSpace(prose.Ellipsis)
			break
		}
	}
	return line + " " + strings.Join(entries, "; ")
}

// affirming begins a reply to a question.
var affirming = text.Pattern(`(?i)^\W*(?:yes|yeah|yep|yup|ya|ok|okay|sure|no|nope|nah|please|do|don'?t|go|just|both|all|none|neither|either|option|the|that|it|i'?d|i|let'?s|good|great|sounds?|correct|right|ja|nein|oui|non|si|sí|sim|não|da|\d+|[a-d])\b`)

// answers reports whether a message replies to a question: it does not ask back, and begins
// like a reply or has a word of the question. Replies in other scripts always count.
func answers(question, reply string) bool {
	reply = prose.FirstLine(reply)
	first := strings.IndexFunc(reply, prose.IsLetterOrDigit)
	if first < 0 || prose.IsQuestion(reply) {
		return false
	}
	if reply[first] >= utf8.RuneSelf || affirming().MatchString(reply) {
		return true
	}
	question = strings.ToLower(question)
	return slices.ContainsFunc(strings.Fields(strings.ToLower(reply)), func(w string) bool {
		w = strings.TrimFunc(w, func(r rune) bool { return !prose.IsLetterOrDigit(r) })
		return len(w) >= minSharedWord && prose.ContainsWord(question, w)
	})
}

// minSharedWord is the size of a word that tells that two sentences are about the same.
const minSharedWord = 3
