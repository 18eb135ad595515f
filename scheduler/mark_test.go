package scheduler

import (
	"context"
	"testing"
	"time"
)

func TestAQueueThatForgotIsFilledAgain(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]func(q *fakeQueue){
		"flushed":                       func(q *fakeQueue) { q.mark = "" },
		"restored from an older backup": func(q *fakeQueue) { q.mark = "a:3" },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(b *bench) {
				b.queue.slow = true
				b.store.outbox = 15
				b.start(b.new(b.config("a")))
				b.pass(20 * time.Second)
				delivered := func() int {
					b.queue.mu.Lock()
					defer b.queue.mu.Unlock()
					return len(b.queue.enqueued)
				}
				b.check(delivered() == 15, "%d deliveries", delivered())
				b.queue.mu.Lock()
				forget(b.queue)
				b.queue.mu.Unlock()
				b.pass(2 * time.Second)
				b.check(delivered() == 30, "%d deliveries two seconds after the loss", delivered())
				b.pass(30 * time.Second)
				b.check(delivered() == 30, "%d deliveries in the end", delivered())
				b.check(len(b.log.lines("the queue has lost its tasks")) == 1, "not told once")
			})
		})
	}
}

func TestAnOutageOfTheQueueIsNoLoss(t *testing.T) {
	bubble(t, func(b *bench) {
		b.start(b.new(b.config("a")))
		b.pass(10 * time.Second)
		b.queue.setFail(func(context.Context, int64) error { return errRedis })
		b.pass(time.Minute)
		b.queue.setFail(nil)
		b.pass(10 * time.Second)
		b.check(b.store.count("redeliver all") == 1, "redelivered %d times, want once, when the lead began", b.store.count("redeliver all"))
		b.check(len(b.log.lines("queue is back")) == 1, "not told once")
	})
}

func TestTheLeaderNotesWhatKeepsRunsFromWorkers(t *testing.T) {
	bubble(t, func(b *bench) {
		b.start(b.new(b.config("a")))
		noted := func(when string, wantQueue, wantWorkers bool) {
			b.t.Helper()
			b.pass(2 * noteInterval)
			b.store.with(func() {
				if b.store.queueAway != wantQueue || b.store.workersAway != wantWorkers {
					b.t.Errorf("%s: queue away %v, workers away %v", when, b.store.queueAway, b.store.workersAway)
				}
			})
		}
		noted("at first", false, false)
		b.queue.setFail(func(context.Context, int64) error { return errRedis })
		noted("without Redis", true, false)
		b.queue.setFail(nil)
		noted("with Redis", false, false)
		b.queue.mu.Lock()
		b.queue.unserved = true
		b.queue.mu.Unlock()
		noted("without workers", false, true)
	})
}

func TestTheLeaderCorrectsTimesAfterTheClockWasSetBack(t *testing.T) {
	bubble(t, func(b *bench) {
		b.start(b.new(b.config("a")))
		b.pass(10 * time.Second)
		b.store.with(func() { b.store.clockBack = 24 * time.Hour })
		b.pass(2 * noteInterval)
		b.check(len(b.log.lines("the clock of the database was set back")) == 1, "not told once")
	})
}

// A Redis that hangs may have made the marks that it did not answer.
func TestALostAnswerOfTheQueueIsNoLoss(t *testing.T) {
	bubble(t, func(b *bench) {
		b.start(b.new(b.config("a")))
		b.pass(10 * time.Second)
		mute := func(on bool) {
			b.queue.mu.Lock()
			defer b.queue.mu.Unlock()
			b.queue.mute = on
		}
		mute(true)
		b.pass(time.Minute)
		mute(false)
		b.pass(10 * time.Second)
		b.check(b.store.count("redeliver all") == 1, "redelivered %d times, want once, when the lead began", b.store.count("redeliver all"))
		b.check(len(b.log.lines("the queue has lost its tasks")) == 0, "a loss was told")
	})
}
