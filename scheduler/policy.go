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
	// policyPoll is the interval between polls for changes of policies, which read one row.
	policyPoll = 2 * time.Second
	// The pause between two pages, in which writers get their locks, is as long as the page took,
	// within these bounds, and the least one behind a page that has changed no session.
	leastRefreshPause, mostRefreshPause = 5 * time.Millisecond, 50 * time.Millisecond
	// passPause is the pause before another pass over the sessions, in which the transactions
	// end that have kept the last one from seeing all of them.
	passPause = 5 * time.Second
)

// Thresholds returns the thresholds of sessions under a policy, sorted by model prefix in
// lower case: one for each of models, one for each model that the policy overrides, and one
// with an empty prefix for all others. A session is due above the policy's start, or by
// its triggers.
func Thresholds(p policy.Policy, models []string, window policy.WindowFunc, bindsReasoning func(model string) bool) []store.Threshold {
	prefixes := slices.Concat([]string{""}, models, slices.Collect(maps.Keys(p.Windows)),
		slices.Collect(maps.Keys(p.Guards.AutoCompactLimits)), p.BoundReasoning, p.FreeReasoning)
	for i, prefix := range prefixes {
		prefixes[i] = strings.ToLower(prefix)
	}
	slices.Sort(prefixes)
	var out []store.Threshold
	for _, prefix := range slices.Compact(prefixes) {
		bounds := p.Bounds(prefix, window)
		out = append(out, store.Threshold{
			ModelPrefix: prefix, DueTokens: bounds.Tokens, Counts: store.Counts(bounds.Counts), EstimateMargin: p.EstimateMargin,
			FreeReasoning: !p.BindsReasoning(prefix, bindsReasoning),
		})
	}
	return out
}

// SyncPolicy saves the policy of the configuration under its FleetHash and sets the
// thresholds of new sessions, for every policy in force. It is idempotent and does not
// retry. The leader calls it when its lead begins and when policies change, so the leader's
// configuration is in force, and then updates existing sessions. A policy that this version
// cannot read is logged, and keeps the thresholds that it has.
func (s *Scheduler) SyncPolicy(ctx context.Context) error {
	spec, err := json.Marshal(s.cfg.Policy)
	if err != nil {
		return fmt.Errorf("save policy: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := s.store.SavePolicy(ctx, s.cfg.Policy.FleetHash(), spec, s.thresholds(s.cfg.Policy)); err != nil {
		return err
	}
	named, err := s.store.Policies(ctx, "")
	if err != nil {
		return err
	}
	for _, v := range named {
		p, err := policy.ReadSpec(v.Spec)
		if err != nil {
			s.log.ErrorContext(ctx, "policy cannot be read, its sessions keep their thresholds", "policy", store.PolicyName(v.Name, v.Version), "error", err)
			continue
		}
		p.ModelTable = s.cfg.Policy.ModelTable
		if err := s.store.SaveThresholds(ctx, v.Name, v.Version, p.FleetHash(), s.thresholds(p)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Scheduler) thresholds(p policy.Policy) []store.Threshold {
	return Thresholds(p, s.cfg.Models, s.cfg.Window, s.cfg.BindsReasoning)
}

// runPolicy saves the policy, and again after every change of policies, and updates the
// sessions page by page until all follow.
func (s *Scheduler) runPolicy(ctx context.Context) error {
	synced, total := int64(-1), 0
	for {
		progress, err := retry(ctx, s, "progress of policies", s.store.PolicyProgress)
		if err != nil {
			return err
		}
		pause := policyPoll
		switch {
		case progress.Revision != synced:
			_, err := retry(ctx, s, "save policy", func(ctx context.Context) (struct{}, error) { return struct{}{}, s.SyncPolicy(ctx) })
			if err != nil {
				return err
			}
			// Its own changes have another revision, for which nothing is left to save.
			synced, pause = progress.Revision, 0
		case progress.Pending:
			n, more, err := s.refreshSessions(ctx)
			if err != nil {
				return err
			}
			if total += n; more > 0 {
				pause = more
			} else if total > 0 {
				s.log.InfoContext(ctx, "sessions follow the policies", "sessions", total)
				total = 0
			}
		}
		if err := backoff.Wait(ctx, pause); err != nil {
			return err
		}
	}
}

// refreshSessions updates a page of sessions. It returns the number of changed ones and the
// pause before the next page, 0 if there is none. The error is that of ctx.
func (s *Scheduler) refreshSessions(ctx context.Context) (changed int, pause time.Duration, err error) {
	var state string
	began := time.Now()
	changed, err = retry(ctx, s, "refresh sessions", func(ctx context.Context) (n int, err error) {
		n, state, err = s.store.RefreshSessions(ctx, s.cfg.PageSize)
		return n, err
	})
	switch state {
	case store.RefreshPage:
		pause = leastRefreshPause
		if changed > 0 {
			pause = min(max(time.Since(began), leastRefreshPause), mostRefreshPause)
		}
	case store.RefreshPass:
		pause = passPause
	}
	return changed, pause, err
}
