package strategies

import (
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// standIn returns an addition that takes the place of one message.
func standIn(e *plan.Entry, m chat.Message, reason string) chat.Addition {
	return chat.Addition{Kind: chat.KindReplacement, Reason: reason, Covers: chat.RangesOf(e.Seq), Message: m}
}

// rewritable returns what tells of an entry, by index, whether its words may change:
// it is in the view and neither pinned, nor the call of what is, nor the last user
// message, nor put where it stands by the application.
func rewritable(t *plan.Transcript) func(i int) bool {
	last := lastUser(t)
	called := map[int]bool{}
	for i, g := range t.Groups() {
		if g.Kind != chat.GroupToolCall || !t.GroupPinned(i) {
			continue
		}
		for k := g.Start; k < g.End; k++ {
			called[k] = plan.MakesCalls(&t.Entries[k])
		}
	}
	return func(i int) bool {
		e := &t.Entries[i]
		return e.Included && !e.Pinned && !called[i] && !e.Has(chat.Moved) && (e.Position != last || e.Role != chat.RoleUser)
	}
}

// lastUser returns the position of the last user message, which no view is without, or 0.
func lastUser(t *plan.Transcript) chat.Seq {
	for i := range slices.Backward(t.Entries) {
		if e := &t.Entries[i]; e.Role == chat.RoleUser && plan.IsSource(e.Kind) {
			return e.Position
		}
	}
	return 0
}

// userTurn reports whether an entry starts a turn: a user message in the view. A
// summary in the role of the user starts none.
func userTurn(e *plan.Entry) bool {
	return e.Included && e.Role == chat.RoleUser && e.Kind != chat.KindSummary
}

// turnStart returns the index of the user message that the newest n turns of the view
// start with, 0 if there are not more, and the number of entries for n = 0.
func turnStart(t *plan.Transcript, n int64) int {
	if n == 0 {
		return len(t.Entries)
	}
	for i := range slices.Backward(t.Entries) {
		if userTurn(&t.Entries[i]) {
			if n--; n == 0 {
				return i
			}
		}
	}
	return 0
}
