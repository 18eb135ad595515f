package extract

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/strategies/extract/internal/argument"
	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/extract/internal/toolresult"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// Bounds of a history: numbers of entries, characters of texts.
const (
	maxTurns       = 500
	maxWhole       = 64  // turns that are kept whole, the newest
	maxOldRequest  = 240 // of the others
	maxOldLines    = 2
	maxTurnLines   = 48
	maxLine        = prose.MaxLine
	maxRequest     = 4000
	maxReply       = 6000
	maxFiles       = 2048
	maxCalls       = 500
	maxOpenCalls   = 256
	maxNotes       = 64
	maxDescription = 240
)

const (
	// minSentence is the size, in bytes, above which a sentence is informative by itself.
	minSentence = 10
	// minGoal is the size, in bytes, below which a request may be a greeting only.
	minGoal = 20
)

// history records the course of the conversation. Lists are in order, and their oldest
// entries are dropped first.
type history struct {
	// previous holds the entries of an earlier summary by section.
	previous map[section][]entry
	// previousAt is the number of messages when an entry, or a reason, was added.
	previousAt map[string]int
	// goal is the first request, goalProgram that a program wrote it.
	goal        request
	goalProgram bool
	// command is that of the user to the program of the agent in the last message, launched that a skill was
	// loaded by it: its text follows as a message of the user.
	command  string
	launched bool
	// toldGoal is the goal as a summary of another program tells it.
	toldGoal string
	// longAgo reports that an earlier summary no longer took it for the goal.
	longAgo bool
	turns   []*turn
	// restored is the number of turns at the end that the task of an earlier summary holds.
	restored int
	// wereRecords reports that an earlier summary tells requests and actions together.
	wereRecords bool
	// spoken reports that there was a message of the assistant.
	spoken bool
	text   textCalls
	// folder is that of the work, see inFolder.
	folder string
	// messages is the number of messages, requests that of the user's.
	messages, requests int
	// withCode is the number of messages with fenced text or the prompt of a shell.
	withCode int
	// day is the date of the newest message, "" if it is not known; byDay reports that there are
	// several.
	day   string
	byDay bool
	// at is the time of the newest message that has one, firstAt and lastAt are the earliest
	// and the latest time.
	at, firstAt, lastAt time.Time
	files               map[string]*file
	calls               []*toolCall
	// dropped is the number of actions that are not among the calls any more, or had no room in an earlier
	// summary.
	dropped  int
	unjudged *toolCall // whose result came last, until the next message
	shown    output    // the newest of those that say nothing of what was done
	unlinked []string  // lines of failures in an output without a call, since the last message
	// edited are the files that an earlier summary tells as not committed, with the mark uncommittedAs.
	edited        []string
	uncommittedAs string
	// saidBefore is the number of lines of the current turn that were said before the newest edit of a file that was
	// there, lackedBefore before that of any.
	saidBefore, lackedBefore int
	// discarded are the files whose edits were discarded since the last commit, discardedBy is the call that did it last, and
	// stashed the one that put them aside, nil for none; discards reports that a command may have taken edits out since.
	discarded            []string
	discardedBy, stashed *toolCall
	discards             bool
	derived              derived
	removed, touched     map[string]touch // names that edits took out and changed
	gone                 map[string]int   // files that are, by message
	// openCalls are the calls without a result.
	openCalls []*toolCall
	// listings are the newest calls that returned several objects.
	listings []*toolCall
	found    *toolCall // the newest call that found one thing only, nil for none
	// offeredBy is the call of whose other value the user was asked last, until the next request.
	offeredBy *toolCall
	// discussed is the one of which an option was named last, nil for none.
	discussed *toolCall
	todos     []string // open tasks
	tasksLeft int      // the number of others that had no room in an earlier summary
	// moreFinished reports that not all tasks that were done had room in one.
	moreFinished bool
	finished     []string // tasks that were done
	todosAt      int      // the number of messages before their list
	// constraints are demands of the user that hold, decisions say which of several ways was
	// taken, and reasons why something is so.
	constraints []string
	decisions   []string
	reasons     []string
	// editedAt is the number of messages up to the newest edit, checkedAt up to the newest that a commit or a check
	// that passed followed.
	editedAt, checkedAt int
	// proposed is the number of decisions at the end that the user has not replied to.
	proposed int
	// suggested are choices since the user's last message that nobody has said to be taken.
	suggested []string
	facts     []fact
	offered   []fact          // of the assistant since the user's last message
	names     map[string]bool // words that the facts of the user name
	// acts and looks are those of the Options.
	acts, looks []string
	// failed and succeeded match lines with the texts of the Options, nil for none.
	failed, succeeded *regexp.Regexp
	// handles are open, in the order in which they were opened.
	handles []handle
	// closed are tasks that were done, and may be taken up again.
	closed []handle
}

