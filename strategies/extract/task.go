package extract

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

const (
	// maxLeadingItems is the maximum number of items that leadingItems returns.
	maxLeadingItems = 20
	// maxGoalTurns is the number of turns after which the first request is no longer taken
	// for the goal of what is done now.
	maxGoalTurns = 2
	// maxBefore is the maximum number of requests that beforeActive returns.
	maxBefore = 3
	// minRequest is the size, in bytes, of a request that is understood without those
	// before it, unlike "Go on".
	minRequest = 40
	// onlyTaskShare is the share of the prose of a task that is all that was asked for.
	onlyTaskShare = 0.55
	// maxShort is that of one that may answer a question.
	maxShort = 160
)

// leadingItems returns the items that come before all others: the active task and the goal.
func (s *history) leadingItems(budget int) []*item {
	var out []*item
	add := func(sec section, text string) {
		out = append(out, &item{section: sec, share: sec, text: text})
	}
	bodySize := func(sec section, minimum int) int {
		return max(int(sectionTable[sec].share*float64(budget)), minimum) - len(sectionTable[sec].heading) - 1
	}
	at := s.activeTurn()
	var active request
	if at >= 0 {
		active = s.turns[at].request
		for first, rest, ok := strings.Cut(active.head, "\n"); ok && (controlling().MatchString(first) || first == ""); first, rest, ok = strings.Cut(rest, "\n") {
			active.head = rest // which is no part of what is asked for
		}
		size := bodySize(sectionTask, min(budget, 100))
		if whole := active.quoted(); s.isOnlyTask() && !s.isPlanned() { // the files of a plan are listed below
			size = max(size, int(onlyTaskShare*float64(budget)))
		} else {
			size = max(size, min(whole, budget/2))
		}
		add(sectionTask, active.quote(size))
	}
	closed := at >= 0 && s.turns[at].calls == 0 && s.asksForNothing(at) && (isSmallTalk(active.head) || s.closes(active.head))
	if closed {
		add(sectionTask, closedLine)
	}
	if at >= 0 && s.byDay && s.turns[at].day != "" {
		add(sectionTask, onMark+s.turns[at].day+"\n")
	}
	if !s.goal.empty() && s.isGoal(s.goal) {
		add(sectionGoal, s.goal.quote(bodySize(sectionGoal, min(budget/4, maxExcerpt))))
	}
	before := s.beforeActive()
	replied := s.repliedTo(at, active.head, before)
	for i, l := range replied {
		l = bulleted().ReplaceAllString(strings.ReplaceAll(withoutFarewell(l), "**", ""), "")
		limit := max(min(budget/10, budget/4/len(replied)), minExcerpt)
		if q := lastQuestion(l); i == 0 && q != "" && text.Longer(l, limit) && !prose.IsQuestion(prose.FirstSentence(l)) && !pointing().MatchString(q) { // what it asks comes before what it says
			l = q
		}
		if l = prose.Truncate(l, limit); i == 0 {
			add(sectionTask, repliesMark+l+"\n")
		} else {
			add(sectionTask, indentMark+formatEntry(l))
			out[len(out)-1].repeats = true // the request may name what it picks
		}
	}
	if t := s.currentTurn(); !closed && at == len(s.turns)-1 && len(s.calls) > 0 && t.calls == t.callsBefore && len(t.lines) > 0 && pendingQuestion(t.lastText) == "" && !isIntention(strings.TrimPrefix(t.lines[len(t.lines)-1], belowMark)) {
		add(sectionTask, s.answered())
	}
	for n, i := range slices.Backward(before) {
		room := max(budget/6, 2*minRequest)
		if n == 0 { // most of what is asked for now
			left := bodySize(sectionTask, 0) - len(beforeMark) - 1
			for _, it := range out {
				if it.section == sectionTask {
					left -= len(it.text)
				}
			}
			room = max(room, left, min(maxShort, budget/3))
		}
		add(sectionTask, beforeMark+prose.Truncate(prose.OneLine(cmp.Or(withoutCommands(s.turns[i].request.head), s.turns[i].request.head)), room)+"\n")
		out[len(out)-1].share = sectionRequests // where it stands else
	}
	return slices.DeleteFunc(out, func(it *item) bool { return it.text == "" })
}

