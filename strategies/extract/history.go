package extract

import (
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// Bounds of a history: numbers of things, characters of texts.
const (
	maxTurns   = 96
	maxSaid    = 48
	maxLine    = 300
	maxAsk     = 4000
	maxLast    = 6000
	maxFiles   = 2048
	maxSteps   = 96
	maxPending = 256
	maxNotes   = 64
	maxWhat    = 240
	maxTools   = 64
)

// leastSentence is how many bytes a sentence has that says something by itself.
const leastSentence = 10

// shortGoal is how many bytes an ask has that may be no more than a greeting.
const shortGoal = 20

// history is the course of the conversation, without the identifiers.
type history struct {
	// before are items of an earlier summary, by section.
	before map[section][]string
	// goal is the first ask. turns are the asks since with what was said and done.
	goal  ask
	turns []*turn
	// messages were read.
	messages int
	files    map[string]*file
	steps    []*step
	// waiting are the steps that have no result yet, by call id, the latest last.
	waiting []*step
	todos   []string
	// constraints and decisions are lines, the latest last.
	constraints []string
	decisions   []string
	answered    []answer
	tools       []*tool
}

// ask is what the user said: its lines, or where it is too long its beginning and end.
type ask struct{ head, tail string }

func (a ask) empty() bool { return a.head == "" }

// turn is an ask and what came of it.
type turn struct {
	ask ask
	// said are lines of the assistant, final those of its last message so far.
	said  []string
	final int
	// last is its last message.
	last string
	// steps counts calls.
	steps int
}

// answer is a question of the assistant and what the user said to it.
type answer struct{ question, reply string }

// file is a file that a tool was called with.
type file struct {
	path           string
	reads, changes int
	last           int // the message
}

// step is a call.
type step struct {
	id, tool, what string
	paths          []string
	changes, todo  bool // it changes files, it writes a list of tasks
	done, failed   bool
	outcome        string
}

// tool counts the calls of a tool.
type tool struct {
	name          string
	calls, failed int
}

func (s *history) turn() *turn {
	if len(s.turns) == 0 {
		s.turns = append(s.turns, &turn{})
	}
	return s.turns[len(s.turns)-1]
}

// asked takes in a message of the user, given by its beginning and its end, which are
// the same text unless it is very long.
func (s *history) asked(head, tail string) {
	a := newAsk(head, tail)
	if len(split(a.head)) == 0 {
		return
	}
	if t := s.turn(); t.last != "" {
		if q := lastQuestion(t.last); q != "" {
			s.answered = keep(s.answered, answer{q, strings.Clone(firstLine(head))})
		}
	}
	if !made(head) && (s.goal.empty() || len(s.goal.head) < shortGoal && len(a.head) >= shortGoal && len(s.turns) <= 3) {
		s.goal = a
	}
	if !made(head) {
		for _, line := range sentences(text.Head(head, maxAsk)) {
			if len(line) > leastSentence && !text.Longer(line, maxLine) && binding.in(line) && !slices.Contains(s.constraints, line) {
				s.constraints = keep(s.constraints, strings.Clone(line))
			}
		}
	}
	if last := s.turn(); last.ask.empty() && len(last.said) == 0 && last.steps == 0 {
		last.ask = a
		return
	}
	if len(s.turns) == maxTurns { // the first says where it began
		s.turns = slices.Delete(s.turns, 1, 2)
	}
	s.turns = append(s.turns, &turn{ask: a})
}

// newAsk cuts what the user said.
func newAsk(head, tail string) ask {
	if head == tail && !text.Longer(head, maxAsk) {
		return ask{head: strings.Clone(head)}
	}
	return ask{head: strings.Clone(text.Head(head, maxAsk*3/4)), tail: strings.Clone(text.Tail(tail, maxAsk/4))}
}

// made reports a message that a program wrote in the user's name: nothing but an
// element of markup or a remark in brackets.
func made(s string) bool {
	s = strings.TrimSpace(s)
	return len(s) > 1 && (s[0] == '<' && s[len(s)-1] == '>' || s[0] == '[' && s[len(s)-1] == ']')
}

// replied takes in a text of the assistant.
func (s *history) replied(head, tail string) {
	if strings.TrimSpace(head) == "" {
		return
	}
	t := s.turn()
	said := prose(text.Head(head, maxLast), maxLine)
	if over := len(t.said) + len(said) - maxSaid; over > 0 && len(t.said) > 0 {
		t.said = slices.Delete(t.said, 0, min(over, len(t.said)))
	}
	t.final = len(t.said)
	for _, line := range said[:min(len(said), maxSaid)] {
		t.said = append(t.said, strings.Clone(line))
	}
	t.last = strings.Clone(text.Tail(tail, maxLast))
	for _, line := range prose(text.Head(head, maxLast), maxLine) {
		for _, x := range sentences(line) {
			if len(x) > leastSentence && reasons.in(x) && !slices.Contains(s.decisions, x) {
				s.decisions = keep(s.decisions, strings.Clone(x))
			}
		}
	}
	s.unchecked(head)
}

// unchecked takes in a list of boxes, if there is one: what is not checked is to be done.
func (s *history) unchecked(text string) {
	if !strings.Contains(text, "[ ] ") {
		return
	}
	var open []string
	for _, line := range split(text) {
		if _, todo, ok := strings.Cut(line, "[ ] "); ok && len(open) < maxNotes {
			open = append(open, strings.Clone(short(flat(todo), maxLine)))
		}
	}
	s.todos = open
}

// keep appends to a list that keeps its latest.
func keep[T any](list []T, x T) []T {
	if len(list) >= maxNotes {
		list = slices.Delete(list, 0, 1)
	}
	return append(list, x)
}

func firstLine(s string) string {
	lines := split(text.Head(s, maxAsk))
	if len(lines) == 0 {
		return ""
	}
	return shortHead(lines[0], maxLine)
}

// lastQuestion returns the question a text ends with, or nearly so.
func lastQuestion(s string) string {
	all := sentences(text.Tail(s, 1000))
	for i := len(all) - 1; i >= 0 && i >= len(all)-3; i-- {
		if asks(all[i]) && len(all[i]) > leastSentence {
			return strings.Clone(short(flat(strings.ReplaceAll(all[i], "**", "")), maxLine))
		}
	}
	return ""
}
