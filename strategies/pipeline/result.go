package pipeline

import (
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// bindReasoning makes the draft follow the rule for signed reasoning (see package chat): its
// additions hold none, and messages before that of an open tool loop stay unchanged, unless one
// of the violations is there. It reports whether one is.
func (d *Draft) bindReasoning(view []chat.Meta, violations []chat.Violation) (broken bool) {
	d.bound = true
	d.frozen = chat.OpenReasoning(view)
	for _, v := range violations {
		broken = broken || view[v.Index].Position <= d.frozen
	}
	if broken {
		d.frozen = 0
	}
	if d.frozen == 0 {
		return broken
	}
	for i := range d.entries {
		if e := &d.entries[i]; e.Included && e.Position <= d.frozen {
			e.Pinned = true
		}
	}
	return false
}

// dropReasoning determines the messages whose reasoning leaves the view, and excludes
// restored ones that would hold nothing else. It returns false if the draft changes messages
// before the signed reasoning of an open tool loop.
func (d *Draft) dropReasoning() bool {
	if !d.bound {
		return true
	}
	from := chat.Open
	for i := range d.entries {
		id, e := int32(i), &d.entries[i]
		was := d.wasIncluded(id)
		if restored := e.Included && !was && id < d.n; restored && e.Signed() && e.HoldsOnlyReasoning() {
			d.exclude(id, "", -1)
		}
		if e.Included != was {
			from = min(from, e.Position)
		}
	}
	if from <= d.frozen {
		return false
	}
	var view []chat.Meta
	for id := range d.n {
		if e := &d.entries[id]; e.Included && e.Signed() {
			view = append(view, e.Meta)
		}
	}
	d.stale = chat.StaleReasoning(view, from)
	return true
}

// Plan returns the plan that turns the input into the draft. It contains no additions that
// were excluded again and nothing without effect.
func (d *Draft) Plan() chat.Plan { return d.compose(false) }

// compose builds the plan. With reasons it also names messages that were excluded before
// and got another reason.
func (d *Draft) compose(reasons bool) chat.Plan {
	var include plan.SeqSet
	var order []string // of the reasons of exclusions
	excluded := map[string]*plan.SeqSet{}
	covers := make([]plan.SeqSet, len(d.adds))
	for _, id := range slices.Concat(d.sources, d.others) {
		q, was := d.entries[id].Seq, d.wasIncluded(id)
		if d.entries[id].Included {
			if !was {
				include.Add(q)
			}
			continue
		}
		by, reason := d.resolve(id)
		switch {
		case by >= 0:
			covers[by-d.n].Add(q)
		case was || reasons && reason != "":
			if excluded[reason] == nil {
				excluded[reason] = &plan.SeqSet{}
				order = append(order, reason)
			}
			excluded[reason].Add(q)
		}
	}
	p := chat.Plan{Include: include.Ranges(), DropReasoning: d.stale}
	for _, reason := range order {
		p.Exclude = append(p.Exclude, excluded[reason].Exclude(reason).Exclude...)
	}
	for k, a := range d.adds {
		if a.Covers = covers[k].Ranges(); d.entries[int(d.n)+k].Included && len(a.Covers) > 0 {
			p.Additions = append(p.Additions, a)
		}
	}
	return p
}

// outcome returns the view and its totals after the draft's plan is applied, which was made
// before: stale reasoning is gone, additions that are not in the plan are left out, and the seqs
// of the others are consecutive.
func (d *Draft) outcome() ([]chat.Meta, plan.Totals) {
	d.Transcript().Groups() // which the transcript keeps, with the reasoning
	for i := range d.entries {
		if e := &d.entries[i]; e.Included && e.Signed() && d.stale.Has(e.Seq) {
			e.Meta, e.Included = e.WithoutReasoning()
		}
	}
	dropped := func(e plan.Entry) bool { return e.Seq >= d.first && !e.Included }
	t := d.Transcript()
	if !slices.ContainsFunc(t.Entries, dropped) {
		return viewOf(t), t.Totals()
	}
	seqs := make([]chat.Seq, len(d.adds))
	q := d.first
	for k := range d.adds {
		if d.entries[int(d.n)+k].Included {
			seqs[k] = q
			q++
		}
	}
	t = &plan.Transcript{Entries: slices.DeleteFunc(slices.Clone(t.Entries), dropped)}
	for i := range t.Entries {
		if e := &t.Entries[i]; e.Seq >= d.first {
			e.Seq = seqs[e.Seq-d.first]
		}
	}
	return viewOf(t), t.Totals()
}
