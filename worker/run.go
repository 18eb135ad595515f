package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/redact"
	"github.com/sessionstore/compactor/strategies/summary"
)

// Store is what a run needs of the store.
type Store interface {
	Load(ctx context.Context, run store.RunID) (*store.Claim, error)
	Claim(ctx context.Context, run store.RunID, worker string, lease time.Duration) (*store.Claim, error)
	Heartbeat(ctx context.Context, run store.RunID, fence int64, lease time.Duration) error
	Log(ctx context.Context, sid int64, upTo chat.Seq) ([]chat.Meta, error)
	Messages(ctx context.Context, sid int64, seqs []chat.Seq) (map[chat.Seq]*chat.Message, error)
	Apply(ctx context.Context, run store.RunID, fence int64, c store.Change) (chat.Ranges, error)
	Finish(ctx context.Context, c *store.Claim, status string, l store.Ledger, settle *store.PostRunState) error
	Requeue(ctx context.Context, run store.RunID, fence int64, delay time.Duration, failed bool, code, text string) error
	Snooze(ctx context.Context, run store.RunID, delay time.Duration, code string) (int, error)
	Abandon(ctx context.Context, run store.RunID, outcome string) error
	EnsurePolicy(ctx context.Context, hash string, spec any) error
	Answers
}

// The codes a run ends with: every decision is a row with one of them.
const (
	OutcomeApplied           = "applied"             // the view is smaller, within the target
	OutcomeRepaired          = "repaired"            // the view was invalid and is valid again
	OutcomeAboveTarget       = "above_target"        // applied, but what must stay is more than the target
	OutcomeFloorAboveTrigger = "floor_above_trigger" // what must stay is above the start: only new messages can change that
	OutcomeIneffective       = "ineffective"         // would gain less than the policy's minimum
	OutcomeNoSummary         = "no_summary"          // still above the start, or nothing gained, for want of a summary: the steps say why
	OutcomeBelowThreshold    = "below_threshold"     // the session is not over its start (any more)
	OutcomeNothingToCompact  = "nothing_to_compact"  // an operator's run found nothing to do
	OutcomeUnchanged         = "unchanged"           // nothing has changed since the last decision
	OutcomeWaitingAfterUndo  = "waiting_after_undo"  // undone by an operator; waits for a new message
	OutcomeCooldown          = "cooldown"            // too soon after an ineffective run
	OutcomeWouldGrow         = "would_grow"          // the view would become larger, and that was not allowed
	OutcomeDryRun            = "dry_run"             // planned and recorded, as asked
)

// How long a session rests at most for want of a summary, and how often that is doubled
// on the way there.
const (
	mostRest      = 24 * time.Hour
	mostDoublings = 12
)

// Why there is no summary, and will be none of the same messages: it would not have made
// the view smaller, or there is nothing behind the last one.
const (
	codeTooLarge   = string(summary.CodeTooLarge)
	codeNothingNew = "nothing_new"
)

// Steps of a run between which a process may die, in order. Tests stop at them.
const (
	stepClaimed  = "claimed"
	stepAnswered = "answered" // a model has
	stepStored   = "stored"   // its answer is
	stepPlanned  = "planned"
	stepChecked  = "checked"
	stepApplied  = "applied"
	stepRecorded = "recorded"
)

// attempt is one delivery of a run, from claim to verdict.
type attempt struct {
	w     *Worker
	run   store.RunID
	start time.Time
	claim *store.Claim

	outcome string
	ledger  store.Ledger
	// gain is what the plan saves, in planned tokens: with the margin for estimates.
	gain chat.Tokens
	// rest is how long to leave the session alone for want of a summary.
	rest time.Duration
	// unsummarized: a summary was wanted and not had, and may be had later.
	unsummarized bool
}

