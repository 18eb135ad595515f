package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/summary"
)

// Stateless says how to compact messages that are in no store.
type Stateless struct {
	Policy policy.Policy
	// Steps run in place of the policy's pipeline, all of them whatever their effect.
	Steps []policy.Step
	// Sized reports that the policy's target was chosen for these messages. Otherwise, messages
	// within it are compacted to a third of their tokens if that is worth a run.
	Sized bool
	// PinIDs and AllowGrowth are as in strategies.Options.
	PinIDs      []string
	AllowGrowth bool
	// Answers and Scope are as in summary.Options. Without them, no answer is reused.
	Answers summary.AnswerStore
	Scope   string
	Focus   string
}

// Compacted is the result of Compact.
type Compacted struct {
	Conversation *strategies.Conversation
	Report       strategies.Report
	// Target is that of the pipeline, 0 for none. Former is not 0 if the messages were within the
	// target of the policy, which is Former, so that Target is a third of their tokens.
	Target, Former chat.Tokens
}

// Compact compacts a session that is in no store. ErrOptions: its steps cannot be run.
func (p *Planner) Compact(ctx context.Context, s chat.Session, o Stateless) (Compacted, error) {
	c, err := p.compact(ctx, s, o)
	r := &c.Report
	if err != nil || c.Target == 0 || r.OpenLoop || r.Before.IncludedTokens > c.Target || o.Sized {
		return c, err
	}
	third := r.After.IncludedTokens / 3
	if r.After.IncludedTokens-third < policy.Default().MinGainTokens {
		return c, nil // so short that no run would be worth it
	}
	o.Policy = o.Policy.WithTarget(third)
	former := c.Target
	c, err = p.compact(ctx, s, o)
	c.Former = former
	return c, err
}

func (p *Planner) compact(ctx context.Context, s chat.Session, o Stateless) (c Compacted, err error) {
	if len(o.Steps) > 0 {
		o.Policy.Pipeline = o.Steps
	}
	built, writers, err := strategies.Build(p.Registry, o.Policy, o.Policy.Limits(s.Model, p.Window), summary.Options{
		Model: p.Model, Answers: o.Answers, Scope: o.Scope, Focus: o.Focus, Manual: true, At: time.Now().UTC().Truncate(24 * time.Hour),
	})
	if err != nil {
		return c, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if len(o.Steps) > 0 {
		built.Target = 0
	}
	c.Target = built.Target
	options := strategies.Options{
		PinIDs: o.PinIDs, AllowGrowth: o.AllowGrowth, FreeReasoning: !o.Policy.BindsReasoning(s.Model, p.BindsReasoning),
	}
	if p.Counter != nil {
		options.Counter = p.Counter(s.Model)
	}
	c.Conversation = strategies.NewConversation(options)
	c.Conversation.Append(s.Messages...)
	c.Report, err = c.Conversation.Compact(ctx, built)
	writers.Report(c.Report.Steps)
	return c, err
}

// PolicyFor returns the policy that a new session of a tenant and a model would have.
func (p *Planner) PolicyFor(ctx context.Context, st *store.Store, tenant, model string) (policy.Policy, error) {
	inForce, err := st.Policies(ctx, tenant)
	if err != nil {
		return policy.Policy{}, err
	}
	versions, matches := map[string]store.PolicyVersion{}, map[string]policy.Match{}
	for _, v := range inForce {
		versions[v.Name], matches[v.Name] = v, v.Match
	}
	name, _ := policy.Choose(policy.Subject{Tenant: tenant, Model: model}, matches)
	if v, ok := versions[name]; ok {
		return p.Read(v)
	}
	return p.Policy, nil
}

// StatelessStore records calls of models for messages that are in no session; store.Worker is one.
type StatelessStore interface {
	AskStateless(
		ctx context.Context, tenant string, c store.SummaryCall, patience time.Duration,
	) (id int64, a *store.SummaryAnswer, rejected string, err error)
	AnswerSummary(ctx context.Context, id int64, a store.SummaryAnswer) error
	ForgetSummary(ctx context.Context, id int64, a store.SummaryAnswer) error
	FailSummary(ctx context.Context, id int64, code string, a store.SummaryAnswer) error
	RejectSummary(ctx context.Context, run store.RunID, key, code string) error
}

// StatelessAnswers is the summary.AnswerStore of calls for messages of a tenant that are in no
// session. Limits of spending hold for them.
type StatelessAnswers struct {
	Store  StatelessStore
	Tenant string
	// Forget is not empty for calls of which only the cost is stored. It is part of their keys, and
	// has to be unique.
	Forget string
	// Patience is the time after which a call without an answer is taken for lost, and made again.
	Patience time.Duration
}

const (
	// askAgain is the pause before it is asked again whether another caller has the answer.
	askAgain = 100 * time.Millisecond
	maxAsk   = 2 * time.Second
)

func (s StatelessAnswers) key(key string) string { return key + s.Forget }

// Ask implements summary.AnswerStore. It waits for the answer to the same question of another caller.
func (s StatelessAnswers) Ask(ctx context.Context, key, promptHash string) (int64, *summary.StoredAnswer, string, error) {
	for pause := askAgain; ; pause = min(2*pause, maxAsk) {
		id, a, rejected, err := s.Store.AskStateless(ctx, s.Tenant, store.SummaryCall{Key: s.key(key), PromptHash: promptHash}, s.Patience)
		switch {
		case errors.Is(err, store.ErrSpendingLimit):
			return 0, nil, "", &plan.Failure{Code: CodeSpendingLimit}
		case !errors.Is(err, store.ErrBusy):
			return id, (*summary.StoredAnswer)(a), rejected, err
		}
		select {
		case <-ctx.Done():
			return 0, nil, "", ctx.Err()
		case <-time.After(pause):
		}
	}
}

// Answer implements summary.AnswerStore.
func (s StatelessAnswers) Answer(ctx context.Context, id int64, a summary.StoredAnswer) error {
	if s.Forget != "" {
		return retryWrite(ctx, func(ctx context.Context) error { return s.Store.ForgetSummary(ctx, id, store.SummaryAnswer(a)) })
	}
	return retryWrite(ctx, func(ctx context.Context) error { return s.Store.AnswerSummary(ctx, id, store.SummaryAnswer(a)) })
}

// Fail implements summary.AnswerStore.
func (s StatelessAnswers) Fail(ctx context.Context, id int64, code string, a summary.StoredAnswer) error {
	return retryWrite(ctx, func(ctx context.Context) error { return s.Store.FailSummary(ctx, id, code, store.SummaryAnswer(a)) })
}

// Reject implements summary.AnswerStore.
func (s StatelessAnswers) Reject(ctx context.Context, key, code string) error {
	return s.Store.RejectSummary(ctx, 0, s.key(key), code)
}
