package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sessionstore/compactor/store"
)

// A sweep asks once for the rule of a kind of sessions, and again after an error. What the
// database truncates is not enqueued.
func TestASweepTruncatesByRulesThatItAsksFor(t *testing.T) {
	t.Parallel()
	for metric, enqueued := range map[string]int{"tokens": 0, "": 35} {
		t.Run("metric "+metric, func(t *testing.T) {
			bubble(t, func(b *bench) {
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
				if started, err := s.TriggerSweep(b.t.Context()); !started || err != nil {
					b.t.Fatal(started, err)
				}
				b.store.mu.Lock()
				b.store.sweeps[0].due = 35
				b.store.mu.Unlock()
				b.pass(time.Minute)
				o.mu.Lock()
				defer o.mu.Unlock()
				if o.taken[ReasonSweep] != enqueued || o.truncated != 35-enqueued || asked.Load() != 2 {
					b.t.Errorf("%d runs were enqueued and %d truncated, after %d questions", o.taken[ReasonSweep], o.truncated, asked.Load())
				}
			})
		})
	}
}

// manyModels is a store whose pages of a sweep have sessions of many models.
type manyModels struct {
	*fakeStore
	t     *testing.T
	pages [][]store.SessionKind
	calls int // for the first of the pages
}

func (m *manyModels) SweepTogether(_ context.Context, _ int64, _ int, _ time.Duration, rules []store.Truncation, _ string) (p store.SweptPage, err error) {
	if m.calls++; m.calls > 3 {
		m.t.Fatal("the rules of a page are forgotten before it is decided")
	}
	known := map[store.SessionKind]bool{}
	for _, r := range rules {
		known[r.SessionKind] = true
	}
	for _, k := range m.pages[0] {
		if !known[k] {
			p.Unknown = append(p.Unknown, k)
		}
	}
	if len(p.Unknown) == 0 {
		p.Ended = len(m.pages[0])
		m.pages, m.calls = m.pages[1:], 0
	}
	return p, nil
}

func TestAPageWithManyModelsIsDecided(t *testing.T) {
	bubble(t, func(b *bench) {
		kinds := make([]store.SessionKind, 3*maxRules)
		for i := range kinds {
			kinds[i] = store.SessionKind{Policy: "default", Model: fmt.Sprintf("model-%d", i)}
		}
		m := &manyModels{fakeStore: b.store, t: t, pages: [][]store.SessionKind{kinds[:2*maxRules], kinds[maxRules:], kinds}}
		c := b.config("one")
		c.Truncation = func(_ context.Context, k store.SessionKind) (store.Truncation, error) {
			return store.Truncation{SessionKind: k, Metric: "tokens"}, nil
		}
		s, err := New(m, b.queue, c)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, want := range []int{2 * maxRules, 2 * maxRules, 3 * maxRules} {
			if n, err := s.sweepPage(b.t.Context(), store.Sweep{ID: 1}, s.newCredit(store.TriggerNightly)); n != want || err != nil {
				b.t.Fatalf("%d sessions were decided (%v), want %d", n, err, want)
			}
		}
	})
}
