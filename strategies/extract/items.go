package extract

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/extract/internal/shell"
	"github.com/sessionstore/compactor/strategies/extract/internal/toolname"
)

// Values of entries to a reader, in identifiers that are needed for certain.
const (
	worthConstraint = 1.2
	worthAsked      = 0.5
	worthDemand     = 0.9
	worthPasted     = 0.7
	worthResult     = 0.1 // the first line of the last message of a turn
	worthSaid       = 0.02
	worthEarly      = 0.8 // said for the active task, before the newest edit
	worthState      = 2.0
	worthStateLine  = 0.5
	worthStep       = 0.1
	worthActed      = 1.0
	worthChosen     = 0.5
	worthProgress   = 1.5
	worthBlocked    = 1.0
	worthDecision   = 0.8
	worthAnswer     = 0.8
	worthQuestion   = 2.0
	worthRead       = 0.3
	worthChanged    = 0.7
	worthDeclares   = 0.1
	worthEdit       = 0.2
	worthTodo       = 1.0
	worthOpen       = 1.0
	worthFact       = 0.5 // for each name
	worthConfirmed  = 0.2
	worthLooked     = 0.05
	worthFinished   = 1.0
	worthBefore     = 0.4
)

// Tiers of items: all of one are placed before any of the next, within the shares of their
// sections.
const (
	tierUser   = iota
	tierNewest // the newest requests, whole
	tierState
	tierDemands
	tierOpen
	tierDone
	tierErrors
	tierChosen
	tierFiles
	tierOther
	tierSpare // only where room is left
	tiers
)

