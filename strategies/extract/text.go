package extract

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	originLong  = "Made from %d messages without a model. Lines with > quote the user.\n"
	originShort = "Made without a model.\n"
)

// writeText returns the summary in at most budget characters, with at most the given
// number of tokens of references.
func (d *Digest) writeText(budget, references int) string {
	room := max(budget-int(float64(budget)*d.history.referenceShare()), min(budget, len(originShort)))
	most := budget - budget/8
	if task := 2*d.history.taskSize() + 2*len(originLong); task <= most {
		room = max(room, task)
	}
	prose, constraints, state := d.writeProse(room, 0)
	if constraints+state > 0 && room < most { // references are worth less
		if constraints == 0 {
			most = min(room+state, most)
		}
		prose, _, _ = d.writeProse(most, state)
	}
	if prose == "" {
		return ""
	}
	left := func() int { return budget - utf8.RuneCountInString(prose) }
	find := func() string {
		most := int(referenceShare / (1 - referenceShare) * float64(utf8.RuneCountInString(prose)))
		most = min(most, max(minReferences, int(coveredReferenceShare*float64(d.ids.bytesRead))))
		refs := d.fit(references, func(r int) string { return d.ids.references(min(r, left(), most), prose) })
		if d.history.isRecords() && len(refs) < budget/8 { // the calls tell all but a few stray values
			return ""
		}
		return refs
	}
	refs := find()
	if n := utf8.RuneCountInString(refs); left()-n > budget/16 { // prose gets the unused budget of the references
		prose, _, _ = d.writeProse(budget-n, state)
		refs = find()
	}
	return strings.TrimSuffix(prose+refs, "\n")
}

// isRecords reports whether most actions are listed with their values: calls with short
// values, not commands and edits.
func (s *history) isRecords() bool {
	acts, records := 0, 0
	if s.wereRecords { // as one action of the earlier summary
		acts, records = 1, 1
	}
	for _, c := range s.calls {
		if c.acts && c.done && !c.isTodoList {
			acts++
			if len(c.arguments) > 0 {
				records++
			}
		}
	}
	return 2*records > acts && len(s.files) == 0
}

// referenceShare returns the share of the references in a summary.
func (s *history) referenceShare() float64 {
	if s.isRecords() {
		return recordsReferenceShare
	}
	if len(s.calls) > 0 && len(s.files) == 0 {
		return toolReferenceShare
	}
	return referenceShare
}

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
	ids []candidate
	// at orders the requests and actions of a day: twice the number of requests before it, of an action
	// one more.
	at int
	// day is the date under which the line stands, "" for none.
	day string
	// parent is the item that must precede this one, nil for none.
	parent *item
	// extends is a placed item that this one replaces, nil for none.
	extends *item
	placed  bool
	// covers is an item that says no more than this one, nil for none.
	covers *item
	// acted reports that it tells what was done.
	acted bool
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
	// dropped is the number of actions for which there is no item.
	dropped int
	// records tells that requests and actions stand together, in the order of time.
	records bool
	covered map[*identifier]bool
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

// writeProse returns the summary without references in at most budget characters, and the sizes of the
// constraints and of the state for which it has no room. The requests leave held characters more for the
// state.
func (d *Digest) writeProse(budget, held int) (prose string, constraints, state int) {
	head := fmt.Sprintf(originLong, d.history.messages)
	if len(head) > budget/8 {
		head = originShort
	}
	if len(head) > budget {
		return "", 0, 0
	}
	p := &page{budget: budget - len(head), covered: map[*identifier]bool{}, days: map[dayHeading]bool{}, records: d.history.isRecords(), dropped: d.history.dropped}
	for i, s := range sectionTable {
		p.caps[i] = int(s.share * float64(p.budget))
	}
	p.caps[sectionRequests] = d.history.requestsRoom(p.budget)
	if d.history.isTalk() {
		p.caps[sectionFindings] = int(talkFindingsShare * float64(p.budget))
	}
	var late []*item
	for i, it := range d.history.leadingItems(p.budget) {
		it.order = i - maxLeadingItems // before all others
		d.prepare(it)
		if !p.place(it) { // there may be room for it with the other requests
			it.tier, it.value = tierUser, worthAsked
			late = append(late, it)
		}
	}
	others := d.history.otherItems(p.budget)
	for _, it := range others {
		d.prepare(it)
	}
	others = append(late, others...)
	p.fill(others, held)
	needsState := d.history.referenceShare() == referenceShare // of customers, the references are the values
	for _, it := range others {
		switch {
		case it.placed || it.size <= p.budget || strings.Contains(p.text, it.core()):
		case it.section == sectionConstraints && it.tier == tierUser:
			constraints += it.size
		case needsState && it.parent == nil && (it.tier == tierState || it.tier == tierErrors):
			state += it.size
		}
	}
	if needsState && state == 0 && !p.begun[sectionState] {
		state = smallest(others, sectionState)
	}
	return head + p.String(), constraints, state
}

// smallest returns the size of the smallest of the items of a section, with its heading, 0 if there is none.
func smallest(items []*item, sec section) int {
	size := 0
	for _, it := range items {
		if it.section == sec && it.parent == nil && (size == 0 || it.size < size) {
			size = it.size
		}
	}
	if size == 0 {
		return 0
	}
	return size + len(sectionTable[sec].heading) + 1
}

