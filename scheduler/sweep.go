package scheduler

import (
	"context"
	"time"

	"github.com/sessionstore/compactor/store"
)

// sweepPoll is the interval between polls for sweeps and bulk recompactions that other processes
// start.
const sweepPoll = 200 * time.Millisecond

// runSweeps executes the open sweeps.
func (s *Scheduler) runSweeps(ctx context.Context) error {
	return runPages(ctx, s, store.TriggerNightly, s.sweepNow, s.store.OpenSweeps, s.sweepPage)
}

// runBulkCompacts executes the open bulk recompactions.
func (s *Scheduler) runBulkCompacts(ctx context.Context) error {
	return runPages(ctx, s, store.TriggerBulk, nil, s.store.OpenBulkCompacts, s.bulkCompactPage)
}

// runPages takes a page of each open piece of work in turn, as fast as the workers take the
// runs, which have the given trigger.
func runPages[W any](ctx context.Context, s *Scheduler, trigger string, wake <-chan struct{}, list func(context.Context) ([]W, error),
	page func(context.Context, W, *credit) (int, error),
) error {
	c := s.newCredit(trigger)
	for {
		open, err := retry(ctx, s, "open "+trigger, list)
		if err != nil {
			return err
		}
		busy := false
		for _, w := range open {
			n, err := page(ctx, w, c)
			if err != nil {
				return err
			}
			busy = busy || n > 0
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
		case <-wake:
			poll.Stop()
		case <-poll.C:
		}
	}
}

// bulkCompactPage takes a page of a bulk recompaction, enqueues its runs and returns the number
// of sessions that there was credit for, 0 if there is nothing more to do now. The relay delivers
// runs that could not be enqueued.
func (s *Scheduler) bulkCompactPage(ctx context.Context, id int64, c *credit) (free int, err error) {
	if free, err = c.available(ctx); err != nil || free == 0 {
		return 0, err
	}
	var more bool
	page, err := retry(ctx, s, ReasonBulk, func(ctx context.Context) (page []store.Delivery, err error) {
		page, more, err = s.store.BulkCompactPage(ctx, id, free, s.cfg.RedeliverAfter)
		return page, err
	})
	if err != nil {
		return 0, err
	}
	s.cfg.Observer.Took(ReasonBulk, len(page))
	c.spend(len(page))
	if err := s.enqueue(ctx, page); err != nil || more {
		return free, err
	}
	return 0, nil
}

// sweepPage takes a page of a sweep, enqueues its runs and returns the number of sessions. Without credit
// there are none, but a sweep whose window has ended stops. The relay delivers runs that could
// not be enqueued. A sweep that waits for policies has no page.
func (s *Scheduler) sweepPage(ctx context.Context, sw store.Sweep, c *credit) (queued int, err error) {
	if sw.Waits {
		return 0, nil
	}
	free, err := c.available(ctx)
	if err != nil {
		return 0, err
	}
	if free > 0 && s.rules.alone == sw.ID {
		free = s.cfg.PageSize
	}
	page, err := retry(ctx, s, ReasonSweep, func(ctx context.Context) (page store.SweptPage, err error) {
		for first := true; ; first = false {
			page, err = s.store.SweepTogether(ctx, sw.ID, free, s.cfg.RedeliverAfter, s.rules.known, s.cfg.Holder)
			if err != nil || len(page.Unknown) == 0 {
				return page, err
			}
			if first && len(s.rules.known) >= maxRules { // later ones are for the same page, which needs them all
				s.rules = newRules(true)
			}
			if err := s.learn(ctx, page.Unknown); err != nil {
				return page, err
			}
		}
	})
	if err != nil {
		return 0, err
	}
	if s.rules.alone = 0; page.Ended > 0 && len(page.Queued) == 0 {
		s.rules.alone = sw.ID
	}
	s.cfg.Observer.Took(ReasonSweep, len(page.Queued))
	s.cfg.Observer.Truncated(page.Ended)
	c.spend(len(page.Queued))
	decided := page.Ended + len(page.Queued)
	if err := s.enqueue(ctx, page.Queued); err != nil || !page.Done {
		return decided, err
	}
	s.log.InfoContext(ctx, "sweep ended", "sweep_id", sw.ID, "entry", sw.Entry, "tick", sw.Tick.UTC(), "queued", sw.Queued+int64(decided))
	return 0, nil
}

// rules are those that sweeps truncate sessions by.
type rules struct {
	known []store.Truncation // nil: all sessions take runs
	// alone is the sweep whose last page the database has ended alone, 0 for none: the next one
	// is not likely to need credit.
	alone int64
}

func newRules(truncates bool) (r rules) {
	if truncates {
		r.known = []store.Truncation{}
	}
	return r
}

// maxRules is the number of rules, which each page reads, from which on a page that lacks some
// begins anew with those of its own sessions: applications choose the model names.
const maxRules = 200

// learn adds the rules of kinds of sessions.
func (s *Scheduler) learn(ctx context.Context, kinds []store.SessionKind) error {
	for _, k := range kinds {
		rule, err := s.cfg.Truncation(ctx, k)
		if err != nil {
			return err
		}
		s.rules.known = append(s.rules.known, rule)
	}
	return nil
}

// wakeSweeps makes the sweep loop of this scheduler poll now, if it runs.
func (s *Scheduler) wakeSweeps() {
	select {
	case s.sweepNow <- struct{}{}:
	default:
	}
}
