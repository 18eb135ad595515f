package strategies

import (
	"context"
	"errors"
	"fmt"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Guard holds a draft to what must be true of every view, whatever strategies
// wanted: groups are whole or gone; the last user message, system messages and
// pinned messages are in the view, verbatim; the first call that still waits for
// its results stays, with everything behind it; summaries stand between groups
// and behind the leading system messages; and what the log itself has wrong is
// mended, as far as it stays in the view. The zero Guard is the strict one.
type Guard struct {
	// DropSystem: the policy says preserve_system: false, so that system messages
	// go like others.
	DropSystem bool
}

// Repair counts messages that the guard had to mend, by the fault of the log.
type Repair struct {
	Reason   string
	Messages int
}

// ErrInvalidView is the error for a draft that is invalid after the guard. It is
// a bug of this package, found before it could do harm.
var ErrInvalidView = errors.New("the view would be invalid")

// Reasons of what the guard excludes by itself.
const (
	reasonRestored = "restored" // a stand-in whose original is back
	reasonEmptied  = "emptied"  // an addition that has nothing left to stand for
)

// Hold changes the draft as little as it takes. load reads the content of the
// messages that have to be mended; it may be nil where the draft holds it.
func (g Guard) Hold(ctx context.Context, d *Draft, load Loader) ([]Repair, error) {
	if err := g.prove(ctx, d, load); err != nil {
		return nil, err
	}
	l := newLayout(d)
	open := l.open()
	g.protect(l, open)
	l.whole(open)
	l.hold()
	l.dropEmptied()
	l.settle(open)
	d.refresh()
	return g.mend(ctx, l, open, load)
}

// prove drops stand-ins that turn out to make or answer other calls than their
// originals, where that could not be seen when they were written.
func (g Guard) prove(ctx context.Context, d *Draft, load Loader) error {
	if len(d.unproven) == 0 || load == nil {
		return nil
	}
	seqs := make([]chat.Seq, len(d.unproven))
	for i, u := range d.unproven {
		seqs[i] = d.all[u.of].Seq
	}
	loaded, err := d.load(ctx, seqs, load)
	if err != nil {
		return fmt.Errorf("load originals of stand-ins: %w", err)
	}
	for _, u := range d.unproven {
		if callsOf(d.all[u.of].Message, d.all[u.id].Message) {
			continue
		}
		d.rejected++
		live := u.id
		if !d.all[live].Included {
			live, _ = d.resolve(live)
		}
		if live >= 0 && d.all[live].Kind == chat.KindStandIn {
			d.set(live, false)
			d.include(u.of)
		}
	}
	d.drop(loaded)
	d.unproven = nil
	return nil
}

// protect marks what has to stay and puts back what must be there verbatim.
func (g Guard) protect(l *layout, open int32) {
	d := l.d
	for i := len(l.places) - 1; i >= 0; i-- {
		if m := l.rep(int32(i)); m.Role == chat.RoleUser && isSource(m.Kind) {
			l.places[i].verbatim = true
			break
		}
	}
	for i := range l.places {
		p := &l.places[i]
		m := l.rep(int32(i))
		switch {
		case !isSource(m.Kind):
		case d.all[p.rep].Pinned && l.faulty(int32(i), open):
			// Verbatim it would break the view: what was put in its place stays.
			if l.was(int32(i)) && !l.held(int32(i)) {
				l.restore(int32(i))
			}
		case d.all[p.rep].Pinned, m.Role == chat.RoleSystem && !g.DropSystem:
			p.verbatim = true
		}
		if p.verbatim {
			l.groups[p.group].forced = true
			d.include(p.rep)
		}
	}
	if open >= 0 {
		for i := l.places[open].group; i < int32(len(l.groups)); i++ {
			l.groups[i].forced = l.groups[i].forced || l.waits(&l.groups[i])
		}
	}
	for i := range d.all[:len(d.all)-len(d.adds)] {
		e := &d.all[i]
		if e.Included || l.placeOf[i] >= 0 {
			continue
		}
		// A moved call or result has no group: once it was mended it stays mended.
		torn := e.Role == chat.RoleTool || e.Calls > 0
		if e.Pinned && (d.marks[i].was || !torn) || e.Has(chat.Moved) && e.Role == chat.RoleSystem && !g.DropSystem ||
			open >= 0 && d.marks[i].was && e.Position > l.position(int(open)) {
			d.include(int32(i))
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
		if k >= 0 && l.d.all[id].Included {
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
		e := &l.d.all[id]
		shrunk = shrunk || !isSource(e.Kind) && (e.Included || l.d.marks[id].was) && e.Calls < g.answers
		whole = whole || e.Included && int(id) >= len(l.d.all)-len(l.d.adds) && e.Calls < l.rep(g.call).Calls
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
	l.each(k, func(id int32) { held = held || l.d.all[id].Included })
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
		if l.d.all[p.rep].Included && isSource(l.d.all[p.rep].Kind) {
			keep = p.rep
		}
		l.each(int32(k), func(id int32) {
			switch {
			case !l.d.all[id].Included || id == keep:
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
	if len(l.d.adds) == 0 {
		return
	}
	l.dropEmptiedOf(chat.KindStandIn)
	l.dropEmptiedOf(chat.KindSummary)
}

func (l *layout) dropEmptiedOf(kind chat.Kind) {
	d := l.d
	n := len(d.all) - len(d.adds)
	stands := make([]bool, len(d.adds))
	for id := range n {
		if !d.all[id].Included {
			if by, _ := d.resolve(int32(id)); by >= 0 {
				stands[by-int32(n)] = true
			}
		}
	}
	for k := range d.adds {
		id := int32(n + k)
		if stands[k] || !d.all[id].Included || d.all[id].Kind != kind {
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
	d, n := l.d, len(l.d.all)-len(l.d.adds)
	if len(d.adds) == 0 {
		return
	}
	system := l.leadingSystem()
	for id := n; id < len(d.all); id++ {
		e := &d.all[id]
		if e.Included && (e.Kind == chat.KindSummary || l.splits(int32(id), open)) {
			d.summary(int32(id), l.legal(e.Position, system, open))
		}
	}
}

// splits reports whether an addition that is no result any more stands among the
// results of a call, present or to come.
func (l *layout) splits(id, open int32) bool {
	k := l.placeOf[id]
	return k >= 0 && l.d.all[id].Role != chat.RoleTool && l.inside(k, open)
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

// leadingSystem is the position of the last of the system messages that the view
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

// legal is the position nearest to q, towards the front, where a summary splits
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

// summary makes an addition a summary at a position.
func (d *Draft) summary(id int32, q chat.Seq) {
	a := &d.adds[int(id)-(len(d.all)-len(d.adds))]
	if a.Kind == chat.KindSummary && a.Position == q {
		return
	}
	d.view = nil
	a.Kind, a.Position = chat.KindSummary, q
	d.all[id].Kind, d.all[id].Position = a.Kind, q
}
