package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sessionstore/compactor/store"
)

// keepLease prolongs the claim's lease while the run is worked on, and ends the
// returned context when another worker has taken it over. Most runs are over long
// before the first heartbeat, so that is a timer, not a goroutine.
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
		// Another error is the database's: the lease lives on until it runs out, and
		// the fence decides at apply.
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

// savePolicy makes sure the policy a run names is in the store; once per process
// and policy.
func (w *Worker) savePolicy(ctx context.Context, b *briefing) error {
	if _, known := w.policies.Load(b.hash); known {
		return nil
	}
	err := w.store.EnsurePolicy(ctx, b.hash, map[string]any{"policy": b.policy, "limits": b.limits})
	if err == nil {
		w.policies.Store(b.hash, true)
	}
	return err
}
