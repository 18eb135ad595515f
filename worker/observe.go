package worker

import (
	"time"

	"github.com/sessionstore/compactor/store"
)

// Observer receives the events of a worker, for metrics. Its methods are called concurrently and
// must return at once.
type Observer interface {
	// Attempted is called after an attempt at a run whose result is recorded in Postgres.
	Attempted(a Attempt)
	// Called is called after a call of a model, with its cost, whether or not it could be stored.
	Called(c ModelCall)
	// Rejected is called for each answer that is no summary, with the code of the reason.
	Rejected(code string)
}

// The results of attempts beside the final statuses of runs (see store).
const (
	ResultRetried   = "retried"   // failed, and is attempted again
	ResultPostponed = "postponed" // is attempted later; no failure of the run
	ResultLost      = "lost"      // another worker has taken the run over

	resultUnrecorded = "unrecorded" // for spans alone: the outcome could not be written
)

// Attempt describes one attempt at a run.
type Attempt struct {
	// Trigger is that of the run; empty where it was not loaded, as its session was busy.
	Trigger string
	// Result is store.StatusApplied, StatusSkipped or StatusFailed if the run has ended, or
	// one of the results above.
	Result string
	// Code is the outcome of a run that has ended, otherwise the reason of the result.
	Code string
	// TokensBefore and TokensAfter count the view.
	TokensBefore, TokensAfter int64
	// First reports that no attempt at the run was recorded before this one. Waited is the
	// time from the request to the attempt.
	First  bool
	Waited time.Duration
	// SinceWrite is the time from the write that made the session due to the end of the
	// attempt, with everything that came between; 0 if the run is for none.
	SinceWrite time.Duration
	// Planned is the time until the plan, 0 without one; Took that of the whole attempt.
	Planned, Took time.Duration
}

// ModelCall describes one call of a model.
type ModelCall struct {
	// Model is empty if none was asked.
	Model string
	// Code is empty for an answer, and otherwise the code of the failure.
	Code string
	// Requests counts the requests that were sent.
	Requests int
	// Input includes Cached.
	Input, Cached, Output int64
	// CostMicros is in millionths of the unit that prices are in.
	CostMicros int64
	Took       time.Duration
}

// noObserver is the Observer of a worker that has none.
type noObserver struct{}

func (noObserver) Attempted(Attempt) {}
func (noObserver) Called(ModelCall)  {}
func (noObserver) Rejected(string)   {}

// observe reports the result of the attempt to the observer, and ends its span.
func (a *attempt) observe(result string) {
	a.endSpan(result)
	var sinceWrite time.Duration
	if a.claim.SinceWrite != nil {
		sinceWrite = *a.claim.SinceWrite + time.Since(a.loaded)
	}
	a.w.config.Observer.Attempted(Attempt{
		Trigger: a.claim.Trigger, Result: result, Code: a.outcome,
		TokensBefore: a.ledger.TokensBefore, TokensAfter: a.ledger.TokensAfter,
		First: a.claim.Failures+a.claim.Snoozes == 0, Waited: a.start.Sub(a.claim.QueuedAt), SinceWrite: sinceWrite,
		Planned: time.Duration(a.ledger.PlanMicros) * time.Microsecond, Took: time.Since(a.start),
	})
}

// result returns the result of an attempt that ended with an error.
func (v classification) result() string {
	switch v.action {
	case retry:
		return ResultRetried
	case snooze, overtaken:
		return ResultPostponed
	case discard:
		return store.StatusFailed
	default:
		return ResultLost
	}
}
