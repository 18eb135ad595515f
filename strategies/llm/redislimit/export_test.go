package redislimit

import (
	"log/slog"

	"github.com/redis/go-redis/v9"
)

// Patient returns a limiter that waits for Redis until the context of a call ends, for tests on a
// busy machine.
func Patient(client redis.Scripter, log *slog.Logger) *Limiter {
	l := New(client, log)
	l.timeout = 1 << 62
	return l
}
