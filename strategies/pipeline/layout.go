package pipeline

import (
	"sort"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// layout describes the visible part of the log that a draft was made from: its places and
// their atomic groups. A place is the position of one source message; it is occupied by
// that message or by a replacement of it. Summaries have no place. Unlike the groups of a
// view, the groups of a layout do not depend on which messages are included.
type layout struct {
	d          *Draft
	placeOf    []int32 // by id, -1 for entries without a place
	places     []place
	chatGroups []chat.Group // the groups of the places
	groups     []group      // the same, with the guard's state of each
	// earlier holds, by addition, the previous addition for the same place, or -1.
	earlier []int32
}

// place is the position of one message of the log.
type place struct {
	// first to end-1 are the ids of the input's entries that may belong to the place;
	// placeOf tells which of them do. Additions are linked through written and
	// layout.earlier.
	first, end int32
	// rep is the entry whose metadata represents the place in groups: the source if it is
	// visible.
	rep   int32
	group int32
	// written is the id of the last addition for the place, or -1.
	written int32
	// included reports whether an entry of the place is in the view, member whether it
	// belongs to its group; results without a call do not.
	included, member bool
	// verbatim requires the source itself to be in the view.
	verbatim bool
}

// group is the atomic group of the places start to end-1.
type group struct {
	start, end int32
	call       int32 // the place of the first call, or -1
	// calls is the number of calls, answers that of the results in the log that answer them.
	calls, answers int
	// keep requires the group to stay in the view.
	keep bool
	// callExcluded reports that a repair excludes the call.
	callExcluded bool
}

// newLayout returns the layout of the draft's log and additions.
func newLayout(d *Draft) *layout {
	n := len(d.entries) - len(d.adds)
	l := &layout{d: d, placeOf: make([]int32, n, len(d.entries)), places: make([]place, 0, n)}
	for i := range n {
		e := &d.entries[i]
		l.placeOf[i] = -1
		if e.Kind == chat.KindSummary {
			continue
		}
		if k := len(l.places) - 1; k >= 0 && d.entries[l.places[k].rep].Position == e.Position {
			p := &l.places[k]
			rep := &d.entries[p.rep]
			switch {
			case plan.IsSource(rep.Kind) && !canReplace(e.Meta, rep.Meta):
				continue // moved here, the replacement of another message
			case !plan.IsSource(rep.Kind) && !rep.Included && e.Included:
				p.rep = int32(i)
			}
			p.end = int32(i + 1)
			l.placeOf[i] = int32(k)
			continue
		}
		l.placeOf[i] = int32(len(l.places))
		l.places = append(l.places, place{first: int32(i), end: int32(i + 1), rep: int32(i), written: -1})
	}
	for k := range d.adds {
		l.add(int32(n + k))
	}
	l.group()
	return l
}

// add registers an addition, with the place of the message it replaces.
func (l *layout) add(id int32) {
	l.placeOf, l.earlier = append(l.placeOf, -1), append(l.earlier, -1)
	if e := &l.d.entries[id]; e.Kind == chat.KindReplacement {
		if k := l.find(e.Position); k < len(l.places) && l.position(k) == e.Position {
			l.placeOf[id] = int32(k)
			l.earlier[len(l.earlier)-1] = l.places[k].written
			l.places[k].written = id
		}
	}
}

// canReplace reports whether a replacement at the position of a source may replace that
// source; otherwise it was moved there.
func canReplace(m, source chat.Meta) bool {
	switch {
	case source.Role == chat.RoleTool && !source.Has(chat.Paired):
		return true
	case source.Role == chat.RoleAssistant && source.Calls > 0:
		return m.Role == source.Role && !m.ReasoningOnly()
	}
	return m.Role == source.Role && m.Calls == source.Calls && m.ReasoningOnly() == source.ReasoningOnly()
}

// find returns the first place at or after position q.
func (l *layout) find(q chat.Seq) int {
	return sort.Search(len(l.places), func(k int) bool { return l.position(k) >= q })
}

func (l *layout) position(k int) chat.Seq { return l.d.entries[l.places[k].rep].Position }

func (l *layout) rep(k int32) *chat.Meta { return &l.d.entries[l.places[k].rep].Meta }

func (l *layout) group() {
	if t := l.d.input; len(l.places) == len(t.Entries) {
		l.chatGroups = t.Groups() // every entry is a place
	} else {
		l.chatGroups = chat.GroupsOf(len(l.places), func(k int) *chat.Meta { return l.rep(int32(k)) })
	}
	l.groups = make([]group, len(l.chatGroups))
	for i := range l.chatGroups {
		g := &l.chatGroups[i]
		l.groups[i] = group{start: int32(g.Start), end: int32(g.End), call: int32(g.Call), calls: g.Calls, answers: g.Answers}
		for k := g.Start; k < g.End; k++ {
			l.places[k].group = int32(i)
			l.places[k].member = g.Member(l.rep(int32(k)))
		}
	}
}

// open returns the first place of the first incomplete call group, or -1 (see
// chat.OpenFrom).
func (l *layout) open() int32 {
	passed := plan.PassedPosition(l.d.entries[:len(l.d.entries)-len(l.d.adds)])
	open := int32(chat.OpenFrom(l.chatGroups, passed, func(k int) *chat.Meta { return l.rep(int32(k)) }))
	if open >= 0 && l.d.input.Ended && l.groups[l.places[open].group].waits() {
		return -1
	}
	return open
}

// waits reports whether calls of the group lack results.
func (g *group) waits() bool { return g.calls > g.answers }

// makesCalls reports whether the message of a place makes calls.
func (l *layout) makesCalls(k int32) bool {
	m := l.rep(k)
	return m.Role == chat.RoleAssistant && m.Calls > 0
}

// each calls f with the ids of the entries of a place, the latest first.
func (l *layout) each(k int32, f func(id int32)) {
	n := len(l.d.entries) - len(l.d.adds)
	for id := l.places[k].written; id >= 0; id = l.earlier[int(id)-n] {
		f(id)
	}
	for id := l.places[k].end - 1; id >= l.places[k].first; id-- {
		if l.placeOf[id] == k {
			f(id)
		}
	}
}

// invalid reports whether the source of a place violates a view: a result without a call,
// a call of a batch that will never be answered in full, or a role that no provider takes.
func (l *layout) invalid(k, open int32) bool {
	p, m := &l.places[k], l.rep(k)
	g := &l.groups[p.group]
	return m.Role == chat.RoleTool && !p.member || !m.Role.Known() ||
		l.makesCalls(k) && g.waits() && (open < 0 || k < open)
}

// completeGroups restores the missing members of every group that stays in the view.
func (l *layout) completeGroups(open int32) {
	for id, k := range l.placeOf {
		if k >= 0 && l.d.entries[id].Included {
			l.places[k].included = true
		}
	}
	if open >= 0 {
		for k := open; k < int32(len(l.places)); k++ {
			if !l.places[k].included && l.wasOccupied(k) {
				l.restore(k)
			}
		}
	}
	for i := range l.groups {
		g := &l.groups[i]
		stays, made, answered := g.keep, 0, 0 // the calls and results of the group in the view of the input
		for k := g.start; k < g.end; k++ {
			stays = stays || l.places[k].included && l.places[k].member
			l.each(k, func(id int32) {
				if l.d.marks[id].wasIncluded {
					made += l.d.entries[id].Calls
				}
			})
			if l.rep(k).Role == chat.RoleTool && l.places[k].member && l.wasOccupied(k) {
				answered++
			}
		}
		if !stays || l.dissolved(g, open) {
			continue
		}
		l.restoreCalls(g)
		for k := g.start; k < g.end; k++ {
			// Of parallel calls, an earlier repair takes those without a result: it leaves a call for each.
			repaired := min(made, answered) >= g.answers && g.calls > l.rep(k).Calls && l.makesCalls(k) && l.invalid(k, open) && !l.wasOccupied(k)
			if l.places[k].member && !l.places[k].included && !repaired {
				l.restore(k)
			}
		}
	}
}

// restoreCalls restores the original call message if a strategy removed some of its calls
// whose results stay, or if a result returns whose call the replacement does not make.
func (l *layout) restoreCalls(g *group) {
	returns := false
	for k := g.start; k < g.end; k++ {
		returns = returns || l.places[k].member && l.rep(k).Role == chat.RoleTool && l.occupied(k) && !l.wasOccupied(k)
	}
	for k := g.start; k < g.end; k++ {
		if !l.makesCalls(k) {
			continue
		}
		whole := false
		l.each(k, func(id int32) {
			e := &l.d.entries[id]
			shrunk := !plan.IsSource(e.Kind) && (e.Included || l.d.marks[id].wasIncluded) && e.Calls < min(g.answers, l.rep(k).Calls)
			written := int(id) >= len(l.d.entries)-len(l.d.adds)
			whole = whole || returns && shrunk || e.Included && written && e.Calls < l.rep(k).Calls
		})
		if whole {
			l.d.include(l.places[k].rep)
			l.places[k].included = true
		}
	}
}

// dissolved reports whether the group's call was never answered and is excluded already. It
// would need a repair if it were restored, and the rest of the group is valid without it.
func (l *layout) dissolved(g *group, open int32) bool {
	return g.call >= 0 && g.answers == 0 && !l.places[g.call].included && l.invalid(g.call, open)
}

// wasOccupied reports whether an entry of the place was in the view of the input.
func (l *layout) wasOccupied(k int32) bool {
	was := false
	l.each(k, func(id int32) { was = was || l.d.marks[id].wasIncluded })
	return was
}

// occupied reports whether an entry of the place is in the view.
func (l *layout) occupied(k int32) bool {
	occupied := false
	l.each(k, func(id int32) { occupied = occupied || l.d.entries[id].Included })
	return occupied
}

// restore includes the entry of the place that was in the view of the input, or else the
// source.
func (l *layout) restore(k int32) {
	id := l.places[k].rep
	l.each(k, func(i int32) {
		if l.d.marks[i].wasIncluded {
			id = i
		}
	})
	l.d.include(id)
	l.places[k].included = true
}

// dropDuplicates leaves one entry of each place in the view: the source if it is included,
// else the last replacement.
func (l *layout) dropDuplicates() {
	for k := range l.places {
		p := &l.places[k]
		if !p.included || p.end == p.first+1 && p.written < 0 {
			continue
		}
		keep := int32(-1)
		if l.d.entries[p.rep].Included && plan.IsSource(l.d.entries[p.rep].Kind) {
			keep = p.rep
		}
		l.each(int32(k), func(id int32) {
			switch {
			case !l.d.entries[id].Included || id == keep:
			case keep < 0:
				keep = id
			default:
				l.d.set(id, false)
				l.d.marks[id].reason, l.d.marks[id].by = reasonRestored, -1
			}
		})
	}
}

// dropEmptied excludes additions that cover nothing any more. Replacements go first, since
// their originals return.
func (l *layout) dropEmptied() {
	if len(l.d.adds) == 0 {
		return
	}
	l.dropEmptiedOf(chat.KindReplacement)
	l.dropEmptiedOf(chat.KindSummary)
}

func (l *layout) dropEmptiedOf(kind chat.Kind) {
	d := l.d
	n := len(d.entries) - len(d.adds)
	covering := make([]bool, len(d.adds))
	for id := range n {
		if !d.entries[id].Included {
			if by, _ := d.resolve(int32(id)); by >= 0 {
				covering[by-int32(n)] = true
			}
		}
	}
	for k := range d.adds {
		id := int32(n + k)
		if covering[k] || !d.entries[id].Included || d.entries[id].Kind != kind {
			continue
		}
		d.set(id, false)
		d.marks[id].reason = reasonEmptied
		if k := l.placeOf[id]; k >= 0 && !l.occupied(k) {
			l.restore(k)
		}
	}
}

// placeSummaries moves summaries that the run wrote to valid positions.
func (l *layout) placeSummaries(open int32) {
	d, n := l.d, len(l.d.entries)-len(l.d.adds)
	if len(d.adds) == 0 {
		return
	}
	system := l.leadingSystem()
	for id := n; id < len(d.entries); id++ {
		e := &d.entries[id]
		if e.Included && (e.Kind == chat.KindSummary || l.splitsGroup(int32(id), open)) {
			d.moveSummary(int32(id), l.summaryPosition(e.Position, system, open))
		}
	}
}

// splitsGroup reports whether an addition that is no longer a result stands among the
// results of a call, present or expected.
func (l *layout) splitsGroup(id, open int32) bool {
	k := l.placeOf[id]
	return k >= 0 && l.d.entries[id].Role != chat.RoleTool && l.withinGroup(k, open)
}

// withinGroup reports whether place k is no member of its group while members follow it, or
// may still be appended.
func (l *layout) withinGroup(k, open int32) bool {
	if l.places[k].member {
		return false
	}
	g := &l.groups[l.places[k].group]
	if open >= 0 && k >= open && g.waits() {
		return true
	}
	for k++; k < g.end; k++ {
		if l.places[k].member {
			return true
		}
	}
	return false
}

// leadingSystem returns the position of the last leading system message, 0 for none.
func (l *layout) leadingSystem() chat.Seq {
	var last chat.Seq
	for k := range l.places {
		if !l.places[k].included {
			continue
		}
		if l.rep(int32(k)).Role != chat.RoleSystem {
			break
		}
		last = l.position(k)
	}
	return last
}

// summaryPosition returns the position nearest to q, towards the front, where a summary
// splits no group now or after appends, and precedes no leading system message.
func (l *layout) summaryPosition(q, system chat.Seq, open int32) chat.Seq {
	if n := len(l.places); n > 0 {
		q = min(q, l.position(n-1)+1)
	}
	if k := l.find(q); k < len(l.places) {
		q = min(q, l.position(int(l.groups[l.places[k].group].start)))
	}
	if open >= 0 {
		q = min(q, l.position(int(open)))
	}
	return max(q, system+1)
}

// followsMovedCall reports whether only results and reasoning stand between the place open and
// a call before it that an application has moved there. Such a call has no place, and nothing
// can be put in front of it at its position.
func (l *layout) followsMovedCall(open int32) bool {
	for id := l.places[open].first - 1; id >= 0; id-- {
		e := &l.d.entries[id]
		if e.Included && e.Role != chat.RoleTool && !e.HoldsOnlyReasoning() && plan.FromApplication(e.Meta) {
			return plan.MakesCalls(e) && l.placeOf[id] < 0
		}
	}
	return false
}
