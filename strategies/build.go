package strategies

import (
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/summary"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// Writers are the summarizers of a pipeline's steps, by index; nil if the registry has its
// own.
type Writers []*summary.Writer

// Build returns the pipeline of a policy for the limits of a session's model. Each step
// gets its own writer unless the registry has a summarizer; Build sets Settings, Window,
// Target and Last of o. The error is that of the first step that cannot be created.
//
// To run all steps of a policy whatever their effect, clear the Target of the result.
func Build(r *plan.Registry, p policy.Policy, limits policy.Limits, o summary.Options) (pipeline.Pipeline, Writers, error) {
	steps := p.Steps(limits, r.Fill)
	out := pipeline.Pipeline{
		Steps: make([]plan.Strategy, len(steps)), PinTools: p.PinTools,
		Target: limits.Target, Fallback: p.Fallback, Unsummarized: unsummarized(p.Summary),
		Guard: pipeline.Guard{DropSystem: !p.PreserveSystem},
	}
	if p.PinsAnyway() {
		out.PinPaths = p.PinPaths
	}
	writers := make(Writers, len(steps))
	o.Settings, o.Window, o.Target = p.Summary, int(limits.Window), int(limits.Target)
	for i, s := range steps {
		registry := r
		if r.Summarizer == nil {
			o.Last = i == len(steps)-1
			writers[i] = summary.New(o)
			if p.Summary.Writer == policy.WriterExtractive && o.Operator == nil {
				writers[i].Extractive()
			}
			registry = r.With(writers[i])
		}
		var err error
		if out.Steps[i], err = registry.New(s.Strategy, s.Params); err != nil {
			return pipeline.Pipeline{}, nil, err
		}
		if reads(out.Steps[i]) {
			out.PinPaths = p.PinPaths
		}
	}
	return out, writers, nil
}

// reads reports whether a strategy reads messages, or may do so.
func reads(s plan.Strategy) bool {
	_, reader := s.(plan.Reader)
	_, stager := s.(pipeline.Stager)
	return reader || stager
}

// Report adds to each step how its summary was produced. If a step did nothing because it
// got no summary, WrittenBy is cleared; if a replacement for the model's summary was too
// large, the model's failure is the reason.
func (w Writers) Report(steps []pipeline.StepResult) {
	for i, one := range w {
		if i >= len(steps) || one == nil || one.Provenance() == nil {
			continue
		}
		s, r := &steps[i], one.Provenance()
		s.Summary = r
		switch {
		case s.NoSummary == "" || s.Changed: // of several within a step, one may have been taken
			continue
		case r.Failure == "":
			r.Failure = s.NoSummary
		case s.NoSummary == plan.FailureTooLarge:
			s.NoSummary = r.Failure
		}
		r.WrittenBy = ""
	}
}

// unsummarized returns the pipeline's behaviour for a last step without a summary.
func unsummarized(s policy.Summary) pipeline.Unsummarized {
	switch s.OnFailure {
	case policy.OnFailureTruncate:
		return pipeline.DropOldest
	case policy.OnFailureKeep:
		return pipeline.KeepHistory
	}
	return pipeline.FallBack
}

// CheckSteps returns the faults of the steps of a policy, of all at once.
func CheckSteps(r *plan.Registry, p policy.Policy) (faults []error) {
	r = r.With(summary.New(summary.Options{})) // which strategies that summarize require
	for _, s := range p.Steps(p.Limits("", tokens.Window), r.Fill) {
		_, err := r.New(s.Strategy, s.Params)
		if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // of this step alone
			faults = append(faults, joined.Unwrap()...)
		} else if err != nil {
			faults = append(faults, err)
		}
	}
	return faults
}
