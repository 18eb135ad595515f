package builtin

import (
	"context"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// keepLastTurns keeps the newest turns and pinned messages. A turn is a user message with
// all messages up to the next one.
type keepLastTurns struct{ n int64 }

func newKeepLastTurns(a *plan.Args) (plan.Strategy, error) {
	return &keepLastTurns{n: a.Int(plan.Int{
		Name: "n", Required: true, Min: 1, Doc: "how many of the newest turns stay; pinned messages come on top",
	})}, nil
}

// Name implements Strategy.
func (*keepLastTurns) Name() string { return "keep_last_n_turns" }

func (s *keepLastTurns) window(t *plan.Transcript) *window {
	from, turns := 0, int64(0)
	for i := len(t.Entries) - 1; i >= 0 && turns <= s.n; i-- {
		if e := &t.Entries[i]; e.Included && e.Role == chat.RoleUser {
			if turns++; turns <= s.n {
				from = i
			}
		}
	}
	if turns <= s.n {
		from = 0 // with what was said before the first turn
	}
	w := newWindow(t, s.Name())
	w.keepFrom(from)
	w.keepPinned()
	return w
}

// Reads implements Reader: calls that lose a result, and the results near them.
func (s *keepLastTurns) Reads(t *plan.Transcript) []chat.Seq { return s.window(t).reads() }

// Plan implements Strategy.
func (s *keepLastTurns) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) {
	w := s.window(t)
	if err := w.untear(); err != nil {
		return chat.Plan{}, err
	}
	return w.plan(), nil
}
