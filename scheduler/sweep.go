package scheduler

import (
	"context"
	"time"

	"github.com/sessionstore/compactor/store"
)

// sweepPoll is the interval between polls for sweeps that other processes start.
const sweepPoll = 200 * time.Millisecond

// runSweeps executes the open sweeps: a page of each in turn, as fast as the workers take
// the runs.
func (s *Scheduler) runSweeps(ctx context.Context) error {
	c := s.newCredit(store.TriggerNightly)
	for {
		open, err := retry(ctx, s, "open sweeps", s.store.OpenSweeps)
		if err != nil {
			return err
		}
		busy := false
		for _, sw := range open {
			queued, err := s.sweepPage(ctx, sw, c)
			if err != nil {
				return err
			}
			busy = busy || queued > 0
		}
		if busy {
			continue
		}
		pause := sweepPoll
		if len(open) > 0 { // the queue is full, for as long as workers take to empty it, or a sweep waits
			pause = creditPoll
		}
		poll := time.NewTimer(pause)
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

// sweepPage takes a page of a sweep, enqueues its runs and returns their number. Without room
// there are none, but a sweep whose window has ended stops. The relay delivers what could not
// be enqueued.
func (s *Scheduler) sweepPage(ctx context.Context, sw store.Sweep, c *credit) (queued int, err error) {
	room, err := c.room(ctx)
	if err != nil {
		return 0, err
	}
	var done bool
	page, err := retry(ctx, s, ReasonSweep, func(ctx context.Context) (page []store.Delivery, err error) {
		page, done, err = s.store.SweepPage(ctx, sw.ID, room, s.cfg.RedeliverAfter)
		return page, err
	})
	if err != nil {
		return 0, err
	}
	s.cfg.Observer.Took(ReasonSweep, len(page))
	c.spend(len(page))
	if err := s.enqueue(ctx, page); err != nil || !done {
		return len(page), err
	}
	s.log.InfoContext(ctx, "sweep ended", "sweep_id", sw.ID, "entry", sw.Entry, "tick", sw.Tick.UTC(), "queued", sw.Queued+int64(len(page)))
	return 0, nil
}

// wakeSweeps makes the sweep loop of this scheduler poll now, if it runs.
func (s *Scheduler) wakeSweeps() {
	select {
	case s.sweepNow <- struct{}{}:
	default:
	}
}
