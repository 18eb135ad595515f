package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
	"github.com/sessionstore/compactor/strategies/policy"
)

const (
	// refreshPause is the pause between two pages, in which writers get their locks.
	refreshPause = 50 * time.Millisecond
	// refreshInterval is the interval between searches for sessions with old thresholds
	// or none: their run ended under another policy, or they are older than the first
	// policy.
	refreshInterval = time.Minute
)

// Thresholds returns the thresholds of sessions under a policy, sorted by model prefix in
// lower case: one for each of models, one for each model that the policy overrides, and one
// with an empty prefix for all others. A session is due above the policy's start.
func Thresholds(p policy.Policy, models []string, window policy.WindowFunc, bindsReasoning func(model string) bool) []store.Threshold {
	prefixes := slices.Concat([]string{""}, models, slices.Collect(maps.Keys(p.Windows)), p.BoundReasoning, p.FreeReasoning)
	for i, prefix := range prefixes {
		prefixes[i] = strings.ToLower(prefix)
	}
	slices.Sort(prefixes)
	var out []store.Threshold
	for _, prefix := range slices.Compact(prefixes) {
		out = append(out, store.Threshold{
			ModelPrefix: prefix, DueTokens: p.Limits(prefix, window).Start, EstimateMargin: p.EstimateMargin,
			FreeReasoning: !p.BindsReasoning(prefix, bindsReasoning),
		})
	}
	return out
}

// SyncPolicy saves the policy under its FleetHash and sets the thresholds of new sessions.
// It is idempotent and does not retry. The leader calls it when its lead begins, so the
// leader's policy is in force, and then updates the thresholds of existing sessions.
func (s *Scheduler) SyncPolicy(ctx context.Context) error {
	spec, err := json.Marshal(s.cfg.Policy)
	if err != nil {
		return fmt.Errorf("save policy: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return s.store.SavePolicy(ctx, s.cfg.Policy.FleetHash(), spec, Thresholds(s.cfg.Policy, s.cfg.Models, s.cfg.Window, s.cfg.BindsReasoning))
}

// runPolicy saves the policy, then updates the thresholds of all sessions again and
// again, page by page. A pass skips locked sessions; a later one updates them.
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
			s.log.InfoContext(ctx, "thresholds of sessions updated", "sessions", total)
			pause = s.cfg.ReconcileInterval
		}
		if err := backoff.Wait(ctx, pause); err != nil {
			return err
		}
	}
}

// refreshAll updates the thresholds of all sessions and returns the number of changed
// ones. It repeats its pass until one changes none, as a pass skips locked sessions. The
// error is that of ctx.
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
