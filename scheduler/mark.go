package scheduler

import (
	"context"
	"fmt"
	"time"

	"github.com/sessionstore/compactor/strategies/backoff"
)

// markInterval is the interval at which the queue is marked, and the longest time until a
// loss of its content is noticed.
const markInterval = time.Second

// watchQueue marks the queue again and again; see mark. The error is that of ctx.
func (s *Scheduler) watchQueue(ctx context.Context, last string) error {
	for n := 2; ; n++ {
		if err := backoff.Wait(ctx, markInterval); err != nil {
			return err
		}
		var err error
		if last, err = s.mark(ctx, n, last); err != nil {
			return err
		}
	}
}

// mark marks the queue and returns its mark, or last if it could not. If the last mark is not
// there any more, Redis has lost what came after it: was flushed, restarted without its newest
// writes, or replaced. Then all runs that were enqueued are delivered again, which is what the
// workers take in about a second; a run that is delivered twice has one effect. The error is
// that of ctx.
func (s *Scheduler) mark(ctx context.Context, n int, last string) (string, error) {
	mark := fmt.Sprintf("%s:%d", s.cfg.Holder, n)
	callCtx, cancel := context.WithTimeout(ctx, enqueueTimeout)
	before, err := s.queue.Mark(callCtx, mark)
	cancel()
	switch {
	case ctx.Err() != nil:
		return last, ctx.Err()
	case err != nil:
		s.redis.Failed(err.Error())
		return last, nil
	}
	s.redis.Succeeded()
	// The first mark replaces one of an earlier leader.
	if before == "" || last != "" && before != last {
		runs, err := retry(ctx, s, "redeliver", s.store.RedeliverAll)
		if err != nil {
			return last, err
		}
		if last != "" {
			s.log.WarnContext(ctx, "the queue has lost its tasks, delivering them again", "runs", runs)
		}
	}
	return mark, nil
}
