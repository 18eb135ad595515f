package scheduler

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
)

const (
	// storeTimeout is a little more than the store's statement timeout, so that
	// Postgres ends a slow statement itself and the connection survives.
	storeTimeout = 65 * time.Second
	// ringTimeout bounds one task's way into Redis.
	ringTimeout = 5 * time.Second
	// resignTimeout bounds the last statement of a shutdown.
	resignTimeout = 3 * time.Second

	// repeatLog is how often an error that goes on is logged again.
	repeatLog = time.Minute
)

// pauses are the delays between attempts at a store or a queue that fails.
var pauses = backoff.Backoff{First: 100 * time.Millisecond, Most: 5 * time.Second}

// retry calls the store until it succeeds or ctx is done; the error is ctx's.
// Each attempt gets storeTimeout.
func retry[T any](ctx context.Context, s *Scheduler, op string, call func(context.Context) (T, error)) (T, error) {
	var loggedAt time.Time
	began := time.Now()
	for attempt := 0; ; attempt++ {
		callCtx, cancel := context.WithTimeout(ctx, storeTimeout)
		v, err := call(callCtx)
		cancel()
		if err == nil {
			s.database.ok()
			if !loggedAt.IsZero() {
				s.log.InfoContext(ctx, "works again", "op", op)
			}
			return v, nil
		}
		if ctx.Err() != nil {
			return v, ctx.Err()
		}
		// An outage is told once for all loops, a lock held by somebody is no news
		// for a while, and anything else is this call's own trouble.
		news := !errors.Is(err, store.ErrBusy) || time.Since(began) >= repeatLog
		if !s.noteUnavailable(err) && news && time.Since(loggedAt) >= repeatLog {
			loggedAt = time.Now()
			s.log.ErrorContext(ctx, "database refuses, retrying", "op", op, "error", err)
		}
		if err := backoff.Wait(ctx, pauses.Delay(attempt)); err != nil {
			return v, err
		}
	}
}

// noteUnavailable records an outage of the database, if that is what err is.
func (s *Scheduler) noteUnavailable(err error) bool {
	// A deadline of ours that passed is as good as no answer.
	if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	s.database.failed(err)
	return true
}

// outage is whether something answers, as all loops together see it. It tells
// when that changes, and only then. Safe for concurrent use.
type outage struct {
	gone func(error)
	back func(away time.Duration)

	mu    sync.Mutex
	since time.Time // zero: it answers
	okAt  time.Time
}

func (o *outage) failed(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		o.since = time.Now()
		o.gone(err)
	}
}

func (o *outage) ok() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.okAt = time.Now()
	if !o.since.IsZero() {
		o.back(o.okAt.Sub(o.since))
		o.since = time.Time{}
	}
}

// okSince reports whether it has answered at or after t.
func (o *outage) okSince(t time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.okAt.Before(t)
}
