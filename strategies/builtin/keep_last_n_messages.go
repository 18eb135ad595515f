package builtin

import (
	"context"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// keepLastMessages keeps the newest and pinned messages. A call and its result are dropped
// together if only one of them would stay.
type keepLastMessages struct{ n int64 }

func newKeepLastMessages(a *plan.Args) (plan.Strategy, error) {
	return &keepLastMessages{n: a.Int(plan.Int{
		Name: "n", Required: true, Min: 1, Doc: "how many of the newest messages stay; pinned ones come on top",
	})}, nil
}

// Name implements Strategy.
func (*keepLastMessages) Name() string { return "keep_last_n_messages" }

func (s *keepLastMessages) window(t *plan.Transcript) *window {
	from, kept := len(t.Entries), int64(0)
	for from > 0 && kept < s.n {
		if from--; t.Entries[from].Included {
			kept++
		}
	}
	w := newWindow(t, s.Name())
	w.keepFrom(from)
	w.keepPinned()
	return w
}

// Reads implements Reader: calls that lose a result, and the results near them.
func (s *keepLastMessages) Reads(t *plan.Transcript) []chat.Seq { return s.window(t).reads() }

// Plan implements Strategy.
func (s *keepLastMessages) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) {
	w := s.window(t)
	if err := w.untear(); err != nil {
		return chat.Plan{}, err
	}
	return w.plan(), nil
}
