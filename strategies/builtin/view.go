package builtin

import (
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// included returns the indexes of the entries in the view for which is returns true.
func included(t *plan.Transcript, is func(i int, e *plan.Entry) bool) []int {
	var out []int
	for i := range t.Entries {
		if e := &t.Entries[i]; e.Included && is(i, e) {
			out = append(out, i)
		}
	}
	return out
}

func anyEntry(int, *plan.Entry) bool { return true }

// newest returns the index of the n-th newest included entry for which is returns true, 0 if
// there are fewer, and the number of entries for n = 0.
func newest(t *plan.Transcript, n int64, is func(e *plan.Entry) bool) int {
	if n == 0 {
		return len(t.Entries)
	}
	for i := range slices.Backward(t.Entries) {
		if e := &t.Entries[i]; e.Included && is(e) {
			if n--; n == 0 {
				return i
			}
		}
	}
	return 0
}

// olderGroups returns the groups in the view for which is returns true, except the newest
// keep, oldest first. Pinned groups are neither returned nor counted.
func olderGroups(t *plan.Transcript, keep int64, is func(g chat.Group) bool) []int {
	var out []int
	for i, g := range t.Groups() {
		if is(g) && t.GroupIncluded(i) && !t.GroupPinned(i) {
			out = append(out, i)
		}
	}
	return out[:max(int64(len(out))-keep, 0)]
}

// entriesOf returns the indexes of the entries of groups that are in the view.
func entriesOf(t *plan.Transcript, groups ...int) []int {
	var out []int
	for _, i := range groups {
		t.EachIncluded(i, func(e int) { out = append(out, e) })
	}
	return out
}

// seqsOf returns the seqs of entries given by index.
func seqsOf(t *plan.Transcript, entries []int) []chat.Seq {
	out := make([]chat.Seq, len(entries))
	for n, i := range entries {
		out[n] = t.Entries[i].Seq
	}
	return out
}

// pinnedEntries reports by index which entries belong to pinned groups.
func pinnedEntries(t *plan.Transcript) []bool {
	pinned := make([]bool, len(t.Entries))
	for i, g := range t.Groups() {
		if t.GroupPinned(i) {
			for k := g.Start; k < g.End; k++ {
				pinned[k] = true
			}
		}
	}
	return pinned
}

// lastUser returns the position of the last user message, which every view contains, or 0.
func lastUser(t *plan.Transcript) chat.Seq {
	for i := range slices.Backward(t.Entries) {
		if e := &t.Entries[i]; e.Role == chat.RoleUser && plan.IsSource(e.Kind) {
			return e.Position
		}
	}
	return 0
}

// userTurn reports whether an entry starts a turn, that is, an included user message other
// than a summary.
func userTurn(e *plan.Entry) bool {
	return e.Included && e.Role == chat.RoleUser && e.Kind != chat.KindSummary
}

// instructs reports whether a message is a standing instruction to the model.
func instructs(e *plan.Entry) bool { return e.Role == chat.RoleSystem || e.Role == chat.RoleDeveloper }

// isSummary reports whether an entry is a summary, or belongs to one. A message that the
// application moved is its own.
func isSummary(e *plan.Entry) bool { return e.Kind == chat.KindSummary && !e.Has(chat.Moved) }
