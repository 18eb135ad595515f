package builtin

import (
	"slices"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
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
	s.cost = perMessage + contentLength(m.Content)/charsPerToken
	for _, c := range m.ToolCalls {
		s.cost += int64(utf8.RuneCountInString(c.Arguments)) / charsPerToken
	}
	return s
}

// contentLength returns the length in characters, with a fixed length for media.
func contentLength(c chat.Content) int64 {
	return int64(tokens.ContentLength(c)) + int64(c.Media())*charsPerImage
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
// budget, but at least floor, extended to whole groups and to the last user message. Apart
// from the extension to groups it begins after head, so that there is something to
// summarize.
func (s spans) tail(head int, budget int64, floor int, user func(span) bool) int {
	n := len(s)
	least := 0
	if n-head > 1 {
		least = min(floor, n-head-1)
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
