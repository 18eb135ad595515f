package scheduler

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sessionstore/compactor/store"
)

// A sweep asks once for the rule of a kind of sessions, and again after an error. What the
// database truncates is not enqueued.
func TestASweepTruncatesByRulesThatItAsksFor(t *testing.T) {
	t.Parallel()
	for metric, enqueued := range map[string]int{"tokens": 0, "": 35} {
		t.Run("metric "+metric, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				o := &watcher{taken: map[string]int{}}
				var asked atomic.Int64
				c := b.config("one")
				c.Observer = o
				c.Truncation = func(_ context.Context, k store.SessionKind) (store.Truncation, error) {
					if asked.Add(1) == 1 {
						return store.Truncation{}, errors.New("the database is away")
					}
					return store.Truncation{SessionKind: k, Metric: metric}, nil
				}
				s := b.new(c)
				defer b.start(s)()
				if started, err := s.TriggerSweep(t.Context()); !started || err != nil {
					t.Fatal(started, err)
				}
				b.store.mu.Lock()
				b.store.sweeps[0].due = 35
				b.store.mu.Unlock()
				b.pass(time.Minute)
				o.mu.Lock()
				defer o.mu.Unlock()
				if o.taken[ReasonSweep] != enqueued || o.truncated != 35-enqueued || asked.Load() != 2 {
					t.Errorf("%d runs were enqueued and %d truncated, after %d questions", o.taken[ReasonSweep], o.truncated, asked.Load())
				}
			})
		})
	}
}
