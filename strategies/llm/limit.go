package llm

import (
	"context"
	"math"
	"sync"
	"time"
)

// Take is a reservation within the limits of a model: one request, and tokens.
type Take struct {
	// Key identifies the limits; models with shared limits have the same key.
	Key string
	// RequestsPerMinute and TokensPerMinute are the limits, 0 for none.
	RequestsPerMinute, TokensPerMinute int
	// Tokens is the maximum of the call; more than the limit counts as the limit.
	Tokens int
	// MaxWait is the longest wait that the caller accepts.
	MaxWait time.Duration
}

// Limiter shares limits per minute. Implementations are safe for concurrent use.
type Limiter interface {
	// Reserve reserves one request and its tokens, and returns the wait before the call
	// may start. If the wait exceeds t.MaxWait, nothing was reserved. Calls that start
	// after their wait stay within both limits in every minute, together with all
	// others under that key.
	Reserve(ctx context.Context, t Take) (wait time.Duration, err error)
}

// Bucket is one limit, implemented as a generic cell rate algorithm: its only state is the
// time at which it will be full again.
//
// The burst is a fifth of the limit and the rest refills over the minute, so that burst
// and refill together never exceed the limit within any minute. A call for more than the
// burst waits until the bucket has been full long enough to cover the difference.
type Bucket struct {
	limit, burst float64
	interval     float64 // microseconds until one unit is back
}

// minute is the time that limits are for, in microseconds.
const minute = 60e6

// NewBucket returns the bucket of a limit per minute, which must be at least 1.
func NewBucket(limit int) Bucket {
	burst := max(1, limit/5)
	return Bucket{limit: float64(limit), burst: float64(burst), interval: minute / float64(limit-burst+1)}
}

// Start returns the time, not before now, at which n units may be taken; full is the time
// at which the bucket is full again. Times are in microseconds since any common epoch.
func (b Bucket) Start(now, full int64, n int) int64 {
	units := min(float64(n), b.limit)
	at := float64(full) - (b.burst-units)*b.interval
	if units > b.burst {
		at = float64(full) + max(0, minute-(b.limit-units)*b.interval)
	}
	return max(now, int64(math.Ceil(at)))
}

// Full returns the time at which the bucket is full again if n units are taken at start.
func (b Bucket) Full(start, full int64, n int) int64 {
	return int64(math.Ceil(float64(max(start, full)) + min(float64(n), b.limit)*b.interval))
}

// LocalLimiter applies limits within this process. Safe for concurrent use.
type LocalLimiter struct {
	mu   sync.Mutex
	full map[string][2]int64 // when the buckets of requests and of tokens are full
}

// NewLocalLimiter returns a limiter with full buckets.
func NewLocalLimiter() *LocalLimiter { return &LocalLimiter{full: map[string][2]int64{}} }

// Reserve implements Limiter. It never fails.
func (l *LocalLimiter) Reserve(_ context.Context, t Take) (time.Duration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now().UnixMicro()
	full, ok := l.full[t.Key]
	if !ok {
		full = [2]int64{now - minute, now - minute} // full for a minute: any amount may be taken
	}
	limits, units := [2]int{t.RequestsPerMinute, t.TokensPerMinute}, [2]int{1, max(0, t.Tokens)}
	start := now
	for i, limit := range limits {
		if limit > 0 {
			start = max(start, NewBucket(limit).Start(now, full[i], units[i]))
		}
	}
	wait := time.Duration(start-now) * time.Microsecond
	if wait > t.MaxWait {
		return wait, nil
	}
	for i, limit := range limits {
		if limit > 0 {
			full[i] = NewBucket(limit).Full(start, full[i], units[i])
		}
	}
	l.full[t.Key] = full
	return wait, nil
}
