package pipeline

import (
	"sort"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// layout is the log that a draft was made from, as far as it is visible: places,
// each held by a source message or by stand-ins for it, and the atomic groups of
// places. Summaries hold no place. Unlike the groups of a view, these do not
// depend on what is in the view.
type layout struct {
	d       *Draft
	placeOf []int32 // by id, -1 for what holds no place
	places  []place
	made    []chat.Group // the groups as package chat finds them
	groups  []group      // the same with what becomes of them
	// earlier is, by addition, the one written for the same place before it, or -1.
	earlier []int32
}

type place struct {
	// first and end are the ids of the input that may hold the place; what was
	// written later says so in placeOf alone.
	first, end int32
	// rep is the message whose metadata count for grouping: the source when it
	// is visible.
	rep   int32
	group int32
	// written is the id of the addition that was written last for the place, or -1.
	written int32
	// in: something holds the place in the view. member: it stays or goes with
	// its group; results without a call do not.
	in, member bool
	// verbatim: the source itself has to be in the view.
	verbatim bool
}

// group is an atomic group of the places start to end-1.
type group struct {
	start, end int32
	call       int32 // the place of the call, or -1
	// answers is how many results of the log the call has.
	answers int
	// forced: it stays whatever strategies want.
	forced bool
	// goes: a repair takes its call out.
	goes bool
}

func newLayout(d *Draft) *layout {
	n := len(d.All) - len(d.Adds)
	l := &layout{d: d, placeOf: make([]int32, n, len(d.All)), places: make([]place, 0, n)}
	for i := range n {
		e := &d.All[i]
		l.placeOf[i] = -1
		if e.Kind == chat.KindSummary {
			continue
		}
		if k := len(l.places) - 1; k >= 0 && d.All[l.places[k].rep].Position == e.Position {
			p := &l.places[k]
			rep := &d.All[p.rep]
			switch {
			case plan.IsSource(rep.Kind) && !standsFor(e.Meta, rep.Meta):
				continue // it was put here, but it stands for something else
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
	for k := range d.Adds {
		l.adopt(int32(n + k))
	}
	l.group()
	return l
}

// adopt gives an addition its place: that of the one message it stands for.
func (l *layout) adopt(id int32) {
	l.placeOf, l.earlier = append(l.placeOf, -1), append(l.earlier, -1)
	if e := &l.d.All[id]; e.Kind == chat.KindReplacement {
		if k := l.find(e.Position); k < len(l.places) && l.position(k) == e.Position {
			l.placeOf[id] = int32(k)
			l.earlier[len(l.earlier)-1] = l.places[k].written
			l.places[k].written = id
		}
	}
}

// standsFor reports whether a stand-in at the position of a source can be one for
// it, rather than one that was moved there.
func standsFor(m, source chat.Meta) bool {
	switch {
	case source.Role == chat.RoleTool && !source.Has(chat.Paired):
		return true
	case source.Role == chat.RoleAssistant && source.Calls > 0:
		return m.Role == source.Role && !m.ReasoningOnly()
	}
	return m.Role == source.Role && m.Calls == source.Calls && m.ReasoningOnly() == source.ReasoningOnly()
}

// find returns the first place at or behind a position.
func (l *layout) find(q chat.Seq) int {
	return sort.Search(len(l.places), func(k int) bool { return l.position(k) >= q })
}

func (l *layout) position(k int) chat.Seq { return l.d.All[l.places[k].rep].Position }

func (l *layout) rep(k int32) *chat.Meta { return &l.d.All[l.places[k].rep].Meta }

func (l *layout) group() {
	if t := l.d.input; len(l.places) == len(t.Entries) {
		l.made = t.Groups() // every entry is a place
	} else {
		metas := make([]chat.Meta, len(l.places))
		for k := range l.places {
			metas[k] = *l.rep(int32(k))
		}
		l.made = chat.Groups(metas)
	}
	l.groups = make([]group, len(l.made))
	for i := range l.made {
		g := &l.made[i]
		l.groups[i] = group{start: int32(g.Start), end: int32(g.End), call: int32(g.Call), answers: g.Answers}
		for k := g.Start; k < g.End; k++ {
			l.places[k].group = int32(i)
			l.places[k].member = g.Member(l.rep(int32(k)))
		}
	}
}

// open returns the first place of the first call group that is not complete yet,
// or -1 (see chat.OpenFrom).
func (l *layout) open() int32 {
	user := plan.UserPosition(l.d.All[:len(l.d.All)-len(l.d.Adds)])
	return int32(chat.OpenFrom(l.made, user, func(k int) *chat.Meta { return l.rep(int32(k)) }))
}

// waits reports whether the group has a call that has not all its results.
func (l *layout) waits(g *group) bool { return g.call >= 0 && l.rep(g.call).Calls > g.answers }

// each calls f with the ids that may hold a place, those written last first.
func (l *layout) each(k int32, f func(id int32)) {
	n := len(l.d.All) - len(l.d.Adds)
	for id := l.places[k].written; id >= 0; id = l.earlier[int(id)-n] {
		f(id)
	}
	for id := l.places[k].end - 1; id >= l.places[k].first; id-- {
		if l.placeOf[id] == k {
			f(id)
		}
	}
}

// faulty reports whether a message cannot stand in a view as it is: a result
// without a call, or a call that will never be answered in full.
func (l *layout) faulty(k, open int32) bool {
	p, m := &l.places[k], l.rep(k)
	g := &l.groups[p.group]
	return m.Role == chat.RoleTool && !p.member ||
		g.call == k && m.Calls > g.answers && (open < 0 || k < open)
}

// whole completes groups of which something stays.
func (l *layout) whole(open int32) {
	for id, k := range l.placeOf {
		if k >= 0 && l.d.All[id].Included {
			l.places[k].in = true
		}
	}
	if open >= 0 {
		for k := open; k < int32(len(l.places)); k++ {
			if !l.places[k].in && l.was(k) {
				l.restore(k)
			}
		}
	}
	for i := range l.groups {
		g := &l.groups[i]
		stays := g.forced
		for k := g.start; k < g.end; k++ {
			stays = stays || l.places[k].in && l.places[k].member
		}
		if !stays || l.dissolved(g, open) {
			continue
		}
		l.unshrink(g)
		for k := g.start; k < g.end; k++ {
			if l.places[k].member && !l.places[k].in {
				l.restore(k)
			}
		}
	}
}

// unshrink puts a call back as it was said where a strategy wants fewer of its
// calls, and where a result comes back that the stand-in in its place makes no call
// for any more: groups are whole or gone.
func (l *layout) unshrink(g *group) {
	if g.call < 0 {
		return
	}
	shrunk, whole := false, false
	l.each(g.call, func(id int32) {
		e := &l.d.All[id]
		shrunk = shrunk || !plan.IsSource(e.Kind) && (e.Included || l.d.marks[id].was) && e.Calls < g.answers
		whole = whole || e.Included && int(id) >= len(l.d.All)-len(l.d.Adds) && e.Calls < l.rep(g.call).Calls
	})
	for k := g.start; k < g.end && shrunk; k++ {
		whole = whole || l.places[k].member && l.rep(k).Role == chat.RoleTool && l.held(k) && !l.was(k)
	}
	if whole {
		l.d.include(l.places[g.call].rep)
		l.places[g.call].in = true
	}
}

// dissolved reports a group whose call nobody answered and that is out already:
// it would have to be mended if it came back, and what is left holds by itself.
func (l *layout) dissolved(g *group, open int32) bool {
	return g.call >= 0 && g.answers == 0 && !l.places[g.call].in && l.faulty(g.call, open)
}

// was reports whether something held the place before.
func (l *layout) was(k int32) bool {
	was := false
	l.each(k, func(id int32) { was = was || l.d.marks[id].was })
	return was
}

// held reports whether something holds the place now.
func (l *layout) held(k int32) bool {
	held := false
	l.each(k, func(id int32) { held = held || l.d.All[id].Included })
	return held
}

// restore puts back what held the place before, or the message itself.
func (l *layout) restore(k int32) {
	id := l.places[k].rep
	l.each(k, func(i int32) {
		if l.d.marks[i].was {
			id = i
		}
	})
	l.d.include(id)
	l.places[k].in = true
}

// hold leaves each place to one message: the source if it is wanted, else the
// last stand-in.
func (l *layout) hold() {
	for k := range l.places {
		p := &l.places[k]
		if !p.in || p.end == p.first+1 && p.written < 0 {
			continue
		}
		keep := int32(-1)
		if l.d.All[p.rep].Included && plan.IsSource(l.d.All[p.rep].Kind) {
			keep = p.rep
		}
		l.each(int32(k), func(id int32) {
			switch {
			case !l.d.All[id].Included || id == keep:
			case keep < 0:
				keep = id
			default:
				l.d.set(id, false)
				l.d.marks[id].reason, l.d.marks[id].by = reasonRestored, -1
			}
		})
	}
}

// dropEmptied takes out additions that stand for nothing any more: stand-ins
// first, since what they stood for in their place comes back.
func (l *layout) dropEmptied() {
	if len(l.d.Adds) == 0 {
		return
	}
	l.dropEmptiedOf(chat.KindReplacement)
	l.dropEmptiedOf(chat.KindSummary)
}

func (l *layout) dropEmptiedOf(kind chat.Kind) {
	d := l.d
	n := len(d.All) - len(d.Adds)
	stands := make([]bool, len(d.Adds))
	for id := range n {
		if !d.All[id].Included {
			if by, _ := d.resolve(int32(id)); by >= 0 {
				stands[by-int32(n)] = true
			}
		}
	}
	for k := range d.Adds {
		id := int32(n + k)
		if stands[k] || !d.All[id].Included || d.All[id].Kind != kind {
			continue
		}
		d.set(id, false)
		d.marks[id].reason = reasonEmptied
		if k := l.placeOf[id]; k >= 0 && !l.held(k) {
			l.restore(k)
		}
	}
}

// settle moves summaries that were written to where a summary may stand.
func (l *layout) settle(open int32) {
	d, n := l.d, len(l.d.All)-len(l.d.Adds)
	if len(d.Adds) == 0 {
		return
	}
	system := l.leadingSystem()
	for id := n; id < len(d.All); id++ {
		e := &d.All[id]
		if e.Included && (e.Kind == chat.KindSummary || l.splits(int32(id), open)) {
			d.summary(int32(id), l.legal(e.Position, system, open))
		}
	}
}

// splits reports whether an addition that is no result any more stands among the
// results of a call, present or to come.
func (l *layout) splits(id, open int32) bool {
	k := l.placeOf[id]
	return k >= 0 && l.d.All[id].Role != chat.RoleTool && l.inside(k, open)
}

// inside reports whether a place that is no member of its group has members, or
// room for them, behind it.
func (l *layout) inside(k, open int32) bool {
	if l.places[k].member {
		return false
	}
	g := &l.groups[l.places[k].group]
	if open >= 0 && k >= open && l.waits(g) {
		return true
	}
	for k++; k < g.end; k++ {
		if l.places[k].member {
			return true
		}
	}
	return false
}

// leadingSystem returns the position of the last of the system messages that the view
// begins with, 0 for none.
func (l *layout) leadingSystem() chat.Seq {
	var last chat.Seq
	for k := range l.places {
		if !l.places[k].in {
			continue
		}
		if l.rep(int32(k)).Role != chat.RoleSystem {
			break
		}
		last = l.position(k)
	}
	return last
}

// legal returns the position nearest to q, towards the front, where a summary splits
// no group and precedes no leading system message, and where no append can put
// it into one.
func (l *layout) legal(q, system chat.Seq, open int32) chat.Seq {
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
