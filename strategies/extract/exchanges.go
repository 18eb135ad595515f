package extract

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// requestLine is a line of the earlier requests.
type requestLine struct {
	text  string // "" if only the lines below the request are listed
	whole string // if it is not text
	day   string
	turns []int
	spare bool // it is of little use later
	bare  bool // its answer is of more use
	skill bool // it is the text of a skill
}

// requestLines returns the lines of all requests but the active one and the goal. What has few words
// needs no line of its own, unless it is a customer's.
func (s *history) requestLines() []requestLine {
	at, before := s.activeTurn(), s.beforeActive()
	join := !s.isRecords()
	var lines []requestLine
	for i, t := range s.turns {
		if s.isResent(i) {
			continue
		}
		said := withoutCommands(t.request.head)
		l := requestLine{day: s.dayOf(i), turns: []int{i}}
		l.whole, l.text = t.request.said()
		switch {
		case s.isGoal(t.request) || i == at || t.request.empty() || IsGenerated(t.request.head) || slices.Contains(before, i) || s.isOver(i):
			l.text, l.spare = "", true
		case s.isServed(i):
			l.spare = true
		default:
			if t.document { // which one it was is enough
				if s.isReplaced(i) || i < len(s.turns)-newestRequests && s.editedAfter(t) {
					l.whole = ""
				}
				l.text = prose.FirstLine(t.request.head) + prose.Ellipsis
			}
			if t.program { // which skill it was is enough
				l.whole, l.text, l.skill = "", prose.FirstLine(t.request.head), true
			}
			l.bare = join && t.asked == "" && isBare(t.request.head) && !s.editedFor(t) || t.isUndone()
			l.spare = isSmallTalk(l.text) || isCommand(l.text) || said == "" || t.request.isOutput() ||
				!join && len(l.text) < minRequest && replying().MatchString(l.text) && len(namesIn(l.text)) == 0 && !strings.Contains(l.text, "?") // to what, is not told
			if n := len(lines); n > 0 && len(l.text) < minRequest && !t.isUndone() && lines[n-1].joins(l, join) {
				if last := &lines[n-1]; !slices.Contains(strings.Split(last.text, requestSeparator), l.text) {
					last.text, last.whole = last.text+requestSeparator+l.text, ""
				}
				if lines[n-1].turns = append(lines[n-1].turns, i); lines[n-1].text == l.text { // it was asked again
					lines[n-1].bare = l.bare
				}
				continue
			}
		}
		lines = append(lines, l)
	}
	return lines
}

// resentWithin is the number of requests after one in which it may be sent again.
const resentWithin = 6

// isResent reports whether the user soon sent a request again, as it was or corrected, and nothing that was made for it is
// in force.
func (s *history) isResent(i int) bool {
	said := withoutCommands(s.turns[i].request.head)
	if len(said) < minRequest/2 || IsGenerated(said) || s.isRecords() {
		return false
	}
	has := func(again string) bool { // what is not in it was another request
		for w := range prose.Words(said) {
			if !prose.ContainsWord(again, w) {
				return false
			}
		}
		return true
	}
	for _, t := range s.turns[i+1 : min(i+1+resentWithin, len(s.turns))] {
		again := withoutCommands(t.request.head)
		if len(again) >= minRequest/2 && strings.HasPrefix(again, said[:minRequest/2]) && (strings.HasPrefix(said, strings.TrimRight(again, ".!?")) || has(again)) {
			for c := range madeEdits(s.calls) {
				if c.after == s.turns[i].after {
					return false
				}
			}
			return true
		}
	}
	return false
}

// replying begins a reply that says nothing without what it replies to.
var replying = text.Pattern(`(?i)^\W*(?:no(?:pe|t)?|nah|don'?t|do not|i do(?:n'?t| not)|yes|yeah|ok(?:ay)?|sure|that(?:'?s| is| was)? (?:\w+ )?(?:seems?|sounds?|looks?|works?|great|nice|good|fine|perfect|right|correct)|sounds|thank)\b`)

