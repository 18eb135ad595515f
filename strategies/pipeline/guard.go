package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
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
	ReasonFallback = "token_budget_fallback"
	reasonRestored = "restored" // a stand-in whose original is back
	reasonEmptied  = "emptied"  // an addition that has nothing left to stand for
)

// Hold changes the draft as little as it takes. load reads the content of the
// messages that have to be mended; it may be nil where the draft holds it.
func (g Guard) Hold(ctx context.Context, d *Draft, load plan.Loader) ([]Repair, error) {
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
	d.Refresh()
	return g.mend(ctx, l, open, load)
}

// prove drops stand-ins that turn out to make or answer other calls than their
// originals, where that could not be seen when they were written.
func (g Guard) prove(ctx context.Context, d *Draft, load plan.Loader) error {
	if len(d.unproven) == 0 || load == nil {
		return nil
	}
	seqs := make([]chat.Seq, len(d.unproven))
	for i, u := range d.unproven {
		seqs[i] = d.All[u.of].Seq
	}
	loaded, err := d.load(ctx, seqs, load)
	if err != nil {
		return fmt.Errorf("load originals of stand-ins: %w", err)
	}
	for _, u := range d.unproven {
		if callsOf(d.All[u.of].Message, d.All[u.id].Message) {
			continue
		}
		d.Rejected++
		live := u.id
		if !d.All[live].Included {
			live, _ = d.resolve(live)
		}
		if live >= 0 && d.All[live].Kind == chat.KindReplacement {
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
		if m := l.rep(int32(i)); m.Role == chat.RoleUser && plan.IsSource(m.Kind) {
			l.places[i].verbatim = true
			break
		}
	}
	for i := range l.places {
		p := &l.places[i]
		m := l.rep(int32(i))
		switch {
		case !plan.IsSource(m.Kind):
		case d.All[p.rep].Pinned && l.faulty(int32(i), open):
			// Verbatim it would break the view: what was put in its place stays.
			if l.was(int32(i)) && !l.held(int32(i)) {
				l.restore(int32(i))
			}
		case d.All[p.rep].Pinned, m.Role == chat.RoleSystem && !g.DropSystem:
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
	for i := range d.All[:len(d.All)-len(d.Adds)] {
		e := &d.All[i]
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

// mend repairs what is wrong with the view, which by now only the log can be the
// cause of, or what earlier runs left where appended messages have grown around it.
func (g Guard) mend(ctx context.Context, l *layout, open int32, load plan.Loader) ([]Repair, error) {
	var repairs []Repair
	for range 4 { // one round is enough, but for views that no run has left
		mends := chat.Repair(l.d.ViewMetas())
		if len(mends) == 0 {
			return repairs, nil
		}
		done, err := l.apply(ctx, mends, open, load)
		if err != nil {
			return nil, err
		}
		for _, r := range done {
			repairs = addRepair(repairs, r.Reason, r.Messages)
		}
	}
	return repairs, Valid(l.d.ViewMetas())
}

// valid is the check of the whole view that nothing leaves this package without.
func Valid(view []chat.Meta) error {
	faults := chat.Check(view)
	if len(faults) == 0 {
		return nil
	}
	texts := make([]string, 0, 5)
	for _, f := range faults[:min(len(faults), cap(texts))] {
		texts = append(texts, f.String())
	}
	if more := len(faults) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	return fmt.Errorf("%w: %s", ErrInvalidView, strings.Join(texts, ", "))
}

func addRepair(to []Repair, reason string, n int) []Repair {
	for i := range to {
		if to[i].Reason == reason {
			to[i].Messages += n
			return to
		}
	}
	return append(to, Repair{reason, n})
}

// fallback drops the oldest groups until the view has no more than target tokens,
// but nothing that the guard would put back. A summary stands for much and costs
// little, so summaries go only after all else.
func (g Guard) fallback(d *Draft, target chat.Tokens) chat.Plan {
	t := d.Transcript()
	last, open := g.fixed(d)
	may := func(summaries bool) func(i int) bool {
		return func(i int) bool {
			x := t.Groups()[i]
			switch {
			case !t.GroupIncluded(i), x.Kind == chat.GroupSystem && !g.DropSystem,
				summaries != (t.Entries[x.Start].Kind == chat.KindSummary),
				open > 0 && t.Entries[x.End-1].Position >= open:
				return false
			}
			return !slices.ContainsFunc(t.Entries[x.Start:x.End], func(e plan.Entry) bool { return e.Pinned || e.Seq == last })
		}
	}
	var out plan.SeqSet
	_, size := t.Included()
	size = t.DropOldest(&out, size, target, may(false))
	t.DropOldest(&out, size, target, may(true))
	return out.Exclude(ReasonFallback)
}

// fixed returns the seq of the last user message and the position from which on
// everything stays, 0 for none.
func (Guard) fixed(d *Draft) (last, open chat.Seq) {
	l := newLayout(d)
	for i := len(l.places) - 1; i >= 0 && last == 0; i-- {
		if m := l.rep(int32(i)); m.Role == chat.RoleUser && plan.IsSource(m.Kind) {
			last = m.Seq
		}
	}
	if k := l.open(); k >= 0 {
		open = l.position(int(k))
	}
	return last, open
}

// Check returns the guard alone: the result of a plan that was made elsewhere, such as
// one that was stored before a model was asked.
func (g Guard) Check(ctx context.Context, t *plan.Transcript, planned chat.Plan, load plan.Loader) (Result, error) {
	r, err := Pipeline{Steps: []plan.Strategy{Fixed("plan", planned)}, Guard: g}.Run(ctx, t, load)
	if err != nil {
		return Result{}, fmt.Errorf("check plan: %w", err)
	}
	r.Steps = nil
	return r, nil
}
