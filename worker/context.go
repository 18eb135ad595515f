package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
)

// runContext is a loaded run with the policy for its model, and the transcript once
// buildTranscript has built it.
type runContext struct {
	claim  *store.Claim
	policy policy.Policy
	// policyErr is set if the session's policy cannot be read: the run can only be finished.
	policyErr error
	resolvedPolicy
	// faulty reports that the view breaks a rule; invalid, that it does, or that a pinned
	// message or one that awaits a repair is not in it.
	faulty, invalid bool
	// openLoop reports that an open tool loop with signed reasoning holds the view before it.
	openLoop bool
	// context is the size that counts against the window, in real tokens; stored is the
	// part of it that the stored messages account for, in planned tokens, of which each is
	// scale real ones. Where scale was learned from reports, policy has no margin; margin is
	// the one configured.
	context, stored chat.Tokens
	scale, margin   float64

	// due reports that the context exceeds the start or, if the policy has any, that a trigger
	// holds; fired is its name.
	due   bool
	fired string
	// ofModel are the limits before a trigger or the turns of the session set the target.
	ofModel policy.Limits
	// log receives failed calls of models, with the names of the run; nil to plan alone.
	log *slog.Logger
	// held is the guard that holds the run back by the number of those before it, and heldFor
	// the time for which it does.
	held    string
	heldFor time.Duration

	metas   []chat.Meta
	entries []plan.Entry // of metas, with the margin on estimated counts
	// awaited are the entries that are not in the view until the run has given them a form
	// that can be there.
	awaited chat.Ranges

	// built is the pipeline of a run that needs no claim, and writers are its summarizers.
	built   *pipeline.Pipeline
	writers strategies.Writers
}

// newRunContext returns the context of a loaded run under its policy, without a transcript.
func (p *Planner) newRunContext(c *store.Claim, of namedPolicy) *runContext {
	s := &c.Session
	rc := &runContext{claim: c, policy: of.policy, policyErr: of.err, scale: 1, margin: of.policy.EstimateMargin}
	rc.resolvedPolicy = p.forModel(namedKey{s.Policy, s.PolicyVersion}, of.policy, s.Model)
	if s.Line.Scale > 0 {
		rc.policy.EstimateMargin, rc.scale = 0, s.Line.Scale
	}
	rc.stored = s.LiveTokens - s.LiveEstimatedTokens + rc.policy.Margin(s.LiveEstimatedTokens)
	switch {
	case s.ReportedPromptTokens != nil:
		rc.context = max(0, *s.ReportedPromptTokens+s.TokensSinceReport)
	case s.Line.Scale > 0:
		rc.context = s.Line.Tokens(s.LiveTokens)
	default:
		rc.context = rc.stored
	}
	rc.faulty = len(chat.Check(c.View)) > 0
	rc.invalid = rc.faulty || len(c.Awaiting) > 0 || rc.pinsMissing()
	rc.openLoop = rc.bindsReasoning && chat.OpenReasoning(c.View) > 0
	rc.ofModel = rc.limits
	rc.decideDue()
	return rc
}

// real converts planned tokens to tokens of the window.
func (rc *runContext) real(planned chat.Tokens) chat.Tokens {
	return chat.Tokens(rc.scale * float64(planned))
}

// after returns the size of the context once a plan has saved so many planned and stored
// tokens, as the database will have it.
func (rc *runContext) after(planned, stored chat.Tokens) chat.Tokens {
	switch s := &rc.claim.Session; {
	case s.ReportedPromptTokens != nil:
		return rc.context - stored
	case s.Line.Scale > 0:
		return s.Line.Tokens(s.LiveTokens - stored)
	}
	return rc.context - planned
}

// automatic reports whether the scheduler started the run.
func (rc *runContext) automatic() bool {
	return rc.claim.Trigger == store.TriggerNightly || rc.claim.Trigger == store.TriggerEvent
}

// repairOnly reports whether the session is due only because its view is invalid.
func (rc *runContext) repairOnly() bool {
	return rc.invalid && rc.automatic() && !rc.due
}

// fromLog reports whether the run plans on the whole log: operators' runs, single ones and
// bulk recompactions, do, unless their options name the view.
func (rc *runContext) fromLog() bool {
	asked := rc.claim.Trigger == store.TriggerOperator || rc.claim.Trigger == store.TriggerBulk
	return asked && rc.claim.Options.From != "view"
}

