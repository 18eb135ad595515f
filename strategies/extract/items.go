package extract

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// Values of entries to a reader, in identifiers that are needed for certain.
const (
	worthConstraint = 1.2
	worthAsked      = 0.5
	worthResult     = 0.5 // the first line of the last message of a turn
	worthSaid       = 0.15
	worthState      = 2.0
	worthStateLine  = 0.5
	worthStep       = 0.1
	worthProgress   = 1.5
	worthBlocked    = 1.0
	worthDecision   = 0.5
	worthAnswer     = 0.8
	worthQuestion   = 2.0
	worthRead       = 0.1
	worthChanged    = 0.3
	worthTodo       = 1.0
	worthTools      = 0.3
	worthBefore     = 0.4
)

const (
	// maxLeadingItems is the maximum number of items that leadingItems returns.
	maxLeadingItems = 5
	// minRequest is the size, in bytes, of a request that is understood without those
	// before it, unlike "Go on".
	minRequest = 40
)

// leadingItems returns the items that come before all others: the active task and the goal.
func (s *history) leadingItems(budget int) []*item {
	var out []*item
	add := func(sec section, text string) {
		out = append(out, &item{section: sec, text: text})
	}
	bodySize := func(sec section, minimum int) int {
		return max(int(sectionTable[sec].share*float64(budget)), minimum) - len(sectionTable[sec].heading) - 1
	}
	at := s.activeTurn()
	var active request
	if at >= 0 {
		active = s.turns[at].request
		add(sectionTask, active.quote(bodySize(sectionTask, min(budget, 100))))
	}
	if !s.goal.empty() && s.goal != active {
		add(sectionGoal, s.goal.quote(bodySize(sectionGoal, 0)))
	}
	short := len(active.head) < minRequest
	for i := at - 1; short && i >= 0 && len(out) < maxLeadingItems; i-- {
		if r := s.turns[i].request; !r.empty() && !isGenerated(r.head) {
			if r == s.goal {
				break
			}
			add(sectionTask, beforeMark+truncate(splitLines(r.head)[0], max(budget/10, 80))+"\n")
			short = len(r.head) < minRequest
		}
	}
	return slices.DeleteFunc(out, func(it *item) bool { return it.text == "" })
}

// activeTurn returns the index of the newest turn with a request that a person wrote, of
// the newest with a request if there is none, or -1.
func (s *history) activeTurn() int {
	newest := -1
	for i, t := range slices.Backward(s.turns) {
		switch {
		case t.request.empty():
		case !isGenerated(t.request.head):
			return i
		case newest < 0:
			newest = i
		}
	}
	return newest
}

// quote returns the request in at most n characters, each line as a quotation: its
// beginning, and the last line too if that is short and the request is cut.
func (r request) quote(n int) string {
	lines := append(splitLines(r.head), splitLines(r.tail)...)
	size := func(s string) int { return utf8.RuneCountInString(s) + len(quoteMark) + 1 }
	total := 0
	for _, l := range lines {
		total += size(l)
	}
	var b strings.Builder
	ending := ""
	if total > n && len(lines) > 1 {
		if l := lines[len(lines)-1]; size(l) <= n/3 {
			ending, lines = quoteMark+l+"\n", lines[:len(lines)-1]
			n -= size(l)
		}
	}
	for _, l := range lines {
		if size(l) > n {
			if head := truncateHead(l, n-len(quoteMark)-len(ellipsis)-1); n >= minQuote && head != "" {
				b.WriteString(quoteMark + head + ellipsis + "\n")
			}
			break
		}
		b.WriteString(quoteMark + l + "\n")
		n -= size(l)
	}
	return b.String() + ending
}

// minQuote is the minimum number of characters for the beginning of a quoted line.
const minQuote = 24

// otherItems returns the items after the leading ones, in the order of the text within
// each section.
func (s *history) otherItems(budget int) []*item {
	b := &itemList{lineLimit: min(max(budget/10, 80), maxLine)}
	for sec := range numSections {
		for i, e := range s.previous[sec] {
			b.addPrevious(sec, e, worthBefore*decay(len(s.previous[sec])-i, 32))
		}
	}
	for i, c := range s.constraints {
		b.add(sectionConstraints, bulletMark+quoteMark+c+"\n", worthConstraint*decay(len(s.constraints)-i, 16))
	}
	s.addTurns(b)
	s.addCalls(b)
	for i, x := range s.decisions {
		b.add(sectionDecisions, formatEntry(x), worthDecision*decay(len(s.decisions)-i, 8))
	}
	for i, x := range s.answers {
		text := formatEntry(truncate(x.question, b.lineLimit)) + indentMark + quoteMark + truncate(x.reply, b.lineLimit) + "\n"
		b.add(sectionResolved, text, worthAnswer*decay(len(s.answers)-i, 4))
	}
	if q := lastQuestion(s.currentTurn().lastText); q != "" {
		b.add(sectionPending, formatEntry(q), worthQuestion)
	}
	for _, f := range s.recentFiles() {
		value := worthRead
		if f.changes > 0 {
			value = worthChanged
		}
		b.add(sectionFiles, f.String(), value*decay(s.messages-f.last, 32))
	}
	for _, x := range s.todos {
		b.add(sectionRemaining, formatEntry(x), worthTodo)
	}
	return b.items
}

