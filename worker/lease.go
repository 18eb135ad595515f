package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sessionstore/compactor/store"
)

// keepLease extends the lease of a claim until the returned function is called. The
// returned context ends with the cause errLost if another worker has claimed the run.
// Most runs end before the first heartbeat, so it starts a timer and no goroutine.
func (w *Worker) keepLease(ctx context.Context, c *store.Claim) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var mu sync.Mutex
	stopped := false
	var timer *time.Timer
	beat := func() {
		mu.Lock()
		over := stopped
		mu.Unlock()
		if over {
			return
		}
		write, done := context.WithTimeout(ctx, w.config.WriteTimeout)
		err := w.store.Heartbeat(write, c.Run, c.Fence, w.config.Lease)
		done()
		if errors.Is(err, store.ErrNotApplicable) {
			cancel(errLost)
			return
		}
		// After another error the run continues; if its lease expires, the fence token
		// decides at apply.
		mu.Lock()
		defer mu.Unlock()
		if !stopped {
			timer.Reset(w.config.Heartbeat)
		}
	}
	mu.Lock()
	timer = time.AfterFunc(w.config.Heartbeat, beat)
	mu.Unlock()
	return ctx, func() {
		mu.Lock()
		stopped = true
		timer.Stop()
		mu.Unlock()
		cancel(nil)
	}
}
