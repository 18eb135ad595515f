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

// first returns the items that come before all others: what is asked for, and to what end.
func (s *history) first(budget int) []*item {
	var out []*item
	at := s.active()
	var active ask
	if at >= 0 {
		active = s.turns[at].ask
		text := active.quoted(max(int(shares[activeTask]*float64(budget)), min(budget, 100)) - len(headings[activeTask]) - 1)
		out = append(out, &item{section: activeTask, text: text})
	}
	if !s.goal.empty() && s.goal != active {
		out = append(out, &item{section: goal, text: s.goal.quoted(int(shares[goal]*float64(budget)) - len(headings[goal]) - 1)})
	}
	// "Go on" says little without what it refers to.
	short := len(active.head) < shortAsk
	for i := at - 1; short && i >= 0 && len(out) < firstItems; i-- {
		if a := s.turns[i].ask; !a.empty() && !made(a.head) {
			if a == s.goal {
				break
			}
			line := cutQuote(split(a.head)[0], max(budget/10, 80))
			out = append(out, &item{section: activeTask, text: beforeThat + line + "\n"})
			short = len(a.head) < shortAsk
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
	// shortAsk is how many bytes an ask has that needs no other to be understood.
	shortAsk = 40
)

// active returns the turn of the latest ask that a person wrote, or else of the latest, or -1.
func (s *history) active() int {
	latest := -1
	for i, t := range slices.Backward(s.turns) {
		switch {
		case t.ask.empty():
		case !made(t.ask.head):
			return i
		case latest < 0:
			latest = i
		}
	}
	return latest
}

// quoted returns what the user said in at most n characters, each line a quotation: its
// beginning, and where that is not all of it, its last line too if that is short.
func (a ask) quoted(n int) string {
	lines := append(split(a.head), split(a.tail)...)
	size := func(s string) int { return utf8.RuneCountInString(s) + len(quote) + 1 }
	total := 0
	for _, l := range lines {
		total += size(l)
	}
	var b strings.Builder
	ending := ""
	if total > n && len(lines) > 1 {
		if l := lines[len(lines)-1]; size(l) <= n/3 {
			ending, lines = quote+l+"\n", lines[:len(lines)-1]
			n -= size(l)
		}
	}
	for _, l := range lines {
		if size(l) > n {
			if head := shortHead(l, n-len(quote)-len(more)-1); n >= leastQuote && head != "" {
				b.WriteString(quote + head + more + "\n")
			}
			break
		}
		b.WriteString(quote + l + "\n")
		n -= size(l)
	}
	return b.String() + ending
}

// leastQuote is the least room, in characters, for the beginning of a line.
const leastQuote = 24

// items returns all others, in the order in which they stand within their sections.
func (s *history) items(budget int) []*item {
	b := &itemList{line: min(max(budget/10, 80), maxLine)}
	for sec := range sections {
		for i, e := range s.before[sec] {
			b.before(sec, e, worthBefore*fading(len(s.before[sec])-i, 32))
		}
	}
	for i, c := range s.constraints {
		b.add(constraints, bullet+quote+c+"\n", worthConstraint*fading(len(s.constraints)-i, 16))
	}
	s.turnItems(b)
	s.stepItems(b)
	for i, x := range s.decisions {
		b.add(decisions, entry(x), worthDecision*fading(len(s.decisions)-i, 8))
	}
	for i, x := range s.answered {
		b.add(resolved, entry(short(x.question, b.line))+indent+quote+cutQuote(x.reply, b.line)+"\n", worthAnswer*fading(len(s.answered)-i, 4))
	}
	if t := s.turn(); t.last != "" {
		if q := lastQuestion(t.last); q != "" {
			b.add(pending, entry(q), worthQuestion)
		}
	}
	for _, f := range s.touched() {
		worth := worthRead
		if f.changes > 0 {
			worth = worthChanged
		}
		b.add(relevant, f.String(), worth*fading(s.messages-f.last, 32))
	}
	for _, x := range s.todos {
		b.add(remaining, entry(x), worthTodo)
	}
	return b.items
}

// itemList collects items. line is how long a line should be at most.
type itemList struct {
	items []*item
	line  int
}

func (b *itemList) add(s section, text string, worth float64) *item {
	it := &item{section: s, text: text, worth: worth}
	b.items = append(b.items, it)
	return it
}

// before adds an entry of an earlier summary. What was done below an ask can go one by one.
func (b *itemList) before(s section, entry string, worth float64) {
	if s != completed {
		b.add(s, entry+"\n", worth)
		return
	}
	lines := strings.Split(entry, "\n")
	above := b.add(s, lines[0]+"\n", worth)
	for _, l := range lines[1:] {
		b.add(s, l+"\n", worth/2).under = above
	}
}

// fading returns the worth of what happened age steps ago, if half of it is gone after half.
func fading(age, half int) float64 { return math.Exp2(-float64(age) / float64(half)) }

// turnItems are what was asked and said. The last message is where things stand.
func (s *history) turnItems(b *itemList) {
	for i, t := range s.turns {
		age := fading(len(s.turns)-1-i, 8)
		lines, final := t.said, t.final
		var above *item
		if asked := split(t.ask.head); len(asked) > 0 && !made(t.ask.head) {
			text := askedFor + cutQuote(asked[0], b.line)
			if len(asked) > 1 && !strings.HasSuffix(text, more) {
				text += more
			}
			above = &item{section: completed, text: text + "\n", worth: worthAsked * age, order: -1}
		}
		for j, line := range lines {
			worth := worthSaid
			switch {
			case i == len(s.turns)-1 && j == final:
				b.add(state, entry(short(line, b.line)), worthState)
				continue
			case i == len(s.turns)-1 && j > final:
				b.add(state, entry(short(line, b.line)), worthStateLine*fading(j-final, 6))
				continue
			case j == final:
				worth = worthResult
			}
			it := b.add(completed, entry(short(line, b.line)), worth*age)
			if above != nil {
				it.under, it.text = above, indent+it.text
			}
		}
		if above != nil && len(lines) == 0 && i < len(s.turns)-1 {
			b.items = append(b.items, above)
		}
	}
}

// cutQuote returns a line of the user, or its beginning and a mark.
func cutQuote(line string, n int) string {
	if head := shortHead(line, n); len(head) < len(line) {
		return head + more
	}
	return line
}

// stepItems are what was called and what came of it.
func (s *history) stepItems(b *itemList) {
	again := map[string]bool{} // with a later result, which is what counts
	open := make([]bool, len(s.steps))
	for i, st := range slices.Backward(s.steps) {
		key := st.tool + " " + st.what
		open[i] = st.failed && !again[key]
		again[key] = again[key] || st.done
	}
	for i, st := range s.steps {
		age := fading(len(s.steps)-1-i, 16)
		switch {
		case open[i]:
			b.add(blocked, st.line(b.line), worthBlocked*age)
		case i == len(s.steps)-1 || !st.done:
			b.add(inProgress, st.line(b.line), worthProgress*age)
		case len(st.paths) > 0 || st.todo: // the files and what remains say so
		default:
			b.add(completed, st.line(b.line), worthStep*age)
		}
	}
	if len(s.tools) > 0 {
		b.add(completed, callsOf+s.toolCounts()+"\n", worthTools)
	}
}

const noResult = " (no result)"

// line returns a call in one line.
func (st *step) line(n int) string {
	text := st.tool + ": " + short(st.what, n)
	switch {
	case !st.done:
		text += noResult
	case st.outcome != "" && (st.failed || len(st.paths) == 0 && strings.ContainsFunc(st.outcome, isLetterOrDigit)):
		text += " → " + short(st.outcome, n/2)
	}
	return entry(text)
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
	return bullet + "file " + text.Trim(f.path) + ": " + strings.Join(what, ", ") + "\n"
}