// takingBack is in what the user says to take back or to replace what was said, or was going to be done.
var takingBack = text.Pattern(`(?i)\b(?:no (?:\w+ )?\w+ then\b|cancel (?:that|it|this|them)\b|changed my mind|scratch that|forget (?:it|about|that|the)\b|(?:calls?|called) (?:it )?off|(?:dropped|backed) out|(?:take|took|leave|left) (?:it|that|him|her|them|this) (?:off|out)\b|sent (?:it|them) back|i['’]?d rather (?:not|swap|keep|take|have)\b|actually,? no\b|no longer (?:need|want)|don['’]?t (?:need|want) (?:it|that|them|the \w+) (?:any ?more|after all)|` +
	`abgesagt|abgesprungen|stornier|doch (?:lieber|nicht)|stattdessen|(?:lass|nimm) (?:das|es|ihn|sie) (?:weg|raus)|quíta|quitar\b|anula|cancela(?:d[oa]|r|l[oa])?\b|mejor (?:no|sin)\b|en (?:vez|lugar) de|annul|finalement|à la place)|取消|不要了|やめ(?:ます|て|に)|キャンセル`)

// joins reports whether a short line needs none of its own behind another one: if it says the same, or,
// where lines are joined, if both fit.
func (l requestLine) joins(next requestLine, join bool) bool {
	return l.text != "" && !l.skill && !next.skill && l.spare == next.spare && !l.bare && l.day == next.day &&
		(slices.Contains(strings.Split(l.text, requestSeparator), next.text) || join && len(l.text)+len(requestSeparator)+len(next.text) < minExcerpt)
}

// addRequests adds all requests but the active one and the goal: whole if all fit into
// their share of the budget, else their beginnings, all to the same length. Each is followed by
// what it demanded besides and what was answered, the rest by what else was said.
func (s *history) addRequests(b *itemList, budget int) {
	lines := s.derived.requests
	var texts []string
	for _, l := range lines {
		if !l.spare && !l.bare {
			texts = append(texts, l.text)
		}
	}
	tier := tierUser
	room := s.requestsRoom(budget)
	limit := longest(texts, minExcerpt, maxExcerpt, room, len(requestMark))
	if most := longest(texts, 0, maxRequest, budget/4, len(requestMark)); !slices.ContainsFunc(texts, func(x string) bool { return text.Longer(x, most) }) {
		limit = maxRequest // all of them whole
	}
	if s.isTalk() && slices.ContainsFunc(texts, func(x string) bool { return text.Longer(x, limit) }) {
		tier = tierOther // what was said counts more than what was asked
	}
	for _, x := range texts {
		room -= min(utf8.RuneCountInString(x), limit) + len(requestMark) + 1
	}
	b.crowded = room < 0
	if at := s.activeTurn(); at > 0 && s.isRecords() && slices.ContainsFunc(s.calls, func(c *toolCall) bool { return c.acts && c.done && c.after >= s.turns[at].after }) {
		it := b.add(sectionRequests, activeHere+"\n", worthActed)
		it.day, it.at, it.tier = s.dayOf(at), 2*s.turns[at].after, tierDone
	}
	first := true
	for i, l := range lines {
		if l.text == "" {
			for _, turn := range l.turns {
				if !s.asksForNothing(turn) || !isClosing(s.turns[turn].request.head) && !s.endsVisit(turn) {
					s.addDemands(b, turn, nil)
				}
				s.addAnswer(b, turn, nil)
			}
			continue
		}
		mark := requestMark
		if l.skill {
			mark, l.text = ofSkill(l.text)
			mark = bulletMark + mark
		}
		x := strings.ReplaceAll(prose.Truncate(l.text, limit), strings.TrimSuffix(requestSeparator, " ")+prose.Ellipsis, prose.Ellipsis)
		came := "" // of a request that was taken back
		if t := s.turns[l.turns[len(l.turns)-1]]; t.isUndone() {
			came = indentMark + formatEntry(t.lines[0])
		}
		it := b.add(sectionRequests, mark+x+"\n"+came, 0)
		it.day, it.at = l.day, 2*s.turns[l.turns[0]].after
		request := it // of what belongs to it
		switch it.tier = tier; {
		case l.spare && (!first || s.isRecords()):
			it.tier, request = tierSpare, nil
		case l.bare && !first:
			it.tier = tierOther
		case s.isRecords() && i < len(lines)-newestRequests && !overrules(lastQuestion(s.turns[max(0, l.turns[0]-1)].lastText), x): // what was done tells most of what was asked for
			if it.tier = tierChosen; s.isCarriedOut(l.turns[0]) {
				it.tier = tierOther
			}
		}
		if age := len(lines) - i; !first {
			worth := worthAsked * decay(age, 8)
			if !s.isRecords() && !s.isTalk() && !s.hadEffect(b, l.turns) {
				worth /= 2
			}
			b.weigh(worth)
		} else { // what it was all about does not age, and is listed whatever the topic is
			b.weigh(worthAsked)
			it.topical = true
		}
		first = false
		if whole := b.addWhole(it, mark+text.Head(cmp.Or(l.whole, l.text), maxRequest+len(prose.Ellipsis))+"\n"+came); whole != nil && !l.spare && i >= len(lines)-newestRequests {
			whole.tier = tierNewest
		}
		committed := false
		for _, turn := range l.turns {
			if t := s.turns[turn]; t.asked != "" && (len(t.request.head) < minRequest || len(t.request.head) < maxShort && !s.isRecords() && rejecting().MatchString(t.request.head)) { // not understood without it
				question := t.asked
				if whole := inContext(s.turns[max(0, turn-1)].lastText, question); !text.Longer(whole, b.lineLimit) {
					question = whole
				}
				q := b.add(sectionFindings, indentMark+repliesMark+prose.Truncate(question, b.lineLimit)+"\n", worthAnswer*decay(len(s.turns)-turn, 8))
				q.section, q.day, q.parent = sectionRequests, it.day, it
			}
			s.addDemands(b, turn, request)
			if t := s.turns[turn]; t.document && request != nil && s.editedAfter(t) {
				old := b.add(sectionState, indentMark+documentMark, worthAsked)
				old.section, old.day, old.parent, old.tier, old.repeats = sectionRequests, it.day, it, tierState, true
			}
			if came == "" {
				s.addAnswer(b, turn, request)
			}
			if request != nil && !l.skill && s.addCommits(b, turn, request) {
				committed = true
			}
		}
		if request != nil && !l.skill && !committed {
			s.addEdited(b, l.turns, request)
		}
	}
}

