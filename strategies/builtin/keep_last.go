package builtin

import (
	"context"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// keepLast keeps the newest turns or messages, and pinned messages. A call and its result
// are dropped together if only one of them would stay.
type keepLast struct {
	name string
	n    int64
	// first returns the index of the first entry to keep.
	first func(t *plan.Transcript, n int64) int
}

func newKeepLastTurns(a *plan.Args) (plan.Strategy, error) {
	n := a.Int(plan.Int{
		Name: "n", Required: true, Min: 1,
		Doc: "how many of the newest turns stay, in addition to pinned messages; a turn begins with a user message",
	})
	user := func(e *plan.Entry) bool { return e.Role == chat.RoleUser }
	return &keepLast{"keep_last_n_turns", n, func(t *plan.Transcript, n int64) int {
		first := newest(t, n, user)
		for i := range first {
			if e := &t.Entries[i]; e.Included && user(e) {
				return first
			}
		}
		return 0 // no turn is dropped, nor the messages before the first one
	}}, nil
}

func newKeepLastMessages(a *plan.Args) (plan.Strategy, error) {
	n := a.Int(plan.Int{
		Name: "n", Required: true, Min: 1, Doc: "how many of the newest messages stay, in addition to pinned ones",
	})
	return &keepLast{"keep_last_n_messages", n, func(t *plan.Transcript, n int64) int {
		return newest(t, n, func(*plan.Entry) bool { return true })
	}}, nil
}

func (s *keepLast) Name() string { return s.name }

func (s *keepLast) window(t *plan.Transcript) *window {
	w := newWindow(t, s.name)
	w.keepFrom(s.first(t, s.n))
	w.keepPinned()
	return w
}

// Reads implements plan.Reader. It names calls that lose a result, and the results near
// them.
func (s *keepLast) Reads(t *plan.Transcript) []chat.Seq { return s.window(t).reads() }

func (s *keepLast) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) {
	w := s.window(t)
	if err := w.dropOrphans(); err != nil {
		return chat.Plan{}, err
	}
	return w.plan(), nil
}
