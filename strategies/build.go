package strategies

import (
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/summary"
)

// Writers are the summarizers of a pipeline's steps, by index; nil where the registry
// has one of its own.
type Writers []*summary.Writer

// Build returns the pipeline of a policy that comes to limits for the model of a session.
// Each step gets a writer of its own, unless the registry has a summarizer; Build sets the
// Settings, the Window and Last of o. The error is that of the first step that cannot be
// made.
//
// To run exactly the steps of a policy, wherever that leads, clear the Target of the result.
func Build(r *plan.Registry, p policy.Policy, limits policy.Limits, o summary.Options) (pipeline.Pipeline, Writers, error) {
	steps := p.Steps(limits, r.Fill)
	out := pipeline.Pipeline{
		Steps: make([]plan.Strategy, len(steps)), PinTools: p.PinTools,
		Target: limits.Target, Fallback: p.Fallback, Unsummarized: unsummarized(p.Summary),
		Guard: pipeline.Guard{DropSystem: !p.PreserveSystem},
	}
	writers := make(Writers, len(steps))
	o.Settings, o.Window = p.Summary, int(limits.Window)
	for i, s := range steps {
		registry := r
		if r.Summarizer == nil {
			o.Last = i == len(steps)-1
			writers[i] = summary.New(o)
			registry = r.With(writers[i])
		}
		var err error
		if out.Steps[i], err = registry.New(s.Strategy, s.Params); err != nil {
			return pipeline.Pipeline{}, nil, err
		}
	}
	return out, writers, nil
}

// Report puts beside each step how its summary came about. Where a step did nothing
// for want of one, nobody wrote it; where what was to make up for a model would have been too large, the
// model's failure is why.
func (w Writers) Report(steps []pipeline.Step) {
	for i, one := range w {
		if i >= len(steps) || one == nil || one.Report() == nil {
			continue
		}
		s, r := &steps[i], one.Report()
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

// unsummarized returns what a policy leaves to the fallback of a pipeline whose last step
// got no summary.
func unsummarized(s summary.Settings) pipeline.Unsummarized {
	switch s.OnFailure {
	case summary.OnFailureTruncate:
		return pipeline.DropOldest
	case summary.OnFailureKeep:
		return pipeline.KeepHistory
	}
	return pipeline.FallBack
}
