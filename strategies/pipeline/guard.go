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

// Guard makes a draft satisfy the invariants of a view, whatever strategies planned:
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

// Repair counts the messages that the guard repaired, by violation code.
type Repair struct {
	Reason   string
	Messages int
}

// ErrInvalidView is returned if a view violates an invariant after the guard. It indicates
// a bug in this package; no such plan is ever returned.
var ErrInvalidView = errors.New("the view would be invalid")

// The reasons of the guard's own exclusions.
const (
	ReasonFallback = "token_budget_fallback"
	reasonRestored = "restored" // a replacement whose original is included again
	reasonEmptied  = "emptied"  // an addition that covers nothing any more
)

// Hold changes the draft until it satisfies the invariants, with as few changes as
// possible. load reads the messages that are repaired; it may be nil if the draft holds
// their content. The steps depend on each other's results, so their order matters.
func (g Guard) Hold(ctx context.Context, d *Draft, load plan.Loader) ([]Repair, error) {
	if err := g.checkCalls(ctx, d, load); err != nil {
		return nil, err
	}
	l := newLayout(d)
	open := l.open()
	g.protect(l, open)
	l.completeGroups(open)
	l.dropDuplicates()
	l.dropEmptied()
	l.placeSummaries(open)
	d.Refresh()
	return g.repair(ctx, l, open, load)
}

// checkCalls removes replacements whose tool calls differ from their originals', if that
// could not be checked when they were written.
func (g Guard) checkCalls(ctx context.Context, d *Draft, load plan.Loader) error {
	if len(d.unchecked) == 0 || load == nil {
		return nil
	}
	seqs := make([]chat.Seq, len(d.unchecked))
	for i, u := range d.unchecked {
		seqs[i] = d.entries[u.of].Seq
	}
	loaded, err := d.load(ctx, seqs, load)
	if err != nil {
		return fmt.Errorf("load originals of replacements: %w", err)
	}
	for _, u := range d.unchecked {
		if callsOf(d.entries[u.of].Message, d.entries[u.id].Message) {
			continue
		}
		d.rejected++
		live := u.id
		if !d.entries[live].Included {
			live, _ = d.resolve(live)
		}
		if live >= 0 && d.entries[live].Kind == chat.KindReplacement {
			d.set(live, false)
			d.include(u.of)
		}
	}
	d.drop(loaded)
	d.unchecked = nil
	return nil
}

// protect restores the messages that must be in the view verbatim and marks the groups that
// must be kept.
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
		case d.entries[p.rep].Pinned && l.invalid(int32(i), open):
			// The original would make the view invalid: keep its replacement.
			if l.wasOccupied(int32(i)) && !l.occupied(int32(i)) {
				l.restore(int32(i))
			}
		case d.entries[p.rep].Pinned, m.Role == chat.RoleSystem && !g.DropSystem:
			p.verbatim = true
		}
		if p.verbatim {
			l.groups[p.group].keep = true
			d.include(p.rep)
		}
	}
	if open >= 0 {
		for i := l.places[open].group; i < int32(len(l.groups)); i++ {
			l.groups[i].keep = l.groups[i].keep || l.groups[i].waits()
		}
	}
	for i := range d.entries[:len(d.entries)-len(d.adds)] {
		e := &d.entries[i]
		if e.Included || l.placeOf[i] >= 0 {
			continue
		}
		// A moved call or result has no group: once repaired, it stays repaired.
		toolMessage := e.Role == chat.RoleTool || e.Calls > 0
		if e.Pinned && (d.marks[i].wasIncluded || !toolMessage) || e.Has(chat.Moved) && e.Role == chat.RoleSystem && !g.DropSystem ||
			open >= 0 && d.marks[i].wasIncluded && e.Position > l.position(int(open)) {
			d.include(int32(i))
		}
	}
}

// repair repairs the remaining violations. They come from the log, or from earlier runs to
// whose summaries messages were appended.
func (g Guard) repair(ctx context.Context, l *layout, open int32, load plan.Loader) ([]Repair, error) {
	var repairs []Repair
	for range 4 { // one round suffices for any view that a run has produced
		steps := chat.Repair(l.judged(open))
		if len(steps) == 0 {
			return repairs, nil
		}
		done, err := l.repair(ctx, steps, open, load)
		if err != nil {
			return nil, err
		}
		for _, r := range done {
			repairs = addRepair(repairs, r.Reason, r.Messages)
		}
	}
	return repairs, Valid(l.judged(open))
}

// judged returns the view for Check and Repair. Where it ends in a call that the log does not
// end in, a message stands for what followed the call.
func (l *layout) judged(open int32) []chat.Meta {
	view := l.d.viewMetas()
	if l.d.input.Ended {
		return l.d.ended(view)
	}
	if len(l.places) == 0 {
		return view
	}
	last := l.groups[len(l.groups)-1].start // what is open, or ends the log
	if open >= 0 {
		last = open
	}
	for i := range slices.Backward(view) {
		m := &view[i]
		if m.Role == chat.RoleTool || m.HoldsOnlyReasoning() {
			continue
		}
		if k := l.placeOf[l.d.id(m.Seq)]; k >= 0 && k < last && m.Calls > 0 {
			return l.d.ended(view)
		}
		break
	}
	return view
}

// ended returns a view with a message behind it.
func (d *Draft) ended(view []chat.Meta) []chat.Meta {
	q := d.next
	if n := len(view); n > 0 {
		q = max(q, view[n-1].Position+1)
	}
	return append(view, chat.Meta{Seq: q, Position: q, Kind: chat.KindSource, Role: chat.RoleAssistant, Flags: chat.HasText})
}

// Valid returns an error wrapping ErrInvalidView if the view has violations.
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

// fallback returns a plan that excludes the oldest groups until the view has at most target
// tokens, except for messages that the guard would restore. Summaries are excluded last,
// since they cover much at little cost.
func (g Guard) fallback(d *Draft, target chat.Tokens) chat.Plan {
	t := d.Transcript()
	last, open := g.retained(d)
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

// retained returns the seq of the last user message and the position of the first call that
// waits for results, from which on everything stays; 0 for none.
func (Guard) retained(d *Draft) (last, open chat.Seq) {
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