// pinsMissing reports whether a pinned message is not in the view, and no run has found
// yet that it cannot be.
func (rc *runContext) pinsMissing() bool {
	s := &rc.claim.Session
	return len(s.Pinned.Minus(s.Live).Minus(s.Unholdable)) > 0
}

// unholdable returns the pinned messages that are not in the view live although the run
// has planned with them, before the last user message: the log there is complete,
// so another run could not include them either. Messages that an open tool loop keeps
// out can come back when it has ended.
func (rc *runContext) unholdable(live chat.Ranges) chat.Ranges {
	if rc.openLoop {
		return nil
	}
	var user chat.Seq
	for _, m := range rc.claim.View {
		if m.Role == chat.RoleUser && m.Position == m.Seq {
			user = max(user, m.Seq)
		}
	}
	return rc.claim.Session.Pinned.Minus(live).Intersect(chat.Ranges{{Lo: 1, Hi: user + 1}})
}

// buildTranscript sets metas and entries: the view, or the whole log if the run plans on
// it or has to include a pinned message again.
func (rc *runContext) buildTranscript(ctx context.Context, st Store) error {
	s := &rc.claim.Session
	rc.metas = rc.claim.View
	included := func(chat.Seq) bool { return true }
	if len(rc.claim.Awaiting) > 0 && !rc.openLoop { // which would hold back their repaired forms
		rc.awaited = rc.claim.Session.Awaiting
		rc.metas = slices.Concat(rc.metas, rc.claim.Awaiting)
		slices.SortFunc(rc.metas, chat.Compare)
	}
	if rc.fromLog() || rc.pinsMissing() {
		log, err := st.Log(ctx, s.SID, s.LastSeq)
		if err != nil {
			return err
		}
		// The log may lack messages of the view that a run has written.
		logged := map[chat.Seq]bool{}
		for _, m := range log {
			if m.Kind != chat.KindSource {
				logged[m.Seq] = true
			}
		}
		for _, m := range rc.metas {
			if m.Kind != chat.KindSource && !logged[m.Seq] {
				log = append(log, m)
			}
		}
		slices.SortFunc(log, chat.Compare)
		rc.metas, included = log, s.Live.Union(rc.awaited).Has
	}
	rc.entries = make([]plan.Entry, len(rc.metas))
	for i, m := range rc.metas {
		if m.Has(chat.Estimated) {
			// The rest without the reasoning counts as the next run counts it.
			rest := rc.policy.Margin(m.Tokens - m.ReasoningTokens)
			m.Tokens = rc.policy.Margin(m.Tokens)
			m.ReasoningTokens = m.Tokens - rest
		}
		rc.entries[i] = plan.Entry{Meta: m, Included: included(m.Seq), Pinned: s.Pinned.Has(m.Seq)}
	}
	return nil
}