// request is a message of the user, in full or, if it is too long, its head and tail.
type request struct{ head, tail string }

func (r request) empty() bool { return r.head == "" }

// turn is a request and the answers to it.
type turn struct {
	request request
	// after is the number of requests up to it, of a toolCall that of those before it.
	after int
	// day is the date of the request, "" if it is not known.
	day string
	// program reports that the request is an instruction that a program wrote.
	program bool
	// document reports that it is one that the user passed on.
	document bool
	// asked is the question of the assistant that the request answers.
	asked string
	// lines are lines of the assistant; those from lastStart on are of its last message.
	lines     []string
	lastStart int
	// lastText is the end of its last message.
	lastText string
	// lastAt is the number of messages up to it.
	lastAt int
	// calls is the number of tool calls, callsBefore that before its last message.
	calls, callsBefore int
	// demands are those of the request that are not constraints.
	demands []demand
	// plan is the title and the steps of the plan that the user approved last.
	plan []string
}

// file counts the calls with a file as an argument; last is the number of the message with
// the newest.
type file struct {
	path           string
	reads, changes int32
	created        bool // by a call
	last           int
	changed        int      // the number of the message with the newest change
	declares       []string // names in the texts of its calls
}

// toolCall is a tool call; done reports whether it has a result.
type toolCall struct {
	id, tool, description string
	day                   string    // see history
	after                 int       // the number of requests before it
	at                    time.Time // see history
	paths                 []string
	changes               bool // it changes files
	acts                  bool // it changes something else, or may
	isShell               bool // it has a command
	runsToo               bool // it changes files by a shell and runs something besides
	administers           bool // it sets tasks or a mode of the agent, or loads a text for it
	undone                bool // it did nothing, although no failure was reported
	expected              bool // its failure was to be expected
	commits               bool // it is a commit
	committed             bool // it left nothing to commit
	kept                  bool // the user agreed to what it found
	newest                bool // it is the newest listing
	single                bool // it found one thing only
	onlyCommits           bool // besides checks
	done, failed          bool
	outcome               string
	// arguments and result are their short values; result is nil unless it is one object.
	arguments, result []argument.Field
	// options are the objects of a listing.
	options []option
	// chosen is the index of the option that was talked about last, or -1.
	chosen int
	// failures are the lines of the result that report one.
	failures []string
	// command and fields are the beginning of its command and its short values, until it has a
	// result.
	command string
	fields  []argument.Field
	change  *change // of its files, nil for none
	// plan is the beginning of the plan that it proposes to the user, "" for none.
	plan string
}

// tick sets the time of the messages that follow.
func (s *history) tick(at time.Time) {
	if s.at.IsZero() || at.Before(s.firstAt) {
		s.firstAt = at
	}
	if at.After(s.lastAt) {
		s.lastAt = at
	}
	s.at = at
	day := at.Format(time.DateOnly)
	s.byDay = s.byDay || s.day != "" && s.day != day
	s.day = day
}

// dayOf returns the date of turn i for the heading above it, that of the turn before it if it is not
// known; "" if all was said on one day and no action stands with it.
func (s *history) dayOf(i int) string {
	if s.byDay || s.isRecords() {
		for _, t := range slices.Backward(s.turns[:i+1]) {
			if t.day != "" {
				return t.day
			}
		}
	}
	return ""
}

func (s *history) currentTurn() *turn {
	if len(s.turns) == 0 {
		s.turns = append(s.turns, &turn{})
	}
	return s.turns[len(s.turns)-1]
}

