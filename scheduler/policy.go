package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
	"github.com/sessionstore/compactor/strategies/policy"
)

const (
	// refreshPause lets writers in between two pages of refreshed sessions.
	refreshPause = 50 * time.Millisecond
	// refreshInterval is how often sessions are looked for that still have old
	// thresholds, or none: those whose run ended under another policy, and those
	// made before there was one.
	refreshInterval = time.Minute
)

// Thresholds returns what sessions start with under a policy, by model prefix: one for
// every entry of models, one for every override of the policy, and ” for the
// rest, in order of prefix. A session is due above the policy's start.
func Thresholds(p policy.Policy, models []string, window policy.WindowFunc) []store.Threshold {
	prefixes := prefixes(p, models)
	out := make([]store.Threshold, 0, len(prefixes))
	for _, prefix := range prefixes {
		out = append(out, store.Threshold{
			ModelPrefix: prefix, DueTokens: p.Limits(prefix, window).Start, EstimateMargin: p.EstimateMargin,
		})
	}
	return out
}

// prefixes returns the model prefixes that have thresholds, sorted.
func prefixes(p policy.Policy, models []string) []string {
	all := slices.Concat([]string{""}, models, slices.Collect(maps.Keys(p.Windows)))
	slices.Sort(all)
	return slices.Compact(all)
}

// SyncPolicy saves the policy under its FleetHash, which the worker leaves on
// sessions too, and makes its thresholds those of new sessions. It tries once and is safe to repeat. A leader does it by itself, so the policy of
// the leader is the one in force; the leader also takes the thresholds to the
// sessions that are there already.
func (s *Scheduler) SyncPolicy(ctx context.Context) error {
	spec, err := json.Marshal(s.cfg.Policy)
	if err != nil {
		return fmt.Errorf("save policy: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return s.store.SavePolicy(ctx, s.cfg.Policy.FleetHash(), spec, Thresholds(s.cfg.Policy, s.cfg.Models, s.cfg.Window))
}

// runPolicy saves the policy and gives all sessions its thresholds, page by page.
// Sessions that were locked meanwhile follow with the next pass.
func (s *Scheduler) runPolicy(ctx context.Context) error {
	_, err := retry(ctx, s, "save policy", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.SyncPolicy(ctx)
	})
	if err != nil {
		return err
	}
	for {
		total, err := s.refreshAll(ctx)
		if err != nil {
			return err
		}
		pause := refreshInterval
		if total > 0 {
			s.log.InfoContext(ctx, "sessions follow the policy", "sessions", total)
			pause = s.cfg.ReconcileInterval
		}
		if err := backoff.Wait(ctx, pause); err != nil {
			return err
		}
	}
}

// refreshAll gives every session the saved thresholds and reports how many were
// changed. It passes over the sessions until a pass finds none to change: those that
// somebody held the last time. The error is ctx's.
func (s *Scheduler) refreshAll(ctx context.Context) (total int, err error) {
	pass, after := 0, int64(0)
	for {
		n, err := retry(ctx, s, "refresh thresholds", func(ctx context.Context) (int, error) {
			n, next, err := s.store.RefreshThresholds(ctx, after, s.cfg.PageSize)
			if err == nil {
				after = next
			}
			return n, err
		})
		if err != nil {
			return total, err
		}
		total, pass = total+n, pass+n
		if after == 0 {
			if pass == 0 {
				return total, nil
			}
			pass = 0
		}
		if err := backoff.Wait(ctx, refreshPause); err != nil {
			return total, err
		}
	}
}
