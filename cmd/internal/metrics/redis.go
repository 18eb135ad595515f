package metrics

import (
	"context"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// Redis returns connection options whose clients report their round trips to the metrics.
func (m *Metrics) Redis(o asynq.RedisConnOpt) asynq.RedisConnOpt { return observedRedis{o, m} }

type observedRedis struct {
	asynq.RedisConnOpt
	m *Metrics
}

// MakeRedisClient implements asynq.RedisConnOpt.
func (o observedRedis) MakeRedisClient() any {
	client := o.RedisConnOpt.MakeRedisClient()
	if c, ok := client.(redis.UniversalClient); ok {
		c.AddHook(redisHook{o.m})
	}
	return client
}

// redisHook implements redis.Hook.
type redisHook struct{ m *Metrics }

// DialHook observes nothing: a client connects within a command.
func (redisHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h redisHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		began := time.Now()
		err := next(ctx, cmd)
		h.done(began, err)
		return err
	}
}

func (h redisHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		began := time.Now()
		err := next(ctx, cmds)
		h.done(began, err)
		return err
	}
}

func (h redisHook) done(began time.Time, err error) {
	h.m.redisSeconds.Observe(time.Since(began).Seconds())
	if code := redisCode(err); code != "" {
		h.m.redisErrors.WithLabelValues(code).Inc()
	}
}
