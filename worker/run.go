package worker

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/semaphore"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
)

// The failpoints of a run, in order.
const (
	stepClaimed  = "claimed"
	stepAnswered = "answered" // a model answered
	stepStored   = "stored"   // its answer is stored
	stepPlanned  = "planned"
	stepChecked  = "checked"
	stepApplied  = "applied"
	stepRecorded = "recorded"
)

// execute executes one delivery of a run. A plan that a change of the view has overtaken is made
// again at once, maxReplans times and for replanTime at most; then the run ends as stale. It returns
// nil when the run has ended or is back in the queue, and an error when neither could be written to
// Postgres, so that asynq has to deliver the task again.
func (w *Worker) execute(ctx context.Context, run store.RunID) error {
	began := time.Now()
	for n := 1; ; n++ {
		again, err := w.try(ctx, run, n <= maxReplans && time.Since(began) < replanTime)
		if err != nil || !again {
			return err
		}
	}
}

// try makes an attempt at a run. again reports that its plan was overtaken, and that the run, which
// this worker gave back if it had claimed it, is to be planned anew, which replan allows.
func (w *Worker) try(ctx context.Context, run store.RunID, replan bool) (again bool, err error) {
	a := &attempt{w: w, start: time.Now(), replan: replan}
	defer a.release()
	a.runContext, err = w.claim(ctx, run)
	a.loaded = time.Now()
	switch {
	case errors.Is(err, store.ErrNotFound):
		return false, nil // a late or duplicate delivery: the run has ended or is being executed
	case errors.Is(err, store.ErrBusy):
		return false, w.snooze(ctx, run)
	case err != nil:
		return false, err
	}
	stop := func(error) {}
	if a.claim.Fence > 0 {
		ctx, stop = w.keepLease(ctx, a.claim)
	}
	err = a.work(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause // more specific than the error that the cancellation led to
	}
	stop(nil)
	return a.recordFailure(ctx, err)
}

// claim loads a run, and claims it if its execution takes long or its last worker is
// gone. A short run is not claimed: two concurrent deliveries of it both plan, and
// Apply and Finish let only one of them end the run.
func (w *Worker) claim(ctx context.Context, run store.RunID) (*runContext, error) {
	c, err := w.store.Load(ctx, run)
	if err == nil && c.Trigger == store.TriggerOperator && w.config.Refresh != nil {
		changed, failed := w.config.Refresh(ctx, c.Session.Key)
		if failed != nil {
			w.logger.WarnContext(ctx, "session not refreshed before its run", "run", run, "error", failed)
		}
		if changed {
			c, err = w.store.Load(ctx, run)
		}
	}
	if err != nil {
		return nil, err
	}
	rc, short, err := w.loaded(ctx, c)
	if err != nil || short {
		return rc, err
	}
	if c, err = w.store.Claim(ctx, run, w.config.Name, w.config.Lease); err != nil {
		return nil, err
	}
	of, err := w.planner.policyOf(ctx, w.store, &c.Session)
	if err != nil {
		return nil, &unrecordedError{err, c.Fence} // claimed: it goes back to the queue
	}
	claimed := w.planner.newRunContext(c, of)
	claimed.held, claimed.heldFor = rc.held, rc.heldFor
	return claimed, nil
}

// loaded returns the context of a loaded run, and whether it is short: needs no claim.
func (w *Worker) loaded(ctx context.Context, c *store.Claim) (rc *runContext, short bool, err error) {
	of, err := w.planner.policyOf(ctx, w.store, &c.Session)
	if err != nil {
		return nil, false, err
	}
	rc = w.planner.newRunContext(c, of)
	if err := rc.limitRate(ctx, w.store); err != nil {
		return nil, false, err
	}
	return rc, !c.Orphaned && !w.planner.needsClaim(rc), nil
}

