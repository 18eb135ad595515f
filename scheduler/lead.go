package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sessionstore/compactor/strategies/backoff"
)

// role is the lease's name.
const role = "scheduler"

// Why a lead ended before the shutdown.
var (
	errLeadLost   = errors.New("another scheduler has it")
	errNotRenewed = errors.New("it could not be renewed in time")
)

// takeLead asks for the lead until it gets an answer. sent is when it asked: the
// lease runs for LeaderTTL from then at least. The error is ctx's.
func (s *Scheduler) takeLead(ctx context.Context) (sent time.Time, leading bool, err error) {
	leading, err = retry(ctx, s, "take the lead", func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, s.cfg.LeaderTTL/3)
		defer cancel()
		sent = time.Now()
		return s.store.Lead(ctx, role, s.cfg.Holder, s.cfg.LeaderTTL)
	})
	return sent, leading, err
}

// lead works until ctx is done or the lead is lost, and returns when everything
// it started has ended.
func (s *Scheduler) lead(ctx context.Context, sent, started time.Time) {
	s.log.InfoContext(ctx, "leading", "holder", s.cfg.Holder)
	g, gctx := errgroup.WithContext(ctx)
	// The loops end only with gctx, and gctx only with ctx or a failed renewal.
	g.Go(func() error { return s.renew(gctx, sent) })
	g.Go(func() error { return s.runCron(gctx, started) })
	g.Go(func() error { return s.runSweeps(gctx) })
	g.Go(func() error { return s.runRelay(gctx) })
	g.Go(func() error { return s.runOrphans(gctx) })
	g.Go(func() error { return s.runForgotten(gctx) })
	g.Go(func() error { return s.runPolicy(gctx) })
	g.Go(func() error { return s.runPurge(gctx) })
	if err := g.Wait(); ctx.Err() == nil {
		s.log.WarnContext(ctx, "lead lost, pausing", "holder", s.cfg.Holder, "error", err)
	}
}

// renew extends the lease every third of its time. It returns errNotRenewed with
// a fifth of that time to spare, so that the loops rest before the lease can be
// another's.
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
			s.database.ok()
			sent, pause = asked, ttl/3
		case left <= 0:
			return fmt.Errorf("%w: %w", errNotRenewed, err)
		default:
			s.noteUnavailable(err)
			pause = min(ttl/10, left)
		}
	}
}

// resign frees the lease for the next scheduler; without it that one waits for
// the lease to expire.
func (s *Scheduler) resign(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resignTimeout)
	defer cancel()
	if err := s.store.Resign(ctx, role, s.cfg.Holder); err != nil {
		s.log.WarnContext(ctx, "lead not given up, it will expire", "holder", s.cfg.Holder, "error", err)
	}
}
