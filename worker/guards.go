package worker

import (
	"context"
	"fmt"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
)

// guards returns the outcome of a run that ends before planning, or "".
func (rc *runContext) guards() string {
	code := rc.automaticGuards()
	if code == "" && rc.openLoop && !rc.claim.Session.ReasoningKnown && !rc.faulty {
		return OutcomeOpenToolLoop // any change takes out all signed reasoning
	}
	return code
}

// automaticGuards returns the outcome of an automatic run that ends before planning, or "".
func (rc *runContext) automaticGuards() string {
	s := &rc.claim.Session
	switch {
	case !rc.automatic():
		return ""
	case rc.claim.Paused:
		return OutcomePaused
	case s.LastSourceSeq <= s.HoldSeq:
		return OutcomeWaitingAfterUndo
	case rc.policy.Guards.ServiceManaged || s.ServiceManaged:
		return OutcomeServiceManaged
	case rc.faulty, len(rc.claim.Awaiting) > 0 && !rc.openLoop:
		return ""
	case s.DecisionFingerprint == rc.fingerprint(s.Revision) && s.NewSignals == 0 && !s.Timed:
		// Even if a pinned message is missing: the last run could not bring it back.
		return OutcomeUnchanged
	case rc.invalid:
		return ""
	case !rc.due && rc.triggers != nil:
		return OutcomeNotTriggered
	case !rc.due:
		return OutcomeBelowThreshold
	case s.CoolingDown && s.HoldCode == "":
		return OutcomeCooldown
	}
	if code := rc.waits(); code != "" {
		return code
	}
	return rc.held
}

// waits returns the guard that has the run wait for the agent or its tools, "" for none. A
// view that exceeds the window is compacted all the same.
func (rc *runContext) waits() string {
	g, tools := rc.policy.Guards, rc.claim.Session.ToolsOpen
	switch {
	case rc.context > rc.limits.Window:
		return ""
	case g.OpenToolCall == policy.GuardWait && tools:
		return OutcomeOpenToolLoop
	case g.MidTurn == policy.GuardWait && (tools || rc.unanswered()):
		return OutcomeMidTurn
	}
	return ""
}

// unanswered reports whether the last message is the user's, or reasoning that an answer
// follows. The SQL function is_answered returns the opposite.
func (rc *runContext) unanswered() bool {
	var last chat.Meta
	for _, m := range rc.claim.View {
		if m.Kind == chat.KindSource && m.Seq > last.Seq {
			last = m
		}
	}
	return last.Role == chat.RoleUser || last.ReasoningOnly()
}

// limitRate applies the policy's guards on the rate of runs. It reads the earlier runs
// only if the policy has such guards and no other one holds the run back.
func (rc *runContext) limitRate(ctx context.Context, st Store) error {
	g := rc.policy.Guards
	if !g.Rates() || !rc.automatic() || rc.invalid || rc.guards() != "" {
		return nil
	}
	runs, age := g.Lookback()
	ages, err := st.AppliedAges(ctx, rc.claim.Session.SID, runs, age)
	rc.held, rc.heldFor = g.Rate(ages)
	return err
}

// hold sets the state of a session that a guard holds: until a time, until the agent has
// answered, or until there are other labels or another policy. None of them has decided
// anything about the view.
func (a *attempt) hold(s *store.PostRunState, code string) {
	s.DecisionFingerprint, s.SeenSignals, s.SeenTime = "", 0, false
	a.setBounds(s, false)
	switch code {
	case OutcomeServiceManaged:
		s.State = store.StateServiceManaged
	case OutcomeMidTurn, OutcomeOpenToolLoop:
		s.DueTokens, s.Counts, s.AwaitsLoop, s.AwaitsAnswer = a.limits.Window, store.Counts{}, true, code == OutcomeMidTurn
	default:
		s.HoldCode, s.CooldownSeconds = code, a.heldFor.Seconds()
	}
}

// quarantine sets the state of a session whose messages that must stay exceed the start.
func (a *attempt) quarantine(s *store.PostRunState, code string) {
	if code == OutcomeFloorAboveTrigger && a.automatic() && a.policy.Guards.Quarantine {
		s.State = store.StateQuarantined
		s.QuarantineReason = fmt.Sprintf("%s tokens are left that must stay, above the start of %s", chat.Thousands(a.leaves), chat.Thousands(a.limits.Start))
	}
}

// lowGain reports whether an automatic run that only shrinks the view saves little of it.
func (a *attempt) lowGain() bool {
	return a.automatic() && !a.invalid && a.policy.Guards.LowGain(a.gain, a.context)
}

// ineffective reports whether a run saves too little to be applied: less than the minimum,
// or little again. A view that exceeds the window is worth it.
func (a *attempt) ineffective() bool {
	again := a.policy.Guards.Ineffective(a.claim.Session.LowGainRuns)
	return a.gain < a.policy.MinGainTokens || again && a.lowGain() && a.context <= a.limits.Window
}

// afterLowGain makes a session due where there may be enough to save, if little was again.
func (a *attempt) afterLowGain(s *store.PostRunState) {
	if g := a.policy.Guards; a.lowGain() && g.Ineffective(a.claim.Session.LowGainRuns) {
		missing := chat.Tokens(g.MinGainShare*float64(a.context)) - a.gain
		s.DueTokens = max(s.DueTokens, min(a.context+missing, a.limits.Window))
	}
}
