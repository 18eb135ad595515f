package store

import (
	"context"
	"sync"
)

// together runs calls that come at the same time as one: one round trip, one
// transaction, one commit. Nobody waits for company: a call starts at once while
// a slot is free, and what gathers behind busy slots goes together next.
//
// do answers all calls it is given. It gets a context that is not any one
// caller's, so it has to end by itself.
type together[In, Out any] struct {
	do    func(ctx context.Context, calls []*part[In, Out])
	most  int // calls that go together
	slots chan struct{}

	mu      sync.Mutex
	waiting []*part[In, Out]
}

// part is one caller's part. do sets out and err.
type part[In, Out any] struct {
	in   In
	out  Out
	err  error
	done chan struct{}
}

func newTogether[In, Out any](slots, most int, do func(context.Context, []*part[In, Out])) *together[In, Out] {
	return &together[In, Out]{do: do, most: most, slots: make(chan struct{}, slots)}
}

// Do is safe for concurrent use. When ctx ends first its error is returned, and the
// call may still be carried out, as with any request that is under way.
func (t *together[In, Out]) Do(ctx context.Context, in In) (Out, error) {
	c := &part[In, Out]{in: in, done: make(chan struct{})}
	t.mu.Lock()
	t.waiting = append(t.waiting, c)
	t.mu.Unlock()
	for {
		select {
		case <-c.done:
			return c.out, c.err
		case <-ctx.Done():
			return c.out, ctx.Err()
		case t.slots <- struct{}{}:
			t.next(ctx)
			<-t.slots
		}
	}
}

// next carries out what is waiting, as far as it goes together.
func (t *together[In, Out]) next(ctx context.Context) {
	t.mu.Lock()
	n := min(len(t.waiting), t.most)
	calls := t.waiting[:n:n]
	t.waiting = t.waiting[n:]
	t.mu.Unlock()
	if n == 0 {
		return
	}
	t.do(context.WithoutCancel(ctx), calls)
	for _, c := range calls {
		close(c.done)
	}
}
