package scheduler

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestAQueueThatForgotIsFilledAgain(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]func(q *fakeQueue){
		"flushed":                       func(q *fakeQueue) { q.mark = "" },
		"restored from an older backup": func(q *fakeQueue) { q.mark = "a:3" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.queue.slow = true
				b.store.outbox = 20
				stop := b.start(b.new(b.config("a")))
				b.pass(20 * time.Second)
				delivered := func() int {
					b.queue.mu.Lock()
					defer b.queue.mu.Unlock()
					return len(b.queue.enqueued)
				}
				b.check(delivered() == 20, "%d deliveries", delivered())
				b.queue.mu.Lock()
				forget(b.queue)
				b.queue.mu.Unlock()
				b.pass(2 * time.Second)
				b.check(delivered() == 40, "%d deliveries two seconds after the loss", delivered())
				b.pass(30 * time.Second)
				b.check(delivered() == 40, "%d deliveries in the end", delivered())
				b.check(len(b.log.lines("the queue has lost its tasks")) == 1, "not told once")
				stop()
			})
		})
	}
}

func TestAnOutageOfTheQueueIsNoLoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		stop := b.start(b.new(b.config("a")))
		b.pass(10 * time.Second)
		b.queue.setFail(func(context.Context, int64) error { return errRedis })
		b.pass(time.Minute)
		b.queue.setFail(nil)
		b.pass(10 * time.Second)
		b.check(b.store.count("redeliver all") == 1, "redelivered %d times, want once, when the lead began", b.store.count("redeliver all"))
		b.check(len(b.log.lines("queue is back")) == 1, "not told once")
		stop()
	})
}
