package extract

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/extract/internal/queue"
	"github.com/sessionstore/compactor/strategies/extract/internal/reference"
)

// item is an entry of a section: one or more whole lines.
type item struct {
	section section
	// share is the section whose share of the budget the item uses.
	share section
	// order is the position within the section.
	order int
	text  string
	// value measures the use to a reader, in identifiers that are needed for certain.
	value float64
	// ids are the identifiers in the text and in the texts of those.
	ids []reference.Candidate
	// at orders the requests and actions of a day: twice the number of requests before it, of an action
	// one more.
	at int
	// day is the date under which the line stands, "" for none.
	day string
	// parent is the item that must precede this one, nil for none.
	parent *item
	// follows is the item without which this one is not understood, nil for none.
	follows *item
	// extends is a placed item that this one replaces, nil for none.
	extends *item
	placed  bool
	// covers is an item that says no more than this one, nil for none.
	covers *item
	// heading reports that it stands only above one whose parent it is.
	heading bool
	// stands reports that it is a line that leads others and says something without them.
	stands bool
	// repeats reports that the same line may stand elsewhere.
	repeats bool
	// acted reports that it tells what was done, kind by what tool or command, "" if that is not known.
	acted bool
	kind  string
	// looked reports that it tells of a call that changed nothing.
	looked bool
	// topical reports whether the item matches the focus.
	topical bool
	tier    int
	size    int // characters
}

// page is a summary while items are placed. budget is the number of unused characters;
// used and caps are those of each section; begun tells which have a heading, days which days of
// them have one.
type page struct {
	budget int
	held   int // of the budget, not for requests
	used   [numSections]int
	caps   [numSections]int
	begun  [numSections]bool
	days   map[dayHeading]bool
	// dropped and tasksLeft are the numbers of actions and of open tasks for which there is no item.
	dropped, tasksLeft int
	moreFinished       bool // than an earlier summary told
	// records tells that requests and actions stand together, in the order of time.
	records bool
	covered map[*reference.Identifier]bool
	items   []*item
	// text holds all placed lines, to detect repetitions.
	text string
}

// dayHeading is a line of a section with a date, which the entries of that day follow.
type dayHeading struct {
	section section
	day     string
}

// String returns the line, which parseDay reads.
func (h dayHeading) String() string { return bulletMark + h.day + ":\n" }

func parseDay(line string) (day string, ok bool) {
	day, ok = strings.CutPrefix(strings.TrimSuffix(line, ":"), bulletMark)
	if !ok || len(day) != len(time.DateOnly) {
		return "", false
	}
	_, err := time.Parse(time.DateOnly, day)
	return day, err == nil
}

// place adds an item if it fits and is no repetition. It returns false if the item may fit
// later, when caps are raised.
func (p *page) place(it *item) bool {
	size, h := it.size, p.heading(it)
	if !p.begun[h.section] {
		size += len(sectionTable[h.section].heading) + 1
	}
	size += p.headingSize(it)
	var above []*item // what it stands below, and is not placed
	for a := it.parent; a != nil && !a.placed; a = a.parent {
		above = append(above, a)
		size += a.size
	}
	var before []*item
	for _, x := range append([]*item{it}, above...) {
		for a := x.follows; a != nil && !a.placed; a = a.follows {
			if slices.Contains(before, a) || slices.Contains(above, a) || p.contains(a) { // it is told anyway, or elsewhere
				continue
			}
			if before = append(before, a); a.parent != nil && a.parent != x.parent && !a.parent.placed && !slices.Contains(before, a.parent) {
				before = append(before, a.parent)
			}
		}
	}
	for _, a := range before {
		size += a.size
	}
	if it.extends != nil {
		if !it.extends.placed {
			return false
		}
		if it.size <= it.extends.size { // another one extended it to more
			return true
		}
		size -= it.extends.size
	}
	room := p.budget
	if it.section == sectionRequests {
		room -= p.held
	}
	if size > room || p.used[it.share] > 0 && p.used[it.share]+size > p.caps[it.share] {
		return false
	}
	core := it.core()
	if p.contains(it) || it.parent != nil && strings.Contains(it.parent.text, core) ||
		slices.ContainsFunc(above, func(a *item) bool { return !a.heading && strings.Contains(p.text, a.core()) }) {
		return true
	}
	p.text += core + "\n"
	for _, a := range append(above, before...) {
		p.text += a.core() + "\n"
		a.placed = true
		p.items = append(p.items, a)
	}
	it.placed = true
	if it.covers != nil {
		it.covers.placed = true
	}
	if it.extends != nil {
		it.extends.text, it.extends.size = it.text, it.size
		p.items = slices.DeleteFunc(p.items, func(below *item) bool { // what the whole tells as well
			told := below.parent == it.extends && strings.Contains(it.text, below.core()) && !slices.ContainsFunc(p.items, func(o *item) bool { return o.parent == below })
			if told {
				p.budget += below.size
				p.used[below.share] -= below.size
			}
			return told
		})
	} else {
		p.items = append(p.items, it)
	}
	p.budget -= size
	p.used[it.share] += size
	p.begun[h.section] = true
	p.days[h] = true
	for _, c := range it.ids {
		p.covered[c.Identifier] = true
	}
	return true
}

