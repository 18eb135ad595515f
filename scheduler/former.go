package scheduler

import (
	"context"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
	"github.com/sessionstore/compactor/worker/jobs"
)

// drainFormer removes the tasks of this installation's runs from the queues of earlier
// versions, which no worker reads any more, and has the runs delivered again. The error is
// that of ctx.
func (s *Scheduler) drainFormer(ctx context.Context) error {
	total := 0
	for attempt := 0; ; {
		n, err := s.drainFormerOnce(ctx)
		total += n
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			if attempt == 0 {
				s.log.WarnContext(ctx, "queues of earlier versions not read, retrying", "error", err)
			}
			if err := backoff.Wait(ctx, pauses.Delay(attempt)); err != nil {
				return err
			}
			attempt++
		case n > 0: // tasks may have been missed
		default:
			if total > 0 {
				s.log.InfoContext(ctx, "tasks of an earlier version removed, their runs are delivered again", "tasks", total)
			}
			return nil
		}
	}
}

// drainFormerOnce makes one pass and returns the number of removed tasks.
func (s *Scheduler) drainFormerOnce(ctx context.Context) (removed int, err error) {
	tasks, err := s.queue.FormerTasks(ctx)
	if err != nil || len(tasks) == 0 {
		return 0, err
	}
	runs := make([]store.RunID, len(tasks))
	for i, t := range tasks {
		runs[i] = t.Run
	}
	known, err := retry(ctx, s, "redeliver", func(ctx context.Context) ([]store.Delivery, error) {
		return s.store.Redeliver(ctx, runs)
	})
	if err != nil {
		return 0, err
	}
	last := make(map[store.RunID]store.Delivery, len(known))
	for _, d := range known {
		last[d.Run] = d
	}
	for _, t := range tasks {
		// A task that does not fit the run of its id is one of another installation.
		// The command compact enqueues the first delivery without counting it.
		d, ok := last[t.Run]
		if !ok || t.Delivery > max(d.Attempt, 1) || t.Queue != jobs.FormerQueueFor(d.Trigger) {
			continue
		}
		if err := s.queue.RemoveFormerTask(t); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}
