package worker

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
)

// skipReason returns the outcome of a run whose plan is not applied, or "".
func (a *attempt) skipReason(r pipeline.Result) string {
	switch {
	case r.Plan.Empty() && r.OpenLoop:
		return OutcomeOpenToolLoop
	case r.Plan.Empty() && a.unsummarized:
		return OutcomeNoSummary
	case r.Plan.Empty() && a.automatic() && (a.triggers == nil || a.overAfter(a.context, a.claim.Session.LiveMessages, a.claim.Session.Live)):
		return OutcomeFloorAboveTrigger
	case r.Plan.Empty():
		return OutcomeNothingToCompact
	case r.WouldGrow:
		return OutcomeWouldGrow
	case a.invalid, a.claim.Options.AllowGrowth:
	case a.ineffective() && a.unsummarized:
		return OutcomeNoSummary
	case a.ineffective() && !a.automatic():
		return OutcomeNothingToCompact
	case a.ineffective():
		return OutcomeIneffective
	}
	if a.claim.Options.DryRun {
		return OutcomeDryRun
	}
	return ""
}

// complete completes a change with the ledger and the state of the session after it.
func (a *attempt) complete(c *store.Change) {
	if a.repairOnly() {
		a.ledger.Kind = "repair"
	}
	live := a.claim.Session.Live.Minus(c.Plan.Gone()).Union(c.Plan.Include)
	state := a.postRunState(a.leaves, a.ledger.MessagesAfter, live, a.claim.Session.Revision+1)
	code := a.appliedOutcome(live)
	if code == OutcomeNoSummary && a.automatic() {
		a.scheduleRetry(state, true)
	}
	if a.automatic() && !a.repairOnly() {
		low := a.lowGain()
		state.LowGain = &low
	}
	a.quarantine(state, code)
	a.end(code)
	c.Ledger = a.ledger
	c.PostRunState = *state
}

// applied reports that the change is written.
func (a *attempt) applied(ctx context.Context) {
	a.w.failpoint(stepApplied)
	a.report(ctx, store.StatusApplied)
}

// appliedOutcome returns the outcome of a run whose plan is applied.
func (a *attempt) appliedOutcome(live chat.Ranges) string {
	switch over := a.overAfter(a.leaves, a.ledger.MessagesAfter, live); {
	case over && a.unsummarized:
		return OutcomeNoSummary
	case over:
		return OutcomeFloorAboveTrigger
	case a.repairOnly() || a.invalid && a.gain < a.policy.MinGainTokens:
		return OutcomeRepaired
	case a.leaves > a.limits.Target:
		return OutcomeAboveTarget
	}
	return OutcomeApplied
}

// skip ends the run without a change.
func (a *attempt) skip(ctx context.Context, code string) error {
	a.end(code)
	state := a.postRunState(a.context, a.claim.Session.LiveMessages, a.claim.Session.Live, a.claim.Session.Revision)
	switch code {
	case OutcomeDryRun, OutcomePaused, OutcomeCooldown, OutcomeWaitingAfterUndo:
		state = nil // whether the session is due is not decided
	case OutcomeNothingToCompact:
		if !a.automatic() {
			state = nil
		}
	case OutcomeNotTriggered:
		a.notTriggered(state)
	case OutcomeOpenToolLoop:
		if !a.automatic() {
			state = nil
		} else if a.waits() == code {
			a.hold(state, code)
		}
	case OutcomeMidTurn, OutcomeMinInterval, OutcomeMaxPerHour, OutcomeMaxPerDay, OutcomeServiceManaged:
		a.hold(state, code)
	case OutcomeFloorAboveTrigger:
		a.leaves = a.context
		a.quarantine(state, code)
	case OutcomeIneffective, OutcomeWouldGrow, OutcomeNoSummary:
		switch {
		case !a.automatic(): // decided on the run's own options, not on the policy
			state = nil
		case code == OutcomeNoSummary:
			a.scheduleRetry(state, false)
		default:
			state.Ineffective, state.CooldownSeconds = true, a.policy.Cooldown.Seconds()
			if code == OutcomeIneffective {
				a.afterLowGain(state)
			}
		}
	}
	if err := a.w.store.Finish(ctx, a.claim, store.StatusSkipped, a.ledger, state); err != nil {
		return err
	}
	a.w.failpoint(stepRecorded)
	a.report(ctx, store.StatusSkipped)
	return nil
}

// report logs and observes the end of the run.
func (a *attempt) report(ctx context.Context, status string) {
	a.w.logger.LogAttrs(ctx, slog.LevelInfo, "run ended", a.attrs()...)
	a.observe(status)
}

// end sets the outcome in the ledger.
func (a *attempt) end(code string) {
	a.outcome, a.ledger.Outcome = code, code
	a.ledger.TotalMicros = time.Since(a.start).Microseconds()
}

const (
	// maxCooldown bounds the cooldown after a missing summary.
	maxCooldown = 24 * time.Hour
	// maxDoublings bounds how often that cooldown doubles.
	maxDoublings = 12
)

// scheduleRetry makes the session due again without a new message, after a cooldown: the
// model may have recovered by then. Each attempt may cost money, so the cooldown doubles
// with every failure in a row, unless a limit of spending kept it from being made.
func (a *attempt) scheduleRetry(s *store.PostRunState, applied bool) {
	doublings := min(a.claim.Session.IneffectiveRuns, maxDoublings)
	if a.limited { // nothing was paid
		doublings = 0
	}
	cooldown := min(a.cooldown<<doublings, maxCooldown)
	a.setBounds(s, applied)
	s.CooldownSeconds, s.Ineffective = cooldown.Seconds(), !a.limited
	if !a.invalid { // an invalid view is repaired during a cooldown, too
		s.DecisionFingerprint = ""
	}
}

// attrs returns the attributes of the log line of a run, and more.
func (a *attempt) attrs(more ...slog.Attr) []slog.Attr {
	attrs := []slog.Attr{
		slog.Int64("run_id", a.claim.Run),
		slog.String("session_id", a.claim.Session.Key.Session),
		slog.String("tenant", a.claim.Session.Key.Tenant),
		slog.String("trigger", a.claim.Trigger),
		slog.String("policy", store.PolicyName(a.claim.Session.Policy, a.claim.Session.PolicyVersion)),
		slog.String("outcome", a.outcome),
		slog.Int64("tokens_before", a.ledger.TokensBefore),
		slog.Int64("tokens_after", a.ledger.TokensAfter),
		slog.Int64("messages_before", a.ledger.MessagesBefore),
		slog.Int64("messages_after", a.ledger.MessagesAfter),
		slog.Duration("waited", a.start.Sub(a.claim.QueuedAt)),
		slog.Duration("plan", time.Duration(a.ledger.PlanMicros)*time.Microsecond),
		slog.Duration("took", time.Since(a.start)),
	}
	if a.fired != "" {
		attrs = append(attrs, slog.String("fired", a.fired))
	}
	if code := a.ledger.ErrorCode; code != nil && *code != a.outcome {
		attrs = append(attrs, slog.String("model_failed", *code))
	}
	if a.span != nil && a.span.SpanContext().IsSampled() {
		attrs = append(attrs, slog.String("trace_id", a.span.SpanContext().TraceID().String()))
	}
	return slices.Concat(attrs, a.spent.attrs(), more)
}