// otherItems returns the items after the leading ones, in the order of the text within
// each section.
func (s *history) otherItems(budget int) []*item {
	b := &itemList{outdated: s.derived.outdated, told: map[*toolCall]bool{}, restored: map[entry]bool{}, edited: s.editedByRequest(), before: -1, lineLimit: min(max(budget/10, 160), maxLine), listLimit: min(max(budget/10, min(budget/3, 240)), maxAct)}
	if before := s.beforeActive(); len(before) > 0 {
		b.before = before[0]
	}
	s.markNewest()
	for sec := range numSections {
		for i, e := range s.previous[sec] {
			if sec == sectionBlocked && s.wasRepeated(e) {
				continue
			}
			if sec == sectionFindings {
				e.text = s.dated(e.text, s.previousAt[e.text])
			}
			if sec == sectionCompleted && strings.HasPrefix(e.text, commitMark) { // its request may have it
				continue
			}
			b.addPrevious(sec, e, worthBefore*decay(len(s.previous[sec])-i, 32))
		}
	}
	for i, c := range s.constraints {
		if s.isRecords() && s.byDay && !forGood().MatchString(c) { // it was for one visit of a customer
			continue
		}
		b.add(sectionConstraints, requestMark+c+"\n", worthConstraint*decay(len(s.constraints)-i, 16)).tier = tierUser
	}
	s.addToldGoal(b)
	s.addRequests(b, budget)
	s.addPlan(b) // below what was answered to the request before
	for i, e := range s.previous[sectionCompleted] {
		if strings.HasPrefix(e.text, commitMark) && !b.restored[e] {
			b.addPrevious(sectionCompleted, e, worthBefore*decay(len(s.previous[sectionCompleted])-i, 32))
		}
	}
	s.addCalls(b, budget)
	s.addFactItems(b)
	s.addFinished(b)
	for i, x := range s.decisions {
		b.add(sectionDecisions, formatEntry(x), worthDecision*decay(len(s.decisions)-i, 32))
	}
	reasons := append(slices.Clip(s.reasons), s.suggested...)
	early := s.currentTurn().lines[:max(0, min(s.saidBefore, s.currentTurn().lastStart))]
	for i, x := range reasons {
		value := worthDecision
		switch {
		case s.isRecords(), isIntention(x), isRemark(x), isProgramLine(x), len(s.files) > 0 && (isChange(x) || instructing().MatchString(x)), // offers to a customer are over, what was done stands elsewhere
			slices.ContainsFunc(early, func(l string) bool { return strings.Contains(l, x) }): // told with a mark
			continue
		case s.isChat() && len(namesIn(x)) == 0: // a reason for nothing in particular
			value = worthSaid
		}
		mark, share := s.holds(x)
		if share == 0 {
			continue
		}
		b.add(sectionFindings, formatEntry(opening().ReplaceAllString(x, "")+mark), value*share*decay(len(reasons)-i, 32))
	}
	if t := s.currentTurn(); t.calls == t.callsBefore && pendingQuestion(t.lastText) != "" { // it did not go on by itself
		b.add(sectionPending, pendingMark+inContext(t.lastText, pendingQuestion(t.lastText))+"\n", worthQuestion).tier = tierState
	}
	task, name, current, edits := len(s.taskCalls()), s.derived.fileName, s.taskFiles(), s.editsByFile()
	for _, f := range s.listedFiles() {
		if f = s.made(f); f.changes+f.reads == 0 {
			continue
		}
		value := worthRead * decay(s.messages-f.last, 32)
		if f.changes > 0 {
			if value = worthChanged * decay(s.messages-f.last, 256); slices.Contains(current, name(f.path)) {
				value *= 2
			}
		}
		it := b.add(sectionFiles, f.String(), 0)
		if it.tier = tierFiles; f.changes > 0 {
			it.tier = tierDone // what was edited is done, too
		}
		b.weigh(value)
		if told := s.toldNames(f); len(told) > 0 {
			all := "declares " + strings.Join(told, ", ")
			names := b.add(sectionFiles, indentMark+bulletMark+prose.Truncate(all, maxLine)+"\n", 0)
			names.parent = it
			b.weigh(worthDeclares * decay(s.messages-f.last, 64))
			b.addWhole(names, indentMark+bulletMark+all+"\n")
		}
		for _, e := range edits[f.path] {
			line := b.add(sectionFiles, indentMark+formatEntry(e.String()), 0)
			if line.parent = it; e.call >= len(s.calls)-task {
				line.tier = tierFiles
			}
			b.weigh(worthEdit * decay(len(s.calls)-e.call, 32))
		}
	}
	s.addHandles(b)
	s.addTodos(b)
	items := groupBelow(b.items, foundBefore, func(x string) (string, bool) { return strings.CutSuffix(x, editedMark) })
	if len(s.files) == 0 {
		return items
	}
	return groupBelow(items, proposedBefore, func(x string) (string, bool) { return x, isSupposed(x) })
}

// groupBelow moves findings behind the others, below one line that says what they are; line returns such a one as it
// stands there.
func groupBelow(items []*item, heading string, line func(text string) (string, bool)) []*item {
	head := &item{section: sectionFindings, share: sectionFindings, text: heading, tier: tierOther, heading: true}
	var below []*item
	lists := map[*item]bool{} // which stay with what stands below them
	for _, it := range items {
		lists[it.parent] = true
	}
	items = slices.DeleteFunc(items, func(it *item) bool {
		if it.section != sectionFindings || it.day != "" || it.parent != nil || lists[it] {
			return false
		}
		text, ok := line(strings.TrimSuffix(it.text, "\n"))
		if ok {
			it.text, it.parent = indentMark+text+"\n", head
			head.value = max(head.value, it.value*float64(len(head.text))/float64(len(it.text))) // as dense as they are
			below = append(below, it)
		}
		return ok
	})
	if len(below) == 0 {
		return items
	}
	return slices.Concat(items, []*item{head}, below)
}

// addFinished adds the tasks that were done, several on a line as the lines allow.
func (s *history) addFinished(b *itemList) {
	for at := 0; at < len(s.finished); {
		end, line := at+1, s.finished[at]
		for end < len(s.finished) && utf8.RuneCountInString(line)+len(requestSeparator)+utf8.RuneCountInString(s.finished[end]) <= b.lineLimit {
			line += requestSeparator + s.finished[end]
			end++
		}
		b.add(sectionCompleted, finishedMark+line+"\n", 0).tier = tierChosen
		b.weigh(worthFinished * decay(len(s.finished)-end+1, 16))
		at = end
	}
}

