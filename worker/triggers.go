package worker

import (
	"cmp"
	"slices"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
)

// facts returns the values that triggers read.
func (rc *runContext) facts() policy.Facts {
	s, f := &rc.claim.Session, rc.shared
	f.Tokens, f.Messages, f.Turns = rc.context, s.LiveMessages, rc.turns(s.Live)
	f.NewTokens, f.NewMessages, f.NewTurns = s.NewTokens, s.NewMessages, s.NewTurns
	f.Signals, f.Idle, f.Age, f.SinceRun = policy.Signals(s.Signals), s.Idle, s.Age, s.SinceRun
	f.TurnCompleted = !s.ToolsOpen && !rc.unanswered()
	var sources []*chat.Meta
	for i := range rc.claim.View {
		if m := &rc.claim.View[i]; m.Kind == chat.KindSource {
			sources = append(sources, m)
		}
	}
	slices.SortFunc(sources, func(a, b *chat.Meta) int { return cmp.Compare(b.Seq, a.Seq) })
	for _, m := range sources[:min(int64(len(sources)), s.NewMessages)] {
		if m.Calls > 0 {
			f.ToolRounds++
		}
		if m.Role == chat.RoleTool {
			f.ToolOutput = max(f.ToolOutput, m.Tokens)
		}
	}
	return f
}

// turns counts the messages of the user in the view that are live.
func (rc *runContext) turns(live chat.Ranges) (n int64) {
	for _, m := range rc.claim.View {
		if m.Role == chat.RoleUser && m.Kind == chat.KindSource && live.Has(m.Seq) {
			n++
		}
	}
	return n
}

// decideDue sets whether the policy makes the session due. The target of an automatic run is
// that of the trigger, or less for the turns that the policy wants.
func (rc *runContext) decideDue() {
	rc.due = rc.limits.Over(rc.context)
	if rc.triggers != nil {
		t, ok := policy.Fired(rc.triggers, rc.facts())
		if rc.due = ok; ok && rc.automatic() {
			rc.fired = t.Name
			rc.limits = rc.limits.WithTarget(t.Trigger)
		}
	}
	if s := &rc.claim.Session; rc.automatic() && s.NewTurns > 0 {
		rc.limits = rc.limits.ForTurns(rc.policy.TargetTurns, rc.real(s.NewTokens)/chat.Tokens(s.NewTurns))
	}
}

// overAfter reports whether the session would be due again at once after a run that leaves
// so many tokens and messages, and the messages live in the view.
func (rc *runContext) overAfter(tokens chat.Tokens, messages int64, live chat.Ranges) bool {
	if rc.triggers == nil {
		return rc.limits.Over(tokens)
	}
	b := rc.bounds
	if found := tokens > b.DueAbove(rc.claim.Session.Age, 0) || b.Messages > 0 && messages >= b.Messages; !found {
		return false // a report of the application makes it due once
	}
	_, ok := policy.Fired(rc.triggers, rc.facts().AfterRun(tokens, messages, rc.turns(live)))
	return ok
}

// setBounds sets the bounds by which the database finds the session due.
func (rc *runContext) setBounds(s *store.PostRunState, applied bool) {
	f := policy.Facts{Idle: rc.claim.Session.Idle, Age: rc.claim.Session.Age, SinceRun: rc.claim.Session.SinceRun}
	if applied {
		f.SinceRun = 0
	}
	s.DueTokens, s.Counts = rc.bounds.DueAbove(f.Age, f.SinceRun), store.Counts(rc.bounds.Counts)
	s.CheckSeconds = policy.Wait(rc.triggers, rc.limits, f)
}

// raiseBounds raises the bounds that a session exceeds after a decision about its view: it is due again
// when as much has been added as would make it due.
func (rc *runContext) raiseBounds(s *store.PostRunState, tokens chat.Tokens, messages int64, applied bool) {
	if tokens > s.DueTokens {
		s.DueTokens = tokens + max(rc.policy.MinGainTokens, 1)
		if rc.openLoop {
			s.DueTokens = max(s.DueTokens, rc.limits.Window)
		}
	}
	if s.Messages > 0 && messages >= s.Messages {
		s.Messages = messages + max(s.Messages/10, 1)
	}
	if v := &rc.claim.Session; !applied { // a run that is applied sets them to zero
		raise(&s.NewTokens, v.NewTokens)
		raise(&s.NewMessages, v.NewMessages)
		raise(&s.NewTurns, v.NewTurns)
	}
}

// raise raises a bound that is reached.
func raise[T ~int64](bound *T, now T) {
	if *bound > 0 && now >= *bound {
		*bound += now
	}
}

// notTriggered sets the state of a session of which no trigger holds: due by the next write
// that may change that or, if the agent's answer would, by that.
func (rc *runContext) notTriggered(s *store.PostRunState) {
	s.DecisionFingerprint, s.SeenSignals, s.Checked = "", 0, true
	rc.setBounds(s, false)
	f := rc.facts()
	if f.TurnCompleted || rc.context > rc.limits.Window {
		return
	}
	f.TurnCompleted, f.Idle = true, 0
	if _, ok := policy.Fired(rc.triggers, f); !ok {
		return
	}
	s.AwaitsLoop, s.AwaitsAnswer = true, true
	v := &rc.claim.Session
	if rc.context > s.DueTokens {
		s.DueTokens = rc.limits.Window
	}
	reached(&s.NewTokens, v.NewTokens)
	reached(&s.NewMessages, v.NewMessages)
	reached(&s.NewTurns, v.NewTurns)
	reached(&s.Messages, v.LiveMessages)
}

// reached removes a bound that is reached.
func reached[T ~int64](bound *T, now T) {
	if now >= *bound {
		*bound = 0
	}
}

// TriggerState is a trigger of a session's policy as it is now.
type TriggerState struct {
	Name   string   `json:"name"`
	When   string   `json:"when"`
	Holds  bool     `json:"holds"`
	Values []string `json:"values"`
}

// Triggers returns the triggers of a session's policy with their present values, nil if it
// has none. The policy must be valid.
func (p *Planner) Triggers(c *store.Claim, pol policy.Policy) (out []TriggerState) {
	c.Session.Policy, c.Session.PolicyVersion = "", -1 // a key of its own in the cache
	rc := p.newRunContext(c, namedPolicy{policy: pol})
	f := rc.facts()
	for _, t := range rc.triggers {
		out = append(out, TriggerState{t.Name, string(t.When), t.Holds(&f), t.Values(&f)})
	}
	return out
}
