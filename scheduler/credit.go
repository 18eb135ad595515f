package scheduler

import (
	"context"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
)

const (
	// creditPoll is the interval between counts of a full queue.
	creditPoll = 50 * time.Millisecond
	// creditPages is the number of pages of a trigger that may wait for a worker, however
	// fast the workers are.
	creditPages = 10
	// firstRate is the rate in runs per second that workers are taken to have before the
	// first measurement, and after a pause: earlier runs do not predict the next ones.
	// lowestRate is that of workers that are slower or absent: enough for them to be measured by.
	firstRate, lowestRate = 64, 16
	// eventTime is how many seconds of work of events and requests wait in Redis at most, where
	// they are first in, first out: an event of another tenant waits behind them. Sweeps have a second.
	eventTime = 0.25
)

// credit is the backpressure of a trigger: it bounds the runs that wait in Redis to those
// that the workers execute in a time. Other work waits in Postgres, where the runs of a
// session coalesce, and where tenants take turns and pauses take effect. It counts the
// waiting runs only when the credit of its last count is spent. Not safe for concurrent
// use.
type credit struct {
	s       *Scheduler
	trigger string
	seconds float64 // of work that may wait
	rate    float64 // runs that workers execute in a second
	left    int

	countedAt time.Time
	waiting   int       // runs, at that time
	open      int       // the same with those that workers had claimed, and those enqueued since
	fullAt    time.Time // since when there is no credit, or when that was logged
}

func (s *Scheduler) newCredit(trigger string) *credit {
	c := &credit{s: s, trigger: trigger, rate: firstRate, seconds: 1}
	if trigger == store.TriggerEvent || trigger == store.TriggerApplication {
		c.seconds = eventTime
	}
	return c
}

// spend subtracts n enqueued runs.
func (c *credit) spend(n int) { c.left, c.open = c.left-n, c.open+n }

// available returns the number of runs that there is credit for, a page at most. The error is
// that of ctx.
func (c *credit) available(ctx context.Context) (int, error) {
	if c.rate > firstRate && time.Since(c.countedAt) >= time.Second {
		c.rate, c.left = firstRate, min(c.left, int(firstRate*c.seconds))
	}
	if c.left <= 0 && time.Since(c.countedAt) >= creditPoll {
		most := creditPages * c.s.cfg.PageSize
		var running int
		waiting, err := retry(ctx, c.s, "count waiting runs", func(ctx context.Context) (waiting int, err error) {
			waiting, running, err = c.s.store.Waiting(ctx, c.trigger, most)
			return waiting, err
		})
		if err != nil {
			return 0, err
		}
		c.measure(time.Now(), waiting, running)
		c.left = min(int(c.rate*c.seconds), most) - waiting
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

// measure adapts the rate to the number of runs that wait, and that workers have claimed, now.
func (c *credit) measure(now time.Time, waiting, running int) {
	if ended, passed := c.open-waiting-running, now.Sub(c.countedAt).Seconds(); !c.countedAt.IsZero() {
		rate := float64(max(0, ended)) / passed
		if float64(waiting) <= rate*creditPoll.Seconds() { // gone before the next count: the workers could take more
			c.rate = max(c.rate, rate)
		} else { // the mean of about a second
			c.rate += min(1, passed) * (rate - c.rate)
		}
		c.rate = max(c.rate, lowestRate)
	}
	c.countedAt, c.waiting, c.open = now, waiting, waiting+running
}

// wait blocks until there is credit, and returns it. The error is that of ctx.
func (c *credit) wait(ctx context.Context) (int, error) {
	for {
		free, err := c.available(ctx)
		if free > 0 || err != nil {
			return free, err
		}
		if err := backoff.Wait(ctx, creditPoll); err != nil {
			return 0, err
		}
	}
}
