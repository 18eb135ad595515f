package scheduler

import (
	"context"
	"time"

	"github.com/sessionstore/compactor/strategies/backoff"
)

const (
	// creditPoll is the interval between counts of a full queue.
	creditPoll = 50 * time.Millisecond
	// creditPages is the number of pages of a trigger that may wait for a worker, however
	// fast the workers are.
	creditPages = 10
	// firstRate is the rate in runs per second that workers are taken to have before the
	// first measurement, lowestRate that of workers that are slower or absent: enough for
	// them to be measured by.
	firstRate, lowestRate = 64, 16
)

// credit is the backpressure of a trigger: it bounds the runs that wait in Redis to those
// that the workers take in a second. Other work waits in Postgres, where the runs of a
// session coalesce, and where tenants take turns and pauses take effect. It counts the
// waiting runs only when the credit of its last count is spent. Not safe for concurrent
// use.
type credit struct {
	s       *Scheduler
	trigger string
	rate    float64 // runs that workers take in a second
	left    int

	countedAt     time.Time
	waiting, sent int       // runs, at that time and enqueued since
	fullAt        time.Time // since when there is no room, or when that was logged
}

func (s *Scheduler) newCredit(trigger string) *credit {
	return &credit{s: s, trigger: trigger, rate: firstRate}
}

// spend subtracts n enqueued runs.
func (c *credit) spend(n int) { c.left, c.sent = c.left-n, c.sent+n }

// room returns the number of runs that there is credit for, a page at most. The error is
// that of ctx.
func (c *credit) room(ctx context.Context) (int, error) {
	if c.left <= 0 && time.Since(c.countedAt) >= creditPoll {
		most := creditPages * c.s.cfg.PageSize
		waiting, err := retry(ctx, c.s, "count waiting runs", func(ctx context.Context) (int, error) {
			return c.s.store.Waiting(ctx, c.trigger, most)
		})
		if err != nil {
			return 0, err
		}
		c.measure(time.Now(), waiting)
		c.left = min(int(c.rate), most) - waiting
	}
	if c.left > 0 {
		c.fullAt = time.Time{}
		return min(c.left, c.s.cfg.PageSize), nil
	}
	switch {
	case c.fullAt.IsZero():
		c.fullAt = time.Now()
	case time.Since(c.fullAt) >= repeatLog:
		c.fullAt = time.Now()
		c.s.log.WarnContext(ctx, "waiting for workers, the queue is full", "trigger", c.trigger, "waiting", c.waiting)
	}
	return 0, nil
}

// measure adapts the rate to the number of runs that wait now.
func (c *credit) measure(now time.Time, waiting int) {
	if taken, passed := c.waiting+c.sent-waiting, now.Sub(c.countedAt).Seconds(); !c.countedAt.IsZero() {
		rate := float64(max(0, taken)) / passed
		if float64(waiting) <= rate*creditPoll.Seconds() { // gone before the next count: the workers could take more
			c.rate = max(c.rate, rate)
		} else { // the mean of about a second
			c.rate += min(1, passed) * (rate - c.rate)
		}
		c.rate = max(c.rate, lowestRate)
	}
	c.countedAt, c.waiting, c.sent = now, waiting, 0
}

// wait blocks until there is room, and returns it. The error is that of ctx.
func (c *credit) wait(ctx context.Context) (int, error) {
	for {
		room, err := c.room(ctx)
		if room > 0 || err != nil {
			return room, err
		}
		if err := backoff.Wait(ctx, creditPoll); err != nil {
			return 0, err
		}
	}
}
