package llm

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
)

// breaker keeps calls from a server that fails again and again. Safe for concurrent
// use.
type breaker struct {
	two *gobreaker.TwoStepCircuitBreaker[struct{}]
	// until is when an open circuit lets one call through, in Unix nanoseconds: the
	// library does not say.
	until atomic.Int64
}

// Outcomes that the library is told.
var (
	errBroken   = errors.New("broken")   // the server's failure
	errNoSample = errors.New("nobody's") // says nothing about the server
)

func newBreaker(model string, b Breaker, log *slog.Logger) *breaker {
	br := &breaker{}
	br.two = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name:        model,
		MaxRequests: 1,
		Timeout:     b.Open,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= uint32(b.Failures) },
		IsExcluded:  func(err error) bool { return errors.Is(err, errNoSample) },
		OnStateChange: func(model string, _, to gobreaker.State) {
			if to == gobreaker.StateOpen {
				br.until.Store(time.Now().Add(b.Open).UnixNano())
			}
			log.Warn("circuit of a model changed", "model", model, "state", to.String())
		},
	})
	return br
}

// closedAt is when the next call may be let through; now or earlier where it is.
func (b *breaker) closedAt() time.Time {
	if b.two.State() != gobreaker.StateOpen {
		return time.Time{}
	}
	// The library opens the circuit just after that time, not at it.
	return time.Unix(0, b.until.Load()).Add(time.Millisecond)
}

// allow asks for one call. done is told its class, empty for an answer.
func (b *breaker) allow() (done func(Class), ok bool) {
	report, err := b.two.Allow()
	if err != nil {
		return nil, false
	}
	return func(c Class) {
		switch {
		case c == Canceled:
			report(errNoSample)
		case rules()[c].trips:
			report(errBroken)
		default:
			report(nil) // an answer, or a refusal by a server that works
		}
	}, true
}
