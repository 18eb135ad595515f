package worker

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/redact"
	"github.com/sessionstore/compactor/strategies/summary"
)

// ErrOptions is wrapped by the error of a run, or of Compact, whose options name unknown strategies or
// parameters out of range.
var ErrOptions = errors.New("options")

// Planner holds the policy, the strategies and the model that a worker plans with. Its
// fields must not change once it is in use. Safe for concurrent use.
type Planner struct {
	Policy policy.Policy
	// Registry makes the strategies. If it has a Summarizer, that one writes the
	// summaries, and Model is not used.
	Registry *plan.Registry
	// Model writes summaries. If it is nil, summaries are extracted without a model.
	Model summary.Model
	// Window returns the context windows of models.
	Window policy.WindowFunc
	// BindsReasoning reports whether a model binds signed reasoning to the messages before it. If
	// it is nil, all models do.
	BindsReasoning func(model string) bool
	// Counter counts the tokens of the messages that strategies write for a model.
	Counter func(model string) plan.Counter
	// Logger receives warnings about unknown models. It may be nil.
	Logger *slog.Logger

	mu     sync.Mutex
	models map[modelKey]resolvedPolicy
	named  map[namedKey]namedPolicy
}

// modelKey is a model under a version of a policy.
type modelKey struct {
	policy namedKey
	model  string
}

// resolvedPolicy is a policy resolved for one model.
type resolvedPolicy struct {
	limits          policy.Limits
	triggers        []policy.CompiledTrigger // nil: sessions are due above the start
	bounds          policy.Bounds
	shared          policy.Facts // of all sessions with the model
	bindsReasoning  bool
	hash, fleetHash string
}

// maxModels bounds the cache of resolved policies: applications choose the model names.
const maxModels = 1000

// forModel returns a policy resolved for a model. It warns of an unknown one once, as long
// as it is in the cache.
func (p *Planner) forModel(of namedKey, pol policy.Policy, name string) resolvedPolicy {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := modelKey{of, name}
	m, known := p.models[key]
	if !known {
		limits := pol.Limits(name, p.Window)
		m = resolvedPolicy{
			limits: limits, triggers: pol.Compiled(), bounds: pol.Bounds(name, p.Window), shared: pol.Facts(name, p.Window),
			bindsReasoning: pol.BindsReasoning(name, p.BindsReasoning), fleetHash: pol.FleetHash(),
		}
		versions := p.versions()
		versions["binds_reasoning"] = strconv.FormatBool(m.bindsReasoning)
		m.hash = pol.Hash(limits, p.Registry.Fill, versions)
		if !limits.WindowKnown && name != "" && p.Logger != nil {
			p.Logger.Warn("the table of models does not have this model; set its window in the configuration (models)",
				"model", name[:min(len(name), 200)], "window", limits.Window)
		}
		if p.models == nil || len(p.models) >= maxModels {
			p.models = map[modelKey]resolvedPolicy{}
		}
		p.models[key] = m
	}
	return m
}

// versions returns the versions of everything that shapes summaries but the policy.
func (p *Planner) versions() map[string]string {
	v := map[string]string{"prompt": summary.PromptVersion, "redactor": redact.Version}
	if p.Model != nil {
		v["model"] = p.Model.Identity()
	}
	return v
}

// needsClaim reports whether the run reads more than the loaded metadata. Other runs end
// within about a millisecond, less than a claim costs; rc keeps their pipeline.
func (p *Planner) needsClaim(rc *runContext) bool {
	if rc.policyErr != nil || rc.guards() != "" || rc.claim.OptionsError != nil {
		return false
	}
	if rc.invalid || rc.fromLog() || rc.policy.PinsAnyway() {
		return true
	}
	built, writers, err := p.pipeline(rc, nil)
	if err != nil {
		return false
	}
	for _, s := range built.Steps {
		_, reads := s.(plan.Reader)
		_, stages := s.(pipeline.Stager)
		if reads || stages || p.Registry.Summarizes(s.Name()) {
			return true
		}
	}
	rc.built, rc.writers = &built, writers
	return false
}

// pipeline returns the pipeline of a run: the steps of its options or else of the policy.
// A run that only repairs the view has no steps; the pipeline's guard repairs it.
func (p *Planner) pipeline(rc *runContext, answers summary.AnswerStore) (pipeline.Pipeline, strategies.Writers, error) {
	limits := rc.limits.ForMessages(rc.context-rc.real(rc.stored), rc.scale)
	pol := rc.policy
	toTarget := false
	switch own := rc.claim.Options.Pipeline; {
	case rc.repairOnly():
		pol.Pipeline = nil
	case len(own) > 0:
		pol.Pipeline = make([]policy.Step, len(own))
		for i, s := range own {
			pol.Pipeline[i] = policy.Step(s)
		}
	default:
		toTarget = true
	}
	out, writers, err := strategies.Build(p.Registry, pol, limits, p.summaryOptions(rc, answers))
	if err != nil {
		return out, nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if !toTarget {
		out.Target = 0 // the steps of the options all run
	}
	if rc.claim.Options.Summary != nil && !slices.ContainsFunc(out.Steps, func(s plan.Strategy) bool { return p.Registry.Summarizes(s.Name()) }) {
		return out, nil, fmt.Errorf("%w: summary: no step of the pipeline summarizes", ErrOptions)
	}
	out.FromLog = rc.fromLog()
	out.FreeReasoning = !rc.bindsReasoning
	return out, writers, nil
}

// summaryOptions returns the options of the summaries of a run.
func (p *Planner) summaryOptions(rc *runContext, answers summary.AnswerStore) summary.Options {
	var operator *summary.Operator
	if o := rc.claim.Options.Summary; o != nil {
		operator = &summary.Operator{Text: o.Text, Author: o.Author, Note: o.Note}
	}
	return summary.Options{
		Log: rc.log, Operator: operator,
		Model: p.Model, Answers: answers, Scope: rc.claim.Session.Key.Tenant + "\x00" + rc.claim.Session.Key.Session,
		Focus: rc.claim.Options.Focus, Manual: rc.claim.Trigger == store.TriggerOperator,
		// The prompt, and with it the key of the stored answer, holds the day but not the
		// time: a dry run and the run after it share an answer.
		At: rc.claim.QueuedAt.UTC().Truncate(24 * time.Hour),
	}
}