// itemList collects items with lines of at most lineLimit characters.
type itemList struct {
	items     []*item
	lineLimit int
}

func (b *itemList) add(s section, text string, value float64) *item {
	it := &item{section: s, text: text, value: value}
	b.items = append(b.items, it)
	return it
}

// addPrevious adds an entry of an earlier summary. Lines below a completed request are items
// of their own, so that some of them can be dropped.
func (b *itemList) addPrevious(s section, entry string, value float64) {
	if s != sectionCompleted {
		b.add(s, entry+"\n", value)
		return
	}
	lines := strings.Split(entry, "\n")
	parent := b.add(s, lines[0]+"\n", value)
	for _, l := range lines[1:] {
		b.add(s, l+"\n", value/2).parent = parent
	}
}

// decay returns the factor by which age reduces a value that halves at each half.
func decay(age, half int) float64 { return math.Exp2(-float64(age) / float64(half)) }

// addTurns adds the requests and the answers. The last message describes the current state.
func (s *history) addTurns(b *itemList) {
	for i, t := range s.turns {
		age := decay(len(s.turns)-1-i, 8)
		latest := i == len(s.turns)-1
		var parent *item
		if lines := splitLines(t.request.head); len(lines) > 0 && !isGenerated(t.request.head) {
			text := askedMark + truncate(lines[0], b.lineLimit)
			if len(lines) > 1 && !strings.HasSuffix(text, ellipsis) {
				text += ellipsis
			}
			parent = &item{section: sectionCompleted, text: text + "\n", value: worthAsked * age, order: -1}
		}
		for j, line := range t.lines {
			text := formatEntry(truncate(line, b.lineLimit))
			switch {
			case latest && j == t.lastStart:
				b.add(sectionState, text, worthState)
				continue
			case latest && j > t.lastStart:
				b.add(sectionState, text, worthStateLine*decay(j-t.lastStart, 6))
				continue
			}
			value := worthSaid
			if j == t.lastStart {
				value = worthResult
			}
			if parent != nil {
				text = indentMark + text
			}
			b.add(sectionCompleted, text, value*age).parent = parent
		}
		if parent != nil && len(t.lines) == 0 && !latest {
			b.items = append(b.items, parent)
		}
	}
}

// addCalls adds the calls with their outcomes.
func (s *history) addCalls(b *itemList) {
	repeated := map[string]bool{} // calls with a newer result
	unresolved := make([]bool, len(s.calls))
	for i, c := range slices.Backward(s.calls) {
		key := c.tool + " " + c.description
		unresolved[i] = c.failed && !repeated[key]
		repeated[key] = repeated[key] || c.done
	}
	for i, c := range s.calls {
		age := decay(len(s.calls)-1-i, 16)
		switch {
		case unresolved[i]:
			b.add(sectionBlocked, c.line(b.lineLimit), worthBlocked*age)
		case i == len(s.calls)-1 || !c.done:
			b.add(sectionInProgress, c.line(b.lineLimit), worthProgress*age)
		case len(c.paths) > 0 || c.isTodoList: // listed with the files or the remaining work
		default:
			b.add(sectionCompleted, c.line(b.lineLimit), worthStep*age)
		}
	}
	if len(s.tools) > 0 {
		b.add(sectionCompleted, callsMark+s.toolCounts()+"\n", worthTools)
	}
}

const noResult = " (no result)"

// line returns the call as one line of about n characters.
func (c *toolCall) line(n int) string {
	text := c.tool + ": " + truncate(c.description, n)
	switch {
	case !c.done:
		text += noResult
	case c.outcome != "" && (c.failed || len(c.paths) == 0 && strings.ContainsFunc(c.outcome, isLetterOrDigit)):
		text += " → " + truncate(c.outcome, n/2)
	}
	return formatEntry(text)
}

func (s *history) toolCounts() string {
	var parts []string
	for _, t := range s.tools[:min(len(s.tools), 12)] {
		part := fmt.Sprintf("%s %d", t.name, t.calls)
		if t.failed > 0 {
			part += fmt.Sprintf(" (%d failed)", t.failed)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// String returns the line of the file, which restoreFile reads.
func (f *file) String() string {
	var uses []string
	if f.changes > 0 {
		uses = append(uses, fmt.Sprintf("changed %d", f.changes))
	}
	if f.reads > 0 {
		uses = append(uses, fmt.Sprintf("read %d", f.reads))
	}
	return bulletMark + "file " + text.Trim(f.path) + ": " + strings.Join(uses, ", ") + "\n"
}
