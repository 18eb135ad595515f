package scheduler

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/worker/jobs"
)

func TestTasksOfEarlierVersionsAreRemovedOnceTheQueueIsThere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.queue.slow, b.queue.mark = true, "of an earlier leader"
		for id := range int64(3) { // delivered twice by an earlier version, to be delivered again in a year
			b.store.runs = append(b.store.runs, &fakeRun{id: id + 1, trigger: store.TriggerNightly, delivery: 2, due: time.Now().AddDate(1, 0, 0)})
		}
		ours := []jobs.FormerTask{{Run: 1, Delivery: 2, Queue: "bulk"}, {Run: 2, Delivery: 1, Queue: "bulk"}, {Run: 2, Delivery: 2, Queue: "bulk"}}
		others := []jobs.FormerTask{{Run: 1, Delivery: 3, Queue: "bulk"}, {Run: 1, Delivery: 1, Queue: "default"}, {Run: 4, Delivery: 1, Queue: "bulk"}}
		b.queue.former, b.queue.formerErr = slices.Concat(ours, others), errRedis
		stop := b.start(b.new(b.config("a")))
		b.pass(time.Minute)
		b.check(len(b.queue.former) == 6, "removed without the queue: %v", b.queue.former)
		b.queue.mu.Lock()
		b.queue.formerErr = nil
		b.queue.mu.Unlock()
		b.pass(10 * time.Second)
		b.check(slices.Equal(b.queue.former, others), "left: %v, want those of others", b.queue.former)
		b.check(slices.Equal(b.queue.runs(), []int64{1, 2}), "delivered again: %v", b.queue.runs())
		b.check(len(b.log.lines("queues of earlier versions not read")) == 1, "the outage is not told once")
		stop()
	})
}