// repliedTo returns the lines of the assistant without which request at, which begins with head, is not understood: the
// question first, below it what it offers. The requests before it that are told with it are before.
func (s *history) repliedTo(at int, head string, before []int) []string {
	if at <= 0 || s.supplies(at) || !s.needsContext(at, head) {
		return nil
	}
	said, asked := s.turns[at-1].lastText, s.turns[at].asked
	last, replied := prose.Lines(said), answeredLines(said, head)
	choice := len(last) > 0 && choiceLine().MatchString(last[len(last)-1].Text)
	switch {
	case len(replied) > 0:
	case counting().MatchString(head):
		if !slices.Contains(before, at-1) { // whose answer stands with it
			replied = countedEntries(said, head)
		}
	case choice || asked == "" && (referring().MatchString(head) || picking().MatchString(head)):
		replied = options(prose.SplitLines(said))
	}
	if len(replied) == 0 && len(last) > 0 && !last[len(last)-1].Row {
		goesOn := !s.isRecords() && (agreeing().MatchString(head) || pointing().MatchString(head) || s.takesUp(head))
		if end := last[len(last)-1].Text; goesOn || requesting().MatchString(end) || checkingBack().MatchString(end) {
			for len(last) > 1 && isPolite(last[len(last)-1].Text) {
				last = last[:len(last)-1]
			}
			replied = []string{cmp.Or(lastQuestion(said), last[len(last)-1].Text)}
		}
	}
	replied = slices.DeleteFunc(replied, func(l string) bool { // listed as such, not to be believed, or a greeting
		return slices.Contains(s.decisions, l) || claiming().MatchString(l) || welcoming().MatchString(l)
	})
	if n := len(replied) - 1; n > 0 && prose.IsQuestion(replied[n]) {
		replied = slices.Insert(slices.Clone(replied[:n]), 0, replied[n])
	}
	return replied
}

// needsContext reports whether request at, which begins with head, may not be understood without what was said before.
func (s *history) needsContext(at int, head string) bool {
	return len(head) < minRequest || len(head) < maxShort &&
		(len(s.files) == 0 && (pointing().MatchString(head) || s.takesUp(head)) || s.turns[at].asked != "" || referring().MatchString(head))
}

// withdraw marks the request that the user interrupted before anything was done about it, and asks for something else now.
func (s *history) withdraw(said string) {
	n := len(s.turns)
	if n < 2 || continuing().MatchString(said) && !prose.ContainsWord(said, "instead") || !strings.HasPrefix(s.turns[n-1].request.head, interruption) || s.turns[n-1].calls > 0 || len(s.turns[n-1].lines) > 0 {
		return
	}
	t := s.turns[n-2]
	if t.calls > 0 || len(t.lines) > 0 || IsGenerated(t.request.head) {
		return
	}
	s.decisions = slices.DeleteFunc(s.decisions, func(x string) bool { return x == agreed(t.asked, t.request.head) })
	t.lines, t.demands, t.asked = []string{interrupted}, nil, ""
}

// interruptedLast returns 1 if the newest message tells that the user stopped the program, else 0.
func (s *history) interruptedLast() int {
	if n := len(s.turns); n > 1 && strings.HasPrefix(s.currentTurn().request.head, interruption) && s.currentTurn().calls == 0 && len(s.currentTurn().lines) == 0 {
		return 1
	}
	return 0
}

// continuing begins a request that adds to the one before.
var continuing = text.Pattern(`(?i)^\W*(?:(?:sorry|ok(?:ay)?|please|yes|oops)\b\W*)*(?:continue|go on|keep going|proceed|resume|carry on|also|and)(?:[\s,!]|\.?$)`)

// interruption begins what the program of an agent notes when the user stops it.
const interruption = "[Request interrupted by user"

// interrupted is told as the answer to a request that was interrupted.
const interrupted = "Interrupted by the user at once."

// bulleted is the mark before an entry of a list or a heading.
var bulleted = text.Pattern(`^\s*(?:[-*•+#]+\s+)+`)

// taskSize returns the size of the whole active task, in characters.
func (s *history) taskSize() int {
	if at := s.activeTurn(); at >= 0 {
		return s.turns[at].request.quoted()
	}
	return 0
}

