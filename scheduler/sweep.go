package scheduler

import (
	"context"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
)

const (
	// sweepPoll is how soon a sweep that somebody else started is noticed.
	sweepPoll = 200 * time.Millisecond
	// roomPoll is how often a full queue is looked at again.
	roomPoll = 200 * time.Millisecond
	// roomPages is how many pages of a trigger may wait for a worker.
	roomPages = 10
)

// runSweeps goes through the open sweeps, oldest first, each from where its
// cursor stands.
func (s *Scheduler) runSweeps(ctx context.Context) error {
	r := s.newRoom(store.TriggerNightly)
	for {
		open, err := retry(ctx, s, "open sweeps", s.store.OpenSweeps)
		if err != nil {
			return err
		}
		for _, sw := range open {
			if err := s.sweep(ctx, sw, r); err != nil {
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

// sweep queues and rings for what is left of a sweep, page by page, as fast as
// the workers take it. What it could not ring for is delivered later by the relay.
func (s *Scheduler) sweep(ctx context.Context, sw store.Sweep, r *room) error {
	type result struct {
		page []store.Delivery
		done bool
	}
	began, queued := time.Now(), sw.Queued
	for {
		if err := r.wait(ctx); err != nil {
			return err
		}
		next, err := retry(ctx, s, "sweep", func(ctx context.Context) (result, error) {
			page, done, err := s.store.SweepPage(ctx, sw.ID, s.cfg.PageSize, s.cfg.RedeliverAfter)
			return result{page, done}, err
		})
		if err != nil {
			return err
		}
		queued += int64(len(next.page))
		r.take(len(next.page))
		if err := s.ring(ctx, next.page); err != nil {
			return err
		}
		if next.done {
			s.log.InfoContext(ctx, "sweep ended", "sweep_id", sw.ID, "entry", sw.Entry, "slot", sw.Tick.UTC(),
				"queued", queued, "duration", time.Since(began), "resumed", sw.Queued > 0)
			return nil
		}
	}
}

// wakeSweeps makes the sweep loop of this scheduler look at once, if it runs.
func (s *Scheduler) wakeSweeps() {
	select {
	case s.sweepNow <- struct{}{}:
	default:
	}
}

// room keeps the runs of a trigger that wait in Redis to a few pages; what is
// beyond waits in Postgres, where it costs nothing and coalesces. It counts only
// when its last count is used up. Not safe for concurrent use.
type room struct {
	s       *Scheduler
	trigger string
	left    int
	countAt time.Time // earliest next count
}

func (s *Scheduler) newRoom(trigger string) *room { return &room{s: s, trigger: trigger} }

// take tells of n runs queued.
func (r *room) take(n int) { r.left -= n }

// open reports whether there is room for a page. The error is ctx's.
func (r *room) open(ctx context.Context) (bool, error) {
	if r.left >= r.s.cfg.PageSize {
		return true, nil
	}
	if time.Now().Before(r.countAt) {
		return false, nil
	}
	limit := roomPages * r.s.cfg.PageSize
	waiting, err := retry(ctx, r.s, "count waiting runs", func(ctx context.Context) (int, error) {
		return r.s.store.Waiting(ctx, r.trigger, limit)
	})
	if err != nil {
		return false, err
	}
	r.left = limit - waiting
	r.countAt = time.Now().Add(roomPoll)
	return r.left >= r.s.cfg.PageSize, nil
}

// wait blocks until there is room for a page. The error is ctx's.
func (r *room) wait(ctx context.Context) error {
	loggedAt := time.Now()
	for {
		open, err := r.open(ctx)
		if open || err != nil {
			return err
		}
		if time.Since(loggedAt) >= repeatLog {
			loggedAt = time.Now()
			r.s.log.WarnContext(ctx, "waiting for workers, the queue is full", "trigger", r.trigger, "limit", roomPages*r.s.cfg.PageSize)
		}
		if err := backoff.Wait(ctx, roomPoll); err != nil {
			return err
		}
	}
}
