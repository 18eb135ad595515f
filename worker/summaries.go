package worker

import (
	"context"
	"errors"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
	"github.com/sessionstore/compactor/strategies/summary"
)

// storedAnswers stores the answers of one claimed run, so that no answer is paid for
// twice (I9).
type storedAnswers struct {
	store     Store
	claim     *store.Claim
	observer  Observer
	failpoint func(step string)
}

// answers returns the store of the answers of the run, nil if it is not claimed.
func (a *attempt) answers() summary.AnswerStore {
	if a.claim.Fence == 0 {
		return nil
	}
	return storedAnswers{a.w.store, a.claim, a.w.config.Observer, a.w.failpoint}
}

// Ask implements summary.Answers.
func (s storedAnswers) Ask(ctx context.Context, key, promptHash string) (int64, *summary.StoredAnswer, string, error) {
	id, a, rejected, err := s.store.AskSummary(ctx, store.SummaryCall{Run: s.claim.Run, Fence: s.claim.Fence, Key: key, PromptHash: promptHash})
	return id, (*summary.StoredAnswer)(a), rejected, err
}

// Answer implements summary.Answers.
func (s storedAnswers) Answer(ctx context.Context, id int64, a summary.StoredAnswer) error {
	s.failpoint(stepAnswered)
	err := retryWrite(ctx, func(ctx context.Context) error { return s.store.AnswerSummary(ctx, id, store.SummaryAnswer(a)) })
	s.observer.Called(newModelCall("", a))
	s.failpoint(stepStored)
	return err
}

// Fail implements summary.Answers.
func (s storedAnswers) Fail(ctx context.Context, id int64, code string, a summary.StoredAnswer) error {
	s.observer.Called(newModelCall(code, a))
	return retryWrite(ctx, func(ctx context.Context) error { return s.store.FailSummary(ctx, id, code, store.SummaryAnswer(a)) })
}

// Reject implements summary.Answers.
func (s storedAnswers) Reject(ctx context.Context, key, code string) error {
	s.observer.Rejected(code)
	return s.store.RejectSummary(ctx, s.claim.Run, key, code)
}

// answerTimeout bounds one attempt at writing an answer.
const answerTimeout = 5 * time.Second

// retryWrite calls write, at least once even if ctx has ended, and retries it while the
// database is unavailable, until ctx ends.
func retryWrite(ctx context.Context, write func(context.Context) error) error {
	for attempt := 0; ; attempt++ {
		once, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
		err := write(once)
		cancel()
		unavailable := errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrBusy) || errors.Is(err, context.DeadlineExceeded)
		if !unavailable || backoff.Wait(ctx, outagePauses.Delay(attempt)) != nil {
			return err
		}
	}
}