// isPlanned reports whether the active task is divided by headings.
func (s *history) isPlanned() bool {
	at := s.activeTurn()
	return at >= 0 && isPlan(prose.SplitLines(s.turns[at].request.head))
}

// isOnlyTask reports whether at most one thing was ever asked for.
func (s *history) isOnlyTask() bool {
	asked := 0
	for _, t := range s.turns {
		if !t.request.empty() && !IsGenerated(t.request.head) {
			asked++
		}
	}
	return asked <= 1
}

// supplies reports whether a request tells what the assistant asked for, in words that need no question.
func (s *history) supplies(i int) bool {
	said, asked := s.turns[i].request.head, s.turns[i].asked
	gives := strings.ContainsFunc(said, unicode.IsDigit) // an id, a date
	if asked == "" && (gives || !prose.IsQuestion(said)) {
		asked = needing().FindString(text.Tail(s.turns[i-1].lastText, maxLine))
	}
	return len(said) >= minRequest && supplying().MatchString(asked) && (gives || !agreeing().MatchString(said)) &&
		!referring().MatchString(said) && !picking().MatchString(said)
}

// needing is how the assistant asks for it without a question.
var needing = text.Pattern(`(?i)\b(?:i(?:['’]ll| will| would)? (?:also )?need|please (?:provide|share|tell me|give me))\b(?: \w+){0,3}? your\b|\bi(?:['’]ll| will| would)? (?:also )?need (?:the|some|a few) (?:following )?(?:\w+ )?(?:information|details)\b`)

// takesUp reports whether a request of a chat goes on from what was said before it, which may name what it is about.
func (s *history) takesUp(said string) bool { return s.isChat() && takingUp().MatchString(said) }

// takingUp is in a request that approves of what was said, or names it by a place only.
var takingUp = text.Pattern(`(?i)(?:^|[.!?] )\W*(?:(?:das|es|dies|that|ça|cela|eso|esto|me|suona|isso)\b ?)?(?:klingt|hört sich|gefällt|passt|sounds|looks|suena|gusta|parece|va bien|me va)\b|(?:^|\P{L})(?:da|dort|dahin|dorthin|davon|(?:call|go|going|book|stay|eat|ring|from|over) there|allí|ahí|là-bas|den ersten|die erste|das erste)(?:\P{L}|$)|(?:それ|そこ|那里|那家|那个|那就|就这)`)

// supplying is in a question for what only the user knows.
var supplying = text.Pattern(`(?i)\b(?:provide|share|tell me|give me|let me know|need|what(?:'s| is| are))\b(?: \w+){0,3}? your\b`)

// referring begins a request about what was said before.
var referring = text.Pattern(`(?i)^(?:(?:yes|yep|yeah|ok(?:ay)?|no|please|can|could|would|you|let'?s|and|now|then|just|also|go|to|try)\b[ ,]*)*\w+ (?:all |both |each )?(?:of )?(?:them|it|these|those|this|that)\b`)

// pendingQuestion returns the question that the end of a text waits for, "" if that is only whether
// anything else is wanted.
func pendingQuestion(s string) string {
	if q := lastQuestion(s); !anythingElse().MatchString(q) {
		return q
	}
	return ""
}

// asksForNothing reports whether a turn replies to no question, or to that whether anything else is wanted.
func (s *history) asksForNothing(i int) bool {
	q := s.turns[i].asked
	if i > 0 && q == "" {
		q = lastQuestion(s.turns[i-1].lastText)
	}
	return q == "" || anythingElse().MatchString(q)
}

var anythingElse = text.Pattern(`(?i)\b(?:any(?: ?thing)?|something|what) (?:else|more|other|further)\b|\banything\b.*\b(?:help|assist|do for you)\b|\bmore help\b|\bfurther (?:help|assist(?:ance)?)\b|\bhelp with (?:another|other) things?\b`)

// answered returns the line for a task that the last message answers, or about which it asks back.
func (s *history) answered() string {
	t := s.currentTurn()
	if slices.ContainsFunc(t.lines[t.lastStart:], func(l string) bool {
		return s.isRecords() && (checkingBack().MatchString(l) || requesting().MatchString(l)) || slices.ContainsFunc(prose.Sentences(l), func(x string) bool {
			return prose.IsQuestion(x) && addressing().MatchString(x) && !anythingElse().MatchString(x)
		})
	}) {
		return askedBackLine
	}
	return answeredLine
}