// prepare sets the size, the identifiers and the topic of an item.
func (d *Digest) prepare(it *item) {
	if it.day != "" {
		it.text = indentMark + it.text
	}
	if it.parent != nil {
		it.at = it.parent.at
	}
	it.size = utf8.RuneCountInString(it.text)
	it.topical = d.ids.topic.matches(it.text) || it.topical && len(d.ids.topic) > 0
	it.topical = it.topical || it.parent != nil && d.ids.topic.matches(it.parent.text)
	seen := map[*identifier]bool{}
	All(it.text, func(_ Kind, start, end int) {
		if id := d.ids.idents[it.text[start:end]]; id != nil && !seen[id] {
			for _, c := range d.ids.contained(candidate{identifier: id, score: d.ids.score(id)}) {
				if !seen[c.identifier] {
					seen[c.identifier] = true
					it.ids = append(it.ids, c)
				}
			}
		}
	})
}

// place adds an item if it fits and is no repetition. It returns false if the item may fit
// later, when caps are raised.
func (p *page) place(it *item) bool {
	size, h := it.size, p.heading(it)
	if !p.begun[h.section] {
		size += len(sectionTable[h.section].heading) + 1
	}
	size += p.headingSize(it)
	parent := it.parent
	if parent != nil && parent.placed {
		parent = nil
	}
	if parent != nil {
		size += parent.size
	}
	if it.extends != nil {
		if !it.extends.placed {
			return false
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
	if p.contains(it) || parent != nil && strings.Contains(p.text, parent.core()) || it.parent != nil && strings.Contains(it.parent.text, core) {
		return true
	}
	p.text += core + "\n"
	if parent != nil {
		p.text += parent.core() + "\n"
		parent.placed = true
		p.items = append(p.items, parent)
	}
	it.placed = true
	if it.covers != nil {
		it.covers.placed = true
	}
	if it.extends != nil {
		it.extends.text, it.extends.size = it.text, it.size
		p.items = slices.DeleteFunc(p.items, func(below *item) bool { // what the whole tells as well
			told := below.parent == it.extends && strings.Contains(it.text, below.core())
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
		p.covered[c.identifier] = true
	}
	return true
}

// contains reports whether the text has an item's already; of an action as a whole: "pieces 12" does not tell
// "pieces 1".
func (p *page) contains(it *item) bool {
	if it.acted {
		return containsWord(p.text, it.core())
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
		if !p.covered[c.identifier] {
			value += c.score
		}
	}
	if it.parent != nil && !it.parent.placed {
		value += it.parent.value
		size += it.parent.size
	}
	if it.topical {
		value *= topicFactor
	}
	return value / float64(size+1)
}

// stateRoom is the part of the room that the earlier requests leave for the state: a sixth.
const stateRoom = 6

// fill places items, which are in the order of the text, by tier, those of one by density.
func (p *page) fill(items []*item, held int) {
	for i, it := range items {
		it.order = i
	}
	var rest []*item
	omitted := &item{section: sectionCompleted, share: sectionExchanges, order: -1}
	p.held = p.budget/stateRoom + held
	for tier := range tiers {
		if tier == tierState {
			p.held = 0
		}
		if tier == tierOther { // the user's words before the others' at least
			for _, it := range rest {
				if it.tier == tierUser && !it.placed {
					p.caps[it.share] = max(p.caps[it.share], p.used[it.share]+it.size)
					p.place(it)
				}
			}
		}
		var q queue[*item]
		size := 0
		for i, it := range items {
			if it.tier == tier {
				q.add(it, p.density(it), i)
				size += it.size
			}
		}
		reserve := 0 // for the number of those that have no room
		if tier == tierDone && size > p.budget {
			reserve = min(p.budget, len(omittedLine)+len(sectionTable[sectionCompleted].heading))
		}
		p.budget -= reserve
		for it := range q.all(func(it *item) (float64, bool) { return p.density(it), true }) {
			if !it.placed && !p.place(it) {
				rest = append(rest, it)
			}
		}
		p.budget += reserve
		if tier != tierDone {
			continue
		}
		if n := p.omitted(items); n > 0 { // so that none is taken for not done
			omitted.text = fmt.Sprintf(omittedLine, n)
			omitted.size = len(omitted.text)
			p.place(omitted)
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
	if n := p.omitted(items); n > 0 {
		omitted.text = fmt.Sprintf(omittedLine, n)
		if !slices.ContainsFunc(p.items, func(it *item) bool { return it != omitted && p.heading(it).section == p.heading(omitted).section }) {
			omitted.section = sectionState // no section for a number alone
		}
	} else {
		p.items = slices.DeleteFunc(p.items, func(it *item) bool { return it == omitted })
	}
}

// omitted returns the number of actions that are not placed, with those that were dropped before.
func (p *page) omitted(items []*item) int {
	n := p.dropped
	for _, it := range items {
		if it.acted && !it.placed && !p.contains(it) {
			n++
		}
	}
	return n
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
	for _, it := range p.items {
		h := p.heading(it)
		if h.section != last.section {
			b.WriteString(sectionTable[h.section].heading + "\n")
		}
		if h != last && h.day != "" {
			b.WriteString(h.String())
		}
		last = h
		b.WriteString(it.text)
	}
	return b.String()
}
