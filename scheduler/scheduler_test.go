package scheduler

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
)

func TestOneOfTwoSchedulersWorks(t *testing.T) {
	bubble(t, func(b *bench) {
		stopA, stopB := b.start(b.new(b.config("a"))), b.start(b.new(b.config("b")))
		b.pass(2 * time.Minute)
		b.check(b.store.leader() == "a", "%q leads", b.store.leader())
		relayed := b.store.count("relay")
		b.check(relayed > 115 && relayed < 125, "relayed %d times in 120 s", relayed)
		b.check(len(b.log.lines("standing by")) == 1, "standing by is not told once")
		stopA()
		stopB()
	})
}

func TestShutdownResignsSoThatAnotherTakesOverAtOnce(t *testing.T) {
	bubble(t, func(b *bench) {
		stopA, stopB := b.start(b.new(b.config("a"))), b.start(b.new(b.config("b")))
		b.pass(time.Minute)
		stopA()
		b.check(b.store.leader() == "", "%q still leads", b.store.leader())
		b.pass(6 * time.Second)
		b.check(b.store.leader() == "b", "%q leads", b.store.leader())
		stopB()
	})
}

func TestALeaderThatDiesIsSucceededWhenItsLeaseHasExpired(t *testing.T) {
	bubble(t, func(b *bench) {
		stopA, stopB := b.start(b.new(b.config("a"))), b.start(b.new(b.config("b")))
		b.pass(time.Minute)
		b.store.with(func() {
			b.store.fail = func(op string) error { // a can neither renew its lease nor give it up
				if strings.HasSuffix(op, " a") {
					return store.ErrUnavailable
				}
				return nil
			}
		})
		stopA()
		b.check(b.store.leader() != "b", "%q leads before the lease has expired", b.store.leader())
		b.pass(20*time.Second + time.Millisecond) // the lease of 15 s, and b asks three times in that time
		b.check(b.store.leader() == "b", "%q leads", b.store.leader())
		stopB()
	})
}

func TestShutdownWhileTheDatabaseHangsEndsSoon(t *testing.T) {
	bubble(t, func(b *bench) {
		stop := b.start(b.new(b.config("a")))
		b.pass(time.Minute)
		b.store.with(func() { b.store.fail = func(string) error { return store.ErrUnavailable } })
		b.pass(time.Second)
		began := time.Now()
		stop()
		b.check(time.Since(began) <= resignTimeout, "took %s", time.Since(began))
		b.check(len(b.log.lines("lease not released")) == 1, "not told")
	})
}

func TestALostLeadStopsTheLoops(t *testing.T) {
	bubble(t, func(b *bench) {
		b.start(b.new(b.config("a")))
		b.pass(time.Minute)
		b.store.with(func() { b.store.holder, b.store.expires = "b", time.Now().Add(time.Hour) })
		b.pass(6 * time.Second)
		before := b.store.count("relay") + b.store.count("open sweeps")
		b.pass(30 * time.Minute)
		b.check(before == b.store.count("relay")+b.store.count("open sweeps"), "the loops went on")
		b.check(len(b.log.lines("lead lost, pausing")) == 1, "not told once")
		b.pass(31 * time.Minute)
		b.check(b.store.leader() == "a", "the lease of b expired, and %q leads", b.store.leader())
	})
}

func TestALeaderThatCannotRenewStopsBeforeItsLeaseExpires(t *testing.T) {
	bubble(t, func(b *bench) {
		b.start(b.new(b.config("a")))
		b.pass(time.Minute)
		b.store.with(func() {
			b.store.fail = func(op string) error {
				if strings.HasPrefix(op, "lead") {
					return store.ErrUnavailable
				}
				return nil
			}
		})
		for b.store.leader() == "a" && len(b.log.lines("lead lost")) == 0 {
			b.pass(100 * time.Millisecond)
		}
		b.check(time.Now().Before(b.store.expires), "the lease had expired %s before", time.Since(b.store.expires))
		before := b.store.count("relay")
		b.pass(time.Minute)
		b.check(b.store.count("relay") == before, "the relay went on")
		b.store.with(func() { b.store.fail = nil })
		b.pass(10 * time.Second)
		b.check(b.store.count("relay") > before, "it did not lead again")
	})
}

