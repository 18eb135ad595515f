// Package backoff computes the delays between attempts, and waits for them. It defines the
// default cooldowns of models, which several packages share.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Default cooldowns of a model after a failure.
const (
	// Cooldown follows a transient failure.
	Cooldown = time.Minute
	// CooldownNoProvider follows a failure that an operator has to resolve: no model, an
	// invalid key, no quota left.
	CooldownNoProvider = 10 * time.Minute
)

// Backoff is an exponential backoff: delays double from First up to Most.
type Backoff struct {
	First, Most time.Duration
	// Jitter draws each delay at random between 0 and the bound, so that processes that
	// failed at one time do not retry at one time.
	Jitter bool
}

// Delay returns the delay after an attempt; the first attempt is 0.
func (b Backoff) Delay(attempt int) time.Duration {
	d := max(0, min(b.First, b.Most))
	for ; attempt > 0 && 0 < d && d < b.Most; attempt-- {
		d += min(d, b.Most-d) // never overflows
	}
	if b.Jitter {
		return rand.N(d + 1) //nolint:gosec // jitter is no secret
	}
	return d
}

// Wait waits for d. It returns the cause of ctx's end if ctx ends first.
func Wait(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil || d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