// contains reports whether the text has an item's already; of an action as a whole: "pieces 12" does not tell
// "pieces 1".
func (p *page) contains(it *item) bool {
	if it.repeats {
		return false
	}
	if it.acted {
		return prose.ContainsWord(p.text, it.core())
	}
	return strings.Contains(p.text, it.core())
}

// heading returns the section and the day under whose headings an item stands.
func (p *page) heading(it *item) dayHeading {
	if p.records && (it.section == sectionRequests || it.section == sectionCompleted) {
		return dayHeading{sectionExchanges, it.day}
	}
	return dayHeading{it.section, it.day}
}

// headingSize returns the size of the heading that a day gets for an item, 0 if it has one.
func (p *page) headingSize(it *item) int {
	h := p.heading(it)
	if it.day == "" || p.days[h] {
		return 0
	}
	return len(h.String())
}

// core returns the text of an item without its marks, and with its day for what was done: the same may be
// done again on another one.
func (it *item) core() string {
	core := strings.TrimLeft(strings.TrimSuffix(it.text, "\n"), "-> ")
	if it.section == sectionCompleted && it.day != "" {
		return it.day + " " + core
	}
	return core
}

// density returns the value of an item per character.
func (p *page) density(it *item) float64 {
	value, size := it.value, it.size+p.headingSize(it)
	for _, c := range it.ids {
		if !p.covered[c.Identifier] && (it.section != sectionRequests || it.parent != nil) { // the newest requests count most, whatever they name
			value += c.Score
		}
	}
	add := func(a *item) {
		value += a.value
		size += a.size
	}
	for x := it; x != nil && (x == it || !x.placed); x = x.parent {
		if x != it {
			add(x)
		}
		for a := x.follows; a != nil && !a.placed; a = a.follows {
			add(a)
		}
	}
	if it.topical {
		value *= reference.TopicFactor
	}
	return value / float64(size+1)
}

// stateRoom is the part of the room that the earlier requests leave for the state: a sixth.
const stateRoom = 6

