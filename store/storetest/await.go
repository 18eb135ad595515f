package storetest

import (
	"context"
	"testing"
	"time"
)

// reserve is the time left for cleanup and for the other tests' reports when a wait is given up.
const reserve = 20 * time.Second

// Await calls so until it reports true. It gives up, and fails the test, shortly before the test binary's own deadline
// (go test -timeout): on a busy machine anything may take long, and no test should fail for that. It must be called from
// the goroutine of the test.
func Await(t testing.TB, what string, so func() bool) {
	t.Helper()
	end := Context(t).Done()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-end:
			t.Fatalf("waited in vain until %s", what)
		case <-tick.C:
		}
	}
}

// Context returns a context that ends shortly before the test binary's deadline, for calls that would otherwise hang. It
// is usable in cleanups, where t.Context() has ended.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	if timed, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if deadline, set := timed.Deadline(); set {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, deadline.Add(-min(reserve, time.Until(deadline)/4)))
			t.Cleanup(cancel)
		}
	}
	return ctx
}
