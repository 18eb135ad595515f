package pipeline

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// Guard holds the options of the invariants that the draft satisfies after the guard,
// whatever strategies planned:
//
//   - atomic groups are included or excluded as a whole
//   - the last user message, system messages and pinned messages are in the view, verbatim
//   - the first call that waits for results stays, with everything after it
//   - summaries stand between groups and after the leading system messages
//   - violations that the log itself contains are repaired
//
// The zero Guard is the strict one.
type Guard struct {
	// DropSystem allows system messages to be excluded (preserve_system: false).
	DropSystem bool
}

// The reasons of the guard's own exclusions.
const (
	ReasonFallback = "token_budget_fallback"
	reasonRestored = "restored" // a replacement whose original is included again
	reasonEmptied  = "emptied"  // an addition that covers nothing any more
)

// hold changes the draft until it satisfies the invariants, with as few changes as possible.
// load reads the messages that are repaired; it may be nil if the draft holds their content.
// The steps depend on each other's results, so their order matters.
func (d *Draft) hold(ctx context.Context, g Guard, load plan.Loader) error {
	if err := d.checkCalls(ctx, load); err != nil {
		return err
	}
	d.arrange()
	g.protect(d)
	d.completeGroups()
	d.dropDuplicates()
	d.dropEmptied(chat.KindReplacement) // first, since their originals return
	d.dropEmptied(chat.KindSummary)
	d.placeSummaries()
	return d.repair(ctx, load)
}

// place is the position of one source message in the visible part of the log. It is occupied
// by that message or by a replacement of it; summaries have no place.
type place struct {
	// first to end-1 are the ids of the input's entries that may belong to the place; their
	// marks say which of them do. written is the id of the last addition for it, or -1.
	first, end, written int32
	// rep is the entry whose metadata represents the place in groups: the source if it is
	// visible.
	rep      int32
	position chat.Seq
	group    int
	// member reports whether the place belongs to its group; results without a call do not.
	member bool
	// call reports whether the message makes calls, answer whether it is a result of one.
	call, answer bool
}

// group is an atomic group of places. Unlike the groups of a view, those of places do not
// depend on which messages are included.
type group struct {
	chat.Group
	keep         bool // the group must stay in the view
	callExcluded bool // a repair excludes the call
}

// arrange computes the places and groups of the log and the additions.
func (d *Draft) arrange() {
	d.places = make([]place, 0, d.n)
	for id := range d.n {
		e := &d.entries[id]
		d.marks[id].place = -1
		if e.Kind == chat.KindSummary {
			continue
		}
		if k := len(d.places) - 1; k < 0 || d.places[k].position != e.Position {
			d.places = append(d.places, place{first: id, rep: id, written: -1, position: e.Position})
		} else if rep := d.rep(k); plan.IsSource(rep.Kind) {
			if !canReplace(e.Meta, *rep) {
				continue // moved here, the replacement of another message
			}
		} else if e.Included && !d.entries[d.places[k].rep].Included {
			d.places[k].rep = id
		}
		k := len(d.places) - 1
		d.places[k].end = id + 1
		d.marks[id].place = int32(k)
	}
	for k := range d.adds {
		d.arrangeAddition(d.n + int32(k))
	}
	groups := d.input.Groups()
	if len(d.places) != len(d.input.Entries) {
		groups = chat.GroupsOf(len(d.places), d.rep)
	}
	d.groups = make([]group, len(groups))
	for i, g := range groups {
		d.groups[i].Group = g
		for k := g.Start; k < g.End; k++ {
			p, m := &d.places[k], d.rep(k)
			p.group, p.member = i, g.Member(m)
			p.call, p.answer = m.Role == chat.RoleAssistant && m.Calls > 0, m.Role == chat.RoleTool && p.member
		}
	}
	d.open = chat.OpenFrom(groups, plan.PassedPosition(d.entries[:d.n]), d.rep)
	if d.open >= 0 && d.input.Ended && d.groupOf(d.open).Waits() {
		d.open = -1
	}
}

// arrangeAddition marks an addition with the place of the message it replaces.
func (d *Draft) arrangeAddition(id int32) {
	m, e := &d.marks[id], &d.entries[id]
	m.place, m.earlier = -1, -1
	if e.Kind != chat.KindReplacement {
		return
	}
	if k, found := slices.BinarySearchFunc(d.places, e.Position, comparePosition); found {
		m.place, m.earlier = int32(k), d.places[k].written
		d.places[k].written = id
	}
}

func comparePosition(p place, q chat.Seq) int { return cmp.Compare(p.position, q) }

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

func (d *Draft) rep(k int) *chat.Meta { return &d.entries[d.places[k].rep].Meta }

func (d *Draft) groupOf(k int) *group { return &d.groups[d.places[k].group] }

// at returns the ids of the entries of a place, the latest first.
func (d *Draft) at(k int) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		p := &d.places[k]
		for id := p.written; id >= 0; id = d.marks[id].earlier {
			if !yield(id) {
				return
			}
		}
		for id := p.end - 1; id >= p.first; id-- {
			if d.marks[id].place == int32(k) && !yield(id) {
				return
			}
		}
	}
}

