package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sessionstore/compactor/strategies/backoff"
)

// role is the name of the lease.
const role = "scheduler"

// The errors that end a lead before the shutdown.
var (
	errLeadLost   = errors.New("another scheduler holds the lease")
	errNotRenewed = errors.New("lease not renewed in time")
)

// takeLead tries to take the lease and reports whether it did. The lease lasts for at
// least LeaderTTL from sent, the time of the request. The error is that of ctx.
func (s *Scheduler) takeLead(ctx context.Context) (sent time.Time, leading bool, err error) {
	leading, err = retry(ctx, s, "take the lead", func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, s.cfg.LeaderTTL/3)
		defer cancel()
		sent = time.Now()
		return s.store.Lead(ctx, role, s.cfg.Holder, s.cfg.LeaderTTL)
	})
	return sent, leading, err
}

// lead runs the loops of the leader until ctx is done or the lease is lost, and waits for
// them.
func (s *Scheduler) lead(ctx context.Context, sent, started time.Time) {
	s.log.InfoContext(ctx, "leading", "holder", s.cfg.Holder)
	s.cfg.Observer.Leading(true)
	defer s.cfg.Observer.Leading(false)
	g, gctx := errgroup.WithContext(ctx)
	// Only renew returns an error while ctx lasts; it ends the other loops.
	g.Go(func() error { return s.renew(gctx, sent) })
	// Before anything is enqueued, which would be delivered twice.
	if mark, err := s.mark(gctx, 1, ""); err == nil {
		g.Go(func() error { return s.watchQueue(gctx, mark) })
	}
	for _, e := range s.entries {
		g.Go(func() error { return s.runCron(gctx, e, started) })
	}
	g.Go(func() error { return s.runSweeps(gctx) })
	g.Go(func() error { return s.runBulkCompacts(gctx) })
	g.Go(func() error { return s.runRelay(gctx) })
	g.Go(func() error { return s.runOrphans(gctx) })
	g.Go(func() error { return s.runForgotten(gctx) })
	g.Go(func() error { return s.runTimes(gctx) })
	g.Go(func() error { return s.runTotals(gctx) })
	for _, b := range s.cfg.Siblings {
		g.Go(func() error { return s.runSibling(gctx, b) })
	}
	g.Go(func() error { return s.runPolicy(gctx) })
	g.Go(func() error { return s.runAttached(gctx) })
	g.Go(func() error { return s.runPurge(gctx) })
	g.Go(func() error { return s.runRetention(gctx) })
	if err := g.Wait(); ctx.Err() == nil {
		s.log.WarnContext(ctx, "lead lost, pausing", "holder", s.cfg.Holder, "error", err)
	}
}

// renew extends the lease every third of LeaderTTL. It returns errNotRenewed a fifth of
// LeaderTTL before the lease expires, so that the loops have ended when another scheduler
// takes it.
func (s *Scheduler) renew(ctx context.Context, sent time.Time) error {
	ttl := s.cfg.LeaderTTL
	for pause := ttl / 3; ; {
		if err := backoff.Wait(ctx, pause); err != nil {
			return err
		}
		asked, until := time.Now(), sent.Add(ttl-ttl/5)
		deadline := asked.Add(ttl / 3)
		if until.Before(deadline) {
			deadline = until
		}
		callCtx, cancel := context.WithDeadline(ctx, deadline)
		leading, err := s.store.Lead(callCtx, role, s.cfg.Holder, ttl)
		cancel()
		switch left := time.Until(until); {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && !leading:
			return errLeadLost
		case err == nil:
			s.database.Succeeded()
			sent, pause = asked, ttl/3
		case left <= 0:
			return fmt.Errorf("%w: %w", errNotRenewed, err)
		default:
			s.noteUnavailable(err)
			pause = min(ttl/10, left)
		}
	}
}

// resign releases the lease, so that another scheduler need not wait until it expires.
func (s *Scheduler) resign(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resignTimeout)
	defer cancel()
	if err := s.store.Resign(ctx, role, s.cfg.Holder); err != nil {
		s.log.WarnContext(ctx, "lease not released, it will expire", "holder", s.cfg.Holder, "error", err)
	}
}
