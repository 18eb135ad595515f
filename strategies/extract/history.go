package extract

import (
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// Bounds of a history: numbers of things, characters of texts.
const (
	maxTurns       = 96
	maxTurnLines   = 48
	maxLine        = 300
	maxRequest     = 4000
	maxReply       = 6000
	maxFiles       = 2048
	maxCalls       = 96
	maxOpenCalls   = 256
	maxNotes       = 64
	maxDescription = 240
	maxTools       = 64
)

// minSentence is how many bytes a sentence has that says something by itself.
const minSentence = 10

// minGoal is how many bytes an ask has that may be no more than a greeting.
const minGoal = 20

// history is the course of the conversation, without the identifiers.
type history struct {
	// previous are items of an earlier summary, by section.
	previous map[section][]string
	// goal is the first ask. turns are the asks since with what was said and done.
	goal  request
	turns []*turn
	// messages were read.
	messages int
	files    map[string]*file
	calls    []*toolCall
	// openCalls are the steps that have no result yet, by call id, the latest last.
	openCalls []*toolCall
	todos     []string
	// constraints and decisions are lines, the latest last.
	constraints []string
	decisions   []string
	answers     []answeredQuestion
	tools       []*toolUse
}

// request is what the user said: its lines, or where it is too long its beginning and end.
type request struct{ head, tail string }

func (a request) empty() bool { return a.head == "" }

// turn is an ask and what came of it.
type turn struct {
	request request
	// lines are lines of the assistant, from lastStart on those of its last message.
	lines     []string
	lastStart int
	// lastText is its last message.
	lastText string
	// calls counts calls.
	calls int
}

// answeredQuestion is a question of the assistant and what the user said to it.
type answeredQuestion struct{ question, reply string }

// file is a file that a tool was called with.
type file struct {
	path           string
	reads, changes int
	last           int // the message
}

// toolCall is a call.
type toolCall struct {
	id, tool, description string
	paths                 []string
	changes, isTodoList   bool // it changes files, it writes a list of tasks
	done, failed          bool
	outcome               string
}

// toolUse counts the calls of a tool.
type toolUse struct {
	name          string
	calls, failed int
}

func (s *history) currentTurn() *turn {
	if len(s.turns) == 0 {
		s.turns = append(s.turns, &turn{})
	}
	return s.turns[len(s.turns)-1]
}

// addUser takes in a message of the user, given by its beginning and its end, which are
// the same text unless it is very long.
func (s *history) addUser(head, tail string) {
	a := newRequest(head, tail)
	if len(splitLines(a.head)) == 0 {
		return
	}
	if t := s.currentTurn(); t.lastText != "" {
		if q := lastQuestion(t.lastText); q != "" {
			s.answers = appendBounded(s.answers, answeredQuestion{q, strings.Clone(firstLine(head))})
		}
	}
	if !isGenerated(head) && (s.goal.empty() || len(s.goal.head) < minGoal && len(a.head) >= minGoal && len(s.turns) <= 3) {
		s.goal = a
	}
	if !isGenerated(head) {
		for _, line := range sentences(text.Head(head, maxRequest)) {
			if len(line) > minSentence && !text.Longer(line, maxLine) && constraintWords.matches(line) && !slices.Contains(s.constraints, line) {
				s.constraints = appendBounded(s.constraints, strings.Clone(line))
			}
		}
	}
	if last := s.currentTurn(); last.request.empty() && len(last.lines) == 0 && last.calls == 0 {
		last.request = a
		return
	}
	if len(s.turns) == maxTurns { // the first says where it began
		s.turns = slices.Delete(s.turns, 1, 2)
	}
	s.turns = append(s.turns, &turn{request: a})
}

// newRequest cuts what the user said.
func newRequest(head, tail string) request {
	if head == tail && !text.Longer(head, maxRequest) {
		return request{head: strings.Clone(head)}
	}
	return request{head: strings.Clone(text.Head(head, maxRequest*3/4)), tail: strings.Clone(text.Tail(tail, maxRequest/4))}
}

// isGenerated reports a message that a program wrote in the user's name: nothing but an
// element of markup or a remark in brackets.
func isGenerated(s string) bool {
	s = strings.TrimSpace(s)
	return len(s) > 1 && (s[0] == '<' && s[len(s)-1] == '>' || s[0] == '[' && s[len(s)-1] == ']')
}

// addAssistant takes in a text of the assistant.
func (s *history) addAssistant(head, tail string) {
	if strings.TrimSpace(head) == "" {
		return
	}
	t := s.currentTurn()
	said := proseLines(text.Head(head, maxReply), maxLine)
	if over := len(t.lines) + len(said) - maxTurnLines; over > 0 && len(t.lines) > 0 {
		t.lines = slices.Delete(t.lines, 0, min(over, len(t.lines)))
	}
	t.lastStart = len(t.lines)
	for _, line := range said[:min(len(said), maxTurnLines)] {
		t.lines = append(t.lines, strings.Clone(line))
	}
	t.lastText = strings.Clone(text.Tail(tail, maxReply))
	for _, line := range proseLines(text.Head(head, maxReply), maxLine) {
		for _, x := range sentences(line) {
			if len(x) > minSentence && decisionWords.matches(x) && !slices.Contains(s.decisions, x) {
				s.decisions = appendBounded(s.decisions, strings.Clone(x))
			}
		}
	}
	s.readCheckboxes(head)
}

// readCheckboxes takes in a list of boxes, if there is one: what is not checked is to be done.
func (s *history) readCheckboxes(text string) {
	if !strings.Contains(text, "[ ] ") {
		return
	}
	var open []string
	for _, line := range splitLines(text) {
		if _, todo, ok := strings.Cut(line, "[ ] "); ok && len(open) < maxNotes {
			open = append(open, strings.Clone(truncate(oneLine(todo), maxLine)))
		}
	}
	s.todos = open
}

// appendBounded appends to a list that keeps its latest.
func appendBounded[T any](list []T, x T) []T {
	if len(list) >= maxNotes {
		list = slices.Delete(list, 0, 1)
	}
	return append(list, x)
}

func firstLine(s string) string {
	lines := splitLines(text.Head(s, maxRequest))
	if len(lines) == 0 {
		return ""
	}
	return truncateHead(lines[0], maxLine)
}

// lastQuestion returns the question a text ends with, or nearly so.
func lastQuestion(s string) string {
	all := sentences(text.Tail(s, 1000))
	for i := len(all) - 1; i >= 0 && i >= len(all)-3; i-- {
		if isQuestion(all[i]) && len(all[i]) > minSentence {
			return strings.Clone(truncate(oneLine(strings.ReplaceAll(all[i], "**", "")), maxLine))
		}
	}
	return ""
}