// occupied reports whether an entry of the place is in the view.
func (d *Draft) occupied(k int) bool {
	for id := range d.at(k) {
		if d.entries[id].Included {
			return true
		}
	}
	return false
}

// was returns the entry of the place that was in the view of the input, or -1.
func (d *Draft) was(k int) int32 {
	was := int32(-1)
	for id := range d.at(k) {
		if d.wasIncluded(id) {
			was = id
		}
	}
	return was
}

// restore includes the entry of the place that was in the view of the input, or else the
// source.
func (d *Draft) restore(k int) {
	if was := d.was(k); was >= 0 {
		d.include(was)
	} else {
		d.include(d.places[k].rep)
	}
}

// invalid reports whether the source of a place violates a view: a result without a call,
// a call of a batch that will never be answered in full, or a role that no provider takes.
func (d *Draft) invalid(k int) bool {
	switch m := d.rep(k); {
	case !m.Role.Known():
		return true
	case m.Role == chat.RoleTool:
		return !d.places[k].member
	}
	return d.places[k].call && d.groupOf(k).Waits() && (d.open < 0 || k < d.open)
}

// lastUser returns the place of the last user message, -1 for none.
func (d *Draft) lastUser() int {
	k := len(d.places) - 1
	for k >= 0 && (d.rep(k).Role != chat.RoleUser || !plan.IsSource(d.rep(k).Kind)) {
		k--
	}
	return k
}

// protect restores the messages that must be in the view verbatim and marks the groups that
// must be kept.
func (g Guard) protect(d *Draft) {
	last := d.lastUser()
	for k := range d.places {
		m, rep := d.rep(k), d.places[k].rep
		pinned, system := d.entries[rep].Pinned, m.Role == chat.RoleSystem && !g.DropSystem
		switch {
		case k != last && (!plan.IsSource(m.Kind) || !pinned && !system):
		case k != last && pinned && d.invalid(k):
			// The original would make the view invalid: keep its replacement.
			if d.was(k) >= 0 && !d.occupied(k) {
				d.restore(k)
			}
		default:
			d.groupOf(k).keep = true
			d.include(rep)
		}
	}
	if d.open >= 0 {
		for i := d.places[d.open].group; i < len(d.groups); i++ {
			d.groups[i].keep = d.groups[i].keep || d.groups[i].Waits()
		}
	}
	for id := range d.n {
		if d.marks[id].place < 0 && g.requires(d, id) {
			d.include(id)
		}
	}
}

// requires reports whether an entry without a place must be in the view.
func (g Guard) requires(d *Draft, id int32) bool {
	e, was := &d.entries[id], d.wasIncluded(id)
	switch {
	case e.Pinned && (was || e.Role != chat.RoleTool && e.Calls == 0):
		return true // a moved call or result has no group: once repaired, it stays repaired
	case e.Has(chat.Moved) && e.Role == chat.RoleSystem && !g.DropSystem:
		return true
	}
	return was && d.open >= 0 && e.Position > d.places[d.open].position
}

// completeGroups restores the missing members of every group that stays in the view.
func (d *Draft) completeGroups() {
	if d.open >= 0 {
		for k := d.open; k < len(d.places); k++ {
			if d.was(k) >= 0 && !d.occupied(k) {
				d.restore(k)
			}
		}
	}
	for i := range d.groups {
		g := &d.groups[i]
		if !d.stays(g) {
			continue
		}
		d.restoreCalls(g)
		answered := d.wasAnswered(g)
		for k := g.Start; k < g.End; k++ {
			if !d.places[k].member || d.occupied(k) {
				continue
			}
			// Of parallel calls, an earlier repair takes those without a result: it leaves a call for each.
			parallel := answered && g.Calls > d.rep(k).Calls && d.places[k].call
			if !parallel || !d.invalid(k) || d.was(k) >= 0 {
				d.restore(k)
			}
		}
	}
}

// stays reports whether a group has to be complete: it must be kept, or a member is in the view.
// A call that was never answered and is excluded would need a repair if it were restored, and the
// rest of its group is valid without it.
func (d *Draft) stays(g *group) bool {
	if g.Call >= 0 && g.Answers == 0 && d.invalid(g.Call) && !d.occupied(g.Call) {
		return false
	}
	if g.keep {
		return true
	}
	for k := g.Start; k < g.End; k++ {
		if d.places[k].member && d.occupied(k) {
			return true
		}
	}
	return false
}

// wasAnswered reports whether the view of the input had a call and a result for each result
// of the group.
func (d *Draft) wasAnswered(g *group) bool {
	made, answered := 0, 0
	for k := g.Start; k < g.End; k++ {
		for id := range d.at(k) {
			if d.wasIncluded(id) {
				made += d.entries[id].Calls
			}
		}
		if d.places[k].answer && d.was(k) >= 0 {
			answered++
		}
	}
	return min(made, answered) >= g.Answers
}