// freshTodos is the number of messages after which a list of tasks may be out of date.
const freshTodos = 20

const (
	// minExcerpt is the length of a request that is shortened at most.
	minExcerpt = 76
	maxExcerpt = 300
	// minAct and maxAct are those of a line of the ledger.
	minAct = 90
	maxAct = 1200
)

// longest returns the length, from least to most characters, to which texts are cut so that all
// of them fit into a number of characters, each with its mark: the least if they do not fit.
func longest(texts []string, least, most, room, mark int) int {
	sizes := make([]int, len(texts))
	for i, x := range texts {
		sizes[i] = utf8.RuneCountInString(x)
	}
	return most - sort.Search(most-least, func(i int) bool {
		total := 0
		for _, n := range sizes {
			total += min(n, most-i) + mark + len(prose.Ellipsis) + 1
		}
		return total <= room
	})
}

// itemList collects items with lines of at most lineLimit characters, and listings of at most
// listLimit.
type itemList struct {
	items                []*item
	lineLimit, listLimit int
	crowded              bool   // the requests do not fit into their share
	outdated             []bool // see outdatedChecks
	// told are calls that stand with a request or the state, restored commits of an earlier summary that do.
	told     map[*toolCall]bool
	restored map[entry]bool
	edited   map[int][]string // see editedByRequest
	before   int              // the newest of beforeActive, -1 for none
}

func (b *itemList) add(s section, text string, value float64) *item {
	it := &item{section: s, share: s, text: text, value: value, tier: tierOther}
	b.items = append(b.items, it)
	return it
}

// moveLast moves an item behind all others.
func (b *itemList) moveLast(it *item) {
	for i, o := range slices.Backward(b.items) {
		if o == it {
			b.items = append(slices.Delete(b.items, i, i+1), it)
			return
		}
	}
}

// addWhole adds the whole of what an item has cut, for where room is left. It returns nil if nothing is cut.
func (b *itemList) addWhole(cut *item, whole string) *item {
	if whole == cut.text {
		return nil
	}
	it := b.add(cut.section, whole, 0)
	it.day, it.tier, it.extends = cut.day, tierSpare, cut
	b.weigh(cut.value)
	return it
}

// minSaid is the size of the shortest line of an old answer that is worth its room, and
// minSaidWords the number of its blanks.
const (
	minSaid      = 24
	minSaidWords = 3
)

// usualLine is the size of a line whose value does not depend on its size.
const usualLine = 80

// weigh gives the item added last a value in proportion to its size, so that a short one
// does not come first for being short.
func (b *itemList) weigh(value float64) {
	it := b.items[len(b.items)-1]
	it.value = value * float64(utf8.RuneCountInString(it.text)) / usualLine
}

// addPrevious adds an entry of an earlier summary. The lines below it are items of their own, so that
// some of them can be dropped.
func (b *itemList) addPrevious(s section, e entry, value float64) {
	lines := strings.Split(e.text, "\n")
	parent := b.add(s, lines[0]+"\n", value)
	parent.day, parent.at, parent.acted = e.day, 2*e.after+1, s == sectionCompleted
	for _, l := range lines[1:] {
		it := b.add(s, l+"\n", value/2)
		it.day, it.parent = e.day, parent
	}
}

// decay returns the factor by which age reduces a value that halves at each half.
func decay(age, half int) float64 { return math.Exp2(-float64(age) / float64(half)) }

// repeatedCall is an entry of the ledger that tells several calls of a day: equal ones, or such that are
// alike where they are cut.
type repeatedCall struct {
	item  *item
	uncut *item // that extends it, nil for none
	whole string
	times int
	alike bool
}

