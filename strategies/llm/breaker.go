package llm

import (
	"log/slog"
	"sync"
	"time"
)

// breaker is a circuit breaker: it blocks a model for a while after too many consecutive
// failures. Unlike a cooldown it also applies to calls that ignore cooldowns. Safe for
// concurrent use.
type breaker struct {
	Breaker
	model string
	log   *slog.Logger

	mu       sync.Mutex
	failures int
	until    time.Time // no call before; zero while the breaker is closed
	holds    int       // how often the breaker opened, trials included
}

// heldUntil returns the time from which a call is allowed; the zero time or a past one
// means now.
func (b *breaker) heldUntil() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.until
}

// allow reports whether a call is allowed. The caller passes the class of its result to
// done, empty for an answer. After the open time, one call is allowed as a trial; others
// are blocked until it ends or the open time has passed again.
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
		case b.holds != began: // opened in the meantime: a trial decides now
		case c == Canceled: // says nothing about the server
			if trial {
				b.until = time.Now()
			}
		case rules[c].trips:
			b.failures++
			if b.failures >= b.Failures {
				b.hold()
				b.log.Warn("model held back after failures in a row",
					"model", b.model, "failures", b.failures, "wait_ms", b.Open.Milliseconds())
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