// execute works on a run until it has ended or is back in the queue. The error is
// one that Postgres could not be told: the queue has to deliver again.
func (w *Worker) execute(ctx context.Context, run store.RunID) error {
	a := &attempt{w: w, run: run, start: time.Now()}
	claim, err := w.store.Load(ctx, run)
	var b *briefing
	if err == nil {
		b = w.planner.brief(claim)
		if claim.Orphaned || w.planner.slow(b) {
			if claim, err = w.store.Claim(ctx, run, w.config.Name, w.config.Lease); err == nil {
				b = w.planner.brief(claim)
			}
		}
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil // done before, or being done: a late or second delivery
	case errors.Is(err, store.ErrBusy):
		return a.busy(ctx)
	case err != nil:
		return err
	}
	a.claim = claim
	stop := func() {}
	if claim.Fence > 0 {
		ctx, stop = w.keepLease(ctx, claim)
	}
	err = a.work(ctx, b)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause // why the context ended says more than that it did
	}
	stop()
	return a.settle(ctx, err)
}

// work is the run itself: plan, check, apply.
func (a *attempt) work(ctx context.Context, b *briefing) error {
	a.w.probe(stepClaimed)
	p := a.w.planner
	s := &a.claim.Session
	a.ledger = store.Ledger{
		Kind: "compact", Worker: a.w.config.Name, PolicyHash: &b.hash, Utilization: b.limits.Utilization(b.context),
		MessagesBefore: s.LiveMessages, MessagesAfter: s.LiveMessages,
		TokensBefore: int64(s.LiveTokens), TokensAfter: int64(s.LiveTokens),
	}
	if err := a.w.savePolicy(ctx, b); err != nil {
		return err
	}
	if code := b.guards(); code != "" {
		return a.skip(ctx, b, code)
	}
	if err := b.see(ctx, a.w.store); err != nil {
		return err
	}
	pipeline, writers, err := p.pipeline(b, a.w.store, a.w.probe)
	if err != nil {
		return err
	}
	t := &plan.Transcript{Entries: b.entries, Counter: p.Counter(s.Model)}
	result, err := pipeline.Run(ctx, t, func(ctx context.Context, seqs []chat.Seq) (map[chat.Seq]*chat.Message, error) {
		return a.w.store.Messages(ctx, s.SID, seqs)
	})
	if err != nil {
		return err
	}
	writers.Report(result.Steps)
	a.rest = b.rest(result.Steps)
	a.ledger.PlanMicros = time.Since(a.start).Microseconds()
	a.ledger.Steps = result.Steps
	a.gain = result.Gain()
	for _, add := range result.Plan.Additions { // the next run sees them with the margin, too
		if chat.Estimates(add.Counter) {
			a.gain -= b.policy.Margin(add.Tokens) - add.Tokens
		}
	}
	a.w.probe(stepPlanned)

	change := b.change(result.Plan)
	a.measure(change)
	if code := a.verdict(b, result); code != "" {
		return a.skip(ctx, b, code)
	}
	a.w.probe(stepChecked)
	return a.apply(ctx, b, change)
}

// guards returns the reasons not to plan at all.
func (b *briefing) guards() string {
	s := b.claim.Session
	switch {
	case !b.automatic():
		return ""
	case s.LastSourceSeq <= s.HoldSeq:
		return OutcomeWaitingAfterUndo
	case b.faulty:
		return ""
	case s.DecisionFingerprint == b.fingerprint(s.Revision):
		// A pinned message may still be out: one that no view can hold as it is.
		return OutcomeUnchanged
	case b.invalid:
		return ""
	case !b.limits.Over(b.context):
		return OutcomeBelowThreshold
	case s.CoolingDown:
		return OutcomeCooldown
	}
	return ""
}

// measure records what the view would hold after the change.
func (a *attempt) measure(c store.Change) {
	a.ledger.MessagesAfter = a.ledger.MessagesBefore + c.DeltaMessages + int64(len(c.Plan.Additions))
	a.ledger.TokensAfter = a.ledger.TokensBefore + c.DeltaTokens
	for _, add := range c.Plan.Additions {
		a.ledger.TokensAfter += int64(add.Tokens)
	}
}

