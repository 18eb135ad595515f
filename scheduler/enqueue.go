package scheduler

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
	"github.com/sessionstore/compactor/worker/jobs"
)

const (
	// enqueueConcurrency is the number of tasks enqueued at a time.
	enqueueConcurrency = 16
	// enqueueAttempts bounds the attempts at runs that fail while others succeed.
	enqueueAttempts = 5
	// holdMax bounds the time that a page is held during an outage. It is much longer
	// than an outage should last: a held run is enqueued as soon as Redis is back, one
	// that is given up waits for its next delivery, each time longer.
	holdMax = 30 * time.Minute
)

// enqueue enqueues deliveries in any order. During an outage of Redis it blocks, so that
// the caller takes no more from Postgres. It gives up runs that fail enqueueAttempts times
// while others succeed. The store delivers runs that were not enqueued again later, also
// those left when ctx is done. The error is that of ctx.
func (s *Scheduler) enqueue(ctx context.Context, page []store.Delivery) error {
	began := time.Now()
	var attempt, stuck int
	var stuckAt time.Time
	left := tasks(page)
	for len(left) > 0 {
		rest, err := s.tryEnqueue(ctx, left)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			s.redis.Succeeded()
			return nil
		}
		if len(rest) < len(left) {
			attempt, stuck = 0, 0
		} else {
			if stuck++; stuck == 1 {
				stuckAt = time.Now()
			}
			s.redis.Failed(err.Error())
		}
		left = rest
		if time.Since(began) >= holdMax || stuck >= enqueueAttempts && s.redis.SucceededSince(stuckAt) {
			s.log.WarnContext(ctx, "runs not enqueued, they will be delivered later", "tasks", len(left), "error", err)
			return nil
		}
		if err := backoff.Wait(ctx, pauses.Delay(attempt)); err != nil {
			return err
		}
		attempt++
	}
	return nil
}

// tasks divides deliveries into those that a task carries together.
func tasks(page []store.Delivery) (out [][]store.Delivery) {
	open := map[string]int{} // by trigger, the index of the task that may take more
	for _, d := range page {
		i, ok := open[d.Trigger]
		if !ok || len(out[i]) == jobs.PerTask(d.Trigger) {
			i = len(out)
			open[d.Trigger], out = i, append(out, nil)
		}
		out[i] = append(out[i], d)
	}
	return out
}

// tryEnqueue enqueues tasks concurrently until one fails. It returns those that are not
// enqueued, the failed ones last, and an error of one.
func (s *Scheduler) tryEnqueue(ctx context.Context, page [][]store.Delivery) ([][]store.Delivery, error) {
	var next atomic.Int64
	var failed atomic.Bool
	done := make([]bool, len(page))
	var g errgroup.Group
	for range min(enqueueConcurrency, len(page)) {
		g.Go(func() error {
			for !failed.Load() {
				i := int(next.Add(1)) - 1
				if i >= len(page) {
					return nil
				}
				runs := make([]store.RunID, len(page[i]))
				for j, d := range page[i] {
					runs[j] = d.Run
				}
				callCtx, cancel := context.WithTimeout(ctx, enqueueTimeout)
				err := s.queue.Enqueue(callCtx, page[i][0].Trigger, page[i][0].Attempt, runs...)
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
	for i, t := range page[:tried] {
		if !done[i] {
			rest = append(rest, t)
		}
	}
	return rest, err
}