// change returns the store's form of a plan. Its deltas count stored tokens, without the
// margin, of the messages that are excluded or included.
func (rc *runContext) change(plan chat.Plan) store.Change {
	s := &rc.claim.Session
	c := store.Change{Plan: plan, SnapshotSeq: s.LastSeq, Revision: s.Revision, Pinned: s.Pinned, FreeReasoning: !rc.bindsReasoning}
	excluded := plan.Gone()
	if back := rc.awaited.Minus(excluded); len(rc.awaited) > 0 {
		c.Plan.Include = plan.Include.Union(back)
		c.Plan.DropReasoning = plan.DropReasoning.Union(rc.staleBehindAwaited(c.Plan))
	}
	for i, m := range rc.metas {
		var sign int64
		was := rc.entries[i].Included && !rc.awaited.Has(m.Seq)
		switch {
		case was && excluded.Has(m.Seq):
			sign = -1
		case !was && c.Plan.Include.Has(m.Seq):
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

// staleBehindAwaited returns the reasoning that is stale after a plan, as messages come back
// before it in one form or another.
func (rc *runContext) staleBehindAwaited(p chat.Plan) chat.Ranges {
	if !rc.bindsReasoning {
		return nil
	}
	from, gone := chat.Open, p.Gone()
	var view []chat.Meta
	for i, m := range rc.metas {
		if rc.awaited.Has(m.Seq) {
			from = min(from, m.Position)
		}
		if rc.entries[i].Included && !gone.Has(m.Seq) || p.Include.Has(m.Seq) {
			view = append(view, m)
		}
	}
	return chat.StaleReasoning(view, from)
}

// gains returns the tokens that a result saves, with its change: in planned tokens, which include the
// margin on estimated counts, and in stored ones.
func (rc *runContext) gains(r *pipeline.Result, c store.Change) (planned, stored chat.Tokens) {
	_, reasoning := rc.reasoning(c.Plan)
	planned, stored = r.Gain(), reasoning-chat.Tokens(c.DeltaTokens)
	for i := range rc.entries {
		if rc.awaited.Has(rc.entries[i].Seq) { // not in the view before
			planned -= rc.entries[i].Tokens
		}
	}
	for _, add := range c.Plan.Additions {
		stored -= add.Tokens
		if chat.Estimates(add.Counter) { // the next run counts them with the margin, too
			planned -= rc.policy.Margin(add.Tokens) - add.Tokens
		}
	}
	return planned, stored
}

// lessGain returns the smaller of the gains of a result.
func (rc *runContext) lessGain(r *pipeline.Result) chat.Tokens {
	return min(rc.gains(r, rc.change(r.Plan)))
}

// reasoning counts the messages and stored tokens of the reasoning that a plan drops.
func (rc *runContext) reasoning(plan chat.Plan) (messages int64, tokens chat.Tokens) {
	if len(plan.DropReasoning) == 0 {
		return 0, 0
	}
	excluded := plan.Gone()
	for i := range rc.metas {
		m := &rc.metas[i]
		in := rc.entries[i].Included && !excluded.Has(m.Seq) || plan.Include.Has(m.Seq)
		if !in || !m.Signed() || !plan.DropReasoning.Has(m.Seq) {
			continue
		}
		rest, ok := m.WithoutReasoning()
		tokens += m.Tokens
		if ok {
			tokens -= rest.Tokens
		} else {
			messages++
		}
	}
	return messages, tokens
}

// cooldownAfter returns how long automatic runs leave the session alone after steps that
// got no summary: the longest of their cooldowns.
func (rc *runContext) cooldownAfter(steps []pipeline.StepResult) time.Duration {
	var cooldown time.Duration
	for _, s := range steps {
		if s.NoSummary == "" {
			continue
		}
		var wait time.Duration
		if failure, ok := errors.AsType[*plan.Failure](s.Err); ok {
			wait = failure.Wait
		}
		cooldown = max(cooldown, rc.policy.Summary.CooldownAfter(s.NoSummary, wait))
	}
	return cooldown
}

// postRunState returns the state of the session after a run that leaves so many tokens and
// messages in its window, and the messages live in the view: due again by the policy or,
// where that is exceeded already, once MinGainTokens have been added. While an open tool loop
// holds the view, that is at its end, or earlier if the window is exceeded.
func (rc *runContext) postRunState(tokens chat.Tokens, messages int64, live chat.Ranges, revision int64) *store.PostRunState {
	s := &store.PostRunState{
		Model: &rc.claim.Session.Model, BaseHash: rc.claim.Session.PolicyHash, EstimateMargin: rc.margin, PolicyHash: rc.fleetHash, DecisionFingerprint: rc.fingerprint(revision),
		Unholdable: rc.unholdable(live), AwaitsLoop: rc.openLoop && (rc.invalid || rc.limits.Over(tokens)), SeenSignals: rc.claim.Session.NewSignals, SeenTime: rc.claim.Session.Timed,
	}
	applied := revision != rc.claim.Session.Revision
	rc.setBounds(s, applied)
	rc.raiseBounds(s, tokens, messages, applied)
	return s
}

// fingerprint returns the decision fingerprint of the session at a revision. An automatic
// run that finds the fingerprint of the last decision is a no-op (I8).
func (rc *runContext) fingerprint(revision int64) string {
	return fmt.Sprintf("%d/%d/%s/%s", rc.claim.Session.LastSourceSeq, revision, rc.claim.Session.Pinned, rc.hash)
}
