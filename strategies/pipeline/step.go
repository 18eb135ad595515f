package pipeline

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// StrategyError is the error of a strategy that failed. None of its plan was applied.
type StrategyError struct {
	Strategy string
	// Panic reports whether the strategy panicked, Stack where.
	Panic bool
	Stack []byte
	Err   error
}

// Code returns the error as a code: strategy_failed or strategy_panicked.
func (e *StrategyError) Code() string {
	if e.Panic {
		return "strategy_panicked"
	}
	return "strategy_failed"
}

// Error implements error.
func (e *StrategyError) Error() string {
	verb := "strategy %s: %v"
	if e.Panic {
		verb = "strategy %s panicked: %v"
	}
	return fmt.Sprintf(verb, e.Strategy, e.Err)
}

// Unwrap returns the cause.
func (e *StrategyError) Unwrap() error { return e.Err }

// Stager is implemented by strategies that consist of others. Stage runs them on the draft
// itself, so that content is loaded for one of them at a time.
type Stager interface {
	plan.Strategy
	Stage(ctx context.Context, d *Draft, load plan.Loader) error
}

// PlanStages returns the plan of a strategy that consists of others, on a transcript that
// holds the content they read. The plan is valid even if the error wraps plan.ErrNoSummary.
func PlanStages(ctx context.Context, t *plan.Transcript, s Stager) (chat.Plan, error) {
	d, err := NewDraft(t)
	if err != nil {
		return chat.Plan{}, err
	}
	if err := s.Stage(ctx, d, nil); err != nil {
		return chat.Plan{}, err
	}
	return d.compose(true), d.noSummary
}

// Run plans with a strategy and applies the plan. It reports whether the view changed. load
// may be nil if the transcript holds the content that the strategy reads. The error is a
// *StrategyError, or that of ctx or load.
func (d *Draft) Run(ctx context.Context, s plan.Strategy, load plan.Loader) (changed bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if _, asks := s.(summarizing); asks && d.frozen > 0 {
		return false, nil // a summary of messages that have to stay would be useless
	}
	before := d.changes
	if st, ok := s.(Stager); ok {
		err := st.Stage(ctx, d, load)
		return d.changes != before, err
	}
	t := d.Transcript()
	if r, ok := s.(plan.Reader); ok {
		var seqs []chat.Seq
		if err := recovered(s, func() error { seqs = r.Reads(t); return nil }); err != nil {
			return false, err
		}
		loaded, err := d.load(ctx, seqs, load)
		if err != nil {
			return false, fmt.Errorf("load content for strategy %s: %w", s.Name(), err)
		}
		defer d.drop(loaded)
		t = d.Transcript()
	}
	var planned chat.Plan
	err = recovered(s, func() (err error) { planned, err = s.Plan(ctx, t); return err })
	if errors.Is(err, plan.ErrNoSummary) && ctx.Err() == nil {
		d.noSummary = err
	} else if err != nil {
		return false, err
	}
	var pins []chat.Seq
	if p, ok := s.(plan.Pinner); ok {
		if err := recovered(s, func() (err error) { pins, err = p.Pins(t); return err }); err != nil {
			return false, err
		}
	}
	if strict(s) && d.grows(planned) {
		d.noSummary = fmt.Errorf("%w: %w", plan.ErrNoSummary, &plan.Failure{Code: plan.FailureTooLarge})
		planned = chat.Plan{}
	}
	d.Apply(planned, s.Name())
	d.pin(pins)
	return d.changes != before, nil
}

// recovered calls f and returns its error or panic as a *StrategyError. Panic values may
// hold content of messages, so only runtime errors are quoted.
func recovered(s plan.Strategy, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			cause, ok := v.(runtime.Error)
			failed := &StrategyError{Strategy: s.Name(), Panic: true, Stack: debug.Stack(), Err: cause}
			if !ok {
				failed.Err = fmt.Errorf("a %T", v)
			}
			err = failed
		}
	}()
	if err := f(); err != nil {
		return &StrategyError{Strategy: s.Name(), Err: err}
	}
	return nil
}

// summarizing is implemented by strategies that request summaries.
type summarizing interface {
	Summarizer() plan.Summarizer
}

// strict reports whether the strategy's summarizer is a plan.Strict.
func strict(s plan.Strategy) bool {
	a, ok := s.(summarizing)
	if !ok {
		return false
	}
	_, ok = a.Summarizer().(plan.Strict)
	return ok
}

// grows reports whether the additions of a plan have at least as many tokens as the messages
// they replace.
func (d *Draft) grows(p chat.Plan) bool {
	if len(p.Additions) == 0 || d.input.Counter == nil {
		return false
	}
	grown := chat.Tokens(0)
	for i := range p.Additions {
		grown += d.count(&p.Additions[i])
	}
	for _, id := range d.ids(nil, p.Gone()) {
		if d.entries[id].Included {
			grown -= d.entries[id].Tokens
		}
	}
	return grown >= 0
}

// reasonReplanned is the reason of excluded summaries and replacements whose originals are
// restored.
const reasonReplanned = "replanned"

// FromLog restores all messages of the application and excludes all summaries and
// replacements of earlier runs, so that the following steps plan from the whole log. It is
// not in a Registry; see Pipeline.FromLog.
type FromLog struct{}

// Name implements Strategy.
func (FromLog) Name() string { return "from_log" }

// Plan implements Strategy.
func (FromLog) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) {
	var in, out plan.SeqSet
	for i := range t.Entries {
		switch e := &t.Entries[i]; {
		case plan.FromApplication(e.Meta) && !e.Included:
			in.Add(e.Seq)
		case !plan.FromApplication(e.Meta) && e.Included:
			out.Add(e.Seq)
		}
	}
	plan := out.Exclude(reasonReplanned)
	plan.Include = in.Ranges()
	return plan, nil
}

// Fixed returns a strategy that always returns the same plan.
func Fixed(name string, p chat.Plan) plan.Strategy { return fixedPlan{name, p} }

type fixedPlan struct {
	name string
	plan chat.Plan
}

func (s fixedPlan) Name() string { return s.name }

func (s fixedPlan) Plan(context.Context, *plan.Transcript) (chat.Plan, error) { return s.plan, nil }