// addUser adds a user message, given by its head and its tail, which are the same text
// unless it is very long.
func (s *history) addUser(head, tail string) {
	s.text.pending, s.text.asked = "", false
	s.takeOpen(textID) // nothing comes of it any more
	r := newRequest(head, tail)
	if len(prose.SplitLines(r.head)) == 0 {
		return
	}
	command, program := s.instruction(head)
	said := head // by the user
	switch {
	case command != "":
		r, said = request{head: command}, command
	case program:
		said = ""
	}
	if refuting().MatchString(text.Head(said, maxLine)) {
		s.dropClaims()
	}
	s.readReply(said)
	s.unjudged, s.unlinked, s.saidBefore, s.lackedBefore = nil, nil, 0, 0
	if strings.HasPrefix(r.head, "<") { // a notification
		s.readReport(r.head, func(h handle) bool { return len(h.id) >= minHandleID && prose.ContainsWord(r.head, h.id) })
	}
	s.requests++
	asked := lastQuestion(s.currentTurn().lastText)
	if asked != "" && !answers(asked, said) {
		asked = ""
	}
	var demands []demand
	if !IsGenerated(head) {
		s.withdraw(said)
		if head := text.Head(said, maxLine); rejecting().MatchString(head) || len(s.files) == 0 && overrules(lastQuestion(s.currentTurn().lastText), head) {
			s.reject(said)
		}
		s.proposed = 0
		for _, x := range s.suggested {
			if agreeing().MatchString(said) {
				s.decisions = appendNew(s.decisions, x)
			} else {
				s.addReason(x)
			}
		}
		s.suggested = nil
		for _, x := range chosen(s.currentTurn().lastText, said) {
			s.decisions = appendNew(s.decisions, x)
		}
		if x := agreed(asked, said); x != "" && len(s.files) > 0 { // of a customer, the calls tell
			s.decisions = appendNew(s.decisions, x)
		}
		if s.goal.empty() || s.goalProgram || !program && len(s.goal.head) < minGoal && len(r.head) >= minGoal && len(s.turns) <= 3 {
			s.goal, s.goalProgram = r, program
		}
		demands = s.readDemands(head, program || command != "")
		if isDocument(r.head) {
			for _, x := range listedBelow(decisionHeading(), r.head) {
				s.decisions = appendNew(s.decisions, x)
			}
		}
		if command != "" { // which text the command stands for
			demands = slices.Insert(demands, 0, demand{text: strings.Clone(prose.Truncate(prose.FirstLine(head), maxLine)), pasted: true, rule: true})
		}
		if !r.isOutput() && !program && command == "" {
			own, _ := typed(head)
			s.addUserFacts(own)
		}
	}
	if !s.spoken && IsOutput(tail) { // the task ends as the outputs will
		s.text.returned = true
		s.text.readPrompt(tail)
	}
	if last := s.currentTurn(); last.request.empty() && len(last.lines) == 0 && last.calls == 0 {
		last.request, last.document, last.program, last.after, last.day, last.demands, last.asked = r, isDocument(r.head), program, s.requests, s.day, demands, asked
		return
	}
	if len(s.turns) == maxTurns { // the first turn is kept
		s.turns = slices.Delete(s.turns, 1, 2)
	}
	s.turns = append(s.turns, &turn{request: r, document: isDocument(r.head), program: program, after: s.requests, day: s.day, demands: demands, asked: asked})
	if i := len(s.turns) - 1 - maxWhole; i > 0 {
		s.turns[i].shorten()
	}
}

// dropClaims drops what the last message said, which is not so.
func (s *history) dropClaims() {
	s.dropSaid(s.currentTurn())
	s.offered = nil
}

// dropSaid drops what was said in a turn, with what it decided and the reasons of its last message.
func (s *history) dropSaid(t *turn) {
	s.decisions = slices.DeleteFunc(s.decisions, func(x string) bool {
		return slices.ContainsFunc(t.lines, func(l string) bool { return strings.Contains(l, x) })
	})
	s.proposed = min(s.proposed, len(s.decisions))
	s.reasons = slices.DeleteFunc(s.reasons, func(x string) bool { return s.previousAt[x] == t.lastAt })
	t.lines, t.lastStart = nil, 0
}

// shorten drops what is seldom asked for of an old turn.
func (t *turn) shorten() {
	_, said := t.request.said()
	t.request = request{head: strings.Clone(prose.Truncate(said, maxOldRequest))}
	t.lines = slices.Clone(t.lines[t.lastStart:min(len(t.lines), t.lastStart+maxOldLines)])
	t.lastStart, t.lastText = 0, ""
}

// newRequest copies a user message, or its ends if it is too long.
func newRequest(head, tail string) request {
	if head == tail && !text.Longer(head, maxRequest) {
		return request{head: strings.Clone(head)}
	}
	return request{head: strings.Clone(text.Head(head, maxRequest*3/4)), tail: strings.Clone(text.Tail(tail, maxRequest/4))}
}

// isOutput reports whether the request ends with the prompt of a shell.
func (r request) isOutput() bool { return prompting().MatchString(cmp.Or(r.tail, r.head)) }

