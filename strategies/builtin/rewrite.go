package builtin

import (
	"context"
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// rewriter is a strategy that replaces single messages by shorter ones.
type rewriter struct {
	name string
	// candidates returns the indexes of the entries to read.
	candidates func(t *plan.Transcript) []int
	// rewrite returns the new form of a message with its tokens, which may be 0 if
	// unknown, or false if the message stays as it is.
	rewrite func(t *plan.Transcript, e *plan.Entry, m *chat.Message) (chat.Message, chat.Tokens, bool)
}

// Name implements plan.Strategy.
func (s *rewriter) Name() string { return s.name }

// Reads implements plan.Reader.
func (s *rewriter) Reads(t *plan.Transcript) []chat.Seq { return seqsOf(t, s.candidates(t)) }

// Plan implements plan.Strategy.
func (s *rewriter) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) {
	var p chat.Plan
	for _, i := range s.candidates(t) {
		m, err := t.Read(i)
		if err != nil {
			return chat.Plan{}, err
		}
		e := &t.Entries[i]
		if short, n, ok := s.rewrite(t, e, m); ok {
			a := replacement(e, short, s.name)
			a.Tokens = n
			p.Additions = append(p.Additions, a)
		}
	}
	return p, nil
}

// replacement returns a replacement of one message.
func replacement(e *plan.Entry, m chat.Message, reason string) chat.Addition {
	covers := chat.Ranges{{Lo: e.Seq, Hi: e.Seq + 1}}
	return chat.Addition{Kind: chat.KindReplacement, Reason: reason, Covers: covers, Position: e.Position, Message: m}
}

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

// rewritable returns a function that reports whether the text of entry i may change: it is
// in the view and neither pinned, nor the call of a pinned result, nor the last user
// message, nor moved by the application.
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