func TestAnOutageOfTheDatabaseIsWaitedOutWithOneLineEachWay(t *testing.T) {
	bubble(t, func(b *bench) {
		b.start(b.new(b.config("a")))
		b.pass(time.Minute)
		b.store.with(func() { b.store.fail = func(string) error { return store.ErrUnavailable } })
		b.pass(time.Second)
		b.store.with(func() { b.store.calls = nil })
		b.pass(5 * time.Minute)
		var tries int
		b.store.with(func() { tries = len(b.store.calls) })
		// After the lead has gone, one call every five seconds.
		b.check(tries > 50 && tries < 120, "%d calls in five minutes", tries)
		b.store.with(func() { b.store.fail, b.store.outbox = nil, 3 })
		b.pass(10 * time.Second)
		b.check(len(b.queue.runs()) == 3, "runs enqueued for: %v", b.queue.runs())
		b.check(len(b.log.lines("database unavailable, retrying")) == 1, "going is not told once")
		b.check(len(b.log.lines("database is back")) == 1, "coming back is not told once")
	})
}

func TestAStoreThatIsAwayAtTheStartIsWaitedFor(t *testing.T) {
	bubble(t, func(b *bench) {
		b.store.fail = func(string) error { return store.ErrNotMigrated }
		b.start(b.new(b.config("a")))
		b.pass(150 * time.Second)
		b.check(len(b.log.lines("database call failed, retrying")) == 3, "not told once a minute")
		b.store.with(func() { b.store.fail = nil })
		b.pass(6 * time.Second)
		b.check(b.store.leader() == "a", "%q leads", b.store.leader())
	})
}

func TestThePolicyIsSavedAndTakenToAllSessions(t *testing.T) {
	bubble(t, func(b *bench) {
		b.store.stale, b.store.revision = 25, 1
		b.start(b.new(b.config("a")))
		b.pass(time.Second)
		b.check(slices.Equal(b.store.saved, []string{policy.Default().FleetHash()}), "saved %v", b.store.saved)
		b.check(b.store.left() == 0 && b.store.count("refresh") == 3, "%d stale after %d pages", b.store.left(), b.store.count("refresh"))
		b.pass(time.Minute)
		b.check(b.store.count("refresh") == 3 && b.store.count("save policy") == 1, "sessions were searched though nothing had changed")
		b.store.with(func() { b.store.stale, b.store.locked, b.store.revision = 12, 1, 2 })
		b.pass(policyPoll + time.Second)
		b.check(b.store.left() == 1, "%d stale, want the locked one", b.store.left())
		b.pass(passPause)
		b.check(b.store.left() == 0, "a session that was locked was left")
	})
}

func TestNamedPoliciesGetTheirThresholds(t *testing.T) {
	bubble(t, func(b *bench) {
		p := policy.Default()
		p.StartTokens, p.TargetTokens = 4000, 2000
		spec, err := policy.Spec(p)
		if err != nil {
			b.t.Fatal(err)
		}
		b.store.policies = []store.PolicyVersion{{Name: "newer", Version: 1, Spec: []byte(`{"a_setting_of_tomorrow": 1}`)}, {Name: "support", Version: 3, Spec: spec}}
		b.start(b.new(b.config("a")))
		b.pass(time.Second)
		b.check(slices.Equal(b.store.saved, []string{policy.Default().FleetHash(), "support@3 4000"}), "saved %v", b.store.saved)
		b.check(len(b.log.lines("newer@1")) == 1, "a policy that cannot be read is not logged once")
		b.store.with(func() { b.store.policies, b.store.revision = b.store.policies[1:], 1 })
		b.pass(policyPoll)
		b.check(len(b.store.saved) == 4, "saved %v", b.store.saved)
	})
}

func TestOldRunsArePurgedUnlessAllAreKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for keep, left := range map[time.Duration]int{0: 25, 1000 * time.Hour: 0} {
			b := newBench(t)
			b.store.oldRuns, b.store.keepRuns = 25, keep
			c := b.config("a")
			c.KeepRuns = keep
			stop := b.start(b.new(c))
			b.pass(time.Second)
			b.check(b.store.oldRuns == left, "%d left with %s, want %d", b.store.oldRuns, keep, left)
			stop()
		}
	})
}

func TestOldAnswersAreForgotten(t *testing.T) {
	bubble(t, func(b *bench) {
		b.store.oldAnswers = 25
		b.start(b.new(b.config("a")))
		b.pass(time.Second)
		b.check(b.store.oldAnswers == 0 && b.store.count("purge") == 3, "%d left after %d pages", b.store.oldAnswers, b.store.count("purge"))
		b.store.with(func() { b.store.oldAnswers = 1 })
		b.pass(purgeInterval)
		b.check(b.store.oldAnswers == 0, "an answer that became old later was kept")
	})
}

