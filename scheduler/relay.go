package scheduler

import (
	"context"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
)

// firstReconcile is how soon a new leader looks for what the last one lost.
const firstReconcile = 2 * time.Second

// runRelay turns written sessions into event runs and rings for them, and for
// every run whose delivery is due, in this order, as long as pages are full; then
// it rests for RelayInterval. While too many event runs wait for a worker,
// sessions stay in the outbox, and other deliveries go on.
func (s *Scheduler) runRelay(ctx context.Context) error {
	r := s.newRoom(store.TriggerEvent)
	for {
		open, err := r.open(ctx)
		if err != nil {
			return err
		}
		full := false
		if open {
			n, err := s.deliver(ctx, "relay", func(ctx context.Context) ([]store.Delivery, error) {
				return s.store.Relay(ctx, s.cfg.Policy.Debounce, s.cfg.Policy.MaxDelay, s.cfg.PageSize, s.cfg.RedeliverAfter)
			})
			if err != nil {
				return err
			}
			r.take(n)
			full = n >= s.cfg.PageSize
		}
		n, err := s.deliver(ctx, "deliver", func(ctx context.Context) ([]store.Delivery, error) {
			return s.store.Undelivered(ctx, s.cfg.PageSize, s.cfg.RedeliverAfter)
		})
		if err != nil {
			return err
		}
		if full || n >= s.cfg.PageSize {
			continue
		}
		if err := backoff.Wait(ctx, s.cfg.RelayInterval); err != nil {
			return err
		}
	}
}

// runOrphans rings for runs whose worker is gone.
func (s *Scheduler) runOrphans(ctx context.Context) error {
	return s.reconcile(ctx, "orphaned", func(ctx context.Context) (int, error) {
		return s.deliver(ctx, "find orphans", func(ctx context.Context) ([]store.Delivery, error) {
			return s.store.Orphaned(ctx, s.cfg.PageSize, s.cfg.RedeliverAfter)
		})
	})
}

// runForgotten queues runs for sessions that are due though nothing says so but
// the session itself: after a change of thresholds, or if an outbox row was lost.
func (s *Scheduler) runForgotten(ctx context.Context) error {
	r := s.newRoom(store.TriggerEvent)
	return s.reconcile(ctx, "forgotten", func(ctx context.Context) (int, error) {
		if err := r.wait(ctx); err != nil {
			return 0, err
		}
		n, err := s.deliver(ctx, "find due sessions", func(ctx context.Context) ([]store.Delivery, error) {
			return s.store.Forgotten(ctx, s.cfg.PageSize, s.cfg.RedeliverAfter)
		})
		r.take(n)
		return n, err
	})
}

// keepAnswers is how long the words of models are kept beside the summaries made of
// them: longer than any run is tried again.
const keepAnswers = 7 * 24 * time.Hour

// runPurge forgets answers that no run can want any more.
func (s *Scheduler) runPurge(ctx context.Context) error {
	for {
		n, err := retry(ctx, s, "purge answers", func(ctx context.Context) (int64, error) {
			return s.store.PurgeAnswers(ctx, keepAnswers, s.cfg.PageSize)
		})
		if err != nil {
			return err
		}
		if int(n) >= s.cfg.PageSize {
			continue
		}
		if err := backoff.Wait(ctx, purgeInterval); err != nil {
			return err
		}
	}
}

const purgeInterval = 10 * time.Minute

// reconcile takes pages until one is not full, soon at first and then every
// ReconcileInterval, and logs how much it found.
func (s *Scheduler) reconcile(ctx context.Context, kind string, page func(context.Context) (int, error)) error {
	for pause := min(firstReconcile, s.cfg.ReconcileInterval); ; pause = s.cfg.ReconcileInterval {
		if err := backoff.Wait(ctx, pause); err != nil {
			return err
		}
		total, n := 0, s.cfg.PageSize
		for n >= s.cfg.PageSize {
			var err error
			if n, err = page(ctx); err != nil {
				return err
			}
			total += n
		}
		if total > 0 {
			s.log.InfoContext(ctx, "lost work found", "kind", kind, "runs", total)
		}
	}
}

// deliver takes a page of deliveries from the store and rings for each. It
// returns how many there were; the error is ctx's.
func (s *Scheduler) deliver(ctx context.Context, op string, take func(context.Context) ([]store.Delivery, error)) (int, error) {
	page, err := retry(ctx, s, op, take)
	if err != nil {
		return 0, err
	}
	return len(page), s.ring(ctx, page)
}