// fill places items, which are in the order of the text, by tier, those of one by density.
func (p *page) fill(items []*item, held int) {
	actions, size := false, 0
	for i, it := range items {
		if it.order >= 0 { // no leading one
			it.order = i
		}
		actions = actions || it.acted
		size += it.size
	}
	var rest []*item
	omitted := &item{section: sectionCompleted, share: sectionExchanges, order: -1}
	tasks := &item{section: sectionRemaining, share: sectionRemaining, order: len(items)}
	reserve := 0 // for the number of the actions that have no room
	if actions && size > p.budget {
		reserve = min(p.budget, len(omittedLine))
		p.budget -= reserve
	}
	p.held = p.budget/stateRoom + held
	next := len(sectionTable[sectionRemaining].heading) + 1 // what is to be done now and then
	for i, n := 0, 0; i < len(items) && n < 2; i++ {
		if items[i].section == sectionRemaining {
			next += items[i].size
			n++
		}
	}
	p.caps[sectionRemaining] = max(p.caps[sectionRemaining], next)
	for tier := range tiers {
		if tier == tierState {
			p.held = 0
		}
		if tier == tierOther { // the user's words, and the newest answer, before the others' at least
			for _, it := range rest {
				if (it.tier == tierUser || it.tier == tierDemands && it.section == sectionState) && !it.placed {
					share := p.caps[it.share]
					p.caps[it.share] = p.used[it.share] + p.budget
					p.place(it)
					p.caps[it.share] = max(share, p.used[it.share])
				}
			}
		}
		var q queue.Queue[*item]
		for i, it := range items {
			if it.tier == tierSpare && p.records && it.section == sectionRequests && it.extends == nil && omitted.text != "" {
				continue // no small talk where actions have no room
			}
			if it.looked && omitted.text != "" { // what was done comes first
				continue
			}
			if it.tier == tier && !it.heading {
				q.Add(it, p.density(it), i)
			}
		}
		for it := range q.All(func(it *item) (float64, bool) { return p.density(it), true }) {
			if !it.placed && !p.place(it) {
				rest = append(rest, it)
			}
		}
		switch tier {
		case tierOpen:
			p.countTasks(tasks, items)
			continue
		case tierDone:
		default:
			continue
		}
		p.budget += reserve
		if !p.begun[p.heading(omitted).section] {
			omitted.section = sectionState // no section for a number alone
		}
		for _, kinds := range []int{maxKinds, 0} { // so that none is taken for not done
			if omitted.text = p.omitted(items, kinds); omitted.text == "" {
				break
			}
			omitted.size = utf8.RuneCountInString(omitted.text)
			if p.place(omitted) {
				break
			}
		}
		for _, it := range rest { // in the room that was kept for their number
			if it.acted && !it.placed {
				if p.records { // before any is told whole
					p.caps[it.share] = max(p.caps[it.share], p.used[it.share]+it.size+p.headingSize(it))
				}
				p.place(it)
			}
		}
	}
	for s := range p.caps { // any section gets the unused budget
		p.caps[s] = p.used[s] + p.budget
	}
	for _, it := range rest {
		if !it.placed {
			p.place(it)
		}
	}
	for _, it := range items { // a list ends where there is no room for more of it
		if f := it.follows; f != nil && f.placed && !it.placed && f.parent == it.parent && it.parent != nil && p.budget >= len(prose.Ellipsis) && !p.contains(it) && !strings.HasSuffix(f.text, prose.Ellipsis+"\n") {
			f.text = strings.TrimSuffix(f.text, "\n") + prose.Ellipsis + "\n"
			p.budget -= utf8.RuneCountInString(prose.Ellipsis)
		}
	}
	p.markFinished(items)
	omitted.text = p.omitted(items, maxKinds)
	if utf8.RuneCountInString(omitted.text) > omitted.size+p.budget {
		omitted.text = p.omitted(items, 0)
	}
	if omitted.section = sectionCompleted; !p.begun[p.heading(omitted).section] {
		omitted.section = sectionState
	}
	n := p.openTasks(items)
	tasks.text = fmt.Sprintf(tasksLine, n)
	p.items = slices.DeleteFunc(p.items, func(it *item) bool { return it == omitted && omitted.text == "" || it == tasks && n == 0 })
}

// markFinished marks the first line of the tasks that were done if there is no room for all of them, in the place of its last
// tasks if need be.
func (p *page) markFinished(items []*item) {
	var first *item
	left := p.moreFinished
	for _, it := range items {
		if !strings.HasPrefix(it.text, finishedMark) {
			continue
		}
		if it.placed && first == nil {
			first = it
		}
		left = left || !it.placed && !p.contains(it)
	}
	if first == nil || !left {
		return
	}
	text := finishedOthers + strings.TrimPrefix(first.text, finishedMark)
	for utf8.RuneCountInString(text) > first.size+p.budget {
		at := strings.LastIndex(text, requestSeparator)
		if at < 0 {
			return
		}
		text = text[:at] + "\n"
	}
	p.budget -= utf8.RuneCountInString(text) - first.size
	first.text = text
}

