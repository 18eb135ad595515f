package extract

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/extract/internal/reference"
)

const (
	originLong  = "Made from %d messages without a model. Lines with > quote the user.\n"
	originShort = "Made without a model.\n"
)

// derived is what follows from a history, whatever the budget of its text: set by derive before a text is written.
type derived struct {
	requests             []requestLine
	said                 map[string]bool // see namesSaid
	unresolved, outdated []bool          // calls, see outdatedChecks
	fileName             func(file string) string
}

// derive sets what follows from the history.
func (s *history) derive() {
	s.derived = derived{fileName: s.fileNames()}
	s.derived.requests, s.derived.said, s.derived.unresolved, s.derived.outdated = s.requestLines(), s.namesSaid(), s.unresolved(), s.outdatedChecks()
}

// writeText returns the summary in at most budget characters, with at most the given
// number of tokens of references.
func (d *Digest) writeText(budget, references int) string {
	room := max(budget-int(float64(budget)*d.history.referenceShare()), min(budget, len(originShort)))
	most := budget - budget/8
	if task := 2*d.history.taskSize() + 2*len(originLong); task <= most || d.history.isOnlyTask() && !d.history.isPlanned() { // of all that is asked for, a part may lack the point
		room = max(room, min(task, most))
	}
	if (budget < minReferenceBudget || d.history.isRecords() && d.history.byDay) && !d.ids.HasTopic() { // references are about the topic
		room = budget
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
		most = min(most, max(minReferences, int(coveredReferenceShare*float64(d.ids.Size()))))
		refs := d.fit(references, func(r int) string {
			return d.ids.Block(min(r, left(), most), prose, strings.Contains(prose, omittedMark))
		})
		if d.history.isRecords() && len(refs) < budget/8 { // the calls tell all but a few stray values
			return ""
		}
		return refs
	}
	refs := find()
	if n := utf8.RuneCountInString(refs); left()-n > budget/50 { // prose gets the unused budget of the references
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
		if c.acts && c.done && !c.administers {
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
	p := &page{budget: budget - len(head), covered: map[*reference.Identifier]bool{}, days: map[dayHeading]bool{}, records: d.history.isRecords(), dropped: d.history.dropped, tasksLeft: d.history.tasksLeft, moreFinished: d.history.moreFinished}
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
		} else if i == 0 { // one sentence of it may stand on two lines, or have two blanks
			p.text += it.oneLine() + "\n"
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
		constrains, states := it.section == sectionConstraints && it.tier == tierUser, needsState && it.parent == nil && (it.tier == tierState || it.tier == tierErrors)
		switch {
		case !constrains && !states || it.placed || it.size <= p.budget || strings.Contains(p.text, it.core()):
		case constrains:
			constraints += it.size
		default:
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
		it.text = indentMark + strings.ReplaceAll(strings.TrimSuffix(it.text, "\n"), "\n", "\n"+indentMark) + "\n"
	}
	if it.parent != nil {
		it.at = it.parent.at
	}
	it.size = utf8.RuneCountInString(it.text)
	it.topical = d.ids.IsTopical(it.text) || it.topical && d.ids.HasTopic()
	it.topical = it.topical || it.parent != nil && d.ids.IsTopical(it.parent.text)
	it.ids = d.ids.Within(it.text)
}
