package llm

import (
	"log/slog"
	"sync"
	"time"
)

// breaker counts the failures of a model in a row and holds the model back for a
// while when there are too many. Unlike a cooldown it holds for every call, also for
// one that ignores cooldowns. Safe for concurrent use.
type breaker struct {
	Breaker
	model string
	log   *slog.Logger

	mu       sync.Mutex
	failures int
	until    time.Time // no call before; zero while the model is not held back
	holds    int       // how often the model was held back, trials included
}

// heldUntil returns when the next call may be made; a time that has passed, or the
// zero time, where it may be made now.
func (b *breaker) heldUntil() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.until
}

// allow asks for one call. done takes the class that the call ended with, empty for an
// answer. When the time of a model that is held back ends, one call is let through
// as a trial, which holds the others back until it ends or the time is over again.
func (b *breaker) allow() (done func(Class), ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	trial := !b.until.IsZero()
	if trial {
		if time.Now().Before(b.until) {
			return nil, false
		}
		b.hold()
	}
	began := b.holds
	return func(c Class) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch {
		case b.holds != began: // the model was held back meanwhile; a trial decides now
		case c == Canceled: // says nothing about the server
			if trial {
				b.until = time.Now()
			}
		case rules()[c].trips:
			b.failures++
			if b.failures >= b.Failures {
				b.hold()
				b.log.Warn("model held back after failures in a row", "model", b.model, "failures", b.failures, "wait_ms", b.Open.Milliseconds())
			}
		default: // an answer, or a refusal by a server that works
			b.failures, b.until = 0, time.Time{}
			if trial {
				b.log.Info("model no longer held back", "model", b.model)
			}
		}
	}, true
}

func (b *breaker) hold() {
	b.holds++
	b.until = time.Now().Add(b.Open)
}
