package pipeline

import (
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// Apply applies a plan to the draft. reason is the reason of exclusions and additions that
// give none; excluding a message again sets its reason. Unknown seqs are ignored.
//
// Invalid additions are counted in Rejected and otherwise ignored: a summary that is a tool
// result or makes calls, a replacement with another role or other calls than its original,
// an addition that covers nothing in the view. As an exception, a summary may cover the
// same single message as the addition before it. It accompanies that addition within the
// run, but covers nothing on its own, so that the guard drops it and the final plan does
// not contain it.
func (d *Draft) Apply(p chat.Plan, reason string) {
	if p.Empty() {
		return
	}
	for _, x := range p.Exclude {
		if x.Reason == "" {
			x.Reason = reason
		}
		d.found = d.ids(d.found[:0], x.Seqs)
		for _, id := range d.found {
			d.set(id, false)
			d.marks[id].reason = x.Reason
		}
	}
	d.found = d.ids(d.found[:0], p.Include)
	for _, id := range d.found {
		d.include(id)
	}
	d.entries = slices.Grow(d.entries, len(p.Additions))
	d.marks = slices.Grow(d.marks, len(p.Additions))
	d.adds = slices.Grow(d.adds, len(p.Additions))
	before := int32(-1)
	for _, a := range p.Additions {
		if a.Reason == "" {
			a.Reason = reason
		}
		d.found = d.ids(d.found[:0], a.Covers)
		accompanies := before >= 0 && len(d.found) == 1 && a.Kind == chat.KindSummary && d.marks[d.found[0]].by == before
		switch {
		case !d.validate(&a, d.found, accompanies):
			d.rejected++
		case accompanies:
			d.append(a)
		default:
			before = d.write(a, d.found)
		}
	}
	d.Refresh()
}

// include puts an entry back into the view and clears its mark.
func (d *Draft) include(id int32) {
	if !d.entries[id].Included {
		d.set(id, true)
		d.marks[id].reason, d.marks[id].by = "", -1
		d.entries[id].By = 0
	}
}

// validate reports whether an addition can be part of a view, and sets its kind, position
// and flags. Unless live is set, it must cover a message in the view.
func (d *Draft) validate(a *chat.Addition, covers []int32, live bool) bool {
	for _, id := range covers {
		live = live || d.entries[id].Included
	}
	if !live || a.Kind != chat.KindSummary && a.Kind != chat.KindReplacement {
		return false
	}
	a.Flags = a.Flags&chat.Estimated | a.Message.Flags()
	d.strip(a)
	m := &a.Message
	if a.Kind == chat.KindReplacement && (len(covers) != 1 || d.entries[covers[0]].Kind == chat.KindSummary) {
		a.Kind = chat.KindSummary // it covers several messages, or a summary of several
	}
	if a.Kind == chat.KindSummary {
		if a.Position == 0 {
			a.Position = d.entries[covers[0]].Position
			for _, id := range covers {
				a.Position = min(a.Position, d.entries[id].Position)
			}
		}
		return m.Role != chat.RoleTool && m.Role != "" && len(m.ToolCalls) == 0
	}
	old := &d.entries[covers[0]]
	a.Position = old.Position
	if old.Role == chat.RoleTool && !old.Has(chat.Paired) {
		return (m.Role == old.Role || m.Role == chat.RoleAssistant) && len(m.ToolCalls) == 0
	}
	a.Flags |= old.Flags & (chat.Paired | chat.Parallel)
	if m.Role != old.Role || len(m.ToolCalls) > old.Calls || old.ReasoningOnly() != reasoningOnly(m, a.Flags) {
		return false
	}
	return old.Message == nil || callsOf(old.Message, m)
}

// write appends a valid addition, excludes the messages it covers, and returns its id.
func (d *Draft) write(a chat.Addition, covers []int32) int32 {
	id := int32(len(d.entries))
	for _, c := range covers {
		if by := d.marks[c].by; !d.entries[c].Included && by >= 0 && d.entries[by].Included && d.entries[by].Kind == chat.KindReplacement {
			continue // an included replacement already covers it
		}
		if d.entries[c].Included {
			d.entries[c].By = d.next
		}
		d.set(c, false)
		d.marks[c].reason, d.marks[c].by = a.Reason, id
	}
	if old := &d.entries[covers[0]]; a.Kind == chat.KindReplacement && old.Message == nil && (old.Has(chat.Paired) || old.Calls > 0) {
		d.unchecked = append(d.unchecked, unchecked{id, covers[0]})
	}
	d.append(a)
	return id
}

// count returns the tokens of an addition.
func (d *Draft) count(a *chat.Addition) chat.Tokens {
	if ac, ok := d.input.Counter.(plan.AdditionCounter); ok {
		return ac.Addition(a)
	}
	return d.input.Counter.Message(&a.Message)
}

// append counts an addition and adds its entry to the draft.
func (d *Draft) append(a chat.Addition) {
	if c := d.input.Counter; c != nil {
		a.Counter, a.Tokens = c.Name(), d.count(&a)
	}
	m := a.Message
	d.entries = append(d.entries, plan.Entry{Meta: a.Meta(d.next), Included: true, Message: &m})
	d.marks = append(d.marks, mark{by: -1})
	d.adds = append(d.adds, a)
	d.next++
	d.changes++
	d.view = nil
}

// callsOf reports whether m answers the same call as old and makes a subsequence of old's
// calls. A replacement may make fewer calls: the guard restores the others unless their
// results are gone too.
func callsOf(old, m *chat.Message) bool {
	if old.ToolCallID != m.ToolCallID {
		return false
	}
	rest := old.ToolCalls
	for _, c := range m.ToolCalls {
		i := slices.IndexFunc(rest, func(o chat.ToolCall) bool { return o.ID == c.ID })
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
	}
	return true
}

func reasoningOnly(m *chat.Message, f chat.Flags) bool {
	return chat.Meta{Role: m.Role, Calls: len(m.ToolCalls), Flags: f}.ReasoningOnly()
}

// resolve returns the included addition that covers an excluded entry, directly or through
// other additions, or -1 and the reason of the exclusion.
func (d *Draft) resolve(id int32) (by int32, reason string) {
	for {
		m := &d.marks[id]
		if m.by < 0 {
			return -1, m.reason
		}
		if id = m.by; d.entries[id].Included {
			return id, ""
		}
	}
}

// Plan returns the plan that turns the input into the draft. It contains no additions that
// were excluded again and nothing without effect.
func (d *Draft) Plan() chat.Plan { return d.compose(false) }

// compose builds the plan. With reasons it also names messages that were excluded before
// and got another reason.
func (d *Draft) compose(reasons bool) chat.Plan {
	var include plan.SeqSet
	var exclude []exclusion
	covers := make([]plan.SeqSet, len(d.adds))
	n := len(d.entries) - len(d.adds)
	add := func(id int32) {
		e, m := &d.entries[id], &d.marks[id]
		if e.Included {
			if !m.wasIncluded {
				include.Add(e.Seq)
			}
			return
		}
		by, reason := d.resolve(id)
		switch {
		case by >= 0:
			covers[by-int32(n)].Add(e.Seq)
		case m.wasIncluded || reasons && reason != "":
			exclude = addExclusion(exclude, reason, e.Seq)
		}
	}
	for _, ids := range [...][]int32{d.sources, d.others} {
		for _, id := range ids {
			add(id)
		}
	}
	for id := range n - len(d.sources) - len(d.others) { // all are sources
		add(int32(id))
	}
	p := chat.Plan{Include: include.Ranges(), DropReasoning: d.stale}
	for i := range exclude {
		p.Exclude = append(p.Exclude, chat.Exclusion{Reason: exclude[i].reason, Seqs: exclude[i].seqs.Ranges()})
	}
	for k := range d.adds {
		if d.entries[n+k].Included && len(covers[k].Sorted) > 0 {
			a := d.adds[k]
			a.Covers = covers[k].Ranges()
			p.Additions = append(p.Additions, a)
		}
	}
	return p
}

// exclusion collects the messages that are excluded for one reason.
type exclusion struct {
	reason string
	seqs   plan.SeqSet
}

func addExclusion(to []exclusion, reason string, q chat.Seq) []exclusion {
	for i := range to {
		if to[i].reason == reason {
			to[i].seqs.Add(q)
			return to
		}
	}
	to = append(to, exclusion{reason: reason})
	to[len(to)-1].seqs.Add(q)
	return to
}

// moveSummary turns an addition into a summary at position q.
func (d *Draft) moveSummary(id int32, q chat.Seq) {
	a := &d.adds[int(id)-(len(d.entries)-len(d.adds))]
	if a.Kind == chat.KindSummary && a.Position == q {
		return
	}
	d.view = nil
	a.Kind, a.Position = chat.KindSummary, q
	d.entries[id].Kind, d.entries[id].Position = a.Kind, q
}

// summariesFrom returns the summaries in the view from the n-th addition on.
func (d *Draft) summariesFrom(n int) []chat.Seq {
	var out []chat.Seq
	first := len(d.entries) - len(d.adds)
	for i := n; i < len(d.adds); i++ {
		if e := &d.entries[first+i]; e.Included && e.Kind == chat.KindSummary {
			out = append(out, e.Seq)
		}
	}
	return out
}

// outcome returns the view and its totals after the draft's plan is applied: additions that
// are not in the plan are left out, and the seqs of the others are consecutive.
func (d *Draft) outcome() ([]chat.Meta, plan.Totals) {
	n := len(d.entries) - len(d.adds)
	if !slices.ContainsFunc(d.entries[n:], func(e plan.Entry) bool { return !e.Included }) {
		return d.viewMetas(), d.Transcript().Totals()
	}
	seqs := make([]chat.Seq, len(d.adds))
	base := d.next - chat.Seq(len(d.adds))
	q := base
	for k := range d.adds {
		if d.entries[n+k].Included {
			seqs[k] = q
			q++
		}
	}
	all := d.Transcript().Entries
	t := &plan.Transcript{Entries: make([]plan.Entry, 0, len(all))}
	view := make([]chat.Meta, 0, len(all))
	for _, e := range all {
		if e.Seq >= base {
			if !e.Included {
				continue
			}
			e.Seq = seqs[e.Seq-base]
		}
		t.Entries = append(t.Entries, e)
		if e.Included {
			view = append(view, e.Meta)
		}
	}
	return view, t.Totals()
}
