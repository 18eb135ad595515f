package builtin

import (
	"context"

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

func (s *rewriter) Name() string { return s.name }

func (s *rewriter) Reads(t *plan.Transcript) []chat.Seq { return seqsOf(t, s.candidates(t)) }

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