// countTasks places the line of the open tasks that have no room, if others have: if need be in the place of the last of
// those that follow the one in progress.
func (p *page) countTasks(tasks *item, items []*item) {
	n := p.openTasks(items)
	if n == 0 || !p.begun[sectionRemaining] {
		return
	}
	tasks.text = fmt.Sprintf(tasksLine, n)
	tasks.size = len(tasks.text)
	p.caps[sectionRemaining] += tasks.size
	told := slices.DeleteFunc(slices.Clone(p.items), func(it *item) bool { return it.section != sectionRemaining || it.follows == nil })
	slices.SortFunc(told, func(a, b *item) int { return cmp.Compare(b.order, a.order) })
	room := p.budget
	for i, it := range told {
		if room += it.size; tasks.size <= room && tasks.size > p.budget {
			for _, out := range told[:i+1] {
				p.remove(out)
			}
			tasks.text = fmt.Sprintf(tasksLine, n+i+1)
			break
		}
	}
	p.place(tasks)
}

// remove takes back the placing of an item below which nothing stands.
func (p *page) remove(it *item) {
	it.placed = false
	p.items = slices.DeleteFunc(p.items, func(o *item) bool { return o == it })
	p.text = strings.Replace(p.text, it.core()+"\n", "", 1)
	p.budget += it.size
	p.used[it.share] -= it.size
}

// openTasks returns the number of open tasks that are not placed, with those without room in an earlier summary.
func (p *page) openTasks(items []*item) int {
	n := p.tasksLeft
	for _, it := range items {
		if it.section == sectionRemaining && !it.placed && it.parent == nil && !p.contains(it) {
			n++
		}
	}
	return n
}

// maxKinds is the number of kinds of actions without room that are told.
const maxKinds = 3

// omitted returns the line of the actions that are not placed, with those that were dropped before and the most frequent
// kinds; "" if there are none.
func (p *page) omitted(items []*item, most int) string {
	n := p.dropped
	of := map[string]int{}
	for _, it := range items {
		if it.acted && !it.placed && !p.contains(it) {
			n++
			of[it.kind]++
		}
	}
	if n == 0 {
		return ""
	}
	delete(of, "")
	kinds := slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b)) })
	var parts []string
	for _, kind := range kinds[:min(len(kinds), most)] {
		parts = append(parts, fmt.Sprintf("%s %d", kind, of[kind]))
	}
	if len(kinds) > most {
		parts = append(parts, strings.TrimSpace(prose.Ellipsis))
	}
	told := ""
	if most > 0 && len(kinds) > 0 {
		told = " (" + strings.Join(parts, ", ") + ")"
	}
	return fmt.Sprintf(omittedLine, n, told)
}

// String returns the items in the order of sections, each section with its heading.
func (p *page) String() string {
	slices.SortStableFunc(p.items, func(a, b *item) int {
		inTime := 0
		if p.records {
			inTime = cmp.Compare(a.at, b.at)
		}
		return cmp.Or(cmp.Compare(p.heading(a).section, p.heading(b).section), cmp.Compare(a.day, b.day), inTime, cmp.Compare(a.order, b.order))
	})
	var b strings.Builder
	last := dayHeading{section: numSections}
	for i, it := range p.items {
		if strings.HasSuffix(it.text, activeHere+"\n") && (i+1 == len(p.items) || !p.items[i+1].acted) { // what was done for it stands elsewhere
			continue
		}
		h := p.heading(it)
		if h.section != last.section {
			b.WriteString(sectionTable[h.section].heading + "\n")
		}
		if h != last && h.day != "" {
			b.WriteString(h.String())
		}
		last = h
		text := it.text
		if head, leads := strings.CutSuffix(text, ":\n"); leads && it.stands && (i+1 == len(p.items) || p.items[i+1].parent != it) {
			text = head + "\n" // nothing stands below it
		}
		b.WriteString(text)
	}
	return b.String()
}