// welcoming is in a greeting of the assistant.
var welcoming = text.Pattern(`(?i)\bhow (?:can|may|could) i (?:help|assist)(?: you)?(?: today)?\W*$`)

// requesting is in what asks the user for something without a question.
var requesting = text.Pattern(`(?i)\b(?:(?:please|first|just) (?:tell|give|send|let) me\b|tell me (?:how|what|where|when|which|who|if)\b|i need to know\b)`)

// addressing is in a question to the user.
var addressing = text.Pattern(`(?i)\b(?:you|your|(?:shall|should|may|can) i)\b`)

// beforeActive returns the indices of the turns whose requests say what the active one refers to,
// the newest first: those before it up to one that is understood alone, or to the end of a topic.
func (s *history) beforeActive() []int {
	var out []int
	at := s.activeTurn()
	refers := func(t *turn, most int) bool {
		return len(t.request.head) < minRequest || len(t.request.head) < most && (t.asked != "" || counting().MatchString(t.request.head) || likening().MatchString(t.request.head))
	}
	short := at > 0 && refers(s.turns[at], maxShort)
	for i := at - 1; short && i >= 0 && len(out) < maxBefore; i-- {
		r := s.turns[i].request
		if r.empty() || IsGenerated(r.head) || s.turns[i].program || s.isResent(i) {
			continue
		}
		if s.isGoal(r) || isSmallTalk(r.head) || s.closes(r.head) || s.isRecords() && s.turns[i].day != s.turns[at].day { // of another visit
			break
		}
		if s.turns[i].asked == "" || s.isRecords() || counting().MatchString(s.turns[at].request.head) { // else it stands with its question
			out = append(out, i)
		}
		short = refers(s.turns[i], 2*minRequest)
	}
	return out
}

// likening begins a request for what the one before asks for.
var likening = text.Pattern(`(?i)^\W*(?:(?:and|now|ok(?:ay)?|then|also|well|do|please)\b\W*)*(?:the )?same (?:for|with|in|on|here|thing|as|way|again)\b`)

// counting refers to things that were listed before, and has their number.
var counting = text.Pattern(`(?i)\b(both|all (?:of (?:them|these|those|it)|two|three|four|five|\d{1,2}))\b`)

// countedEntries returns the entries of the last list in a text with numbers, if a request refers to as many things.
func countedEntries(s, request string) []string {
	m := counting().FindStringSubmatch(request)
	if m == nil {
		return nil
	}
	list, number := options(prose.SplitLines(s)), strings.TrimPrefix(strings.ToLower(m[1]), "all ")
	if len(list) == 0 || !beginsList(list[0]) { // it has more
		return nil
	}
	if n, known := numberWords[number]; known && n == len(list) || number == strconv.Itoa(len(list)) || number != "of it" && strings.HasPrefix(number, "of ") {
		return list
	}
	return nil
}

// numberWords are the words of counting for numbers.
var numberWords = map[string]int{"both": 2, "two": 2, "three": 3, "four": 4, "five": 5}

// isGoal reports whether a request is the first one, and recent enough to be the goal of what is
// done now.
func (s *history) isGoal(r request) bool {
	if r != s.goal || s.longAgo {
		return false
	}
	at, requests := s.activeTurn(), 0
	for _, t := range s.turns[:max(at, 0)] {
		if !t.request.empty() {
			requests++
		}
	}
	return requests <= maxGoalTurns && (at < 0 || s.turns[at].request != r)
}

// activeTurn returns the index of the newest turn with a request that a person wrote. If there
// is none, it is the oldest instruction that a program wrote, else the newest with a request, or -1.
func (s *history) activeTurn() int {
	newest, oldest, control := -1, -1, -1
	for i, t := range slices.Backward(s.turns) {
		switch {
		case t.request.empty():
		case len(s.files) > 0 && controlling().MatchString(t.request.head): // to the program of an agent that works on files
			control = max(control, i)
		case !IsGenerated(t.request.head) && !t.program:
			return i
		case !IsGenerated(t.request.head):
			oldest = i
		case newest < 0:
			newest = i
		}
	}
	if oldest >= 0 {
		return oldest
	}
	return max(newest, control)
}
