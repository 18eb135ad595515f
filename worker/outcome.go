package worker

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/redact"
	"github.com/sessionstore/compactor/strategies/summary"
)

// The outcomes of runs, as the ledger holds them. "Start" is the size at which a session
// is due, "baseline" the size of the messages that cannot be compacted.
const (
	OutcomeApplied           = "applied"                 // the view is within the target
	OutcomeRepaired          = "repaired"                // the view was invalid and is valid again
	OutcomeAboveTarget       = "above_target"            // applied, but the baseline exceeds the target
	OutcomeFloorAboveTrigger = "floor_above_trigger"     // the baseline exceeds the start: due again only after new messages
	OutcomeIneffective       = "ineffective"             // would gain less than the policy's minimum, or little for the second time in a row
	OutcomeNoSummary         = "no_summary"              // still above the start, or nothing gained, as no summary was produced; the steps name the reason
	OutcomeBelowThreshold    = "below_threshold"         // the session is not, or no longer, above the start
	OutcomeNotTriggered      = "not_triggered"           // no trigger of the policy holds; due again by the next write
	OutcomeNothingToCompact  = "nothing_to_compact"      // a requested run, or one that a trigger caused, found nothing to do
	OutcomeUnchanged         = "unchanged"               // nothing has changed since the last decision
	OutcomeWaitingAfterUndo  = "waiting_after_undo"      // an operator undid a run; automatic runs wait for a new message
	OutcomeCooldown          = "cooldown"                // too soon after an ineffective run, or one without its summary; decides nothing
	OutcomeWouldGrow         = "would_grow"              // the view would grow, and the options do not allow that
	OutcomeOpenToolLoop      = policy.CodeOpenToolLoop   // a tool loop is open, and its signed reasoning or the policy holds what precedes it; due again when it has ended
	OutcomeMinInterval       = policy.CodeMinInterval    // too soon after the last automatic run that changed the view
	OutcomeMaxPerHour        = policy.CodeMaxPerHour     // as many automatic runs in an hour as the policy allows
	OutcomeMaxPerDay         = policy.CodeMaxPerDay      // as many automatic runs in 24 hours as the policy allows
	OutcomeMidTurn           = policy.CodeMidTurn        // the agent has not answered the last message; due again when it has
	OutcomeServiceManaged    = policy.CodeServiceManaged // a service manages the history; automatic runs leave it alone
	OutcomePaused            = store.CodePaused          // an operator has paused the session; due again when it is resumed
	OutcomeStale             = "stale"                   // the view changed again and again while the run was planned
	OutcomeDryRun            = "dry_run"                 // planned and recorded only, as the options say; without that the plan would be applied
)

// The codes of missing summaries that another run would not get either: the summary would
// not be smaller than its source, or no message follows the last one.
const (
	codeTooLarge   = string(summary.CodeTooLarge)
	codeNothingNew = "nothing_new"
)

// action is the next step of a run after an attempt.
type action int

const (
	// done: the run has ended, or another worker executes it.
	done action = iota
	// retry: an error that may be temporary; at most maxFailures.
	retry
	// snooze: not an error of the run; at most maxSnoozes, without those for the budget of memory.
	snooze
	// overtaken: the view changed meanwhile. The run is planned again, and ends as skipped when that
	// was so several times in a row.
	overtaken
	// discard: a permanent error. The run ends as failed.
	discard
)

// classification is the consequence of an error. The ledger holds its code.
type classification struct {
	action action
	delay  time.Duration
	code   string
}

const (
	maxFailures = store.MaxFailures
	maxSnoozes  = 200
	busyDelay   = time.Second
	// An application that changes the view more often than a plan takes never lets one through; each
	// may ask a model.
	maxReplans = 5
	replanTime = 30 * time.Second
	// overtakenText is the error of a run that ends as stale.
	overtakenText = "the view was changed (replace_view, an undo or a pin) each time before the plan could be applied: request the run again when the application pauses"
	// minRetryDelay is added to each of retryDelays.
	minRetryDelay = 100 * time.Millisecond
)

// retryDelays are the delays between the attempts at a run that failed.
var retryDelays = backoff.Backoff{First: time.Second, Most: time.Minute, Jitter: true}

// ErrStopping is the cancellation cause of runs in flight when DrainTimeout is over. They
// return to the queue.
var ErrStopping = errors.New("worker is stopping")

// errPaused is the error of a requested run of a paused session.
var errPaused = errors.New("session is paused")

// errLost is the cancellation cause of a run that another worker has claimed.
var errLost = errors.New("lease lost")

// classify returns the consequence of the error of an attempt, from the error and the
// earlier failures and snoozes alone. Only classify decides about retries of runs.
func classify(err error, failures, snoozes int) classification {
	v := classificationOf(err)
	switch {
	case v.action == retry && failures+1 >= maxFailures:
		return classification{action: discard, code: v.code}
	case v.action == retry:
		v.delay = minRetryDelay + retryDelays.Delay(failures)
	case v.action == snooze && v.code != store.CodeReadBudget && snoozes+1 >= maxSnoozes:
		return classification{action: discard, code: v.code}
	}
	return v
}

// classificationOf returns the classification of the first attempt that ends with err.
func classificationOf(err error) classification {
	var strategy *pipeline.StrategyError
	switch {
	case err == nil:
		return classification{action: done}
	case errors.Is(err, errLost), errors.Is(err, store.ErrNotApplicable):
		return classification{action: done, code: "fenced"}
	case errors.Is(err, ErrStopping):
		return classification{action: snooze, code: "stopping"}
	case errors.Is(err, store.ErrStale):
		return classification{action: overtaken, code: OutcomeStale}
	case errors.Is(err, errPaused): // the scheduler delivers it when the session is resumed
		return classification{action: snooze, code: store.CodePaused}
	case errors.Is(err, errReadBudget):
		return classification{action: snooze, delay: budgetDelay, code: store.CodeReadBudget}
	case errors.Is(err, store.ErrBusy):
		return classification{action: snooze, delay: busyDelay, code: "busy"}
	case errors.As(err, &strategy) && !errors.Is(err, plan.ErrInterrupted):
		return classification{action: discard, code: strategy.Code()}
	case errors.Is(err, pipeline.ErrInvalidView):
		return classification{action: discard, code: "invalid_view"}
	case errors.Is(err, errPolicy):
		return classification{action: discard, code: "invalid_policy"}
	case errors.Is(err, ErrOptions), errors.Is(err, store.ErrInvalid):
		return classification{action: discard, code: "invalid_options"}
	case errors.Is(err, context.Canceled): // asynq's lease expired during an outage of Redis
		return classification{action: snooze, delay: busyDelay, code: "interrupted"}
	case errors.Is(err, context.DeadlineExceeded):
		return classification{action: retry, code: "timeout"}
	case errors.Is(err, store.ErrUnavailable):
		return classification{action: retry, code: "database_unavailable"}
	}
	return classification{action: retry, code: "internal"}
}

// errorText returns the text of an error for the ledger and the log: one line of at most
// 500 bytes, with secrets redacted. Errors of this program hold no content: the store
// replaces the database's messages, and a strategy's panic value is left out. Errors of
// custom strategies are only redacted.
func errorText(err error) string {
	s, _ := redact.Redact(err.Error())
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) { // Postgres rejects NUL
			return ' '
		}
		return r
	}, s)
	if len(s) > 500 {
		s = s[:500]
	}
	return strings.ToValidUTF8(s, "")
}
