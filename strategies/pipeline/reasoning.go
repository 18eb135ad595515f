package pipeline

import (
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// bindReasoning makes the draft follow the rule for signed reasoning (see package chat): its
// additions hold none, and what precedes that of an open tool loop stays unchanged, unless one
// of the violations is there. It reports whether one is.
func (d *Draft) bindReasoning(view []chat.Meta, violations []chat.Violation) (broken bool) {
	d.bound = true
	d.open = chat.OpenReasoning(view)
	for _, v := range violations {
		broken = broken || view[v.Index].Position <= d.open
	}
	if broken {
		d.open = 0
	}
	if d.open == 0 {
		return broken
	}
	for i := range d.entries {
		if e := &d.entries[i]; e.Included && e.Position <= d.open {
			e.Pinned = true
		}
	}
	d.Refresh()
	return false
}

// withheld reports whether a strategy is not run: a summary of messages that have to stay
// would be paid for in vain.
func (d *Draft) withheld(s plan.Strategy) bool {
	_, asks := s.(summarizing)
	return asks && d.open > 0
}

// strip removes the signed reasoning of an addition, which is new to the view.
func (d *Draft) strip(a *chat.Addition) {
	if m := (chat.Meta{Flags: a.Flags}); d.bound && m.Signed() {
		a.Message = a.Message.WithoutReasoning()
		a.Flags &^= chat.HasReasoning | chat.PlainReasoning
	}
}

// dropReasoning determines the messages whose reasoning leaves the view, and excludes
// restored ones that would hold nothing else. It returns false if the draft changes what
// precedes the signed reasoning of an open tool loop.
func (d *Draft) dropReasoning() bool {
	if !d.bound {
		return true
	}
	from := chat.Open
	n := len(d.entries) - len(d.adds)
	for id := range d.entries {
		e, was := &d.entries[id], id < n && d.marks[id].wasIncluded
		if e.Included && !was && id < n && e.Signed() && e.HoldsOnlyReasoning() {
			d.set(int32(id), false)
		}
		if e.Included != was {
			from = min(from, e.Position)
		}
	}
	if from <= d.open {
		return false
	}
	d.Refresh()
	var view []chat.Meta
	for id := range n {
		if e := &d.entries[id]; e.Included && e.Signed() {
			view = append(view, e.Meta)
		}
	}
	d.stale = chat.StaleReasoning(view, from)
	return true
}

// hideStale takes the stale reasoning out of the entries, once the plan is made.
func (d *Draft) hideStale() {
	for id := range d.entries {
		e := &d.entries[id]
		if !e.Included || !e.Signed() || !d.stale.Has(e.Seq) {
			continue
		}
		e.Meta, e.Included = e.WithoutReasoning()
	}
	d.Refresh()
}
