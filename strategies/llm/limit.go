package llm

import (
	"context"
	"math"
	"sync"
	"time"
)

// Take is what a call takes from the limits of a model: one request, and tokens.
type Take struct {
	// Key names the limits; models that share them share it.
	Key string
	// RequestsPerMinute and TokensPerMinute are the limits, 0 for none.
	RequestsPerMinute, TokensPerMinute int
	// Tokens are what the call may take; more than a minute's limit counts as that.
	Tokens int
	// MaxWait is how long the caller would wait.
	MaxWait time.Duration
}

// Limiter shares limits per minute. Implementations are safe for concurrent use.
type Limiter interface {
	// Reserve takes one request and its tokens, and returns how long to wait before
	// the call may start. A wait longer than t.MaxWait means that nothing was taken.
	// Whoever starts his calls then stays within both limits in every minute,
	// together with all others that reserve under that key.
	Reserve(ctx context.Context, t Take) (wait time.Duration, err error)
}

// Bucket is one limit as a generic cell rate algorithm: its whole state is one
// time, at which everything taken will have been paid back.
//
// A fifth of the limit may be taken at once, and the rest comes back over the
// minute, so that burst and refill together never exceed the limit within any
// minute. A call that takes more than the burst waits until the bucket has been
// full for as long as makes up for the rest.
type Bucket struct {
	limit, burst float64
	interval     float64 // microseconds until one unit is back
}

// minute is the time that limits are for, in microseconds.
const minute = 60e6

// NewBucket returns the bucket of a limit per minute, which is at least 1.
func NewBucket(limit int) Bucket {
	burst := max(1, limit/5)
	return Bucket{limit: float64(limit), burst: float64(burst), interval: minute / float64(limit-burst+1)}
}

// Start returns when n units may be taken, at the earliest now; full is when the bucket
// is full again. Both are in microseconds since whenever.
func (b Bucket) Start(now, full int64, n int) int64 {
	units := min(float64(n), b.limit)
	at := float64(full) - (b.burst-units)*b.interval
	if units > b.burst {
		at = float64(full) + max(0, minute-(b.limit-units)*b.interval)
	}
	return max(now, int64(math.Ceil(at)))
}

// Full returns when the bucket is full again after n units were taken at start.
func (b Bucket) Full(start, full int64, n int) int64 {
	return int64(math.Ceil(float64(max(start, full)) + min(float64(n), b.limit)*b.interval))
}

// LocalLimiter keeps limits within this process. Safe for concurrent use.
type LocalLimiter struct {
	mu   sync.Mutex
	full map[string][2]int64 // of requests and of tokens
}

// NewLocalLimiter returns a limiter of which nothing was taken yet.
func NewLocalLimiter() *LocalLimiter { return &LocalLimiter{full: map[string][2]int64{}} }

// Reserve implements Limiter. The error is nil.
func (l *LocalLimiter) Reserve(_ context.Context, t Take) (time.Duration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now().UnixMicro()
	full, ok := l.full[t.Key]
	if !ok {
		full = [2]int64{now - minute, now - minute} // full for a minute: anything may be taken
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
