package scheduler

import (
	"context"
	"time"

	"github.com/sessionstore/compactor/strategies/backoff"
)

// attachedInterval is how long after a drain of attached tables the next one begins.
const attachedInterval = time.Second

// runAttached brings rows of attached tables into the log.
func (s *Scheduler) runAttached(ctx context.Context) error {
	for s.cfg.Attached != nil {
		more, err := retry(ctx, s, "read attached tables", s.cfg.Attached)
		if err != nil {
			return err
		}
		if !more {
			if err := backoff.Wait(ctx, attachedInterval); err != nil {
				return err
			}
		}
	}
	return nil
}