// snooze postpones a run whose session is locked by the run of another worker, and
// abandons it after maxSnoozes.
func (w *Worker) snooze(ctx context.Context, run store.RunID) error {
	v := classificationOf(store.ErrBusy)
	n, err := w.store.Snooze(ctx, run, v.delay, v.code)
	if errors.Is(err, store.ErrNotFound) {
		return nil // the run itself has ended or is being executed
	}
	result := ResultPostponed
	if err == nil && n >= maxSnoozes {
		result, err = store.StatusSkipped, w.store.Abandon(ctx, run, v.code)
	}
	if err == nil {
		w.config.Observer.Attempted(Attempt{Result: result, Code: v.code})
	}
	return err
}

// attempt is the execution of one delivery of a run.
type attempt struct {
	*runContext
	w             *Worker
	start, loaded time.Time
	replan        bool       // the run is planned again if its plan is overtaken
	together      bool       // with other runs: see executeTogether
	span          trace.Span // nil before startSpan
	reserved      int64
	reservedOf    *semaphore.Weighted // of which reserved was taken: see reserve

	outcome string
	ledger  store.Ledger
	spent   spending
	// gain is the size that the plan saves, in real tokens, with the margin on estimated
	// counts, and leaves the context that it leaves.
	gain, leaves chat.Tokens
	// cooldown is how long automatic runs leave the session alone after a missing summary.
	cooldown time.Duration
	// unsummarized reports that a strategy got no summary, but a later run may get one.
	unsummarized bool
	// limited reports that this was for a limit of spending.
	limited bool
}

// work plans, checks and applies. The outcome is written, unless it returns an error.
func (a *attempt) work(ctx context.Context) error {
	change, code, err := a.decide(ctx)
	switch {
	case err != nil:
		return err
	case code != "":
		return a.skip(ctx, code)
	}
	if err := a.apply(ctx, change); err != nil {
		return err
	}
	a.applied(ctx)
	return nil
}

// apply applies the change of a run that is executed alone.
func (a *attempt) apply(ctx context.Context, change store.Change) error {
	ctx, span := a.w.tracer.Start(trace.ContextWithSpan(ctx, a.span), "apply")
	defer span.End()
	_, err := a.w.store.Apply(ctx, a.claim.Run, a.claim.Fence, change)
	if err != nil {
		failSpan(span, classificationOf(err).code)
	}
	return err
}

// decide plans and checks. It returns the change to apply, or the outcome of a run that makes
// none.
func (a *attempt) decide(ctx context.Context) (change store.Change, code string, err error) {
	a.w.failpoint(stepClaimed)
	a.begin()
	if a.policyErr != nil {
		a.ledger.PolicyHash = nil
		return change, "", a.policyErr
	}
	if err := a.savePolicy(ctx); err != nil {
		return change, "", err
	}
	if a.claim.OptionsError != nil {
		return change, "", a.claim.OptionsError
	}
	if a.claim.Paused && !a.automatic() {
		return change, "", errPaused
	}
	if code := a.guards(); code != "" {
		return change, code, nil
	}
	if !a.together {
		ctx = a.startSpan(ctx)
	}
	result, change, err := a.plan(ctx)
	if err != nil {
		return change, "", err
	}
	if code := a.skipReason(result); code != "" {
		return change, code, nil
	}
	a.w.failpoint(stepChecked)
	a.complete(&change)
	return change, "", nil
}

// begin sets the fields of the ledger that every run has.
func (a *attempt) begin() {
	s := &a.claim.Session
	a.ledger = store.Ledger{
		Kind: "compact", Worker: a.w.config.Name, PolicyHash: &a.hash, Utilization: a.limits.Utilization(a.context),
		Policy: s.Policy, PolicyVersion: &s.PolicyVersion, Fired: a.fired,
		MessagesBefore: s.LiveMessages, MessagesAfter: s.LiveMessages,
		TokensBefore: int64(s.LiveTokens), TokensAfter: int64(s.LiveTokens),
	}
}

