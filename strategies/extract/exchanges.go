package extract

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// addRequests adds all requests but the active one and the goal: whole if all fit into
// their share of the budget, else their beginnings, all to the same length. Each is followed by
// what it demanded besides and what was answered, the rest by what else was said.
func (s *history) addRequests(b *itemList, budget int) {
	type line struct {
		text  string // "" if the request is not told here
		day   string
		turns []int
		spare bool // it is of little use later
	}
	at := s.activeTurn()
	before := s.beforeActive()
	var lines []line
	var texts []string
	for i, t := range s.turns {
		if s.isGoal(t.request) || i == at || t.request.empty() || isGenerated(t.request.head) || t.asked == "" && slices.Contains(before, i) || s.isOver(i) {
			if s.isServed(i) {
				lines = append(lines, line{oneLine(t.request.head), s.dayOf(i), []int{i}, true})
			} else {
				lines = append(lines, line{turns: []int{i}, spare: true})
			}
			continue
		}
		x, last := oneLine(t.request.head), len(lines)-1
		if isInstruction(x) { // which skill it was is enough
			x = firstLine(t.request.head)
		}
		day, spare := s.dayOf(i), isSmallTalk(x) || isCommand(x) || t.request.isOutput()
		switch { // what has few words needs no line of its own
		case last < 0 || lines[last].text == "" || lines[last].spare != spare || lines[last].day != day:
			lines = append(lines, line{text: x, day: day, spare: spare})
			last++
		case len(x) < minRequest && slices.Contains(strings.Split(lines[last].text, requestSeparator), x):
		case len(x) < minRequest && !s.isRecords() && len(lines[last].text)+len(requestSeparator)+len(x) < minExcerpt:
			lines[last].text += requestSeparator + x
		default:
			lines = append(lines, line{text: x, day: day, spare: spare})
			last++
		}
		lines[last].turns = append(lines[last].turns, i)
	}
	for _, l := range lines {
		if !l.spare {
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
	first := true
	for i, l := range lines {
		if l.text == "" {
			for _, turn := range l.turns {
				if !isClosing(s.turns[turn].request.head) {
					s.addDemands(b, turn, nil)
				}
				s.addAnswer(b, turn, nil)
			}
			continue
		}
		x := strings.ReplaceAll(truncate(l.text, limit), strings.TrimSuffix(requestSeparator, " ")+ellipsis, ellipsis)
		it := b.add(sectionRequests, requestMark+x+"\n", 0)
		it.day = l.day
		request := it // of what belongs to it
		if it.tier = tier; l.spare && !first {
			it.tier, request = tierSpare, nil
		}
		if age := len(lines) - i; !first {
			b.weigh(worthAsked * decay(age, 8))
		} else { // what it was all about does not age, and is told whatever the topic is
			b.weigh(worthAsked)
			it.topical = true
		}
		first = false
		b.addWhole(it, requestMark+text.Head(l.text, maxRequest)+"\n")
		for _, turn := range l.turns {
			if t := s.turns[turn]; t.asked != "" && len(t.request.head) < minRequest { // not understood without it
				q := b.add(sectionFindings, indentMark+repliesMark+truncate(t.asked, b.lineLimit)+"\n", worthAnswer*decay(len(s.turns)-turn, 8))
				q.section, q.day, q.parent = sectionRequests, it.day, it
			}
			s.addDemands(b, turn, request)
			s.addAnswer(b, turn, request)
		}
	}
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

// addAnswer adds what was said in a turn, below its request if that has an item; what was said
// last to the first request, below that. The last message of all describes the current state.
func (s *history) addAnswer(b *itemList, i int, request *item) {
	t, age := s.turns[i], decay(len(s.turns)-1-i, 8)
	if i == len(s.turns)-1 {
		s.addLastAnswer(b)
		return
	}
	isGoal := request == nil && i != s.activeTurn() && s.isGoal(t.request)
	told := false // what came of it
	bare := request == nil && s.isRecords()
	for j, line := range t.lines {
		line = opening().ReplaceAllString(s.statements(line), "")
		first := j >= t.lastStart && !told && !isIntention(line) && (request != nil || isGoal)
		if !first && isPassing(line) || isEmpty(line) || bare && (len(namesIn(line)) == 0 || pronoun().MatchString(line) || checkingBack().MatchString(line) || completing().MatchString(line)) {
			continue
		}
		worth := worthSaid
		if first || j == t.lastStart {
			worth, told = worthResult, true
		}
		text := formatEntry(s.dated(truncate(line, b.lineLimit), t.lastAt))
		if request != nil {
			text = indentMark + text
		}
		it := b.add(sectionFindings, text, worth*age*min(1, float64(len(text))/usualLine))
		it.day = s.dayOf(i)
		switch {
		case request != nil:
			it.section, it.parent = sectionRequests, request
		case isGoal && j >= t.lastStart:
			it.section, it.day = sectionGoal, ""
		}
	}
}

// isOver reports whether a request is of little use later: it asks for nothing, or isServed.
func (s *history) isOver(i int) bool {
	t := s.turns[i]
	return t.asked == "" && isSmallTalk(t.request.head) || slices.Contains(s.decisions, agreed(t.asked, t.request.head)) || s.isRecords() && i < s.activeTurn() && isClosing(t.request.head) || s.isServed(i)
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

// freshAnswers is the number of turns after which a short request is old.
const freshAnswers = 8

// isSmallTalk reports whether a request asks for nothing: thanks, a greeting, praise, or a command
// to the program that runs the agent.
func isSmallTalk(s string) bool {
	return len(s) < 3*minRequest && (smallTalk().MatchString(s) || controlling().MatchString(s) || !strings.ContainsFunc(s, isLetterOrDigit))
}

// isClosing reports whether a customer ends a visit, and wants nothing more.
func isClosing(s string) bool {
	return len(s) < 3*minRequest && closing().MatchString(s) && !wanting().MatchString(s) && !strings.ContainsFunc(s, unicode.IsDigit)
}

var (
	closing   = text.Pattern(`(?i)\bthank|\bthanx|\b(?:that|this|it)(?:[';]?s| is| was| will be|'ll be) (?:all|it|enough|everything|what i (?:need|want)(?:ed)?)(?:\W|$| (?:i (?:need|want)|for|from|thanks?|now|today|right)\b)|\bbye\b|\ball set\b|\bi (?:need|want) no(?:thing)? more\b`)
	wanting   = text.Pattern(`(?i)\?|\b(?:please|can|could|would you|will you|what|where|when|how|which|why|find|get|book|reserve|buy|show|play|tell|search|look|check|make|transfer|change|cancel|send|give|but|only|except|wrong|problem|without|seats?|let'?s|instead|also|another|address|phone|prefer|choose|cab|ride)\b|\bi(?:'d| would|'ll|'m)? (?:also |still |just |now |like |love |going |want |need )+(?:to|a|an|the|one|two|some|it|you to)\b`)
	smallTalk = text.Pattern(`(?i)^\W*(?:(?:no|nope|ok(?:ay)?|great|perfect|awesome|cool|alright|good|nice|wonderful|hi|hello|hey|there|bye|goodbye|again|indeed|thanks|thank you|thanx|thx|thankyou|thanking you|` +
		`(?:so|very) much|much|i(?:'m| am) (?:thankful|grateful)(?: for your help)?|nothing(?: (?:else|more))?(?: (?:for the moment|for now|right now))?|i don'?t need (?:more|any|any more|anything)(?: else)?(?: help)?(?: right now| for now)?|i (?:don'?t|do not)|i'?m (?:good|done|fine|all set)|i am (?:good|done|fine)|not (?:yet|now|today|right now|at (?:the moment|this time)|at all)|i(?:'ll| will) let you know(?: if (?:i need|there is|there's) (?:any|some)thing(?: else| further| more)?)?|a (?:lot|ton|bunch|million)|i appreciate (?:it|your help)|for (?:all )?(?:the|your|of your) (?:kind )?(?:help|assistance|time)|have a (?:good|great|nice) (?:day|one)|` +
		`(?:that|this|it)(?:'s| is|'ll be| will be| would be| was)? (?:really )?(?:all|it|everything|enough|great|good|nice|perfect|very helpful)(?: of you)?(?: (?:that )?i need(?:ed)?)?(?: for (?:me|now|today|the moment)| from me)*|` +
		`(?:that )?sounds? (?:good|great|perfect|nice|fine|wonderful|neat)|you(?:'ve| have) been (?:great|helpful|very helpful|wonderful))\b\W*)+$`)
	controlling = text.Pattern(`^/(?:clear|compact|exit|quit|q|ex|help|models?|mode|chat-mode|login|logout|config|cost|status|resume|reset|ls|tokens|settings|ide|mcp|permissions)(?: +\S+)?\s*$`)
)

// isCommand reports whether a request is one line that runs a program or a command of the one that
// runs the agent.
func isCommand(s string) bool { return len(s) < 2*minRequest && commandLike().MatchString(s) }

// commandLike is a command with a slash or an exclamation mark, and what it takes unless that is a sentence.
var commandLike = text.Pattern(`^(?:[/!][\w:-]+(?: +\S*[^\w\s]\S*)*|![\w-]+ .*|/(?:run|test|add|drop|web|read|git|commit|undo|diff|lint) .*)$`)

// isEmpty reports whether a line says nothing that is worth its room later.
func isEmpty(line string) bool {
	return len(line) < minSaid || strings.Count(line, " ") < minSaidWords && !strings.ContainsFunc(line, isUnspaced) || isPolite(line) || strings.Count(line, " | ") > 1 || claiming().MatchString(line)
}

// checkingBack begins what a customer is asked to confirm before a call, which tells the same.
var checkingBack = text.Pattern(`(?i)^(?:[^.:;]{0,30}[,.!] *)?(?:(?:just|please|to|could you|can you|kindly|let me) )*(?:re-?)?(?:confirm(?:ing)?|verify(?:ing)?)\b`)

// pronoun begins a sentence that is not understood without what was asked.
var pronoun = text.Pattern(`(?i)^(?:(?:sure|yes|yeah|no|ok(?:ay)?|of course|alright|well)\b[,.! ]*)*(?:it|it's|he|she|they|that|this|these|those|its|his|her|their|you|your|you're|you'd|the (?:\w+ )?(?:number|address|price|cost|flight|rating|phone|total|room|ticket|event|movie|bus|venue|hotel|station|apartment|appointment|reservation|rent))\b`)

// isPolite reports whether a line states nothing.
func isPolite(line string) bool {
	return polite().MatchString(line) && !strings.ContainsFunc(line, unicode.IsDigit) && !strings.Contains(line, ":") && len(namesIn(line)) == 0
}

// claiming says what the user allowed or said, which only the user's own words tell, or turns to the
// reader of the summary.
var claiming = text.Pattern(`(?i)\b(?:user|customer|owner|human)s? (?:(?:has|have|had|explicitly|already|just|also) )*(?:approved|authori[sz]ed|consented|permitted|allowed|granted|signed off|gave (?:permission|approval)|said|told)\b|` +
	`^\W*(?:system|developer) ?:|\b(?:ignore|disregard|forget|override) (?:all |any |the |your |of )*(?:previous|prior|above|earlier) (?:instructions?|prompts?|rules|messages?)\b`)

// polite is a line without a statement.
var polite = text.Pattern(`(?i)^(?:(?:sure|of course|no problem|no worries|certainly|absolutely|thank you|thanks|great|my pleasure|you're welcome|farewell|good ?bye|take care|have (?:a|an|fun)\b|enjoy\b|see you\b|i(?:'m| am)? (?:hope|wish|glad|happy)\b|is there anything)[^.!?]*[.!?] *)*(?:(?:i can (?:help|assist)|i'd be (?:happy|glad)|i'm (?:happy|glad)|you're welcome|to (?:assist|help|proceed)|once (?:i have|you (?:provide|confirm))|please (?:provide|let me)|could you|let me)\b.*)?$`)

// opening is the number of an entry of a list, or the interjection, that a line begins with.
var opening = text.Pattern(`(?i)^(?:\d{1,2}[.)] +|(?:ah|oh|hmm+|wait|ok(?:ay)?(?: so)?|so|great|good|perfect|right|actually|i see|got it)\b *[,.!:—-]+ *)+`)

// maxWholeAnswer is the number of lines of an answer of which all are kept, also those that say
// nothing alone.
const maxWholeAnswer = 8

// addLastAnswer adds the answer of the last turn.
func (s *history) addLastAnswer(b *itemList) {
	t := s.currentTurn()
	pending := lastQuestion(t.lastText)
	last := s.lastCall()
	stuck := last != nil && last.failed && last.blocks()
	long := len(t.lines)-t.lastStart > maxWholeAnswer
	for j, line := range t.lines { // what is said last is read as a whole, unless it is long
		if pending != "" { // it stands with what is pending
			line = strings.TrimSpace(strings.Replace(line, pending, "", 1))
		}
		if line == "" || claiming().MatchString(line) || last != nil && slices.ContainsFunc(sentences(line), isIntention) || j < t.lastStart && isIntention(line) || (j < t.lastStart || j > t.lastStart && long) && isEmpty(line) {
			continue
		}
		text := formatEntry(truncate(line, b.lineLimit))
		switch {
		case j == t.lastStart:
			b.add(sectionState, text, worthState).tier = tierState
		case j > t.lastStart:
			b.add(sectionState, text, 0).tier = tierOpen
			b.weigh(worthStateLine * decay(j-t.lastStart, 6))
		default:
			b.add(sectionFindings, text, worthSaid*min(1, float64(len(text))/usualLine))
		}
	}
	if last != nil && !stuck {
		if next := t.intention(); next != "" {
			b.add(sectionState, saidLastMark+truncate(next, b.lineLimit)+"\n", worthState).tier = tierErrors
		}
		text := lastCallMark + strings.TrimPrefix(strings.TrimSuffix(last.line(b.lineLimit), "\n"), bulletMark)
		if found := last.listed(b.listLimit); found != "" && last.chosen < 0 { // the user may not know it yet
			text += " → " + found
		} else if last == s.innerOf {
			text = truncate(text, b.lineLimit) + innerObjects(s.inner)
		}
		b.add(sectionState, truncate(text, b.lineLimit+b.listLimit)+"\n", worthState).tier = tierState
	}
	files := editedFiles(s.calls[max(0, len(s.calls)-t.calls):])
	addFiles := func(mark string, files []string) {
		b.add(sectionState, truncate(mark+strings.Join(files, ", "), max(b.lineLimit*2/3, minExcerpt))+"\n", worthState).tier = tierState
	}
	open, mark := s.uncommitted()
	switch {
	case len(files) > 0 && !slices.Equal(open, files):
		addFiles(editedForMark, files)
	case last != nil && len(last.paths) > 0 && len(open) == 0:
		addFiles(nothingEdited, nil)
	}
	if len(open) > 0 {
		addFiles(mark, open)
	}
}

// intention returns the last sentence of the last message that says what comes next, "" for none.
func (t *turn) intention() string {
	for _, line := range slices.Backward(t.lines[t.lastStart:]) {
		for _, x := range slices.Backward(sentences(line)) {
			if intending().MatchString(x) {
				return strings.TrimRight(x, ":：")
			}
		}
	}
	return ""
}

// lastCall returns the last call if it followed the last message and has a result, or nil.
func (s *history) lastCall() *toolCall {
	if t := s.currentTurn(); t.calls > t.callsBefore && len(s.calls) > 0 && s.calls[len(s.calls)-1].done {
		return s.calls[len(s.calls)-1]
	}
	return nil
}

// uncommitted returns the names of the files that were edited after the last commit, or of all if there
// is none, the newest first, and the mark of their line.
func (s *history) uncommitted() (files []string, mark string) {
	for i, c := range slices.Backward(s.calls) {
		if c.committed && !strings.HasPrefix(c.outcome, resetLater) {
			return editedFiles(s.calls[i:]), uncommittedMark
		}
	}
	files = editedFiles(s.calls)
	for _, f := range s.edited {
		files = appendNew(files, f)
	}
	return files, cmp.Or(s.uncommittedAs, uncommittedAllMark)
}

// editedFiles returns the names of the files that calls edited, the newest first.
func editedFiles(calls []*toolCall) []string {
	var files []string
	for _, c := range slices.Backward(calls) {
		if !c.done || c.failed || !c.changes {
			continue
		}
		for _, p := range c.paths {
			if name := path.Base(p); !slices.Contains(files, name) {
				files = append(files, name)
			}
		}
	}
	return files
}

// addPlan adds the plan that the user approved for the active task, if that says what to do or
// follows the one that does.
func (s *history) addPlan(b *itemList) {
	at := s.activeTurn()
	for i, t := range slices.Backward(s.turns) {
		if len(t.plan) > 0 {
			plan := b.add(sectionTask, planMark+truncate(t.plan[0], b.lineLimit)+"\n", worthTodo)
			plan.tier = tierState
			for _, step := range t.plan[1:] {
				it := b.add(sectionTask, indentMark+formatEntry(truncate(step, b.lineLimit)), worthPasted)
				it.tier, it.parent = tierDemands, plan
			}
			return
		}
		if i <= at && len(t.request.head) >= minRequest {
			return
		}
	}
}

// statements returns a line without the sentences that are listed as decisions or reasons, and
// without questions, which were answered.
func (s *history) statements(line string) string {
	if slices.Contains(s.decisions, line) {
		return ""
	}
	var rest []string
	all := sentences(line)
	for _, x := range all {
		if !isQuestion(x) && !slices.Contains(s.decisions, x) && !slices.Contains(s.reasons, x) {
			rest = append(rest, x)
		}
	}
	if len(rest) == len(all) {
		return line
	}
	return strings.Join(rest, " ")
}
