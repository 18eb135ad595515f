// Package redislimit applies the limits per minute of models in Redis, so that all workers
// share them. During an outage of Redis each process applies them by itself.
package redislimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sessionstore/compactor/strategies/backoff"
	"github.com/sessionstore/compactor/strategies/llm"
)

const (
	// redisTimeout bounds one call of Redis.
	redisTimeout = time.Second
	// outagePause is the time without calls of Redis after one failed.
	outagePause = 5 * time.Second
)

// Limiter shares limits through Redis. Safe for concurrent use.
type Limiter struct {
	redis   redis.Scripter
	script  *redis.Script
	local   *llm.LocalLimiter
	outage  *backoff.Outage
	timeout time.Duration // of one call of Redis
	retryAt atomic.Int64  // no call of Redis before, in nanoseconds since the epoch
}

// New returns a limiter on a connection, which the caller closes. It logs the beginning
// and the end of an outage.
func New(client redis.Scripter, log *slog.Logger) *Limiter {
	return &Limiter{
		redis: client, script: redis.NewScript(reserve), local: llm.NewLocalLimiter(),
		outage: backoff.NewOutage(log, "sharing of model limits in redis"), timeout: redisTimeout,
	}
}

// reserve implements llm.Bucket for both limits at once, with the clock of Redis. Its
// state is two times in microseconds. They expire a minute after the bucket is full, when
// they have no effect any more.
//
// KEYS: the state of requests, of tokens. ARGV: both limits (0 for none), the units of
// both, the longest wait in microseconds. It returns the wait.
const reserve = `
local minute = 60e6
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1e6 + tonumber(clock[2])
local most = tonumber(ARGV[5])

local start = now
local buckets = {}
for i = 1, 2 do
  local limit = tonumber(ARGV[i])
  if limit > 0 then
    local burst = math.max(1, math.floor(limit / 5))
    local units = math.min(tonumber(ARGV[i + 2]), limit)
    local b = {key = KEYS[i], units = units, interval = minute / (limit - burst + 1)}
    b.full = tonumber(redis.call('GET', b.key) or now - minute)
    local at = b.full - (burst - units) * b.interval
    if units > burst then
      at = b.full + math.max(0, minute - (limit - units) * b.interval)
    end
    start = math.max(start, math.ceil(at))
    table.insert(buckets, b)
  end
end

local wait = start - now
if wait <= most then
  for _, b in ipairs(buckets) do
    local full = math.ceil(math.max(start, b.full) + b.units * b.interval)
    local keep = math.ceil((full - now + minute) / 1000)
    redis.call('SET', b.key, string.format('%.0f', full), 'PX', string.format('%.0f', keep))
  end
end
return string.format('%.0f', wait)
`

// Reserve implements llm.Limiter. It returns an error only if ctx has ended: if Redis fails,
// it applies the limits of this process.
func (l *Limiter) Reserve(ctx context.Context, t llm.Take) (time.Duration, error) {
	if time.Now().UnixNano() < l.retryAt.Load() {
		return l.local.Reserve(ctx, t)
	}
	wait, err := l.reserve(ctx, t)
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err() // which says nothing about Redis
	case err != nil:
		l.retryAt.Store(time.Now().Add(outagePause).UnixNano())
		l.outage.Failed(err.Error())
		return l.local.Reserve(ctx, t)
	}
	l.outage.Succeeded()
	return wait, nil
}

func (l *Limiter) reserve(ctx context.Context, t llm.Take) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	// The braces place both keys on one node of a cluster.
	keys := []string{"compactor:llm:{" + t.Key + "}:requests", "compactor:llm:{" + t.Key + "}:tokens"}
	micros, err := l.script.Run(ctx, l.redis, keys,
		t.RequestsPerMinute, t.TokensPerMinute, 1, max(0, t.Tokens), max(0, t.MaxWait).Microseconds()).Int64()
	if err != nil {
		return 0, fmt.Errorf("reserve in redis: %w", err)
	}
	if micros < 0 {
		return 0, errors.New("reserve in redis: negative wait")
	}
	return time.Duration(micros) * time.Microsecond, nil
}
