package worker

import (
	"context"
	"errors"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
)

// keepLease extends the lease of a claim until the returned function is called. The
// returned context ends with the cause errLost if another worker has claimed the run.
func (w *Worker) keepLease(ctx context.Context, c *store.Claim) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for backoff.Wait(ctx, w.config.Heartbeat) == nil {
			write, done := context.WithTimeout(ctx, w.config.WriteTimeout)
			err := w.store.Heartbeat(write, c.Run, c.Fence, w.config.Lease)
			done()
			if errors.Is(err, store.ErrNotApplicable) {
				cancel(errLost)
			}
			// After another error the run continues; if its lease expires, the fence token
			// decides at apply.
		}
	}()
	return ctx, cancel
}
