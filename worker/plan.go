package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/redact"
	"github.com/sessionstore/compactor/strategies/summary"
)

// errOptions: the run asks for something that does not exist or is out of range.
var errOptions = errors.New("options")

// Planner is what a worker plans with: the policy, the strategies it may name, and
// how tokens are counted. Immutable and safe for concurrent use once made.
type Planner struct {
	Policy policy.Policy
	// Registry makes the strategies. Its own summarizer, where it has one, takes the place
	// of Model and of the extract.
	Registry *plan.Registry
	// Model writes summaries; without one they are extracts.
	Model summary.Model
	// Window is the table of models.
	Window policy.WindowFunc
	// Counter counts the messages that strategies write for a model.
	Counter func(model string) plan.Counter

	mu     sync.Mutex
	models map[string]model
}

// model is what the policy comes to for one model.
type model struct {
	limits          policy.Limits
	hash, fleetHash string
}

// mostModels bounds what is remembered: a model's name is whatever applications
// write there.
const mostModels = 1000

func (p *Planner) model(name string) model {
	p.mu.Lock()
	defer p.mu.Unlock()
	m, known := p.models[name]
	if !known {
		limits := p.Policy.Limits(name, p.Window)
		m = model{limits: limits, hash: p.Policy.Hash(limits, p.Registry.Fill, p.versions()), fleetHash: p.Policy.FleetHash()}
		if p.models == nil || len(p.models) >= mostModels {
			p.models = map[string]model{}
		}
		p.models[name] = m
	}
	return m
}

// versions returns what decides about summaries beside the policy.
func (p *Planner) versions() map[string]string {
	v := map[string]string{"prompt": summary.PromptVersion, "redactor": redact.Version}
	if p.Model != nil {
		v["model"] = p.Model.Identity()
	}
	return v
}

// briefing is one claimed run seen through the policy.
type briefing struct {
	claim  *store.Claim
	policy policy.Policy
	model
	// metas is what is planned on, entries the same with the margin on estimated counts.
	metas   []chat.Meta
	entries []plan.Entry
	// faulty: the view breaks a rule; invalid: it does, or a pinned message is not in it.
	faulty, invalid bool
	// context is what counts against the window, stored what the planned tokens add up to.
	context, stored chat.Tokens
}

func (p *Planner) brief(c *store.Claim) *briefing {
	s := &c.Session
	b := &briefing{claim: c, policy: p.Policy, model: p.model(s.Model)}
	b.stored = s.LiveTokens - s.LiveEstimatedTokens + p.Policy.Margin(s.LiveEstimatedTokens)
	b.context = b.stored
	if s.ReportedPromptTokens != nil {
		b.context = *s.ReportedPromptTokens + s.TokensSinceReport
	}
	b.faulty = len(chat.Check(c.View)) > 0
	b.invalid = b.faulty || len(s.Pinned.Minus(s.Live)) > 0
	return b
}

// repairOnly: the session is only due because its view is invalid.
func (b *briefing) repairOnly() bool {
	return b.invalid && b.automatic() && !b.limits.Over(b.context)
}

// slow: the run will read more than the metadata that is at hand, so that it is
// worth a claim of its own. One that does not is over in a millisecond; planned
// twice at once, which takes a double delivery, it still ends once.
func (p *Planner) slow(b *briefing) bool {
	if b.guards() != "" {
		return false
	}
	if b.invalid || b.operatesOnLog() || len(b.policy.PinTools) > 0 {
		return true
	}
	pipeline, _, err := p.pipeline(b, nil, nil)
	return err == nil && slices.ContainsFunc(pipeline.Steps, func(s plan.Strategy) bool {
		_, reads := s.(plan.Reader)
		return reads || p.Registry.Summarizes(s.Name())
	})
}

// operatesOnLog: an operator's run plans over all that was said, unless told not to.
func (b *briefing) operatesOnLog() bool {
	return b.claim.Trigger == store.TriggerOperator && b.claim.Options.From != "view"
}

// automatic: nobody is waiting for this run in particular.
func (b *briefing) automatic() bool {
	return b.claim.Trigger == store.TriggerNightly || b.claim.Trigger == store.TriggerEvent
}

