package extract

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// What an entry says to a reader, counted in identifiers that are needed for certain.
const (
	worthConstraint = 1.2
	worthAsked      = 0.5
	worthResult     = 0.5 // the first line of what ended a turn
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

// leadingItems returns the items that come before all others: what is asked for, and to what end.
func (s *history) leadingItems(budget int) []*item {
	var out []*item
	at := s.activeTurn()
	var active request
	if at >= 0 {
		active = s.turns[at].request
		text := active.quote(max(int(shares[sectionTask]*float64(budget)), min(budget, 100)) - len(headings[sectionTask]) - 1)
		out = append(out, &item{section: sectionTask, text: text})
	}
	if !s.goal.empty() && s.goal != active {
		out = append(out, &item{section: sectionGoal, text: s.goal.quote(int(shares[sectionGoal]*float64(budget)) - len(headings[sectionGoal]) - 1)})
	}
	// "Go on" says little without what it refers to.
	short := len(active.head) < minRequest
	for i := at - 1; short && i >= 0 && len(out) < firstItems; i-- {
		if a := s.turns[i].request; !a.empty() && !isGenerated(a.head) {
			if a == s.goal {
				break
			}
			line := truncateQuote(splitLines(a.head)[0], max(budget/10, 80))
			out = append(out, &item{section: sectionTask, text: beforeMark + line + "\n"})
			short = len(a.head) < minRequest
		}
	}
	kept := out[:0]
	for _, it := range out {
		if it.text != "" {
			kept = append(kept, it)
		}
	}
	return kept
}

const (
	// firstItems is how many items first has at most.
	firstItems = 5
	// minRequest is how many bytes an ask has that needs no other to be understood.
	minRequest = 40
)

// activeTurn returns the turn of the latest ask that a person wrote, or else of the latest, or -1.
func (s *history) activeTurn() int {
	latest := -1
	for i, t := range slices.Backward(s.turns) {
		switch {
		case t.request.empty():
		case !isGenerated(t.request.head):
			return i
		case latest < 0:
			latest = i
		}
	}
	return latest
}

// quote returns what the user said in at most n characters, each line a quotation: its
// beginning, and where that is not all of it, its last line too if that is short.
func (a request) quote(n int) string {
	lines := append(splitLines(a.head), splitLines(a.tail)...)
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

// minQuote is the least room, in characters, for the beginning of a line.
const minQuote = 24

// otherItems returns all others, in the order in which they stand within their sections.
func (s *history) otherItems(budget int) []*item {
	b := &itemList{line: min(max(budget/10, 80), maxLine)}
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
		b.add(sectionResolved, formatEntry(truncate(x.question, b.line))+indentMark+quoteMark+truncateQuote(x.reply, b.line)+"\n", worthAnswer*decay(len(s.answers)-i, 4))
	}
	if t := s.currentTurn(); t.lastText != "" {
		if q := lastQuestion(t.lastText); q != "" {
			b.add(sectionPending, formatEntry(q), worthQuestion)
		}
	}
	for _, f := range s.recentFiles() {
		worth := worthRead
		if f.changes > 0 {
			worth = worthChanged
		}
		b.add(sectionFiles, f.String(), worth*decay(s.messages-f.last, 32))
	}
	for _, x := range s.todos {
		b.add(sectionRemaining, formatEntry(x), worthTodo)
	}
	return b.items
}

// itemList collects items. line is how long a line should be at most.
type itemList struct {
	items []*item
	line  int
}

func (b *itemList) add(s section, text string, worth float64) *item {
	it := &item{section: s, text: text, value: worth}
	b.items = append(b.items, it)
	return it
}

// addPrevious adds an entry of an earlier summary. What was done below an ask can go one by one.
func (b *itemList) addPrevious(s section, entry string, worth float64) {
	if s != sectionCompleted {
		b.add(s, entry+"\n", worth)
		return
	}
	lines := strings.Split(entry, "\n")
	above := b.add(s, lines[0]+"\n", worth)
	for _, l := range lines[1:] {
		b.add(s, l+"\n", worth/2).parent = above
	}
}

// decay returns the worth of what happened age steps ago, if half of it is gone after half.
func decay(age, half int) float64 { return math.Exp2(-float64(age) / float64(half)) }

// addTurns are what was asked and said. The last message is where things stand.
func (s *history) addTurns(b *itemList) {
	for i, t := range s.turns {
		age := decay(len(s.turns)-1-i, 8)
		lines, final := t.lines, t.lastStart
		var above *item
		if asked := splitLines(t.request.head); len(asked) > 0 && !isGenerated(t.request.head) {
			text := askedMark + truncateQuote(asked[0], b.line)
			if len(asked) > 1 && !strings.HasSuffix(text, ellipsis) {
				text += ellipsis
			}
			above = &item{section: sectionCompleted, text: text + "\n", value: worthAsked * age, order: -1}
		}
		for j, line := range lines {
			worth := worthSaid
			switch {
			case i == len(s.turns)-1 && j == final:
				b.add(sectionState, formatEntry(truncate(line, b.line)), worthState)
				continue
			case i == len(s.turns)-1 && j > final:
				b.add(sectionState, formatEntry(truncate(line, b.line)), worthStateLine*decay(j-final, 6))
				continue
			case j == final:
				worth = worthResult
			}
			it := b.add(sectionCompleted, formatEntry(truncate(line, b.line)), worth*age)
			if above != nil {
				it.parent, it.text = above, indentMark+it.text
			}
		}
		if above != nil && len(lines) == 0 && i < len(s.turns)-1 {
			b.items = append(b.items, above)
		}
	}
}

// truncateQuote returns a line of the user, or its beginning and a mark.
func truncateQuote(line string, n int) string {
	if head := truncateHead(line, n); len(head) < len(line) {
		return head + ellipsis
	}
	return line
}

// addCalls are what was called and what came of it.
func (s *history) addCalls(b *itemList) {
	again := map[string]bool{} // with a later result, which is what counts
	open := make([]bool, len(s.calls))
	for i, st := range slices.Backward(s.calls) {
		key := st.tool + " " + st.description
		open[i] = st.failed && !again[key]
		again[key] = again[key] || st.done
	}
	for i, st := range s.calls {
		age := decay(len(s.calls)-1-i, 16)
		switch {
		case open[i]:
			b.add(sectionBlocked, st.line(b.line), worthBlocked*age)
		case i == len(s.calls)-1 || !st.done:
			b.add(sectionInProgress, st.line(b.line), worthProgress*age)
		case len(st.paths) > 0 || st.isTodoList: // the files and what remains say so
		default:
			b.add(sectionCompleted, st.line(b.line), worthStep*age)
		}
	}
	if len(s.tools) > 0 {
		b.add(sectionCompleted, callsMark+s.toolCounts()+"\n", worthTools)
	}
}

const noResult = " (no result)"

// line returns a call in one line.
func (st *toolCall) line(n int) string {
	text := st.tool + ": " + truncate(st.description, n)
	switch {
	case !st.done:
		text += noResult
	case st.outcome != "" && (st.failed || len(st.paths) == 0 && strings.ContainsFunc(st.outcome, isLetterOrDigit)):
		text += " → " + truncate(st.outcome, n/2)
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

// String returns the line of a file.
func (f *file) String() string {
	var what []string
	if f.changes > 0 {
		what = append(what, fmt.Sprintf("changed %d", f.changes))
	}
	if f.reads > 0 {
		what = append(what, fmt.Sprintf("read %d", f.reads))
	}
	return bulletMark + "file " + text.Trim(f.path) + ": " + strings.Join(what, ", ") + "\n"
}