// verdict returns why a planned change is not applied, or "".
func (a *attempt) verdict(b *briefing, r pipeline.Result) string {
	options := a.claim.Options
	// That is no failure: asking again changes nothing.
	a.unsummarized = slices.ContainsFunc(r.Steps, func(s pipeline.Step) bool {
		return s.NoSummary != "" && s.NoSummary != codeTooLarge && s.NoSummary != codeNothingNew
	})
	switch {
	case r.Plan.Empty() && a.unsummarized:
		return OutcomeNoSummary
	case r.Plan.Empty() && b.automatic():
		return OutcomeFloorAboveTrigger
	case r.Plan.Empty():
		return OutcomeNothingToCompact
	case options.DryRun:
		return OutcomeDryRun
	case b.invalid, options.AllowGrowth:
		return ""
	case a.gain < 0, a.ledger.TokensAfter > a.ledger.TokensBefore: // with the margin, and without
		return OutcomeWouldGrow
	case a.gain < b.policy.MinGainTokens && a.unsummarized:
		return OutcomeNoSummary
	case a.gain < b.policy.MinGainTokens && !b.automatic():
		return OutcomeNothingToCompact
	case a.gain < b.policy.MinGainTokens:
		return OutcomeIneffective
	}
	return ""
}

func (a *attempt) apply(ctx context.Context, b *briefing, c store.Change) error {
	if b.repairOnly() {
		a.ledger.Kind = "repair"
	}
	after := b.context - a.gain
	settlement := b.settlement(after, a.claim.Session.Revision+1)
	switch {
	case b.limits.Over(after) && a.unsummarized:
		a.outcome = OutcomeNoSummary
		if b.automatic() {
			a.again(b, settlement)
		}
	case b.limits.Over(after):
		a.outcome = OutcomeFloorAboveTrigger
	case b.repairOnly() || b.invalid && a.gain < b.policy.MinGainTokens:
		a.outcome = OutcomeRepaired
	case after > b.limits.Target:
		a.outcome = OutcomeAboveTarget
	default:
		a.outcome = OutcomeApplied
	}
	a.ledger.Outcome = a.outcome
	a.ledger.TotalMicros = time.Since(a.start).Microseconds()
	c.Ledger = a.ledger
	c.PostRunState = *settlement
	if _, err := a.w.store.Apply(ctx, a.run, a.claim.Fence, c); err != nil {
		return err
	}
	a.w.probe(stepApplied)
	a.w.logger.LogAttrs(ctx, slog.LevelInfo, "run ended", a.attrs()...)
	return nil
}

// skip ends the run without a change.
func (a *attempt) skip(ctx context.Context, b *briefing, code string) error {
	a.outcome = code
	a.ledger.Outcome = code
	a.ledger.TotalMicros = time.Since(a.start).Microseconds()
	s := b.settlement(b.context, a.claim.Session.Revision)
	switch code {
	case OutcomeDryRun, OutcomeCooldown, OutcomeWaitingAfterUndo, OutcomeNothingToCompact:
		s = nil // says nothing about whether the session is due
	case OutcomeIneffective, OutcomeWouldGrow:
		if !b.automatic() { // it asked for something else than the policy
			s = nil
			break
		}
		s.Ineffective, s.CooldownSeconds = true, b.policy.Cooldown.Seconds()
	case OutcomeNoSummary:
		if !b.automatic() {
			s = nil
			break
		}
		a.again(b, s)
	}
	if err := a.w.store.Finish(ctx, a.claim, store.StatusSkipped, a.ledger, s); err != nil {
		return err
	}
	a.w.probe(stepRecorded)
	a.w.logger.LogAttrs(ctx, slog.LevelInfo, "run ended", a.attrs()...)
	return nil
}

// again has the session tried again without news: that a summary was not had is no
// decision, and worth another run once the model may have recovered. Each try may be paid
// for, so the same failure again is given twice as long.
func (a *attempt) again(b *briefing, s *store.PostRunState) {
	rest := min(a.rest<<min(a.claim.Session.IneffectiveRuns, mostDoublings), mostRest)
	s.DueTokens, s.CooldownSeconds, s.Ineffective = b.limits.Start, rest.Seconds(), true
	if !b.invalid { // that runs whatever the cooldown
		s.DecisionFingerprint = ""
	}
}

