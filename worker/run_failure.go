package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"go.opentelemetry.io/otel/trace"

	"github.com/sessionstore/compactor/store"
)

// unrecordedError is the error of an attempt whose outcome could not be written. A run
// that was claimed still is, under fence.
type unrecordedError struct {
	error
	fence int64
}

func (e *unrecordedError) Unwrap() error { return e.error }

// recordFailure writes the state that follows from the error of an attempt: the run is
// requeued or ends. Its own timeout replaces that of ctx, which may have ended. The error
// is an *unrecordedError. again is that of try.
func (a *attempt) recordFailure(ctx context.Context, err error) (again bool, _ error) {
	if err == nil {
		return false, nil
	}
	write, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.w.config.WriteTimeout)
	defer cancel()
	v := classify(err, a.claim.Failures, a.claim.Snoozes)
	text := errorText(err)
	a.outcome = v.code
	if v.action == retry || v.action == discard {
		failSpan(trace.SpanFromContext(a.startSpan(ctx)), v.code)
	}
	postponed := slog.LevelWarn
	if errors.Is(err, store.ErrUnavailable) {
		a.w.database.Failed(text) // one line for all runs
		postponed = slog.LevelDebug
	}
	var werr error
	switch v.action {
	case done:
		a.w.logger.LogAttrs(ctx, slog.LevelInfo, "run was taken over", a.attrs()...)
	case retry, snooze:
		werr = a.w.store.Requeue(write, a.claim.Run, a.claim.Fence, v.delay, v.action == retry, v.code, text)
		a.w.logger.LogAttrs(ctx, postponed, "run postponed", a.attrs(slog.Duration("delay", v.delay), slog.String("error", text))...)
	case discard:
		a.end(v.code)
		a.ledger.ErrorCode, a.ledger.Error = &v.code, &text
		werr = a.w.store.Finish(write, a.claim, store.StatusFailed, a.ledger, nil)
		a.w.logger.LogAttrs(ctx, slog.LevelError, "run failed", a.attrs(slog.String("error", text))...)
	case overtaken:
		if a.replan {
			again = true
			werr = a.w.giveBack(write, a.claim.Run, a.claim.Fence, v.code)
			a.w.logger.LogAttrs(ctx, slog.LevelInfo, "run is planned again", a.attrs()...)
			break
		}
		text = overtakenText
		a.end(v.code)
		a.ledger.ErrorCode, a.ledger.Error = &v.code, &text
		werr = a.w.store.Finish(write, a.claim, store.StatusSkipped, a.ledger, nil)
		a.w.logger.LogAttrs(ctx, slog.LevelWarn, "run ended", a.attrs(slog.String("error", text))...)
	}
	switch {
	case werr == nil && v.action == overtaken && !again:
		a.observe(store.StatusSkipped)
	case werr == nil:
		a.observe(v.result())
	case errors.Is(werr, store.ErrNotApplicable):
		a.observe(ResultLost)
	default:
		a.endSpan(resultUnrecorded)
		return false, &unrecordedError{fmt.Errorf("record that the run ended %s: %w", v.code, werr), a.claim.Fence}
	}
	return again, nil
}
