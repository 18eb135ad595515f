package llm

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

func TestOneCallTriesWhenTheHoldEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &breaker{Breaker: Breaker{Failures: 2, Open: time.Minute}, log: slog.New(slog.DiscardHandler)}
		call := func(want bool) func(Class) {
			t.Helper()
			done, ok := b.allow()
			if ok != want {
				t.Fatalf("allowed %v, want %v; held until %s", ok, want, b.heldUntil())
			}
			return done
		}
		early, late := call(true), call(true)
		call(true)(Overloaded)
		call(true)(RateLimited) // a server that works
		call(true)(Overloaded)
		call(true)(Canceled) // counts neither for nor against the server
		call(true)(Overloaded)
		call(false)
		early("")        // began before the model was held back
		late(Overloaded) // and so did this one
		if left := time.Until(b.heldUntil()); left != time.Minute {
			t.Errorf("held back for %s", left)
		}
		call(false)

		<-time.After(time.Minute)
		trial := call(true)
		call(false)
		trial(Canceled) // says nothing, so the next one tries
		trial = call(true)
		trial(Timeout)
		call(false)

		<-time.After(time.Minute)
		call(true) // never ends
		call(false)
		<-time.After(time.Minute)
		trial = call(true)
		trial("")
		call(true)(Overloaded) // counts from the start
		call(true)
	})
}