// settlement returns what the session is left with when its window holds that much: it
// is due again above the start, or where it could not be brought below that, once
// there is something to gain again.
func (b *briefing) settlement(context chat.Tokens, revision int64) *store.PostRunState {
	due := b.limits.Start
	if b.limits.Over(context) {
		due = context + max(b.policy.MinGainTokens, 1)
	}
	return &store.PostRunState{
		DueTokens: due, EstimateMargin: b.policy.EstimateMargin, PolicyHash: b.fleetHash, DecisionFingerprint: b.fingerprint(revision),
	}
}

// busy postpones a run whose session another worker is at.
func (a *attempt) busy(ctx context.Context) error {
	v := verdictOf(store.ErrBusy)
	n, err := a.w.store.Snooze(ctx, a.run, v.delay, v.code)
	if errors.Is(err, store.ErrNotFound) {
		return nil // this very run is running elsewhere, or over
	}
	if err == nil && n >= maxSnoozes {
		err = a.w.store.Abandon(ctx, a.run, v.code)
	}
	return err
}

// settle turns the error of an attempt into the run's next state, in Postgres
// where it can be reached. The context may be over, so it writes with its own.
func (a *attempt) settle(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	write, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.w.config.WriteTimeout)
	defer cancel()
	v := classify(err, a.claim.Failures, a.claim.Snoozes)
	var werr error
	switch v.action {
	case done:
		a.outcome = v.code
		a.w.logger.LogAttrs(ctx, slog.LevelInfo, "run was taken over", a.attrs()...)
		return nil
	case retry, snooze:
		werr = a.w.store.Requeue(write, a.run, a.claim.Fence, v.delay, v.action == retry, v.code, errorText(err))
		a.outcome = v.code
		a.w.logger.LogAttrs(ctx, slog.LevelWarn, "run postponed", a.attrs(slog.Duration("delay", v.delay), slog.String("error", errorText(err)))...)
	case discard:
		a.outcome = v.code
		text := errorText(err)
		a.ledger.Outcome, a.ledger.ErrorCode, a.ledger.Error = v.code, &v.code, &text
		a.ledger.TotalMicros = time.Since(a.start).Microseconds()
		if a.ledger.Kind == "" {
			a.ledger.Kind = "compact"
		}
		werr = a.w.store.Finish(write, a.claim, store.StatusFailed, a.ledger, nil)
		a.w.logger.LogAttrs(ctx, slog.LevelError, "run failed", a.attrs(slog.String("error", text))...)
	}
	if werr != nil && !errors.Is(werr, store.ErrNotApplicable) {
		return fmt.Errorf("record that the run ended %s: %w", v.code, werr)
	}
	return nil
}

// errorText returns an error for the ledger and the log. Errors here hold names and
// numbers, never content: the store maps the database's texts, a strategy's panic
// value is left out. What a custom strategy says is cleaned as far as that can be done.
func errorText(err error) string {
	s, _ := redact.Redact(err.Error())
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) { // Postgres holds no NUL, and a line stays one
			return ' '
		}
		return r
	}, s)
	if len(s) > 500 {
		s = s[:500]
	}
	return strings.ToValidUTF8(s, "")
}

// attrs returns what the one line of a run says, with more at its end.
func (a *attempt) attrs(more ...slog.Attr) []slog.Attr {
	return append([]slog.Attr{
		slog.Int64("run_id", a.run),
		slog.String("session_id", a.claim.Session.Key.Session),
		slog.String("tenant", a.claim.Session.Key.Tenant),
		slog.String("trigger", a.claim.Trigger),
		slog.String("outcome", a.outcome),
		slog.Int64("tokens_before", a.ledger.TokensBefore),
		slog.Int64("tokens_after", a.ledger.TokensAfter),
		slog.Int64("messages_before", a.ledger.MessagesBefore),
		slog.Int64("messages_after", a.ledger.MessagesAfter),
		slog.Duration("waited", a.start.Sub(a.claim.QueuedAt)),
		slog.Duration("plan", time.Duration(a.ledger.PlanMicros)*time.Microsecond),
		slog.Duration("took", time.Since(a.start)),
	}, more...)
}
