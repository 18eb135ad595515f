package builtin

import (
	"slices"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/tokens"
)

const (
	// The boundaries of a handoff follow from this estimate. It needs no tokenizer and
	// rather overestimates, so that the tail becomes smaller.
	charsPerToken = 4
	charsPerImage = 6400
	perMessage    = 10
)

// span describes a message for finding the boundaries of a handoff.
type span struct {
	role  chat.Role
	calls bool
	cost  int64 // estimated tokens
	// summary reports whether the message is a summary rather than part of the
	// conversation.
	summary bool
}

// spans describes the messages of a view in order.
type spans []span

// spanOf returns the span of a message of the conversation.
func spanOf(m *chat.Message) span {
	s := span{role: m.Role, calls: m.Role == chat.RoleAssistant && len(m.ToolCalls) > 0}
	chars := int64(tokens.ContentLength(m.Content)) + int64(m.Content.Media())*charsPerImage
	s.cost = perMessage + chars/charsPerToken
	for _, c := range m.ToolCalls {
		s.cost += int64(utf8.RuneCountInString(c.Arguments)) / charsPerToken
	}
	return s
}

// forward moves a boundary past tool results, which belong to the messages before it.
func (s spans) forward(i int) int {
	for i < len(s) && s[i].role == chat.RoleTool {
		i++
	}
	return i
}

// backward moves a boundary in front of a call whose group it would split, or which
// directly precedes it.
func (s spans) backward(i int) int {
	if i <= 0 || i >= len(s) {
		return i
	}
	k := i - 1
	for k >= 0 && s[k].role == chat.RoleTool {
		k--
	}
	if k >= 0 && s[k].calls {
		return k
	}
	return i
}

// tail returns the index at which the tail begins: the newest messages within 1.5 times the
// budget, but at least minimum, extended to whole groups and to the last user message. Apart
// from the extension to groups it begins after head, so that there is something to
// summarize.
func (s spans) tail(head int, budget int64, minimum int, user func(span) bool) int {
	n := len(s)
	least := 0
	if n-head > 1 {
		least = min(minimum, n-head-1)
	}
	limit := int64(float64(budget) * 1.5)
	cut, sum := n, int64(0)
	for i := n - 1; i >= head; i-- {
		if sum+s[i].cost > limit && n-i >= least {
			break
		}
		sum += s[i].cost
		cut = i
	}
	if cut = min(cut, n-least); cut <= head {
		cut = max(n-least, head+1)
	}
	cut = s.backward(cut)
	if last := s.last(user); last >= head && last < cut {
		cut = max(last, head+1)
	}
	return cut
}

// last returns the index of the last message for which is returns true, or -1.
func (s spans) last(is func(span) bool) int {
	for i, x := range slices.Backward(s) {
		if is(x) {
			return i
		}
	}
	return -1
}

// anyUser reports whether a message has the user's role, even if it is a summary.
func anyUser(s span) bool { return s.role == chat.RoleUser }

// realUser reports whether a message was written by the user.
func realUser(s span) bool { return s.role == chat.RoleUser && !s.summary }

// bounds returns the first message of the middle and the first of the tail, which is the
// same or an earlier one if there is nothing to summarize. A summary of any author ends the
// head, so that it is updated.
func (h *handoff) bounds(s spans) (start, end int) {
	start = s.forward(h.first)
	if i := slices.IndexFunc(s[:min(start, len(s))], func(x span) bool { return x.summary }); i >= 0 {
		start = i
	}
	if s.last(realUser) == start {
		start = s.forward(start + 1) // the rest of the view answers this request, which joins the head
	}
	return start, min(len(s), s.tail(start, int64(h.tail), max(3, min(h.last, 8)), realUser))
}

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
// and tail would exceed the target: the rest is summarized rather than left to a fallback
// that drops it. The newest group stays, and so do the last user message and an
// incomplete call with everything after it, even within the middle. If these alone exceed the
// target, the summary has its share of it.
func (p *handoffPass) fitTarget() {
	target, summary := p.h.target()
	if target == 0 {
		return
	}
	n := len(p.view)
	p.start = min(p.start, n)
	last, waiting := p.spans.last(realUser), waitingFrom(p.t)
	rest := target - summary // for the messages of head and tail that may be summarized
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
	p.limit = summary
	if left := rest + summary - head - tail; left >= 0 {
		p.limit = max(1, left)
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
