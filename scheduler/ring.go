package scheduler

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
)

const (
	// ringers is how many tasks are put into Redis at a time.
	ringers = 16
	// ringAttempts is how often runs are tried that fail while others pass.
	ringAttempts = 5
	// holdMax is how long runs are held while nothing passes. Much longer than an
	// outage should be: each run that is let go waits longer for its next delivery
	// than the last time, one that is held is rung for as soon as Redis is back.
	holdMax = 30 * time.Minute
)

// ring rings for the deliveries, in no particular order. While Redis is away it
// waits, so that nothing more is taken from Postgres meanwhile. Runs that fail
// while others pass are let go after a few attempts. The store brings back all
// that was not rung for, with another delivery; so too what is left when ctx is
// done. The error is ctx's.
func (s *Scheduler) ring(ctx context.Context, page []store.Delivery) error {
	began := time.Now()
	var attempt, stuck int
	var stuckAt time.Time
	for len(page) > 0 {
		rest, err := s.enqueue(ctx, page)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			s.redis.ok()
			return nil
		}
		if len(rest) < len(page) {
			attempt, stuck = 0, 0
		} else {
			if stuck++; stuck == 1 {
				stuckAt = time.Now()
			}
			s.redis.failed(err)
		}
		page = rest
		if time.Since(began) >= holdMax || stuck >= ringAttempts && s.redis.okSince(stuckAt) {
			s.log.WarnContext(ctx, "runs not rung for, they will be delivered later", "runs", len(page), "error", err)
			return nil
		}
		if err := backoff.Wait(ctx, pauses.Delay(attempt)); err != nil {
			return err
		}
		attempt++
	}
	return nil
}

// enqueue puts tasks into Redis, several at a time, until one fails. It returns
// the deliveries that are not there, those that failed last, and a failure.
func (s *Scheduler) enqueue(ctx context.Context, page []store.Delivery) ([]store.Delivery, error) {
	var next atomic.Int64
	var failed atomic.Bool
	done := make([]bool, len(page))
	var g errgroup.Group
	for range min(ringers, len(page)) {
		g.Go(func() error {
			for !failed.Load() {
				i := int(next.Add(1)) - 1
				if i >= len(page) {
					return nil
				}
				callCtx, cancel := context.WithTimeout(ctx, ringTimeout)
				err := s.queue.Enqueue(callCtx, page[i].Run, page[i].Attempt, page[i].Trigger)
				cancel()
				if err != nil {
					failed.Store(true)
					return err
				}
				done[i] = true
			}
			return nil
		})
	}
	err := g.Wait()
	if err == nil {
		return nil, nil
	}
	tried := min(int(next.Load()), len(page))
	rest := slices.Clone(page[tried:])
	for i, d := range page[:tried] {
		if !done[i] {
			rest = append(rest, d)
		}
	}
	return rest, err
}
