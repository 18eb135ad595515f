package scheduler

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
)

var errRedis = errors.New("connection refused")

// sweepOf starts a sweep over n due sessions.
func (b *bench) sweepOf(s *Scheduler, n int) {
	b.t.Helper()
	if fired, err := s.TriggerSweep(b.t.Context()); !fired || err != nil {
		b.t.Fatal(fired, err)
	}
	b.store.with(func() { b.store.sweeps[len(b.store.sweeps)-1].due = n })
}

func ids(n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(i + 1)
	}
	return out
}

func TestASweepEnqueuesAllDueSessions(t *testing.T) {
	bubble(t, func(b *bench) {
		s := b.new(b.config("a"))
		b.sweepOf(s, 95)
		b.start(s)
		b.pass(5 * time.Second)
		b.check(slices.Equal(b.queue.runs(), ids(95)), "enqueued: %v", b.queue.runs())
		ended := b.log.lines("sweep ended")
		b.check(len(ended) == 1 && strings.Contains(ended[0], "queued=95"), "told: %v", ended)
	})
}

func TestAPausedSweepIsLookedAtNowAndThen(t *testing.T) {
	bubble(t, func(b *bench) {
		s := b.new(b.config("a"))
		b.sweepOf(s, 5)
		b.store.sweeps[0].paused = true
		b.start(s)
		b.pass(10 * time.Second)
		n := b.store.count("sweep page")
		b.check(n > 0 && n <= 2*int(10*time.Second/creditPoll) && len(b.store.runs) == 0, "%d looks, %d runs", n, len(b.store.runs))
		b.store.with(func() { b.store.sweeps[0].paused = false })
		b.pass(time.Second)
		b.check(slices.Equal(b.queue.runs(), ids(5)), "enqueued: %v", b.queue.runs())
	})
}

func TestASweepThatWaitsForPoliciesHasNoPage(t *testing.T) {
	bubble(t, func(b *bench) {
		s := b.new(b.config("a"))
		b.sweepOf(s, 5)
		b.store.sweeps[0].Waits = true
		b.start(s)
		b.pass(10 * time.Second)
		b.check(b.store.count("sweep page") == 0 && len(b.store.runs) == 0, "%d pages, %d runs", b.store.count("sweep page"), len(b.store.runs))
		b.store.with(func() { b.store.sweeps[0].Waits = false })
		b.pass(time.Second)
		b.check(slices.Equal(b.queue.runs(), ids(5)), "enqueued: %v", b.queue.runs())
	})
}

func TestARestartedSweepGoesOnAtItsCursor(t *testing.T) {
	bubble(t, func(b *bench) {
		ctx, crash := context.WithCancel(b.t.Context())
		b.queue.fail = func(ctx context.Context, run int64) error {
			if run == 25 {
				crash()
			}
			return ctx.Err()
		}
		s := b.new(b.config("a"))
		b.sweepOf(s, 60)
		if err := s.Run(ctx); err != nil {
			b.t.Fatal(err)
		}
		b.check(b.store.sweeps[0].cursor == 30, "the cursor is at %d", b.store.sweeps[0].cursor)
		b.queue.setFail(nil)
		b.start(b.new(b.config("b")))
		b.pass(5 * time.Second)
		b.check(len(b.store.runs) == 60 && b.store.sweeps[0].ended, "%d runs", len(b.store.runs))
		b.check(strings.Contains(strings.Join(b.log.lines("sweep ended"), ""), "queued=60"), "the sweep's number is not whole")
		// Runs that the first did not enqueue are delivered after the grace period.
		b.pass(3 * time.Minute)
		b.check(slices.Equal(slices.Compact(b.queue.runs()), ids(60)), "enqueued: %v", b.queue.runs())
	})
}

