// Package backoff computes the delays between attempts, and waits for them. It owns
// the default cooldowns of models, which several packages share.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// How long nothing is asked of a model that failed, where the settings do not say.
const (
	// Cooldown follows a failure that passes by itself.
	Cooldown = time.Minute
	// CooldownNoProvider follows one that an operator has to resolve: no model, a wrong
	// key, no money left.
	CooldownNoProvider = 10 * time.Minute
)

// Backoff is an exponential backoff: delays double from First up to Most.
type Backoff struct {
	First, Most time.Duration
	// Jitter draws each delay anew between nothing and the bound, so that processes
	// that failed together do not try again together.
	Jitter bool
}

// Delay returns the delay after attempt, of which the first is 0.
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

// Wait waits for d. It returns the cause of ctx's end when that comes first.
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
