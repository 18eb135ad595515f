package store

import (
	"context"
	"sync"
)

// together runs calls that come at the same time as one: one round trip, one
// transaction, one commit. Nobody waits for company: a call starts at once while
// fewer than slots are under way, and what gathers behind them goes together next.
//
// do answers all calls it is given, by setting out or err. Its context is nobody's
// in particular, so it has to end by itself.
type together[In, Out any] struct {
	do    func(ctx context.Context, calls []*part[In, Out])
	most  int // calls that go together
	slots int

	mu      sync.Mutex
	waiting []*part[In, Out]
	running int // slots in use
}

// part is one caller's part.
type part[In, Out any] struct {
	in   In
	out  Out
	err  error
	done chan struct{}
}

func newTogether[In, Out any](slots, most int, do func(context.Context, []*part[In, Out])) *together[In, Out] {
	return &together[In, Out]{do: do, most: most, slots: slots}
}

// Do is safe for concurrent use. When ctx ends first its error is returned, and the
// call may still be carried out, as with any request that is under way.
func (t *together[In, Out]) Do(ctx context.Context, in In) (Out, error) {
	c := &part[In, Out]{in: in, done: make(chan struct{})}
	t.mu.Lock()
	t.waiting = append(t.waiting, c)
	if t.running < t.slots {
		t.running++
		go t.run(context.WithoutCancel(ctx))
	}
	t.mu.Unlock()
	select {
	case <-c.done:
		return c.out, c.err
	case <-ctx.Done():
		var none Out
		return none, context.Cause(ctx)
	}
}

// run carries out what is waiting until nothing is.
func (t *together[In, Out]) run(ctx context.Context) {
	for {
		t.mu.Lock()
		n := min(len(t.waiting), t.most)
		calls := t.waiting[:n:n]
		t.waiting = t.waiting[n:]
		if n == 0 {
			t.running--
			t.waiting = nil
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		t.do(ctx, calls)
		for _, c := range calls {
			close(c.done)
		}
	}
}