func TestASweepQueuesWhatTheWorkersTakeInASecond(t *testing.T) {
	bubble(t, func(b *bench) {
		b.queue.slow = true
		cfg := b.config("a")
		cfg.PageSize = 500
		s := b.new(cfg)
		b.sweepOf(s, 100_000)
		b.start(s)
		b.pass(90 * time.Second)
		b.check(len(b.store.runs) == firstRate, "%d runs wait for workers that take none", len(b.store.runs))
		b.check(len(b.log.lines("waiting for workers")) == 1, "not told once")
		// work takes runs for 10 s and returns the most that waited in its second half.
		taken := 0
		work := func(perSecond int) (most int) {
			for tick := range 400 {
				b.store.with(func() {
					for n := perSecond / 40; n > 0 && taken < len(b.store.runs); n-- {
						b.store.runs[taken].taken = true
						taken++
					}
					if tick > 200 {
						most = max(most, len(b.store.runs)-taken)
					}
				})
				b.pass(25 * time.Millisecond)
			}
			return most
		}
		for _, perSecond := range []int{40, 2000, 400} {
			before := taken
			most := work(perSecond)
			b.check(most <= perSecond*3/2, "%d runs wait for workers that take %d in a second", most, perSecond)
			b.check(taken-before >= perSecond*9, "workers could take %d runs in ten seconds, of %d", taken-before, 10*perSecond)
		}
	})
}

func TestAPageIsRungForByFewAtATime(t *testing.T) {
	bubble(t, func(b *bench) {
		var now, most atomic.Int64
		b.queue.fail = func(ctx context.Context, run int64) error {
			if run == 0 { // a mark
				return nil
			}
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m; m = most.Load() {
				if most.CompareAndSwap(m, n) {
					break
				}
			}
			return backoff.Wait(ctx, 10*time.Millisecond)
		}
		cfg := b.config("a")
		cfg.PageSize = 500
		s := b.new(cfg)
		b.store.outbox = 500
		b.start(s)
		b.pass(20 * time.Second)
		b.check(most.Load() == enqueueConcurrency, "%d at a time", most.Load())
		b.check(slices.Equal(b.queue.runs(), ids(500)), "enqueued: %d", len(b.queue.runs()))
	})
}

func TestWhileTheQueueIsAwayNothingMoreIsTakenAndAllIsRungForAfterwards(t *testing.T) {
	bubble(t, func(b *bench) {
		var tries atomic.Int64
		b.queue.fail = func(context.Context, int64) error { tries.Add(1); return errRedis }
		b.store.outbox = 15
		b.start(b.new(b.config("a")))
		b.pass(9 * time.Minute)
		b.check(len(b.store.runs) == 10, "%d runs were taken from the outbox", len(b.store.runs))
		// A page of ten fails together, then every five seconds.
		b.check(tries.Load() > 100 && tries.Load() < 1300, "%d attempts in nine minutes", tries.Load())
		b.queue.setFail(nil)
		b.pass(10 * time.Second)
		b.check(slices.Equal(b.queue.runs(), ids(15)), "enqueued: %v", b.queue.runs())
		b.check(len(b.log.lines("queue unavailable, retrying")) == 1, "going is not told once")
		b.check(len(b.log.lines("queue is back")) == 1, "coming back is not told once")
	})
}

func TestATaskThatFailsWhileOthersPassIsDeliveredLater(t *testing.T) {
	bubble(t, func(b *bench) {
		b.queue.fail = func(_ context.Context, run int64) error {
			if run == 7 && time.Now().Before(at(0, 1)) {
				return errRedis
			}
			return nil
		}
		s := b.new(b.config("a"))
		b.start(s)
		b.sweepOf(s, 30)
		for range 20 {
			b.store.with(func() { b.store.outbox++ })
			b.pass(time.Second)
		}
		b.check(len(b.log.lines("runs not enqueued")) == 1, "letting go is not told once")
		b.check(b.store.sweeps[0].ended && len(b.queue.runs()) == 40, "%d of 40 others", len(b.queue.runs()))
		b.pass(3 * time.Minute)
		b.queue.mu.Lock()
		found := slices.Contains(b.queue.enqueued, store.Delivery{Run: 7, Attempt: 2, Trigger: store.TriggerNightly})
		b.queue.mu.Unlock()
		b.check(found, "run 7 has no second delivery")
	})
}

func TestTheRunsOfASweepShareTasksAndThoseOfEventsDoNot(t *testing.T) {
	bubble(t, func(b *bench) {
		cfg := b.config("a")
		cfg.PageSize = 500
		s := b.new(cfg)
		b.start(s)
		b.sweepOf(s, 500)
		b.pass(5 * time.Second)
		b.check(slices.Equal(b.queue.runs(), ids(500)), "enqueued: %d", len(b.queue.runs()))
		swept := b.queue.taskCount()
		b.check(swept >= 10 && swept <= 30, "%d tasks for 500 runs", swept)
		b.store.with(func() { b.store.outbox = 20 })
		b.pass(5 * time.Second)
		b.check(b.queue.taskCount() == swept+20, "%d tasks for 20 events", b.queue.taskCount()-swept)
	})
}

