package worker

import (
	"context"
	"errors"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
)

// action is what becomes of a run after an attempt.
type action int

const (
	// done: the run has ended, or is somebody else's.
	done action = iota
	// retry: something failed that may work later; counts against maxFailures.
	retry
	// snooze: nothing failed, it is only not the time; counts against maxSnoozes.
	snooze
	// discard: it will never work; the run ends as failed.
	discard
)

// verdict is the one answer to "what now" after an attempt. Code goes into the ledger.
type verdict struct {
	action action
	delay  time.Duration
	code   string
}

const (
	maxFailures = 5
	maxSnoozes  = 200
	busyDelay   = time.Second
	// leastRetryDelay is added to each of retryDelays.
	leastRetryDelay = 100 * time.Millisecond
)

// retryDelays are the delays between the attempts at a run that failed.
var retryDelays = backoff.Backoff{First: time.Second, Most: time.Minute, Jitter: true}

// ErrStopping is the cause that runs in flight are cancelled with when a worker
// has drained for as long as it may. They go back to the queue.
var ErrStopping = errors.New("worker is stopping")

// errLost: a heartbeat found that another worker has taken the run over.
var errLost = errors.New("lease lost")

// classify decides, from the error of an attempt and nothing else but the counts
// so far, what becomes of the run. Nothing else in the system decides retries.
func classify(err error, failures, snoozes int) verdict {
	v := verdictOf(err)
	switch {
	case v.action == retry && failures+1 >= maxFailures:
		return verdict{action: discard, code: v.code}
	case v.action == retry:
		v.delay = leastRetryDelay + retryDelays.Delay(failures)
	case v.action == snooze && snoozes+1 >= maxSnoozes:
		return verdict{action: discard, code: v.code}
	}
	return v
}

func verdictOf(err error) verdict {
	var strategy *pipeline.StrategyError
	switch {
	case err == nil:
		return verdict{action: done}
	case errors.Is(err, errLost), errors.Is(err, store.ErrNotApplicable):
		return verdict{action: done, code: "fenced"}
	case errors.Is(err, ErrStopping):
		return verdict{action: snooze, code: "stopping"}
	case errors.Is(err, store.ErrStale):
		return verdict{action: snooze, code: "stale"}
	case errors.Is(err, store.ErrBusy):
		return verdict{action: snooze, delay: busyDelay, code: "busy"}
	case errors.As(err, &strategy) && !errors.Is(err, plan.ErrInterrupted):
		return verdict{action: discard, code: strategy.Code()}
	case errors.Is(err, pipeline.ErrInvalidView):
		return verdict{action: discard, code: "invalid_view"}
	case errors.Is(err, errOptions), errors.Is(err, store.ErrInvalid):
		return verdict{action: discard, code: "invalid_options"}
	case errors.Is(err, context.Canceled): // by asynq: its lease ran out, as Redis was away
		return verdict{action: snooze, delay: busyDelay, code: "interrupted"}
	case errors.Is(err, context.DeadlineExceeded):
		return verdict{action: retry, code: "timeout"}
	case errors.Is(err, store.ErrUnavailable):
		return verdict{action: retry, code: "database_unavailable"}
	}
	return verdict{action: retry, code: "internal"}
}
