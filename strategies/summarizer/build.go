package summarizer

import (
	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/summarize"
)

// Writers are the summarizers of a pipeline's steps, by index; nil where the registry
// has one of its own.
type Writers []*Writer

// Build returns the pipeline of a policy that comes to limits for the model of a session.
// Each step gets a writer of its own, unless the registry has a summarizer; Build sets the
// Settings, the Window and Last of o. The error is that of the first step that cannot be
// made.
//
// To run exactly the steps of a policy, wherever that leads, clear the Target of the result.
func Build(r *strategies.Registry, p policy.Policy, limits policy.Limits, o Options) (strategies.Pipeline, Writers, error) {
	steps := p.Steps(limits, r.Fill)
	out := strategies.Pipeline{
		Steps: make([]strategies.Strategy, len(steps)), PinTools: p.PinTools,
		Target: limits.Target, Fallback: p.Fallback, Unsummarized: unsummarized(p.Summary),
		Guard: strategies.Guard{DropSystem: !p.PreserveSystem},
	}
	writers := make(Writers, len(steps))
	o.Settings, o.Window = p.Summary, int(limits.Window)
	for i, s := range steps {
		registry := r
		if r.Summarizer == nil {
			o.Last = i == len(steps)-1
			writers[i] = New(o)
			registry = r.With(writers[i])
		}
		var err error
		if out.Steps[i], err = registry.New(s.Strategy, s.Params); err != nil {
			return strategies.Pipeline{}, nil, err
		}
	}
	return out, writers, nil
}

// Report puts beside each step how its summary came about. Where a step did nothing
// for want of one, nobody wrote it; where what was to make up for a model would have been too large, the
// model's failure is why.
func (w Writers) Report(steps []strategies.Step) {
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
		case s.NoSummary == summarize.FailureTooLarge:
			s.NoSummary = r.Failure
		}
		r.WrittenBy = ""
	}
}

// unsummarized returns what a policy leaves to the fallback of a pipeline whose last step
// got no summary.
func unsummarized(s Settings) strategies.Unsummarized {
	switch s.OnFailure {
	case OnFailureTruncate:
		return strategies.DropOldest
	case OnFailureKeep:
		return strategies.KeepHistory
	}
	return strategies.FallBack
}