// addCalls adds the calls with their outcomes, in the order of time.
func (s *history) addCalls(b *itemList, budget int) {
	unresolved := s.derived.unresolved
	changed := slices.ContainsFunc(s.calls, func(c *toolCall) bool { return c.acts || c.changes })
	underWay := len(s.calls) // the first of the calls at the end that have no result yet
	for underWay > 0 && !s.calls[underWay-1].done {
		underWay--
	}
	// All that was done is listed, briefly if there is much.
	limitOf := func(briefly bool) int {
		var done []string
		room, day := int(sectionTable[sectionCompleted].share*float64(budget)), ""
		for i, c := range s.calls {
			if c.acts && c.day != day {
				day = c.day
				room -= len(dayHeading{day: day}.String())
			}
			if c.acts && c.done && !c.administers && (!unresolved[i] || !c.blocks() || i < underWay-recentCalls) {
				done = append(done, c.format(b.lineLimit, briefly))
			}
		}
		return longest(done, minAct, maxAct, room, len(indentMark+bulletMark))
	}
	newest := -1 // of the failures that block
	for i, c := range s.calls[:underWay] {
		if unresolved[i] && c.blocks() && i >= underWay-recentCalls {
			newest = i
		}
	}
	listed := map[string]*repeatedCall{}
	limit, briefly := limitOf(false), false
	if limit < maxAct || b.crowded {
		limit, briefly = limitOf(true), true
	}
	for i, c := range s.calls {
		age := decay(len(s.calls)-1-i, 16)
		switch {
		case b.told[c], b.outdated[i], unresolved[i] && c.probes() && s.checkedSince(i): // of no use later
		case unresolved[i] && c.blocks() && i >= underWay-recentCalls:
			line := c.line(b.lineLimit)
			call := b.add(sectionBlocked, line, worthBlocked*age)
			if call.tier = tierErrors; i == newest { // what is to be done next
				call.tier = tierState
				if short := c.line(b.lineLimit / 2); c.acts && len(short) < len(line) { // where there is no room for all of it
					call.covers = b.add(sectionBlocked, short, worthBlocked)
					call.covers.tier, call.covers.covers = tierDemands, call
				}
			}
			if s.editedSince(i) { // what it said may be over
				call.section, call.text = sectionState, failedBeforeMark+strings.TrimPrefix(line, bulletMark)
			}
			for _, l := range c.failures {
				it := b.add(call.section, indentMark+formatLine(prose.Truncate(l, maxLine), "output: "), worthBlocked*age)
				it.tier, it.parent = tierErrors, call
				if call.section == sectionState {
					it.tier = tierOther
				}
			}
		case i >= underWay:
			b.add(sectionInProgress, strings.TrimSuffix(c.line(b.lineLimit), "\n")+c.oneChange(": ", b.lineLimit)+"\n", worthProgress*age).tier = tierState // its result comes next
		case strings.HasPrefix(c.outcome, refusedByUser+refusalSays): // the words are worth more than the call
			s.addAction(b, i, limit, briefly, listed)
		case !c.done, c.failed && !c.acts, c.failed && c.isShell && !c.committed && !unresolved[i] && (len(c.ran()) == 1 || c.conflicts()): // cancelled, or overtaken by what followed
		case c.chosen >= 0 && !c.acts && (s.wasTaken(i) || s.searchedAgain(i)): // listed with what was done, or searched later
		case (len(c.paths) > 0 || c.change != nil && len(c.change.files) > 0) && !c.acts && !c.runsToo || c.administers: // listed with the files or the remaining work
		case !c.acts && (c.isShell && (shell.OnlyShows(c.description) || c.outcome == "" && shell.Selects(c.description)) || c.chosen < 0 && toolname.Looks(c.tool) && len(c.result) == 0 || c == s.lastCall()): // of no use later, or listed with the state
		case !c.acts && c.chosen < 0 && c.reads() && (changed || shell.Shows(c.description)): // of no use later
		case !c.acts && c.chosen < 0 && c.reads():
			it := b.add(sectionCompleted, c.line(b.lineLimit), 0)
			it.day, it.at, it.looked = c.day, 2*c.after+1, true
			b.weigh(worthLooked * age)
		default:
			s.addAction(b, i, limit, briefly, listed)
		}
	}
}

