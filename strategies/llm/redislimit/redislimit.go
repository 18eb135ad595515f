// Package redislimit keeps the limits per minute of models in Redis, so that all
// workers share them. While Redis is away each process keeps them by itself: a
// model call never waits for Redis.
package redislimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sessionstore/compactor/strategies/llm"
)

const (
	// redisTimeout bounds one question to Redis.
	redisTimeout = time.Second
	// awayFor is how long Redis is not asked after it failed.
	awayFor = 5 * time.Second
)

// Limiter shares limits through Redis. Safe for concurrent use.
type Limiter struct {
	redis  redis.Scripter
	script *redis.Script
	local  *llm.LocalLimiter
	log    *slog.Logger

	mu    sync.Mutex
	away  bool
	retry time.Time // when Redis is asked again while it is away
}

// New returns a limiter on a connection, which stays the caller's. log hears once when
// Redis goes away and once when it is back.
func New(client redis.Scripter, log *slog.Logger) *Limiter {
	return &Limiter{redis: client, script: redis.NewScript(reserve), local: llm.NewLocalLimiter(), log: log}
}

// reserve is llm.Bucket for both limits at once, on the clock of Redis. Its state is
// two times in microseconds. They are kept until a minute after the bucket is full,
// when they no longer matter.
//
// KEYS: the state of requests, of tokens. ARGV: the limits of both (0 for none), the
// units of both, the longest wait in microseconds. It returns the wait.
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

// Reserve implements llm.Limiter. The error is ctx's: when Redis fails, the limit is
// this process's.
func (l *Limiter) Reserve(ctx context.Context, t llm.Take) (time.Duration, error) {
	if !l.ask() {
		return l.local.Reserve(ctx, t)
	}
	wait, err := l.reserve(ctx, t)
	if ctx.Err() != nil {
		return 0, ctx.Err() // says nothing about Redis
	}
	l.noteResult(ctx, err)
	if err != nil {
		return l.local.Reserve(ctx, t)
	}
	return wait, nil
}

func (l *Limiter) reserve(ctx context.Context, t llm.Take) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, redisTimeout)
	defer cancel()
	// The braces make both keys live on one node of a cluster.
	keys := []string{"compactor:llm:{" + t.Key + "}:requests", "compactor:llm:{" + t.Key + "}:tokens"}
	micros, err := l.script.Run(ctx, l.redis, keys,
		t.RequestsPerMinute, t.TokensPerMinute, 1, max(0, t.Tokens), max(0, t.MaxWait).Microseconds()).Int64()
	if err != nil {
		return 0, fmt.Errorf("reserve in redis: %w", err)
	}
	if micros < 0 {
		return 0, errors.New("reserve in redis: a wait below 0")
	}
	return time.Duration(micros) * time.Microsecond, nil
}

// ask reports whether Redis is to be asked.
func (l *Limiter) ask() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.away || !time.Now().Before(l.retry)
}

// noteResult notes whether Redis answered, and says so when that changes.
func (l *Limiter) noteResult(ctx context.Context, err error) {
	l.mu.Lock()
	changed := l.away != (err != nil)
	l.away = err != nil
	if l.away {
		l.retry = time.Now().Add(awayFor)
	}
	l.mu.Unlock()
	switch {
	case changed && err != nil:
		l.log.WarnContext(ctx, "redis is away: limits of models hold for each process alone", "error", err)
	case changed:
		l.log.InfoContext(ctx, "redis is back: limits of models are shared again")
	}
}