// watcher is an Observer that remembers.
type watcher struct {
	mu        sync.Mutex
	leads     []bool
	taken     map[string]int
	expired   int
	archived  int64
	truncated int
	disk      store.DiskUse
}

func (o *watcher) Leading(leading bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.leads = append(o.leads, leading)
}

func (o *watcher) Took(reason string, runs int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.taken[reason] += runs
}

func (o *watcher) Truncated(runs int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.truncated += runs
}

func (o *watcher) Archived(a store.ArchiveStats) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.archived += a.Messages
}

func (*watcher) Purged(int64) {}

func (o *watcher) DiskUsed(use store.DiskUse, _ policy.Bytes) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.disk = use
}

func (o *watcher) Expired(runs int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.expired += runs
}

func TestTheObserverIsToldOfTheLeadAndOfRuns(t *testing.T) {
	bubble(t, func(b *bench) {
		b.store.outbox, b.store.lost, b.store.orphans, b.store.unattempted = 3, 4, 5, 6
		o := &watcher{taken: map[string]int{}}
		cfg := b.config("a")
		cfg.Observer = o
		stop := b.start(b.new(cfg))
		b.pass(15 * time.Second)
		stop()
		b.check(slices.Equal(o.leads, []bool{true, false}), "leads %v", o.leads)
		b.check(o.taken[ReasonEvent] == 3 && o.taken[ReasonForgotten] == 4 && o.taken[ReasonOrphaned] == 5, "taken %v", o.taken)
		b.check(len(b.log.lines(`msg="runs enqueued" reason="their sessions were due without a run, as after an import`)) == 1, "not told once")
		b.check(len(b.log.lines(`msg="runs enqueued" reason="their workers are gone" runs=5`)) == 1, "not told once")
		b.check(o.expired == 6, "expired %d", o.expired)
	})
}

func TestWhatNoWorkerEndsIsEnded(t *testing.T) {
	bubble(t, func(b *bench) {
		b.store.unattempted, b.store.lostCalls = 25, 25
		b.start(b.new(b.config("a")))
		b.pass(time.Second)
		b.check(b.store.unattempted == 0 && b.store.count("expire") == 3, "%d runs left after %d pages", b.store.unattempted, b.store.count("expire"))
		b.check(b.store.lostCalls == 0 && b.store.count("lose calls") == 3, "%d calls left after %d pages", b.store.lostCalls, b.store.count("lose calls"))
		b.store.with(func() { b.store.unattempted, b.store.lostCalls = 1, 1 })
		b.pass(purgeInterval)
		b.check(b.store.unattempted == 0 && b.store.lostCalls == 0, "a later run or call was left")
	})
}

func TestThresholdsFollowTheModel(t *testing.T) {
	t.Parallel()
	p := policy.Default()
	p.Windows = map[string]chat.Tokens{"House-": 1000}
	window := func(model string) (int, bool) { return 8000, strings.HasPrefix(model, "small") }
	got := Thresholds(p, []string{"small", "small"}, window, nil)
	want := []store.Threshold{
		{ModelPrefix: "", DueTokens: 96_000, EstimateMargin: 0.1},
		{ModelPrefix: "house-", DueTokens: 750, EstimateMargin: 0.1},
		{ModelPrefix: "small", DueTokens: 6000, EstimateMargin: 0.1},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
}

func TestAConfigurationIsRefusedWithAllItsFaults(t *testing.T) {
	t.Parallel()
	_, err := New(&fakeStore{}, &fakeQueue{}, Config{RelayInterval: -1, PageSize: -1, LeaderTTL: time.Millisecond})
	if err == nil {
		t.Fatal("taken")
	}
	for _, part := range []string{"relay_interval", "page_size", "leader_ttl", "policy"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not named in: %v", part, err)
		}
	}
	if _, err := New(&fakeStore{}, &fakeQueue{}, Config{Policy: policy.Default()}); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
}

func TestOnlyTheContextEndsARetry(t *testing.T) {
	bubble(t, func(b *bench) {
		s := b.new(b.config("a"))
		ctx, cancel := context.WithTimeout(b.t.Context(), time.Hour)
		defer cancel()
		_, err := retry(ctx, s, "test", func(context.Context) (int, error) { return 0, errors.New("no") })
		b.check(errors.Is(err, context.DeadlineExceeded), "got %v", err)
		b.check(len(b.log.lines("op=test")) <= 61, "a storm of %d lines", len(b.log.lines("op=test")))
	})
}