func TestTheRelayTakesFullPagesAtOnceAndInOrder(t *testing.T) {
	bubble(t, func(b *bench) {
		b.store.outbox = 12
		b.start(b.new(b.config("a")))
		b.check(slices.Equal(b.queue.runs(), ids(12)), "enqueued: %v in no time", b.queue.runs())
		var calls []string
		b.store.with(func() {
			for _, c := range b.store.calls {
				if c == "relay" || c == "undelivered" {
					calls = append(calls, c)
				}
			}
		})
		want := []string{"relay", "undelivered", "relay"}
		b.check(slices.Equal(calls, want), "calls %v", calls)
	})
}

// After an event the outbox is polled more often, and then hardly at all: writes tell of themselves.
func TestTheRelaySleepsUntilItIsNotified(t *testing.T) {
	bubble(t, func(b *bench) {
		b.store.notify = make(chan struct{}, 1)
		cfg := b.config("a")
		cfg.RelayInterval = 50 * time.Millisecond
		b.start(b.new(cfg))
		polls := func(d time.Duration) int {
			before := b.store.count("relay")
			b.pass(d)
			return b.store.count("relay") - before
		}
		event := func(notify bool) {
			b.store.with(func() { b.store.outbox = 1 })
			if notify {
				b.store.notify <- struct{}{}
			}
		}
		idle := polls(10 * longPoll)
		b.check(idle >= 9 && idle <= 11, "%d polls in ten seconds without events", idle)
		event(true)
		synctest.Wait()
		b.check(b.store.outbox == 0, "an event waits although the relay was notified")
		in := int(busyTime / cfg.RelayInterval)
		busy := polls(busyTime / 2)
		b.check(busy >= in*busyPolls/2-2 && busy <= in*busyPolls/2+2, "%d polls in half a second after an event, of %d", busy, in*busyPolls/2)
		b.pass(2 * busyTime)
		event(false)
		b.pass(longPoll)
		b.check(b.store.outbox == 0, "a lost notification costs more than the long poll")
		b.check(len(b.log.lines("by=notifications")) == 1, "not told once")
	})
}

func TestTheRelayPollsWithoutNotifications(t *testing.T) {
	bubble(t, func(b *bench) {
		b.store.fail = func(op string) error {
			if op == "sleep" {
				return store.ErrNoNotifications
			}
			return nil
		}
		cfg := b.config("a")
		cfg.RelayInterval = 50 * time.Millisecond
		b.start(b.new(cfg))
		b.pass(10 * time.Second)
		idle := b.store.count("relay")
		most := int(10 * time.Second / (pooledPoll * cfg.RelayInterval))
		b.check(idle <= most+1, "%d polls in ten seconds without events, of %d", idle, most)
		b.store.with(func() { b.store.outbox = 1 })
		b.pass(pooledPoll * cfg.RelayInterval)
		b.check(b.store.outbox == 0, "an event waits for longer than a poll")
		told := b.log.lines("the relay waits for work")
		b.check(len(told) == 1 && strings.Contains(told[0], "by=polling") && strings.Contains(told[0], "pooler"), "told %v", told)
	})
}

func TestAFullQueueStopsTheRelayAndNoOtherDelivery(t *testing.T) {
	bubble(t, func(b *bench) {
		b.queue.slow = true
		b.store.outbox = 500
		b.start(b.new(b.config("a")))
		b.pass(10 * time.Second)
		b.check(b.store.outbox == 500-firstEvents, "%d sessions are left in the outbox", b.store.outbox)
		b.store.with(func() {
			b.store.runs = append(b.store.runs, &fakeRun{id: firstEvents + 1, trigger: store.TriggerOperator, due: time.Now()})
		})
		b.pass(time.Second)
		b.check(slices.Contains(b.queue.runs(), firstEvents+1), "an operator's run waits behind events")
	})
}