// addAssistant adds a message of the assistant, given by its head and its tail.
func (s *history) addAssistant(head, tail string) {
	s.text.pending = ""
	if strings.TrimSpace(head) == "" {
		return
	}
	if t := s.currentTurn(); t.calls == 0 && running().MatchString(t.request.head) && isPrinted(head) {
		lines, _ := toolresult.FailureLines(head, tail)
		s.unlinked = append(s.unlinked[:min(len(s.unlinked), toolresult.MaxFailures)], lines...)
		return
	}
	s.mention(head)
	s.readOutcome(head)
	s.spoken, s.unlinked, s.command, s.launched = true, nil, "", false
	t := s.currentTurn()
	if n := len(s.turns); n > 1 && t.calls == 0 && len(t.lines) == 0 && s.turns[n-2].contradicts(head) {
		s.turns[n-2].lines, s.turns[n-2].lastStart = nil, 0
	}
	t.callsBefore = t.calls
	lines := prose.Lines(text.Head(head, maxReply))
	if len(lines) > 1 && len(lines[0].Text) <= minSentence && strings.HasSuffix(lines[0].Text, "!") { // "Perfect!" is no state
		lines = lines[1:]
	}
	if over := len(t.lines) + len(lines) - maxTurnLines; over > 0 && len(t.lines) > 0 {
		over = min(over, len(t.lines))
		t.lines, s.saidBefore, s.lackedBefore = slices.Delete(t.lines, 0, over), s.saidBefore-over, s.lackedBefore-over
	}
	t.lastStart = len(t.lines)
	for _, line := range headed(lines[:min(len(lines), maxTurnLines)]) {
		t.lines = append(t.lines, strings.Clone(line))
	}
	t.lastText, t.lastAt = strings.Clone(text.Tail(tail, maxReply)), s.messages
	for _, x := range listedBelow(decisionHeading(), text.Head(head, maxReply)) {
		s.propose(x)
	}
	said := make([]string, len(lines))
	for i, line := range lines {
		if said[i] = line.Text; slices.Contains(s.decisions, line.Text) {
			continue
		}
		all := prose.Sentences(line.Text)
		for i, x := range all {
			switch {
			case !isDecision(x):
			case isChoice(choosing(), x):
				s.propose(x)
			case isChoice(comparing(), x):
				s.suggested = appendNew(s.suggested, x)
			case i > 0 && referringBack().MatchString(x) && len(all[i-1])+len(x) < maxLine: // not understood without it
				s.reasons = slices.DeleteFunc(s.reasons, func(r string) bool { return r == all[i-1] })
				s.addReason(all[i-1] + " " + x)
			default:
				s.addReason(x)
			}
		}
	}
	s.readCheckboxes(head)
	s.offerFacts(strings.Join(said, "\n"))
}

// addReason adds a reason, or what is wrong.
func (s *history) addReason(reason string) {
	names := strings.ContainsAny(reason, "`\"/_()")
	if (names || strings.Count(reason, " ") >= minReasonWords) && !isEmpty(reason) && !slices.Contains(s.reasons, reason) {
		if len(s.reasons) == maxNotes {
			delete(s.previousAt, s.reasons[0]) // which goes
		}
		s.reasons = appendNew(s.reasons, reason)
		s.previousAt[strings.Clone(reason)] = s.messages
	}
}

// referringBack begins a sentence about what the one before it names.
var referringBack = text.Pattern(`(?i)^(?:(?:so|and|but|also|then|now|just) +)*(?:this|that|these|those|it|they|both|(?:the )?same|there)\b`)

// minReasonWords is the number of blanks of a reason that names nothing: "The fix is straightforward."
// says nothing.
const minReasonWords = 8

var faulty = text.Pattern(`(?i)\b(?:issue|problem|bug|broken|fails?|failing|wrong|incorrect(?:ly)?|(?:does|did|is|was)n'?t (?:work|set|called|used|handled)\w*|fix (?:is|should be|would be) to|errors? (?:is|was|out))\b`)

// propose adds a decision, which the user may reject.
func (s *history) propose(decision string) {
	if !slices.Contains(s.decisions, decision) {
		s.decisions = appendNew(s.decisions, decision)
		s.proposed = min(s.proposed+1, len(s.decisions))
	}
}

// readCheckboxes sets the tasks to the unchecked boxes of a text, if it has any.
func (s *history) readCheckboxes(text string) {
	if !strings.Contains(text, "[ ] ") {
		return
	}
	var open []string
	for _, line := range prose.SplitLines(text) {
		if _, todo, ok := strings.Cut(line, "[ ] "); ok && len(open) < maxNotes {
			open = append(open, prose.Excerpt(todo, maxLine))
		}
	}
	s.todos, s.tasksLeft, s.todosAt = open, 0, s.messages
}

// appendBounded appends to a list and drops its first element if it had limit.
func appendBounded[T any](list []T, x T, limit int) []T {
	if len(list) >= limit {
		list = slices.Delete(list, 0, 1)
	}
	return append(list, x)
}

// appendNew appends a copy of s to a list of at most maxNotes, unless s is in it.
func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return appendBounded(list, strings.Clone(s), maxNotes)
}
