package worker

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/pipeline"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	wrapped := func(err error) error { return fmt.Errorf("apply run 7: %w", err) }
	cases := map[string]struct {
		err               error
		failures, snoozes int
		action            action
		code              string
	}{
		"no error is done":                              {action: done},
		"a lost fence is somebody else's run":           {err: wrapped(store.ErrNotApplicable), action: done, code: "fenced"},
		"a lost lease is somebody else's run":           {err: errLost, action: done, code: "fenced"},
		"a stale plan is made again":                    {err: wrapped(store.ErrStale), action: overtaken, code: "stale"},
		"a busy session is tried later":                 {err: wrapped(store.ErrBusy), action: snooze, code: "busy"},
		"a stopping worker hands its runs back":         {err: ErrStopping, action: snooze, code: "stopping"},
		"snoozing has an end":                           {err: store.ErrBusy, snoozes: maxSnoozes - 1, action: discard, code: "busy"},
		"a database that is away is tried later":        {err: wrapped(store.ErrUnavailable), action: retry, code: "database_unavailable"},
		"a deadline is tried later":                     {err: context.DeadlineExceeded, action: retry, code: "timeout"},
		"what the queue calls off goes back to it":      {err: wrapped(context.Canceled), action: snooze, code: "interrupted"},
		"retrying has an end":                           {err: context.DeadlineExceeded, failures: maxFailures - 1, action: discard, code: "timeout"},
		"a panicking strategy is not tried again":       {err: &pipeline.StrategyError{Strategy: "x", Panic: true, Err: errors.New("boom")}, action: discard, code: "strategy_panicked"},
		"a failing strategy is not tried again":         {err: &pipeline.StrategyError{Strategy: "x", Err: errors.New("boom")}, action: discard, code: "strategy_failed"},
		"a plan that would break the view is dropped":   {err: wrapped(pipeline.ErrInvalidView), action: discard, code: "invalid_view"},
		"options without a meaning are not tried again": {err: wrapped(ErrOptions), action: discard, code: "invalid_options"},
		"anything else is tried a few times":            {err: errors.New("?"), action: retry, code: "internal"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := classify(c.err, c.failures, c.snoozes)
			if v.action != c.action || v.code != c.code {
				t.Errorf("got action %d with code %q, want %d with %q", v.action, v.code, c.action, c.code)
			}
			if v.action == retry && v.delay <= 0 {
				t.Error("a retry waits for nothing")
			}
		})
	}
}