// fingerprint returns what an automatic run's decision depends on: with the same one
// there is nothing new to decide (I8).
func (b *briefing) fingerprint(revision int64) string {
	return fmt.Sprintf("%d/%d/%s/%s", b.claim.Session.LastSourceSeq, revision, b.claim.Session.Pinned, b.hash)
}

// see lays out the transcript: the view, or the whole log with what is in the view
// marked, where the run is to plan from the log or has to bring something back.
func (b *briefing) see(ctx context.Context, st Store) error {
	s := b.claim.Session
	b.metas = b.claim.View
	included := func(chat.Seq) bool { return true }
	if b.operatesOnLog() || len(s.Pinned.Minus(s.Live)) > 0 {
		log, err := st.Log(ctx, s.SID, s.LastSeq)
		if err != nil {
			return err
		}
		known := map[chat.Seq]bool{} // what a replacement has put between others
		for _, m := range log {
			if m.Kind != chat.KindSource {
				known[m.Seq] = true
			}
		}
		for _, m := range b.claim.View {
			if m.Kind != chat.KindSource && !known[m.Seq] {
				log = append(log, m)
			}
		}
		slices.SortFunc(log, chat.Compare)
		b.metas, included = log, s.Live.Has
	}
	b.entries = make([]plan.Entry, len(b.metas))
	for i, m := range b.metas {
		if m.Has(chat.Estimated) {
			m.Tokens = b.policy.Margin(m.Tokens)
		}
		b.entries[i] = plan.Entry{Meta: m, Included: included(m.Seq), Pinned: s.Pinned.Has(m.Seq)}
	}
	return nil
}

// pipeline returns the pipeline of a run: the steps that its options name, or the
// policy's. A repair runs no strategy: the guard alone makes the view valid.
func (p *Planner) pipeline(b *briefing, st Answers, probe func(string)) (pipeline.Pipeline, strategies.Writers, error) {
	// What the window holds beside the stored messages (tools, the provider's own
	// overhead) is not ours to shrink: the target for the messages is lower by it.
	limits := b.limits
	limits.Target = max(1, limits.Target-(b.context-b.stored))
	pol := b.policy
	toTarget := false
	switch own := b.claim.Options.Pipeline; {
	case b.repairOnly():
		pol.Pipeline = nil
	case len(own) > 0:
		pol.Pipeline = make([]policy.Step, len(own))
		for i, s := range own {
			pol.Pipeline[i] = policy.Step{Strategy: s.Strategy, Params: whole(s.Params)}
		}
	default:
		toTarget = true
	}
	out, writers, err := strategies.Build(p.Registry, pol, limits, p.summaries(b, st, probe))
	if err != nil {
		return out, nil, fmt.Errorf("%w: %w", errOptions, err)
	}
	if !toTarget {
		// The steps that a request names all run, whether or not the target is met before.
		out.Target = 0
	}
	out.FromLog = b.operatesOnLog()
	return out, writers, nil
}

// whole turns the floats that JSON makes of numbers back into integers.
func whole(params map[string]any) map[string]any {
	out := maps.Clone(params)
	for k, v := range out {
		if f, ok := v.(float64); ok && f == float64(int(f)) {
			out[k] = int(f)
		}
	}
	return out
}

// change puts a plan into what the store applies, with its effect on the counters:
// stored tokens, without the margin, of what really moves.
func (b *briefing) change(plan chat.Plan) store.Change {
	s := b.claim.Session
	c := store.Change{Plan: plan, SID: s.SID, SnapshotSeq: s.LastSeq, Revision: s.Revision, Pinned: s.Pinned}
	out := plan.Gone()
	for i, m := range b.metas {
		var sign int64
		switch {
		case b.entries[i].Included && out.Has(m.Seq):
			sign = -1
		case !b.entries[i].Included && plan.Include.Has(m.Seq):
			sign = 1
		default:
			continue
		}
		c.DeltaMessages += sign
		c.DeltaTokens += sign * int64(m.Tokens)
		if m.Has(chat.Estimated) {
			c.DeltaEstimated += sign * int64(m.Tokens)
		}
	}
	return c
}