// plan plans the run and records its steps. It writes nothing but the answers of models
// to a claimed run.
func (a *attempt) plan(ctx context.Context) (result pipeline.Result, change store.Change, err error) {
	if err := a.buildTranscript(ctx, a.w.store); err != nil {
		return result, change, err
	}
	if err := a.reserve(ctx); err != nil {
		return result, change, err
	}
	if a.built == nil {
		a.log = a.w.logger.With(slog.Int64("run_id", a.claim.Run), slog.String("session_id", a.claim.Session.Key.Session), slog.String("tenant", a.claim.Session.Key.Tenant))
		built, writers, err := a.w.planner.pipeline(a.runContext, a.answers())
		if err != nil {
			return result, change, err
		}
		a.built, a.writers = &built, writers
	}
	t := &plan.Transcript{Entries: a.entries, Counter: a.w.planner.Counter(a.claim.Session.Model), Originals: a.originals, Ended: !a.claim.Session.CallsOpen}
	load := func(ctx context.Context, seqs []chat.Seq) (map[chat.Seq]*chat.Message, error) {
		return a.w.store.Messages(ctx, a.claim.Session.SID, seqs)
	}
	result, err = a.built.Run(ctx, t, load)
	if err == nil && !a.claim.Options.AllowGrowth {
		result, err = a.built.LimitGrowth(ctx, t, load, result, a.lessGain)
		if err == nil && result.WouldGrow && len(a.awaited) > 0 { // it comes back all the same
			result, err = pipeline.Pipeline{Guard: a.built.Guard, FreeReasoning: a.built.FreeReasoning}.Run(ctx, t, load)
		}
	}
	if err != nil {
		return result, change, err
	}
	a.writers.Report(result.Steps)
	a.ledger.PlanMicros = time.Since(a.start).Microseconds()
	a.ledger.Steps = result.Steps
	a.w.failpoint(stepPlanned)

	change = a.change(result.Plan)
	result.Plan = change.Plan
	a.measure(&result, change)
	return result, change, nil
}

// originals implements plan.Originals on the session of the run.
func (a *attempt) originals(ctx context.Context, of []chat.Seq, most int64) (iter.Seq2[chat.Original, error], []*chat.Message, error) {
	return a.w.store.Originals(ctx, a.claim.Session.SID, a.claim.Session.LastSeq, of, pipeline.ReasonFallback, most)
}

// savePolicy saves the policy that the ledger refers to, once per process and policy.
func (a *attempt) savePolicy(ctx context.Context) error {
	if _, saved := a.w.policies.Load(a.hash); saved {
		return nil
	}
	pol := a.policy
	pol.EstimateMargin = a.margin
	err := a.w.store.EnsurePolicy(ctx, a.hash, a.claim.Session.PolicyTenant, policySpec(pol, a.ofModel))
	if err == nil {
		a.w.policies.Store(a.hash, true)
	}
	return err
}

// measure records the effect of the change on the view, and missing summaries.
func (a *attempt) measure(r *pipeline.Result, c store.Change) {
	a.ledger.MessagesAfter = a.ledger.MessagesBefore + c.DeltaMessages + int64(len(c.Plan.Additions))
	messages, _ := a.reasoning(c.Plan)
	a.ledger.MessagesAfter -= messages
	planned, stored := a.gains(r, c)
	a.gain, a.leaves = a.real(planned), a.after(planned, stored)
	a.ledger.TokensAfter = a.ledger.TokensBefore - int64(stored)
	a.cooldown = a.cooldownAfter(r.Steps)
	a.limited = slices.ContainsFunc(r.Steps, func(s pipeline.StepResult) bool { return s.NoSummary == CodeSpendingLimit })
	a.ledger.ErrorCode = modelFailure(r.Steps)
	a.unsummarized = slices.ContainsFunc(r.Steps, func(s pipeline.StepResult) bool {
		return s.NoSummary != "" && s.NoSummary != codeTooLarge && s.NoSummary != codeNothingNew
	})
}
