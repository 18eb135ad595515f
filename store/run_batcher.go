package store

import (
	"context"
	"sync"
)

// batcher combines concurrent calls into one round trip and one transaction. Batching never
// delays a call: it starts at once while fewer than maxRunning batches are in flight, and calls
// that arrive meanwhile form the next batch.
//
// do sets out or err of all calls of a batch. Its context carries the values of one of the
// callers but no deadline, so do must bound its own time.
type batcher[In, Out any] struct {
	do         func(ctx context.Context, calls []*pendingCall[In, Out])
	maxSize    int // calls in a batch
	maxRunning int

	mu      sync.Mutex
	waiting []*pendingCall[In, Out]
	running int // batches in flight
}

// pendingCall is one call of a batch.
type pendingCall[In, Out any] struct {
	in   In
	out  Out
	err  error
	done chan struct{}
}

func newBatcher[In, Out any](maxRunning, maxSize int, do func(context.Context, []*pendingCall[In, Out])) *batcher[In, Out] {
	return &batcher[In, Out]{do: do, maxSize: maxSize, maxRunning: maxRunning}
}

// Do adds a call to the next batch and waits for its result. When ctx ends first, its
// cause is returned and the call may still be carried out. Safe for concurrent use.
func (b *batcher[In, Out]) Do(ctx context.Context, in In) (Out, error) {
	c := &pendingCall[In, Out]{in: in, done: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, c)
	if b.running < b.maxRunning {
		b.running++
		go b.run(context.WithoutCancel(ctx))
	}
	b.mu.Unlock()
	select {
	case <-c.done:
		return c.out, c.err
	case <-ctx.Done():
		var none Out
		return none, context.Cause(ctx)
	}
}

// run carries out batches until no call is waiting.
func (b *batcher[In, Out]) run(ctx context.Context) {
	for {
		b.mu.Lock()
		n := min(len(b.waiting), b.maxSize)
		calls := b.waiting[:n:n]
		b.waiting = b.waiting[n:]
		if n == 0 {
			b.running--
			b.waiting = nil
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
		b.do(ctx, calls)
		for _, c := range calls {
			close(c.done)
		}
	}
}