// addAction adds call i as one of those that tell what was done, or counts it with an equal one of its day. Lines of
// what changed something have at most limit characters.
func (s *history) addAction(b *itemList, i, limit int, briefly bool, listed map[string]*repeatedCall) {
	c, age := s.calls[i], len(s.calls)-1-i
	text := c.line(b.lineLimit)
	if c.acts {
		if s.isRecords() && s.tierOfLast(i, -1) >= 0 { // it is what is talked about
			limit = max(limit, b.listLimit)
		}
		text = c.cut(strings.TrimSuffix(c.format(b.lineLimit, briefly), "\n"), limit) + "\n"
	} else if len(s.files) == 0 {
		text = c.cut(strings.TrimSuffix(text, "\n"), b.lineLimit*3/2) + "\n"
	}
	if c.passed() && s.editedSince(i) { // what it said may be over
		text = strings.TrimSuffix(text, "\n") + editedMark + "\n"
	}
	whole, key := c.format(maxAct, false), fmt.Sprint(c.day, c.failed, text)
	if same := listed[key]; same != nil && c.acts { // it was done again
		same.times, same.alike = same.times+1, same.alike || same.whole != whole
		times := "times"
		if same.alike {
			times = "alike"
		}
		same.item.text = fmt.Sprintf("%s (%d %s)\n", strings.TrimSuffix(text, "\n"), same.times, times)
		same.item.at, same.item.tier = 2*c.after+1, s.tierOfLast(i, same.item.tier)
		if same.uncut != nil {
			same.uncut.placed = true // it tells one of them only
		}
		b.moveLast(same.item)
		return
	}
	it := b.add(sectionCompleted, text, worthStep*decay(age, 16))
	listed[key] = &repeatedCall{item: it, whole: whole, times: 1}
	it.day, it.at, it.tier, it.acted, it.looked = c.day, 2*c.after+1, tierOther, c.acts, !c.acts
	switch {
	case c.acts, strings.HasPrefix(c.outcome, refusedByUser+refusalSays):
		it.kind = c.kind()
		it.tier = tierDone
		worth := c.worthDone() * decay(age, 256)
		if s.isRecords() && c.failed { // what worked is asked about later
			worth /= 10
		}
		if len(c.arguments) > 0 {
			b.weigh(worth)
		} else { // a long command is worth no more than one of a usual line
			it.value = worth * min(1, float64(utf8.RuneCountInString(text))/usualLine)
		}
	case c.chosen >= 0:
		it.tier = tierChosen
		b.weigh(worthChosen * decay(age, 256))
	case len(s.files) == 0 && len(c.result) > 0:
		it.tier = tierChosen
		b.weigh(worthChosen * decay(age, 64))
	}
	it.tier = s.tierOfLast(i, it.tier)
	if s.isRecords() || !c.acts && len(s.files) == 0 {
		if listed[key].uncut = b.addWhole(it, c.format(maxAct, briefly)); listed[key].uncut != nil {
			listed[key].uncut.tier, listed[key].uncut.share = tierErrors, sectionRequests // they need less then
		}
	}
}

// tierOfLast returns the tier of call i, an earlier one if it is the last action.
func (s *history) tierOfLast(i, tier int) int {
	c := s.calls[i]
	tells := func(o *toolCall) bool { return o.acts && o.done && !o.administers && !o.formats() }
	if !tells(c) || slices.ContainsFunc(s.calls[i+1:], tells) {
		return tier
	}
	if c == s.lastCall() { // the state does not tell it again
		return tierState
	}
	return tierOpen
}

// editedSince reports whether files were changed after a call.
func (s *history) editedSince(i int) bool {
	return slices.ContainsFunc(s.calls[i+1:], (*toolCall).edited)
}

// recentCalls is how many of the newest calls can be what work is stuck at.
const recentCalls = 32
