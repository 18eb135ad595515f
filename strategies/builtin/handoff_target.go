package builtin

import (
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// target returns the size of the view that the summary becomes part of, and the most tokens
// that the summary adds to it; 0 if the summarizer knows none.
func (h *handoff) target() (view, summary chat.Tokens) {
	if b, ok := h.summarizer.(plan.Bounded); ok {
		return b.Bounds(h.maxSummary)
	}
	return 0, 0
}

// aboveTarget reports whether the view exceeds the target.
func (h *handoff) aboveTarget(t *plan.Transcript) bool {
	target, _ := h.target()
	_, size := t.Included()
	return target > 0 && size > target
}

// fitTarget moves the boundaries of the middle apart, to those of groups, if head, summary
// and tail would exceed the target: what does not fit is summarized rather than left to a
// fallback that drops it. The newest group stays, and so do the last user message and an
// incomplete call with everything behind it, even within the middle. If these alone exceed the
// target, the summary has its share of it.
func (p *handoffPass) fitTarget() {
	target, summary := p.h.target()
	if target == 0 {
		return
	}
	n := len(p.view)
	p.start = min(p.start, n)
	last, waiting := p.spans.last(realUser), waitingFrom(p.t)
	rest := target - summary // for what may be summarized, in head and tail
	sizes := make([]chat.Tokens, n)
	var head, tail chat.Tokens
	for i := range n {
		p.keep[i] = p.keep[i] || i == last || p.view[i] >= waiting
		switch size := p.size(i); {
		case p.keep[i]:
			rest -= size
		case i < p.start:
			sizes[i] = size
			head += size
		default:
			sizes[i] = size
			if i >= p.end {
				tail += size
			}
		}
	}
	if head+tail > rest {
		head, tail = p.shrink(sizes, head, rest)
	}
	p.room = summary
	if left := rest + summary - head - tail; left >= 0 {
		p.room = max(1, left)
	}
}

// shrink moves the boundaries of the middle apart until head and tail have at most rest
// tokens, or nothing but the newest group is left of them, and returns their tokens.
func (p *handoffPass) shrink(sizes []chat.Tokens, head, rest chat.Tokens) (_, tail chat.Tokens) {
	groups, _ := p.t.ViewGroups()
	size := func(start, end int) (n chat.Tokens) {
		for i := start; i < end; i++ {
			n += sizes[i]
		}
		return n
	}
	newest := groups[len(groups)-1]
	tail = size(newest.Start, newest.End)
	for _, g := range slices.Backward(groups) {
		if g.Start < p.start && head > min(rest/2, rest-tail) {
			p.start, head = g.Start, head-size(g.Start, p.start)
		}
	}
	end := newest.Start
	for _, g := range slices.Backward(groups[:len(groups)-1]) {
		n := size(g.Start, g.End)
		if g.Start < max(p.start, p.end) || head+tail+n > rest {
			break
		}
		end, tail = g.Start, tail+n
	}
	p.end = max(p.start, end)
	return head, tail
}

// size returns the tokens of a message that stays.
func (p *handoffPass) size(i int) chat.Tokens {
	if a := p.pruned[p.seq(i)]; a != nil && p.t.Counter != nil {
		return p.t.Counter.Message(&a.Message)
	}
	return p.entry(i).Tokens
}
