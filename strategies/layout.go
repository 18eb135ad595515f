package strategies

import (
	"sort"

	"github.com/sessionstore/compactor/strategies/chat"
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
	n := len(d.all) - len(d.adds)
	l := &layout{d: d, placeOf: make([]int32, n, len(d.all)), places: make([]place, 0, n)}
	for i := range n {
		e := &d.all[i]
		l.placeOf[i] = -1
		if e.Kind == chat.KindSummary {
			continue
		}
		if k := len(l.places) - 1; k >= 0 && d.all[l.places[k].rep].Position == e.Position {
			p := &l.places[k]
			rep := &d.all[p.rep]
			switch {
			case isSource(rep.Kind) && !standsFor(e.Meta, rep.Meta):
				continue // it was put here, but it stands for something else
			case !isSource(rep.Kind) && !rep.Included && e.Included:
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
		l.adopt(int32(n + k))
	}
	l.group()
	return l
}

// adopt gives an addition its place: that of the one message it stands for.
func (l *layout) adopt(id int32) {
	l.placeOf, l.earlier = append(l.placeOf, -1), append(l.earlier, -1)
	if e := &l.d.all[id]; e.Kind == chat.KindStandIn {
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

// find is the first place at or behind a position.
func (l *layout) find(q chat.Seq) int {
	return sort.Search(len(l.places), func(k int) bool { return l.position(k) >= q })
}

func (l *layout) position(k int) chat.Seq { return l.d.all[l.places[k].rep].Position }

func (l *layout) rep(k int32) *chat.Meta { return &l.d.all[l.places[k].rep].Meta }

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
	user := userPosition(l.d.all[:len(l.d.all)-len(l.d.adds)])
	return int32(chat.OpenFrom(l.made, user, func(k int) *chat.Meta { return l.rep(int32(k)) }))
}

// waits reports whether the group has a call that has not all its results.
func (l *layout) waits(g *group) bool { return g.call >= 0 && l.rep(g.call).Calls > g.answers }

// each calls f with the ids that may hold a place, those written last first.
func (l *layout) each(k int32, f func(id int32)) {
	n := len(l.d.all) - len(l.d.adds)
	for id := l.places[k].written; id >= 0; id = l.earlier[int(id)-n] {
		f(id)
	}
	for id := l.places[k].end - 1; id >= l.places[k].first; id-- {
		if l.placeOf[id] == k {
			f(id)
		}
	}
}