// restoreCalls restores the original call message if a strategy removed some of its calls
// whose results stay, or if a result returns whose call the replacement does not make.
func (d *Draft) restoreCalls(g *group) {
	returns := false
	for k := g.Start; k < g.End; k++ {
		returns = returns || d.places[k].answer && d.occupied(k) && d.was(k) < 0
	}
	for k := g.Start; k < g.End; k++ {
		if !d.places[k].call {
			continue
		}
		calls := d.rep(k).Calls
		for id := range d.at(k) {
			e := &d.entries[id]
			removed := id >= d.n && e.Included && e.Calls < calls
			replaced := !plan.IsSource(e.Kind) && (e.Included || d.wasIncluded(id))
			if removed || returns && replaced && e.Calls < min(g.Answers, calls) {
				d.include(d.places[k].rep)
				break
			}
		}
	}
}

// dropDuplicates leaves one entry of each place in the view: the source if it is included,
// else the last replacement.
func (d *Draft) dropDuplicates() {
	for k := range d.places {
		keep := int32(-1)
		if rep := &d.entries[d.places[k].rep]; rep.Included && plan.IsSource(rep.Kind) {
			keep = d.places[k].rep
		}
		for id := range d.at(k) {
			switch {
			case !d.entries[id].Included || id == keep:
			case keep < 0:
				keep = id
			default:
				d.exclude(id, reasonRestored, -1)
			}
		}
	}
}

// dropEmptied excludes additions of a kind that cover nothing any more.
func (d *Draft) dropEmptied(kind chat.Kind) {
	covering := make([]bool, len(d.adds))
	for id := range d.n {
		if d.entries[id].Included {
			continue
		}
		if by, _ := d.resolve(id); by >= 0 {
			covering[by-d.n] = true
		}
	}
	for k := range d.adds {
		id := d.n + int32(k)
		if covering[k] || !d.entries[id].Included || d.entries[id].Kind != kind {
			continue
		}
		d.exclude(id, reasonEmptied, -1)
		if k := int(d.marks[id].place); k >= 0 && !d.occupied(k) {
			d.restore(k)
		}
	}
}

// placeSummaries moves summaries that the run wrote to valid positions, and turns additions that
// are no longer results into summaries if they stand among the results of a call.
func (d *Draft) placeSummaries() {
	system := chat.Seq(0) // the position of the last leading system message
	for k := range d.places {
		if !d.occupied(k) {
			continue
		}
		if d.rep(k).Role != chat.RoleSystem {
			break
		}
		system = d.places[k].position
	}
	for k := range d.adds {
		id := d.n + int32(k)
		e, a := &d.entries[id], &d.adds[k]
		splits := d.marks[id].place >= 0 && e.Role != chat.RoleTool && d.withinGroup(int(d.marks[id].place))
		if !e.Included || e.Kind != chat.KindSummary && !splits {
			continue
		}
		if q := d.summaryPosition(e.Position, system); a.Kind != chat.KindSummary || a.Position != q {
			a.Kind, a.Position = chat.KindSummary, q
			e.Kind, e.Position = a.Kind, q
			d.changes++
			d.view = nil
		}
	}
}

// withinGroup reports whether place k is no member of its group while members follow it, or
// may still be appended.
func (d *Draft) withinGroup(k int) bool {
	g := d.groupOf(k)
	switch {
	case d.places[k].member:
		return false
	case d.open >= 0 && k >= d.open && g.Waits():
		return true
	}
	return slices.ContainsFunc(d.places[k:g.End], func(p place) bool { return p.member })
}

// summaryPosition returns the position nearest to q, towards the front, where a summary
// splits no group now or after appends, and precedes no leading system message.
func (d *Draft) summaryPosition(q, system chat.Seq) chat.Seq {
	if n := len(d.places); n > 0 {
		q = min(q, d.places[n-1].position+1)
	}
	if k, _ := slices.BinarySearchFunc(d.places, q, comparePosition); k < len(d.places) {
		q = min(q, d.places[d.groupOf(k).Start].position)
	}
	if d.open >= 0 {
		q = min(q, d.places[d.open].position)
	}
	return max(q, system+1)
}

// fallback returns a plan that excludes the oldest groups until the view has at most target
// tokens, except for messages that the guard would restore: the last user message, and
// everything from the first call that waits for results on. Summaries are excluded last,
// since they cover much at little cost.
func (g Guard) fallback(d *Draft, target chat.Tokens) chat.Plan {
	d.arrange()
	t := d.Transcript()
	last, open := chat.Seq(0), chat.Open
	if k := d.lastUser(); k >= 0 {
		last = d.rep(k).Seq
	}
	if d.open >= 0 {
		open = d.places[d.open].position
	}
	var out plan.SeqSet
	_, size := t.Included()
	for _, summaries := range []bool{false, true} {
		size = t.DropOldest(&out, size, target, func(i int) bool {
			x := t.Groups()[i]
			entries := t.Entries[x.Start:x.End]
			switch {
			case !t.GroupIncluded(i), x.Kind == chat.GroupSystem && !g.DropSystem,
				summaries != (entries[0].Kind == chat.KindSummary), entries[len(entries)-1].Position >= open:
				return false
			}
			return !slices.ContainsFunc(entries, func(e plan.Entry) bool { return e.Pinned || e.Seq == last })
		})
	}
	return out.Exclude(ReasonFallback)
}
