package scheduler

import (
	"context"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
)

const (
	// sweepPoll is the interval between polls for sweeps that other processes start.
	sweepPoll = 200 * time.Millisecond
	// creditPoll is the interval between counts of a full queue.
	creditPoll = 200 * time.Millisecond
	// creditPages is the number of pages of a trigger that may wait for a worker.
	creditPages = 10
)

// runSweeps executes the open sweeps, oldest first, each from its cursor.
func (s *Scheduler) runSweeps(ctx context.Context) error {
	c := s.newCredit(store.TriggerNightly)
	for {
		open, err := retry(ctx, s, "open sweeps", s.store.OpenSweeps)
		if err != nil {
			return err
		}
		for _, sw := range open {
			if err := s.sweep(ctx, sw, c); err != nil {
				return err
			}
		}
		poll := time.NewTimer(sweepPoll)
		select {
		case <-ctx.Done():
			poll.Stop()
			return ctx.Err()
		case <-s.sweepNow:
			poll.Stop()
		case <-poll.C:
		}
	}
}

// sweep enqueues the remaining runs of a sweep, page by page, as fast as the workers take
// them. The relay delivers those that could not be enqueued.
func (s *Scheduler) sweep(ctx context.Context, sw store.Sweep, c *credit) error {
	began, queued := time.Now(), sw.Queued
	for {
		if err := c.wait(ctx); err != nil {
			return err
		}
		var done bool
		page, err := retry(ctx, s, "sweep", func(ctx context.Context) (page []store.Delivery, err error) {
			page, done, err = s.store.SweepPage(ctx, sw.ID, s.cfg.PageSize, s.cfg.RedeliverAfter)
			return page, err
		})
		if err != nil {
			return err
		}
		queued += int64(len(page))
		c.spend(len(page))
		if err := s.enqueue(ctx, page); err != nil {
			return err
		}
		if done {
			s.log.InfoContext(ctx, "sweep ended", "sweep_id", sw.ID, "entry", sw.Entry, "tick", sw.Tick.UTC(),
				"queued", queued, "duration", time.Since(began), "resumed", sw.Queued > 0)
			return nil
		}
	}
}

// wakeSweeps makes the sweep loop of this scheduler poll now, if it runs.
func (s *Scheduler) wakeSweeps() {
	select {
	case s.sweepNow <- struct{}{}:
	default:
	}
}

// credit is the backpressure of a trigger: it bounds the runs that wait in Redis to
// creditPages. Other work waits in Postgres, where the runs of a session coalesce. It
// counts the waiting runs only when the credit of its last count is spent. Not safe for
// concurrent use.
type credit struct {
	s       *Scheduler
	trigger string
	left    int
	countAt time.Time // earliest next count
}

func (s *Scheduler) newCredit(trigger string) *credit { return &credit{s: s, trigger: trigger} }

// spend subtracts n enqueued runs.
func (c *credit) spend(n int) { c.left -= n }

// available reports whether there is credit for a page. The error is that of ctx.
func (c *credit) available(ctx context.Context) (bool, error) {
	if c.left >= c.s.cfg.PageSize {
		return true, nil
	}
	if time.Now().Before(c.countAt) {
		return false, nil
	}
	limit := creditPages * c.s.cfg.PageSize
	waiting, err := retry(ctx, c.s, "count waiting runs", func(ctx context.Context) (int, error) {
		return c.s.store.Waiting(ctx, c.trigger, limit)
	})
	if err != nil {
		return false, err
	}
	c.left = limit - waiting
	c.countAt = time.Now().Add(creditPoll)
	return c.left >= c.s.cfg.PageSize, nil
}

// wait blocks until there is credit for a page. The error is that of ctx.
func (c *credit) wait(ctx context.Context) error {
	loggedAt := time.Now()
	for {
		available, err := c.available(ctx)
		if available || err != nil {
			return err
		}
		if time.Since(loggedAt) >= repeatLog {
			loggedAt = time.Now()
			c.s.log.WarnContext(ctx, "waiting for workers, the queue is full", "trigger", c.trigger, "limit", creditPages*c.s.cfg.PageSize)
		}
		if err := backoff.Wait(ctx, creditPoll); err != nil {
			return err
		}
	}
}
