package worker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/summary"
)

// storedAnswers stores the answers of one claimed run, so that no answer is paid for
// twice (I9).
type storedAnswers struct{ *attempt }

// CodeSpendingLimit is the code of a summary for which no model was asked, as a limit of an
// operator is reached.
const CodeSpendingLimit = "spending_limit"

// answers returns the store of the answers of the run, nil if it is not claimed.
func (a *attempt) answers() summary.AnswerStore {
	if a.claim.Fence == 0 {
		return nil
	}
	return storedAnswers{a}
}

// Ask implements summary.Answers.
func (s storedAnswers) Ask(ctx context.Context, key, promptHash string) (int64, *summary.StoredAnswer, string, error) {
	id, a, rejected, err := s.w.store.AskSummary(ctx, store.SummaryCall{Run: s.claim.Run, Fence: s.claim.Fence, Key: key, PromptHash: promptHash})
	if errors.Is(err, store.ErrSpendingLimit) {
		return 0, nil, "", &plan.Failure{Code: CodeSpendingLimit}
	}
	return id, (*summary.StoredAnswer)(a), rejected, err
}

// Answer implements summary.Answers.
func (s storedAnswers) Answer(ctx context.Context, id int64, a summary.StoredAnswer) error {
	s.w.failpoint(stepAnswered)
	err := retryWrite(ctx, func(ctx context.Context) error { return s.w.store.AnswerSummary(ctx, id, store.SummaryAnswer(a)) })
	s.called("", a)
	s.w.failpoint(stepStored)
	return err
}

// Fail implements summary.Answers.
func (s storedAnswers) Fail(ctx context.Context, id int64, code string, a summary.StoredAnswer) error {
	s.called(code, a)
	return retryWrite(ctx, func(ctx context.Context) error { return s.w.store.FailSummary(ctx, id, code, store.SummaryAnswer(a)) })
}

// Reject implements summary.Answers.
func (s storedAnswers) Reject(ctx context.Context, key, code string) error {
	s.w.config.Observer.Rejected(code)
	return s.w.store.RejectSummary(ctx, s.claim.Run, key, code)
}

// called records a call of a model, with the code of its failure, and reports it to the observer.
func (a *attempt) called(code string, answer summary.StoredAnswer) {
	c := ModelCall{
		Model: answer.Model, Code: code, Requests: answer.Attempts, Input: answer.Input, Cached: answer.Cached, Output: answer.Output,
		CostMicros: answer.CostMicros, Took: answer.Took,
	}
	a.spent.add(c)
	a.w.config.Observer.Called(c)
}

// modelFailure returns the code of the reason why no model wrote the summary of a step, nil if one did or
// none was asked for. A replacement, such as an extract, may be applied all the same.
func modelFailure(steps []pipeline.StepResult) *string {
	for _, s := range steps {
		code := s.NoSummary
		if r, ok := s.Summary.(*summary.Provenance); ok {
			code = cmp.Or(r.Failure, code)
		}
		if code != "" && code != codeTooLarge && code != codeNothingNew {
			return &code
		}
	}
	return nil
}

// spending sums the calls of models of an attempt.
type spending struct {
	model                        string // that answered last
	calls, input, output, micros int64
}

func (s *spending) add(c ModelCall) {
	if c.Code == "" {
		s.model = c.Model
	}
	s.calls, s.input, s.output, s.micros = s.calls+1, s.input+c.Input, s.output+c.Output, s.micros+c.CostMicros
}

// attrs returns the attributes for the log, with the cost in the unit that prices are in;
// nil where no model was called.
func (s spending) attrs() []slog.Attr {
	if s.calls == 0 {
		return nil
	}
	return []slog.Attr{
		slog.String("model", s.model), // empty if none answered
		slog.Int64("model_calls", s.calls),
		slog.Int64("input_tokens", s.input),
		slog.Int64("output_tokens", s.output),
		slog.Float64("cost", float64(s.micros)/1e6),
	}
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
