package builtin

import (
	"slices"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/tokens"
)

const (
	// charsPerToken and the flat prices are those of the estimate that places the
	// boundaries of a handoff. It needs no tokenizer and errs on the side of a
	// smaller tail.
	charsPerToken = 4
	charsPerImage = 6400
	perMessage    = 10
)

// span is what finding the boundaries of a handoff takes to know of a message.
type span struct {
	role  chat.Role
	calls bool
	cost  int64
	// summary: it was written by a handoff and is not part of the conversation.
	summary bool
}

// spans are the messages of a view in order.
type spans []span

// spanOf measures a message.
func spanOf(m *chat.Message) span {
	s := span{role: m.Role, calls: m.Role == chat.RoleAssistant && len(m.ToolCalls) > 0}
	s.cost = perMessage + contentLength(m.Content)/charsPerToken
	for _, c := range m.ToolCalls {
		s.cost += int64(utf8.RuneCountInString(c.Arguments)) / charsPerToken
	}
	return s
}

// contentLength returns the length in characters, media at a flat price.
func contentLength(c chat.Content) int64 {
	return int64(tokens.ContentLength(c)) + int64(c.Media())*charsPerImage
}

// forward moves a boundary past results, which belong to what is before it.
func (s spans) forward(i int) int {
	for i < len(s) && s[i].role == chat.RoleTool {
		i++
	}
	return i
}

// backward moves a boundary to the front of a call whose group it would split, or
// which stands directly before it.
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

// tail returns where the tail begins that stays as it is: as much from the end as fits
// half again the budget, the newest floor messages at least, a whole group where it
// begins, and the last user message with all behind it. It begins behind head, so
// that there is something to summarize, but for the alignment to groups.
func (s spans) tail(head int, budget int64, floor int, user func(span) bool) int {
	n := len(s)
	least := 0
	if n-head > 1 {
		least = min(floor, n-head-1)
	}
	ceiling := int64(float64(budget) * 1.5)
	cut, sum := n, int64(0)
	for i := n - 1; i >= head; i-- {
		if sum+s[i].cost > ceiling && n-i >= least {
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

// last returns the index of the last message of which is holds, or -1.
func (s spans) last(is func(span) bool) int {
	for i, x := range slices.Backward(s) {
		if is(x) {
			return i
		}
	}
	return -1
}

// anyUser takes a summary in the role of the user for the user, as the reference does.
func anyUser(s span) bool { return s.role == chat.RoleUser }

func realUser(s span) bool { return s.role == chat.RoleUser && !s.summary }

// bounds returns the head that stays, up to start, and the tail that stays, from end
// on. There is nothing to summarize where end is not behind start; the reference's
// end is always. A summary of any author ends the head: it is brought up to date.
func (h *handoff) bounds(s spans) (start, end int) {
	start = s.forward(h.first)
	if h.reference {
		return start, max(s.tail(start, int64(h.tail), 3, anyUser), start+1)
	}
	if i := slices.IndexFunc(s[:min(start, len(s))], func(x span) bool { return x.summary }); i >= 0 {
		start = i
	}
	if s.last(realUser) == start {
		start = s.forward(start + 1) // what is asked now belongs to the head if all else is its work
	}
	return start, s.tail(start, int64(h.tail), max(3, min(h.last, 8)), realUser)
}
