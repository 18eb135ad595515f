package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sessionstore/compactor/store"
)

func (f *fakeStore) SavePolicy(ctx context.Context, hash string, spec json.RawMessage, _ []store.Threshold) error {
	if err := f.enter(ctx, "save policy"); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.saved, f.spec = append(f.saved, hash), spec
	return nil
}

func (f *fakeStore) Policies(ctx context.Context, _ string) ([]store.PolicyVersion, error) {
	if err := f.enter(ctx, "policies"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.policies), nil
}

func (f *fakeStore) SaveThresholds(ctx context.Context, name string, version int, _ string, ts []store.Threshold) error {
	if err := f.enter(ctx, "save thresholds"); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.saved = append(f.saved, fmt.Sprintf("%s@%d %d", name, version, ts[0].DueTokens))
	return nil
}

func (f *fakeStore) PolicyProgress(ctx context.Context) (store.PolicyProgress, error) {
	if err := f.enter(ctx, "progress"); err != nil {
		return store.PolicyProgress{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return store.PolicyProgress{Revision: f.revision, Reached: f.reached, Pending: f.reached < f.revision}, nil
}

// left returns the number of sessions that do not follow the policies.
func (f *fakeStore) left() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stale
}

func (f *fakeStore) RefreshSessions(ctx context.Context, limit int) (int, string, error) {
	if err := f.enter(ctx, "refresh"); err != nil {
		return 0, "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reached == f.revision {
		return 0, store.RefreshIdle, nil
	}
	n := min(limit, f.stale-f.locked)
	f.stale -= n
	switch {
	case n == limit:
		return n, store.RefreshPage, nil
	case f.locked > 0:
		f.locked = 0
		return n, store.RefreshPass, nil
	}
	f.reached = f.revision
	return n, store.RefreshDone, nil
}