// newestRequests is the number of requests that come before what was done, where that is listed with its values.
const newestRequests = 3

// hadEffect reports whether files were edited or something else was done for one of the requests, or it demands something.
func (s *history) hadEffect(b *itemList, turns []int) bool {
	return slices.ContainsFunc(turns, func(i int) bool {
		t := s.turns[i]
		return len(t.demands) > 0 || len(b.edited[t.after]) > 0 || slices.ContainsFunc(s.calls, func(c *toolCall) bool { return c.after == t.after && c.acts && c.done })
	})
}

// requestsRoom returns the characters of the earlier requests. Where calls tell with their values what
// came of them, they need less.
func (s *history) requestsRoom(budget int) int {
	share := sectionTable[sectionRequests].share
	if s.isRecords() {
		share = recordsRequestsShare
	}
	return int(share * float64(budget))
}

// isOver reports whether a request is of no use later: it asks for nothing.
func (s *history) isOver(i int) bool {
	t := s.turns[i]
	return t.asked == "" && isSmallTalk(t.request.head) || !s.isRecords() && t.calls > 0 && urging().MatchString(t.request.head) && !s.editedFor(t) || slices.Contains(s.decisions, agreed(t.asked, t.request.head)) || i < s.activeTurn() && s.asksForNothing(i) && (s.closes(t.request.head) || s.endsVisit(i))
}

// endsVisit reports whether a customer says good-bye, in whatever words: it is the last that was said on a day, without a
// question, and the answer is polite only.
func (s *history) endsVisit(i int) bool {
	t := s.turns[i]
	return s.isRecords() && t.day != "" && t.calls == 0 && i+1 < len(s.turns) && s.turns[i+1].day != t.day && !strings.Contains(t.request.head, "?") &&
		len(t.lines) > 0 && !slices.ContainsFunc(t.lines, func(l string) bool { return !isPolite(l) && !farewell().MatchString(l) })
}

// isServed reports whether a request is old and short, and the calls with short values that followed
// tell what came of it.
func (s *history) isServed(i int) bool {
	head := s.turns[i].request.head
	size := minRequest
	if s.turns[i].asked != "" && !strings.Contains(head, "?") { // it only tells what a call needs
		size *= 2
	}
	return head != "" && len(head) < size && !isSmallTalk(head) && s.isRecords() && i < s.activeTurn()-freshAnswers
}

// isCarriedOut reports whether a request of an earlier visit was followed by an action of that visit, which tells what
// was wanted in the end.
func (s *history) isCarriedOut(i int) bool {
	t := s.turns[i]
	return s.byDay && t.day != "" && s.isRecords() && t.day != s.turns[max(0, s.activeTurn())].day && slices.ContainsFunc(s.calls, func(c *toolCall) bool {
		return c.acts && c.done && !c.failed && c.day == t.day && c.after >= t.after
	})
}

// freshAnswers is the number of turns after which a short request is old.
const freshAnswers = 8
