package scheduler

import (
	"context"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
)

// firstReconcile is the delay before a new leader searches for lost work.
const firstReconcile = 2 * time.Second

// busyTime is how long after an event the outbox is polled busyPolls times in a
// RelayInterval: events come together, and each waits for half of the interval.
const (
	busyTime  = time.Second
	busyPolls = 5
)

// The longest time between two looks at the outbox without work. With notifications it is
// the delay after a lost one; a session that waits for something else than time is looked for every
// RelayInterval.
const (
	longPoll   = time.Second
	pooledPoll = 4 // RelayIntervals, without notifications
)

// releasePoll is the interval at which sessions that wait for a limit of runs per second are
// given back to the relay.
const releasePoll = 100 * time.Millisecond

// runRelay enqueues event runs for the sessions in the outbox and, every RelayInterval, the
// runs whose delivery is due. It pauses when no page is full. While too many event runs wait
// for a worker, sessions stay in the outbox; while too many that applications requested do,
// those stay in Postgres. The other deliveries continue.
func (s *Scheduler) runRelay(ctx context.Context) error {
	credit, requests := s.newCredit(store.TriggerEvent), s.newCredit(store.TriggerApplication)
	var busyUntil, delivered, released time.Time
	var way string
	defer func() { _ = s.awake(ctx) }()
	for {
		if time.Since(released) >= releasePoll {
			released = time.Now()
			if _, err := retry(ctx, s, "release throttled runs", s.store.ReleaseThrottled); err != nil {
				return err
			}
		}
		full, found, err := s.relay(ctx, credit)
		if err != nil {
			return err
		}
		if found {
			busyUntil = time.Now().Add(busyTime)
		}
		if time.Since(delivered) >= s.cfg.RelayInterval {
			delivered = time.Now()
			more, err := s.redeliver(ctx, requests)
			if err != nil {
				return err
			}
			if more {
				full, delivered = true, time.Time{}
			}
		}
		if full {
			continue
		}
		if time.Now().Before(busyUntil) {
			if err := s.awake(ctx); err != nil {
				return err
			}
			if err := backoff.Wait(ctx, s.cfg.RelayInterval/busyPolls); err != nil {
				return err
			}
			continue
		}
		notified, err := s.sleep(ctx, &way)
		if err != nil {
			return err
		}
		if notified {
			busyUntil = time.Now().Add(busyTime)
			if err := s.awake(ctx); err != nil {
				return err
			}
		}
	}
}

// sleep waits for the next work of the relay and reports whether it was notified of some. It
// logs the way in which it waits where that is another one than before. The error is that of
// ctx.
func (s *Scheduler) sleep(ctx context.Context, way *string) (notified bool, err error) {
	next, err := retry(ctx, s, "next work", func(ctx context.Context) (time.Duration, error) {
		return s.store.NextWork(ctx, s.cfg.Policy.Debounce, s.cfg.Policy.MaxDelay, longPoll)
	})
	if err != nil {
		return false, err
	}
	if next = max(next, s.cfg.RelayInterval); next == s.cfg.RelayInterval {
		return false, backoff.Wait(ctx, next)
	}
	notified, err = s.store.Sleep(ctx, next)
	now, attrs := "notifications", []any{}
	if err != nil {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		now, attrs = "polling", []any{"reason", err}
		err = backoff.Wait(ctx, min(next, pooledPoll*s.cfg.RelayInterval))
	}
	if now != *way {
		*way = now
		s.log.InfoContext(ctx, "the relay waits for work", append(attrs, "by", now)...)
	}
	return notified, err
}

// awake has writers notify no longer. The error is that of ctx.
func (s *Scheduler) awake(ctx context.Context) error {
	callCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resignTimeout)
	defer cancel()
	_ = s.store.Awake(callCtx) // which unlocks in any case
	return ctx.Err()
}

// relay enqueues a page of event runs. full: there may be more, and credit for them.
func (s *Scheduler) relay(ctx context.Context, c *credit) (full, found bool, err error) {
	free, err := c.available(ctx)
	if err != nil || free == 0 {
		return false, false, err
	}
	n, err := s.deliver(ctx, ReasonEvent, free, func(ctx context.Context, limit int, grace time.Duration) ([]store.Delivery, error) {
		return s.store.Relay(ctx, s.cfg.Policy.Debounce, s.cfg.Policy.MaxDelay, limit, grace)
	})
	c.spend(n)
	return 2*n >= free, n > 0, err // a tenant has half of a page
}

// redeliver enqueues a page of the runs whose delivery is due, and reports whether there may
// be more. requests is the credit of those that applications requested.
func (s *Scheduler) redeliver(ctx context.Context, requests *credit) (more bool, err error) {
	free, err := requests.available(ctx)
	if err != nil {
		return false, err
	}
	n, err := s.deliver(ctx, ReasonDelivery, s.cfg.PageSize, func(ctx context.Context, limit int, grace time.Duration) ([]store.Delivery, error) {
		page, err := s.store.Deliver(ctx, free, limit, grace)
		for _, d := range page {
			if d.Trigger == store.TriggerApplication {
				requests.spend(1)
			}
		}
		return page, err
	})
	return n >= s.cfg.PageSize, err
}

// runOrphans enqueues runs whose worker's lease has expired.
func (s *Scheduler) runOrphans(ctx context.Context) error {
	return s.reconcile(ctx, "their workers are gone", func(ctx context.Context) (int, bool, error) {
		n, err := s.deliver(ctx, ReasonOrphaned, s.cfg.PageSize, s.store.Orphaned)
		return n, n >= s.cfg.PageSize, err
	})
}

