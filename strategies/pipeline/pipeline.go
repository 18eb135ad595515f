package pipeline

import (
	"context"
	"errors"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// Pipeline runs strategies one after the other and holds the outcome to what must
// be true of a view. A pipeline without steps repairs a view and does nothing
// else. It is immutable and safe for concurrent use.
type Pipeline struct {
	// Steps are run in order. What one of them has summarized by a summarize.Strict stays
	// for the rest of the run.
	Steps []plan.Strategy
	// PinTools are names of tools whose calls are pinned for the run, with their
	// results: what makes calls is read for that.
	PinTools []string
	// FromLog plans as if nothing were in force: before the first step everything
	// that was said is back, and what earlier runs wrote is out. The transcript has
	// to hold the whole log.
	FromLog bool
	// Target stops the pipeline before a step once the view has no more tokens
	// than that; 0 runs all steps.
	Target chat.Tokens
	// Fallback drops the oldest groups when the steps leave the view above Target.
	Fallback bool
	// Unsummarized is what becomes of Fallback where the last step got no summary.
	Unsummarized Unsummarized
	Guard        Guard
}

// Unsummarized is what a pipeline does without the summary that was its last step.
type Unsummarized int

// What can be done.
const (
	// FallBack is what Fallback says.
	FallBack Unsummarized = iota
	// KeepHistory leaves the view as the steps before left it, whatever Fallback says.
	KeepHistory
	// DropOldest is the fallback, whatever Fallback says.
	DropOldest
)

// Step says what a strategy did. Totals count the draft, what earlier steps wrote
// included.
type Step struct {
	Strategy string      `json:"strategy"`
	Before   plan.Totals `json:"before"`
	After    plan.Totals `json:"after"`
	Changed  bool        `json:"changed"`
	// NoSummary is the code of why a summary that the strategy asked for was not had:
	// no_model, timeout, empty_answer or failed.
	NoSummary string `json:"no_summary,omitempty"`
	// Summary says how the summary that the strategy asked for came about, if whoever
	// wrote it tells. The pipeline leaves it to its caller.
	Summary any `json:"summary,omitempty"`
	// Discarded is the code of why nothing of what the steps wanted was done:
	// invalid_view. It is that of the guard's own step, the last one.
	Discarded string `json:"discarded,omitempty"`
	// Err says more. It is the summarizer's, may quote the conversation or a secret,
	// and is for the caller alone: not to be stored.
	Err error `json:"-"`
}

// Result is what a pipeline came to.
type Result struct {
	// Plan leads from the transcript to the view, and is empty if that is where
	// it was. It is minimal and already guarded.
	Plan  chat.Plan
	Steps []Step
	// Before counts the transcript, After what it is once the plan is applied.
	Before, After plan.Totals
	// View is the view after the plan, in order. Additions have the seqs they get
	// if they are written in the order of the plan, right behind the transcript.
	View []chat.Meta
	// Faults are what was wrong with the view before, Repairs what of it had to
	// be mended.
	Violations []chat.Violation
	Repairs    []Repair
	// Rejected counts additions of strategies that no view could hold.
	Rejected int
}

// Gain returns how many tokens the view loses; negative if it grew.
func (r *Result) Gain() chat.Tokens { return r.Before.IncludedTokens - r.After.IncludedTokens }

// Grew reports whether the view became larger.
func (r *Result) Grew() bool { return r.Gain() < 0 }

// Run plans a compaction of the transcript, which it does not change. Content is
// loaded for strategies that read it and for messages that need mending, and
// dropped afterwards; load may be nil where the transcript holds it. If a strategy
// fails nothing is planned: the error is a *StrategyError. Where no view could hold what
// the steps want, none of it is done, and a step of the guard says so.
func (p Pipeline) Run(ctx context.Context, t *plan.Transcript, load plan.Loader) (Result, error) {
	r, err := p.attempt(ctx, t, load)
	if !errors.Is(err, ErrInvalidView) || len(p.Steps) == 0 {
		return r, err
	}
	wanted := r.Steps
	if r, err = (Pipeline{Guard: p.Guard}).attempt(ctx, t, load); err != nil {
		return r, err
	}
	r.Steps = append(wanted, Step{Strategy: "guard", Before: r.Before, After: r.After, Discarded: "invalid_view"})
	return r, nil
}

// attempt is Run as far as the guard can hold what comes of it: the error wraps
// ErrInvalidView where it cannot, and the result has the steps then.
func (p Pipeline) attempt(ctx context.Context, t *plan.Transcript, load plan.Loader) (Result, error) {
	d, err := NewDraft(t)
	if err != nil {
		return Result{}, err
	}
	totals := d.Transcript().Totals()
	r := Result{Before: totals, Violations: chat.Check(d.ViewMetas())}
	if err := p.run(ctx, d, load, &r, &totals); err != nil {
		return Result{}, err
	}
	// The guard may put back what the steps took, so that something else has to go.
	for round := range 2 {
		over := p.fallsBack(&r) && p.Target > 0 && totals.IncludedTokens > p.Target
		fell := over && p.fall(d, &r, &totals)
		if round > 0 && !fell {
			break
		}
		if d.Changes > 0 || len(r.Violations) > 0 || totals.IncludedMessages < totals.Messages {
			repairs, err := p.Guard.Hold(ctx, d, load)
			if err != nil {
				return Result{Steps: r.Steps}, err
			}
			for _, x := range repairs {
				r.Repairs = addRepair(r.Repairs, x.Reason, x.Messages)
			}
			totals = d.Transcript().Totals()
		}
	}
	r.Rejected = d.Rejected
	if d.Changes == 0 {
		r.View, r.After = d.ViewMetas(), totals
		return r, nil
	}
	r.Plan = d.Plan()
	r.View, r.After = d.outcome()
	return r, nil
}

// fallsBack reports whether the fallback is to make up for what the steps left.
func (p Pipeline) fallsBack(r *Result) bool {
	last := len(p.Steps) - 1
	if last < 0 || len(r.Steps) <= last || p.Unsummarized == FallBack {
		return p.Fallback
	}
	switch r.Steps[last].NoSummary {
	case "", plan.FailureTooLarge: // there was nothing to gain by one
		return p.Fallback
	}
	return p.Unsummarized == DropOldest
}

// run carries out the steps.
func (p Pipeline) run(ctx context.Context, d *Draft, load plan.Loader, r *Result, totals *plan.Totals) error {
	if p.FromLog {
		if _, err := d.Run(ctx, FromLog{}, load); err != nil {
			return err
		}
		*totals = d.Transcript().Totals()
	}
	if len(p.PinTools) > 0 {
		if err := d.pinTools(ctx, p.PinTools, load); err != nil {
			return err
		}
	}
	for _, s := range p.Steps {
		if p.Target > 0 && totals.IncludedTokens <= p.Target {
			break
		}
		d.Unsummarized = nil
		written := len(d.Adds)
		changed, err := d.Run(ctx, s, load)
		if err != nil {
			return err
		}
		if strict(s) {
			d.pin(d.summariesBy(s, written)) // it is old, and steps that drop what is old would take it first
		}
		step := Step{Strategy: s.Name(), Before: *totals, Changed: changed}
		if d.Unsummarized != nil {
			step.NoSummary, step.Err = NoSummaryCode(d.Unsummarized), d.Unsummarized
		}
		if changed {
			*totals = d.Transcript().Totals()
		}
		step.After = *totals
		r.Steps = append(r.Steps, step)
	}
	return nil
}

// Name implements Strategy.
func (Pipeline) Name() string { return "pipeline" }

// Plan implements Strategy, so that a pipeline can stand where a strategy does: its
// steps and its fallback. The guard is that of whoever runs it.
func (p Pipeline) Plan(ctx context.Context, t *plan.Transcript) (chat.Plan, error) {
	d, err := NewDraft(t)
	if err != nil {
		return chat.Plan{}, err
	}
	if err := p.Stage(ctx, d, nil); err != nil {
		return chat.Plan{}, err
	}
	return d.Plan(), nil
}

// Stage implements pipeline.Stager.
func (p Pipeline) Stage(ctx context.Context, d *Draft, load plan.Loader) error {
	var r Result
	totals := d.Transcript().Totals()
	if err := p.run(ctx, d, load, &r, &totals); err != nil {
		return err
	}
	if p.fallsBack(&r) && p.Target > 0 && totals.IncludedTokens > p.Target {
		d.Apply(p.Guard.fallback(d, p.Target), ReasonFallback)
	}
	return nil
}

// fall drops the oldest groups, as a step of its own, and reports whether it could.
func (p Pipeline) fall(d *Draft, r *Result, totals *plan.Totals) bool {
	step := Step{Strategy: ReasonFallback, Before: *totals}
	changes := d.Changes
	d.Apply(p.Guard.fallback(d, p.Target), ReasonFallback)
	step.Changed = d.Changes > changes
	if !step.Changed && len(r.Steps) > 0 && r.Steps[len(r.Steps)-1].Strategy == ReasonFallback {
		return false
	}
	*totals = d.Transcript().Totals()
	step.After = *totals
	r.Steps = append(r.Steps, step)
	return step.Changed
}

// Fixed returns a strategy that plans the same whatever it sees.
func Fixed(name string, p chat.Plan) plan.Strategy { return fixedPlan{name, p} }

type fixedPlan struct {
	name string
	plan chat.Plan
}

func (s fixedPlan) Name() string { return s.name }

func (s fixedPlan) Plan(context.Context, *plan.Transcript) (chat.Plan, error) { return s.plan, nil }

// noSummaryCode is why there was no summary, as a code.
func NoSummaryCode(err error) string {
	var failure *plan.Failure
	switch {
	case errors.As(err, &failure):
		return failure.Code
	case errors.Is(err, plan.ErrNoModel):
		return "no_model"
	case errors.Is(err, plan.ErrEmptySummary):
		return "empty_answer"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return "failed"
}
