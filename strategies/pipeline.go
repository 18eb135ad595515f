package strategies

import (
	"context"
	"errors"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/summarize"
)

// Pipeline runs strategies one after the other and holds the outcome to what must
// be true of a view. A pipeline without steps repairs a view and does nothing
// else. It is immutable and safe for concurrent use.
type Pipeline struct {
	// Steps are run in order. What one of them has summarized by a summarize.Strict stays
	// for the rest of the run.
	Steps []Strategy
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
	Strategy string `json:"strategy"`
	Before   Totals `json:"before"`
	After    Totals `json:"after"`
	Changed  bool   `json:"changed"`
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
	Before, After Totals
	// View is the view after the plan, in order. Additions have the seqs they get
	// if they are written in the order of the plan, right behind the transcript.
	View []chat.Meta
	// Faults are what was wrong with the view before, Repairs what of it had to
	// be mended.
	Faults  []chat.Fault
	Repairs []Repair
	// Rejected counts additions of strategies that no view could hold.
	Rejected int
}

// Gain is how many tokens the view loses; negative if it grew.
func (r *Result) Gain() chat.Tokens { return r.Before.IncludedTokens - r.After.IncludedTokens }

// Grew reports whether the view became larger.
func (r *Result) Grew() bool { return r.Gain() < 0 }

// Run plans a compaction of the transcript, which it does not change. Content is
// loaded for strategies that read it and for messages that need mending, and
// dropped afterwards; load may be nil where the transcript holds it. If a strategy
// fails nothing is planned: the error is a *StrategyError. Where no view could hold what
// the steps want, none of it is done, and a step of the guard says so.
func (p Pipeline) Run(ctx context.Context, t *Transcript, load Loader) (Result, error) {
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
func (p Pipeline) attempt(ctx context.Context, t *Transcript, load Loader) (Result, error) {
	d, err := NewDraft(t)
	if err != nil {
		return Result{}, err
	}
	totals := d.Transcript().Totals()
	r := Result{Before: totals, Faults: chat.Check(d.viewMetas())}
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
		if d.changes > 0 || len(r.Faults) > 0 || totals.IncludedMessages < totals.Messages {
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
	r.Rejected = d.rejected
	if d.changes == 0 {
		r.View, r.After = d.viewMetas(), totals
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
	case "", summarize.FailureTooLarge: // there was nothing to gain by one
		return p.Fallback
	}
	return p.Unsummarized == DropOldest
}

// run carries out the steps.
func (p Pipeline) run(ctx context.Context, d *Draft, load Loader, r *Result, totals *Totals) error {
	if p.FromLog {
		if _, err := d.Run(ctx, fromLog{}, load); err != nil {
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
		d.unsummarized = nil
		written := len(d.adds)
		changed, err := d.Run(ctx, s, load)
		if err != nil {
			return err
		}
		if strict(s) {
			d.pin(d.summariesBy(s, written)) // it is old, and steps that drop what is old would take it first
		}
		step := Step{Strategy: s.Name(), Before: *totals, Changed: changed}
		if d.unsummarized != nil {
			step.NoSummary, step.Err = noSummaryCode(d.unsummarized), d.unsummarized
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
func (p Pipeline) Plan(ctx context.Context, t *Transcript) (chat.Plan, error) {
	d, err := NewDraft(t)
	if err != nil {
		return chat.Plan{}, err
	}
	if err := p.stage(ctx, d, nil); err != nil {
		return chat.Plan{}, err
	}
	return d.Plan(), nil
}

// stage implements stager.
func (p Pipeline) stage(ctx context.Context, d *Draft, load Loader) error {
	var r Result
	totals := d.Transcript().Totals()
	if err := p.run(ctx, d, load, &r, &totals); err != nil {
		return err
	}
	if p.fallsBack(&r) && p.Target > 0 && totals.IncludedTokens > p.Target {
		d.Apply(p.Guard.fallback(d, p.Target), reasonFallback)
	}
	return nil
}

// fall drops the oldest groups, as a step of its own, and reports whether it could.
func (p Pipeline) fall(d *Draft, r *Result, totals *Totals) bool {
	step := Step{Strategy: reasonFallback, Before: *totals}
	changes := d.changes
	d.Apply(p.Guard.fallback(d, p.Target), reasonFallback)
	step.Changed = d.changes > changes
	if !step.Changed && len(r.Steps) > 0 && r.Steps[len(r.Steps)-1].Strategy == reasonFallback {
		return false
	}
	*totals = d.Transcript().Totals()
	step.After = *totals
	r.Steps = append(r.Steps, step)
	return step.Changed
}

// Fixed returns a strategy that plans the same whatever it sees.
func Fixed(name string, p chat.Plan) Strategy { return fixedPlan{name, p} }

type fixedPlan struct {
	name string
	plan chat.Plan
}

func (s fixedPlan) Name() string { return s.name }

func (s fixedPlan) Plan(context.Context, *Transcript) (chat.Plan, error) { return s.plan, nil }

// noSummaryCode is why there was no summary, as a code.
func noSummaryCode(err error) string {
	var failure *summarize.Failure
	switch {
	case errors.As(err, &failure):
		return failure.Code
	case errors.Is(err, summarize.ErrNoModel):
		return "no_model"
	case errors.Is(err, errEmptySummary):
		return "empty_answer"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return "failed"
}
