package worker

import (
	"context"
	"errors"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/summary"
)

// Answers is what keeping answers needs of the store.
type Answers interface {
	AskSummary(ctx context.Context, c store.SummaryCall) (id int64, a *store.SummaryAnswer, rejected string, err error)
	AnswerSummary(ctx context.Context, id int64, a store.SummaryAnswer) error
	FailSummary(ctx context.Context, id int64, code string, a store.SummaryAnswer) error
	RejectSummary(ctx context.Context, run store.RunID, key, code string) error
}

// paid keeps the answers of one claimed run in the store (I9).
type paid struct {
	store Answers
	claim *store.Claim
	probe func(step string)
}

// Ask implements summarizer.Answers.
func (p paid) Ask(ctx context.Context, key, promptHash string) (int64, *summary.StoredAnswer, string, error) {
	id, a, rejected, err := p.store.AskSummary(ctx, store.SummaryCall{Run: p.claim.Run, Fence: p.claim.Fence, Key: key, PromptHash: promptHash})
	if a == nil || err != nil {
		return id, nil, rejected, err
	}
	return id, &summary.StoredAnswer{Text: a.Text, Model: a.Model, FinishReason: a.FinishReason, CostMicros: a.CostMicros}, rejected, nil
}

// Answer implements summarizer.Answers.
func (p paid) Answer(ctx context.Context, id int64, a summary.StoredAnswer) error {
	p.probe(stepAnswered)
	err := insist(ctx, func(ctx context.Context) error { return p.store.AnswerSummary(ctx, id, stored(a)) })
	p.probe(stepStored)
	return err
}

// Fail implements summarizer.Answers.
func (p paid) Fail(ctx context.Context, id int64, code string, a summary.StoredAnswer) error {
	return insist(ctx, func(ctx context.Context) error { return p.store.FailSummary(ctx, id, code, stored(a)) })
}

// Reject implements summarizer.Answers.
func (p paid) Reject(ctx context.Context, key, code string) error {
	return p.store.RejectSummary(ctx, p.claim.Run, key, code)
}

// insist writes what was paid: once more when the run's time is up, and while the
// database is away again and again for as long as the run may take.
func insist(ctx context.Context, write func(context.Context) error) error {
	for attempt := 0; ; attempt++ {
		once, cancel := context.WithTimeout(context.WithoutCancel(ctx), insistTimeout)
		err := write(once)
		cancel()
		away := errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrBusy) || errors.Is(err, context.DeadlineExceeded)
		if !away || backoff.Wait(ctx, outagePauses.Delay(attempt)) != nil {
			return err
		}
	}
}

// insistTimeout bounds one attempt.
const insistTimeout = 5 * time.Second

func stored(a summary.StoredAnswer) store.SummaryAnswer {
	return store.SummaryAnswer{
		Text: a.Text, Model: a.Model, FinishReason: a.FinishReason, Attempts: a.Attempts,
		Input: a.Input, Cached: a.Cached, Output: a.Output, Reasoning: a.Reasoning, CostMicros: a.CostMicros, Took: a.Took,
	}
}

// summaries returns how a run's are made.
func (p *Planner) summaries(b *briefing, st Answers, probe func(string)) summary.Options {
	o := summary.Options{
		Model: p.Model, Scope: b.claim.Session.Key.Tenant + "\x00" + b.claim.Session.Key.Session,
		Focus: b.claim.Options.Focus, Manual: b.claim.Trigger == store.TriggerOperator,
		// To the day: a time in the prompt is in the key of the answer, and a rehearsal is paid
		// for once with the run that it rehearses.
		At: b.claim.QueuedAt.UTC().Truncate(24 * time.Hour),
	}
	if b.claim.Fence > 0 {
		o.Answers = paid{st, b.claim, probe}
	}
	return o
}

// rest returns how long automatic runs leave a session alone whose summary was not had.
func (b *briefing) rest(steps []pipeline.Step) time.Duration {
	rest := time.Duration(0)
	for _, s := range steps {
		if s.NoSummary == "" {
			continue
		}
		wait := time.Duration(0)
		if failure, ok := errors.AsType[*plan.Failure](s.Err); ok {
			wait = failure.Wait
		}
		rest = max(rest, b.policy.Summary.Rest(s.NoSummary, wait))
	}
	return rest
}
