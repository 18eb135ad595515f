package pipeline

import (
	"context"
	"errors"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// Pipeline runs strategies in order and applies the Guard to the result. Without steps it
// only repairs the view. It is immutable and safe for concurrent use.
type Pipeline struct {
	// Steps run in order. Summaries by a plan.Strict summarizer are pinned for the rest of
	// the run.
	Steps []plan.Strategy
	// PinTools names tools whose calls and results are pinned for the run.
	PinTools []string
	// PinPaths are patterns of path.Match for the last elements of paths, such as AGENTS.md
	// and skills/*.md, and for tools that load instructions, such as load_policy(). Of the calls
	// that read such a path, the newest that returns the whole is pinned with its result, or else
	// the newest for each part, as far as they fit into a quarter of Target. Those that do not, and
	// those that an earlier run excluded, are in the view as far as it stays within Target.
	PinPaths []string
	// FromLog plans from scratch: before the first step all messages of the application are
	// restored and all summaries and replacements excluded. It requires a transcript of the
	// whole log.
	FromLog bool
	// Target ends the run before a step once the view has at most that many tokens; 0 runs
	// all steps.
	Target chat.Tokens
	// Fallback drops the oldest groups if the steps leave the view above Target.
	Fallback bool
	// Unsummarized overrides Fallback if the last step got no summary.
	Unsummarized Unsummarized
	Guard        Guard
	// FreeReasoning reports that the model accepts signed and encrypted reasoning whatever
	// precedes it. Otherwise such reasoning leaves the view behind the first change, and
	// nothing changes before that of an open tool loop.
	FreeReasoning bool
}

// Unsummarized selects the behaviour of a pipeline whose last step got no summary.
type Unsummarized int

// The values of Unsummarized.
const (
	// FallBack follows Pipeline.Fallback.
	FallBack Unsummarized = iota
	// KeepHistory leaves the view as the earlier steps left it.
	KeepHistory
	// DropOldest applies the fallback.
	DropOldest
)

// StepResult reports what a strategy did. Totals count the draft, with the additions of earlier
// steps.
type StepResult struct {
	Strategy string      `json:"strategy"`
	Before   plan.Totals `json:"before"`
	After    plan.Totals `json:"after"`
	Changed  bool        `json:"changed"`
	// NoSummary is the code of the reason why a requested summary was not produced, such as
	// no_model, timeout, empty_answer or failed.
	NoSummary string `json:"no_summary,omitempty"`
	// Summary describes how the summary was produced. The pipeline leaves it to its caller.
	Summary any `json:"summary,omitempty"`
	// Discarded is the code of the reason why the plans of all steps were discarded:
	// invalid_view, would_grow or open_tool_loop. It is set on the guard's own step, which is
	// the last one.
	Discarded string `json:"discarded,omitempty"`
	// Err is the summarizer's error. It may quote messages or secrets: do not store or log
	// it.
	Err error `json:"-"`
}

// The values of StepResult.Discarded.
const (
	codeInvalidView = "invalid_view"
	codeWouldGrow   = "would_grow"
	codeOpenLoop    = "open_tool_loop"
)

// Result is the result of a run.
type Result struct {
	// Plan leads from the transcript to the view. It is minimal, satisfies the guard, and
	// is empty if nothing changed.
	Plan  chat.Plan
	Steps []StepResult
	// Before counts the transcript, After the transcript with Plan applied.
	Before, After plan.Totals
	// View is the view with Plan applied, in order. Its additions have the seqs they get if
	// they are appended to the transcript in the order of the plan.
	View []chat.Meta
	// Violations lists the faults of the view before the run, Repairs those that the guard
	// repaired.
	Violations []chat.Violation
	Repairs    []Repair
	// Rejected counts invalid additions of strategies (see Draft.Apply).
	Rejected int
	// WouldGrow is set by LimitGrowth: the plan must not be applied.
	WouldGrow bool
	// OpenLoop reports that the view ends in an open tool loop with signed reasoning, before
	// which nothing could change.
	OpenLoop bool
}

// Gain returns how many tokens the view loses; negative if it grew.
func (r *Result) Gain() chat.Tokens { return r.Before.IncludedTokens - r.After.IncludedTokens }

// Grew reports whether the view became larger.
func (r *Result) Grew() bool { return r.Gain() < 0 }

// Run plans a compaction of the transcript, which it does not change. Content is loaded for
// strategies that read it and for messages that need a repair, and released afterwards;
// load may be nil if the transcript holds it.
//
// If a strategy fails, Run returns a *StrategyError and no plan. If the guard cannot make
// the outcome a valid view, all plans of the steps are discarded, only the guard is
// applied, and a last step reports it. If the outcome changes what precedes the signed
// reasoning of an open tool loop, everything is discarded. Where the view is invalid there, no
// provider takes it and the loop cannot end: the guard repairs it, the reasoning leaves, and
// no step is run.
func (p Pipeline) Run(ctx context.Context, t *plan.Transcript, load plan.Loader) (Result, error) {
	r, err := p.runGuarded(ctx, t, load)
	if !errors.Is(err, ErrInvalidView) || len(p.Steps) == 0 {
		return r, err
	}
	return p.repair(ctx, t, load, r.Steps, codeInvalidView)
}

// repair returns the result of the guard alone, after the steps whose plans are discarded
// for the reason of a code.
func (p Pipeline) repair(ctx context.Context, t *plan.Transcript, load plan.Loader, discarded []StepResult, code string) (Result, error) {
	r, err := Pipeline{Guard: p.Guard, FreeReasoning: p.FreeReasoning}.runGuarded(ctx, t, load)
	if err != nil {
		return r, err
	}
	if len(r.Steps) == 0 { // or the guard's own plan was discarded, too
		r.discarded(code)
	}
	r.Steps = append(discarded, r.Steps...)
	return r, nil
}

// discarded adds the step that reports the discarded plans of all steps.
func (r *Result) discarded(code string) {
	r.Steps = append(r.Steps, StepResult{Strategy: "guard", Before: r.Before, After: r.After, Discarded: code})
}

// LimitGrowth returns the result r of a run on t unless it makes the view larger than it was
// and than the guard alone would make it. For such a result it returns that of the guard alone
// if the view has to be repaired or lacks a pinned message, and otherwise sets WouldGrow.
//
// gain returns what a result saves; nil stands for Result.Gain.
func (p Pipeline) LimitGrowth(ctx context.Context, t *plan.Transcript, load plan.Loader, r Result, gain func(*Result) chat.Tokens) (Result, error) {
	if gain == nil {
		gain = (*Result).Gain
	}
	if gain(&r) >= 0 {
		return r, nil
	}
	pinned := slices.ContainsFunc(t.Entries, func(e plan.Entry) bool { return e.Pinned && !e.Included })
	if len(r.Violations) == 0 && !pinned {
		r.WouldGrow = true
		return r, nil
	}
	alone, err := p.repair(ctx, t, load, r.Steps, codeWouldGrow)
	switch {
	case err != nil:
		return r, err
	case gain(&alone) <= gain(&r):
		return r, nil
	case alone.Plan.Empty():
		r.WouldGrow = true
		return r, nil
	}
	return alone, nil
}

// runGuarded runs the steps, the guard and the fallback. If the view stays invalid the
// error wraps ErrInvalidView and the result holds the steps.
func (p Pipeline) runGuarded(ctx context.Context, t *plan.Transcript, load plan.Loader) (Result, error) {
	d, err := NewDraft(t)
	if err != nil {
		return Result{}, err
	}
	view := viewOf(d.Transcript())
	r := Result{Before: d.totals(), View: view, Violations: chat.Check(d.judged(view))}
	if !p.FreeReasoning {
		if d.bindReasoning(view, r.Violations) {
			p = Pipeline{Guard: p.Guard} // and nothing else is done to the loop
		}
		r.OpenLoop = d.frozen > 0
	}
	if err := p.runSteps(ctx, d, load, &r); err != nil {
		return Result{}, err
	}
	p.showAgain(d)
	// The guard may restore messages, so that the view exceeds the target again.
	for round := range 2 {
		dropped := p.fallsBack(d, &r) && p.runFallback(d, &r)
		if round > 0 && !dropped {
			break
		}
		if n := d.totals(); d.changes > 0 || len(r.Violations) > 0 || n.IncludedMessages < n.Messages {
			if err := d.hold(ctx, p.Guard, load); err != nil {
				return Result{Steps: r.Steps}, err
			}
		}
	}
	r.Rejected, r.After = d.rejected, r.Before
	if d.changes == 0 {
		return r, nil
	}
	if !d.dropReasoning() {
		r.discarded(codeOpenLoop)
		return r, nil
	}
	r.Plan, r.Repairs = d.Plan(), d.repairs
	r.View, r.After = d.outcome()
	return r, nil
}

// fallsBack reports whether the view is above the target and the fallback applies to the
// result of the steps.
func (p Pipeline) fallsBack(d *Draft, r *Result) bool {
	if p.Target <= 0 || d.totals().IncludedTokens <= p.Target {
		return false
	}
	last := len(p.Steps) - 1
	if last < 0 || len(r.Steps) <= last || p.Unsummarized == FallBack {
		return p.Fallback
	}
	switch r.Steps[last].NoSummary {
	case "", plan.FailureTooLarge: // a summary would have saved nothing
		return p.Fallback
	}
	return p.Unsummarized == DropOldest
}

// runFallback drops the oldest groups as a step of its own. It reports whether that changed
// the view.
func (p Pipeline) runFallback(d *Draft, r *Result) bool {
	step := StepResult{Strategy: ReasonFallback, Before: d.totals()}
	changes := d.changes
	d.Apply(p.Guard.fallback(d, p.Target), ReasonFallback)
	step.Changed, step.After = d.changes > changes, d.totals()
	if step.Changed || len(r.Steps) == 0 || r.Steps[len(r.Steps)-1].Strategy != ReasonFallback {
		r.Steps = append(r.Steps, step)
	}
	return step.Changed
}

// runSteps runs the steps until the view is within the target.
func (p Pipeline) runSteps(ctx context.Context, d *Draft, load plan.Loader, r *Result) error {
	if p.FromLog {
		if _, err := d.Run(ctx, FromLog{}, load); err != nil {
			return err
		}
	}
	if err := p.pinCalls(ctx, d, load); err != nil {
		return err
	}
	for _, s := range p.Steps {
		step := StepResult{Strategy: s.Name(), Before: d.totals()}
		if p.Target > 0 && step.Before.IncludedTokens <= p.Target {
			break
		}
		added := len(d.entries)
		if err := d.runStep(ctx, s, load, &step); err != nil {
			return err
		}
		if strict(s) {
			for i := added; i < len(d.entries); i++ {
				e := &d.entries[i] // later steps would drop it first, since it is the oldest
				e.Pinned = e.Pinned || e.Included && e.Kind == chat.KindSummary
			}
		}
		r.Steps = append(r.Steps, step)
	}
	return nil
}

// runStep runs a strategy as a step of the pipeline, in a span below that of ctx.
func (d *Draft) runStep(ctx context.Context, s plan.Strategy, load plan.Loader, step *StepResult) (err error) {
	ctx, span := trace.SpanFromContext(ctx).TracerProvider().Tracer(tracerName).Start(ctx, "plan "+step.Strategy)
	defer span.End()
	d.noSummary = nil
	if step.Changed, err = d.Run(ctx, s, load); err != nil {
		span.SetStatus(codes.Error, "failed")
		return err
	}
	if d.noSummary != nil {
		step.NoSummary, step.Err = NoSummaryCode(d.noSummary), d.noSummary
	}
	step.After = d.totals()
	if span.IsRecording() {
		span.SetAttributes(attribute.String("compactor.strategy", step.Strategy), attribute.Bool("compactor.changed", step.Changed),
			attribute.Int64("compactor.tokens.before", int64(step.Before.IncludedTokens)), attribute.Int64("compactor.tokens.after", int64(step.After.IncludedTokens)))
		if step.NoSummary != "" {
			span.SetAttributes(attribute.String("compactor.no_summary", step.NoSummary))
		}
	}
	return nil
}

// tracerName names the spans of steps.
const tracerName = "github.com/sessionstore/compactor/strategies/pipeline"

// Name implements plan.Strategy.
func (Pipeline) Name() string { return "pipeline" }

// Plan implements plan.Strategy, so that a pipeline can be a step of another. It runs the
// steps and the fallback; the guard is left to the outer pipeline.
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

// Stage implements Stager.
func (p Pipeline) Stage(ctx context.Context, d *Draft, load plan.Loader) error {
	var r Result
	if err := p.runSteps(ctx, d, load, &r); err != nil {
		return err
	}
	if p.fallsBack(d, &r) {
		d.Apply(p.Guard.fallback(d, p.Target), ReasonFallback)
	}
	return nil
}

// NoSummaryCode returns the code of the reason why a summary was not produced.
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