func TestABulkRecompactionTakesWhatTheWorkersTakeAndHoldsNothingUp(t *testing.T) {
	bubble(t, func(b *bench) {
		b.queue.slow = true
		b.store.bulk = 10_000
		b.start(b.new(b.config("a")))
		b.pass(10 * time.Second)
		b.check(b.store.bulk == 10_000-firstRate, "%d sessions are left", b.store.bulk)
		b.store.with(func() {
			b.store.outbox = 1
			b.store.runs = append(b.store.runs, &fakeRun{id: firstEvents + 1, trigger: store.TriggerOperator, due: time.Now()})
		})
		b.pass(time.Second)
		b.check(slices.Contains(b.queue.runs(), firstEvents+1), "an operator's run waits behind those of the recompaction")
		b.check(b.store.outbox == 0, "an event waits behind the runs of the recompaction")
	})
}

func TestABulkRecompactionEnds(t *testing.T) {
	bubble(t, func(b *bench) {
		b.store.bulk = 10_000
		b.start(b.new(b.config("a")))
		b.pass(time.Minute)
		b.check(slices.Equal(b.queue.runs(), ids(10_000)), "%d runs were enqueued", len(b.queue.runs()))
	})
}

func TestManyRequestsStayInTheStoreAndDoNotHoldUpAnOperator(t *testing.T) {
	bubble(t, func(b *bench) {
		b.queue.slow = true
		for id := range int64(10_000) {
			b.store.runs = append(b.store.runs, &fakeRun{id: id + 1, trigger: store.TriggerApplication, due: time.Now()})
		}
		cfg := b.config("a")
		cfg.PageSize = 500
		b.start(b.new(cfg))
		b.pass(10 * time.Second)
		b.check(slices.Equal(b.queue.runs(), ids(firstEvents)), "enqueued: %v, want the first", b.queue.runs())
		b.store.with(func() {
			b.store.runs = append(b.store.runs, &fakeRun{id: 10_001, trigger: store.TriggerOperator, due: time.Now()})
		})
		b.pass(time.Second)
		b.check(slices.Contains(b.queue.runs(), 10_001), "an operator's run waits behind requests")
	})
}

func TestALostRunIsFoundFromTheStoreAlone(t *testing.T) {
	bubble(t, func(b *bench) {
		b.store.lost, b.store.orphans = 25, 12
		b.start(b.new(b.config("a")))
		b.pass(3 * time.Second)
		b.check(slices.Equal(b.queue.runs(), ids(37)), "enqueued: %v soon after the start", b.queue.runs())
		b.store.with(func() { b.store.lost, b.store.orphans = 1, 1 })
		b.pass(time.Minute)
		b.check(slices.Equal(b.queue.runs(), ids(39)), "enqueued: %v after a minute", b.queue.runs())
	})
}

func TestAQueueThatHangsHasADeadline(t *testing.T) {
	bubble(t, func(b *bench) {
		b.queue.fail = func(ctx context.Context, _ int64) error { <-ctx.Done(); return ctx.Err() }
		b.store.outbox = 5
		b.start(b.new(b.config("a")))
		b.pass(30 * time.Second)
		b.check(len(b.log.lines("queue unavailable, retrying")) == 1, "not noticed")
		b.queue.setFail(nil)
		b.pass(15 * time.Second)
		b.check(slices.Equal(b.queue.runs(), ids(5)), "enqueued: %v", b.queue.runs())
	})
}

// firstEvents is how many events, and how many requests, wait in the queue before the workers are measured.
const firstEvents = firstRate * eventTime

// What waits in Redis is first in, first out, so little may: that fast workers took much before says
// nothing of the runs that come now.
func TestSlowRunsDoNotFillTheQueueOfFastWorkers(t *testing.T) {
	bubble(t, func(b *bench) {
		cfg := b.config("a")
		cfg.PageSize = 500
		b.store.outbox = 20_000
		b.start(b.new(cfg))
		b.pass(10 * time.Second)
		before := len(b.queue.runs())
		b.check(before == 20_000, "fast workers got %d runs", before)
		b.queue.mu.Lock()
		b.queue.slow = true
		b.queue.mu.Unlock()
		b.store.with(func() { b.store.outbox, b.store.running = 20_000, 64 }) // as many as a worker claims
		b.pass(10 * time.Second)
		b.check(len(b.queue.runs()) == before+firstEvents, "%d runs wait for workers that are busy", len(b.queue.runs())-before)
	})
}