// runForgotten enqueues runs for due sessions that have neither an outbox row nor a run:
// after a change of thresholds, or if an outbox row was lost.
func (s *Scheduler) runForgotten(ctx context.Context) error {
	credit := s.newCredit(store.TriggerEvent)
	return s.reconcile(ctx, "their sessions were due without a run, as after an import or a change of settings", func(ctx context.Context) (int, bool, error) {
		free, err := credit.wait(ctx)
		if err != nil {
			return 0, false, err
		}
		n, err := s.deliver(ctx, ReasonForgotten, free, s.store.Forgotten)
		credit.spend(n)
		return n, n > 0, err // a page in which tenants have shares need not be full
	})
}

// runTimes makes sessions due whose triggers wait for them to be idle; the relay does the rest.
func (s *Scheduler) runTimes(ctx context.Context) error {
	return s.reconcile(ctx, "timed", func(ctx context.Context) (int, bool, error) {
		n, err := retry(ctx, s, "check times", func(ctx context.Context) (int, error) { return s.store.CheckTimes(ctx, s.cfg.PageSize) })
		return 0, n >= s.cfg.PageSize, err
	})
}

// runTotals keeps the sums that spending limits are compared with.
func (s *Scheduler) runTotals(ctx context.Context) error {
	return s.reconcile(ctx, "spending", func(ctx context.Context) (int, bool, error) {
		_, err := retry(ctx, s, "sum spending", s.store.SumSpending)
		return 0, false, err
	})
}

const (
	// keepAnswers is how long the answers of models are kept: longer than any run is retried.
	keepAnswers = 7 * 24 * time.Hour
	// maxQueued is how long a run may be in the queue without an attempt of a worker. It is
	// delivered again and again meanwhile (see store.Undelivered) and then ends as failed.
	maxQueued = 7 * 24 * time.Hour

	purgeInterval = 10 * time.Minute
)

// runPurge ends or deletes everything that nothing else does: runs that no worker attempts, calls of models whose
// worker is gone, answers that no run can use any more, old ticks, and old runs that changed nothing.
func (s *Scheduler) runPurge(ctx context.Context) error {
	// How far PurgeRuns has come since began: runs that stay for good are passed once a day, not with each page.
	began, reached := time.Now(), store.RunMark{}
	purges := []struct {
		op   string
		page func(context.Context) (int64, error)
	}{
		{"expire runs", func(ctx context.Context) (int64, error) {
			n, err := s.store.Expire(ctx, maxQueued, s.cfg.PageSize)
			s.cfg.Observer.Expired(int(n))
			return n, err
		}},
		{"bound times", func(ctx context.Context) (int64, error) { return s.store.BoundTimes(ctx, s.cfg.RedeliverAfter) }},
		{"find lost calls", func(ctx context.Context) (int64, error) { return s.store.LoseCalls(ctx, s.cfg.PageSize) }},
		{"purge answers", func(ctx context.Context) (int64, error) {
			return s.store.PurgeAnswers(ctx, keepAnswers, s.cfg.PageSize)
		}},
		{"purge ticks", func(ctx context.Context) (int64, error) {
			return s.store.PurgeTicks(ctx, store.KeepTicks, s.cfg.PageSize)
		}},
		{"purge runs", func(ctx context.Context) (int64, error) {
			if s.cfg.KeepRuns == 0 {
				return 0, nil
			}
			if time.Since(began) > 24*time.Hour { // runs that were locked, or still counted
				began, reached = time.Now(), store.RunMark{}
			}
			to, n, err := s.store.PurgeRuns(ctx, s.cfg.KeepRuns, reached, s.cfg.PageSize)
			if err == nil {
				reached = to
			}
			return n, err
		}},
	}
	for {
		for _, p := range purges {
			for n := s.cfg.PageSize; n >= s.cfg.PageSize; {
				ended, err := retry(ctx, s, p.op, p.page)
				if err != nil {
					return err
				}
				n = int(ended)
			}
		}
		if err := backoff.Wait(ctx, purgeInterval); err != nil {
			return err
		}
	}
}

// reconcile calls page until there is no more, first after firstReconcile and then every
// ReconcileInterval, and logs the number of runs with the reason.
func (s *Scheduler) reconcile(ctx context.Context, reason string, page func(context.Context) (runs int, more bool, err error)) error {
	for pause := min(firstReconcile, s.cfg.ReconcileInterval); ; pause = s.cfg.ReconcileInterval {
		if err := backoff.Wait(ctx, pause); err != nil {
			return err
		}
		total := 0
		for more := true; more; {
			var n int
			var err error
			if n, more, err = page(ctx); err != nil {
				return err
			}
			total += n
		}
		if total > 0 {
			s.log.InfoContext(ctx, "runs enqueued", "reason", reason, "runs", total)
		}
	}
}

// deliver takes up to limit deliveries from the store, enqueues them and returns their
// number. The error is that of ctx.
func (s *Scheduler) deliver(ctx context.Context, reason string, limit int, take func(ctx context.Context, limit int, grace time.Duration) ([]store.Delivery, error)) (int, error) {
	page, err := retry(ctx, s, reason, func(ctx context.Context) ([]store.Delivery, error) {
		return take(ctx, limit, s.cfg.RedeliverAfter)
	})
	if err != nil {
		return 0, err
	}
	s.cfg.Observer.Took(reason, len(page))
	return len(page), s.enqueue(ctx, page)
}
