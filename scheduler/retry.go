package scheduler

import (
	"context"
	"errors"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
)

const (
	// storeTimeout is longer than the store's statement timeout, so that Postgres ends a
	// slow statement and the connection survives.
	storeTimeout = 65 * time.Second
	// enqueueTimeout bounds the enqueueing of one task.
	enqueueTimeout = 5 * time.Second
	// resignTimeout bounds the last statement of a shutdown.
	resignTimeout = 3 * time.Second

	// repeatLog is the interval at which a lasting error is logged again.
	repeatLog = time.Minute
)

// pauses are the delays between attempts at the store or the queue.
var pauses = backoff.Backoff{First: 100 * time.Millisecond, Most: 5 * time.Second}

// retry calls the store until it succeeds or ctx is done. The error is that of ctx. Each
// attempt gets storeTimeout.
func retry[T any](ctx context.Context, s *Scheduler, op string, call func(context.Context) (T, error)) (T, error) {
	var loggedAt time.Time
	began, space := time.Now(), true
	for attempt := 0; ; attempt++ {
		callCtx, cancel := context.WithTimeout(ctx, storeTimeout)
		v, err := call(callCtx)
		cancel()
		if err == nil {
			s.database.Succeeded()
			if !space {
				s.space.Succeeded()
			}
			if !loggedAt.IsZero() {
				s.log.InfoContext(ctx, "works again", "op", op)
			}
			return v, nil
		}
		if ctx.Err() != nil {
			return v, ctx.Err()
		}
		space = space && !errors.Is(err, store.ErrNoSpace)
		// An outage is logged once for all loops, a lock that is not available only if
		// it lasts, and any other error by the loop itself.
		news := !errors.Is(err, store.ErrBusy) || time.Since(began) >= repeatLog
		if !s.noteUnavailable(err) && news && time.Since(loggedAt) >= repeatLog {
			loggedAt = time.Now()
			s.log.ErrorContext(ctx, "database call failed, retrying", "op", op, "error", err)
		}
		if err := backoff.Wait(ctx, pauses.Delay(attempt)); err != nil {
			return v, err
		}
	}
}

// noteUnavailable records an outage of the database, or of its disk, and reports whether err is one.
func (s *Scheduler) noteUnavailable(err error) bool {
	if errors.Is(err, store.ErrNoSpace) { // statements that write nothing new succeed meanwhile
		s.space.Failed(err.Error())
		return true
	}
	// An exceeded storeTimeout counts as an outage.
	if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	s.database.Failed(err.Error())
	return true
}
