package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
)

// stormPolicy is a policy of the program, with other limits in each version.
const stormPolicy = `name: storm
match: {agent: storm}
start_tokens: %d
target_tokens: %d
min_gain_tokens: 50
cooldown: 2s
summary: {size: {min_tokens: 200}, cooldown: 1s, cooldown_no_model: 2s}
`

// govern does what operators do with the fleet: sweeps, pauses, policies, bulk undos and recompactions.
func (in *installation) govern(ctx context.Context, r *rand.Rand) {
	for version := 0; ctx.Err() == nil; version++ {
		what, err := in.government(ctx, r, version)
		switch {
		case err == nil:
			in.counted.add(what)
		case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrNotApplicable), errors.Is(err, store.ErrInUse), errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrInvalid):
			in.counted.add(what + " refused")
		case !transient(err):
			in.t.Errorf("%s: %s: %v", in.schema, what, err)
		}
		_ = backoff.Wait(ctx, time.Duration(r.IntN(1500))*time.Millisecond)
	}
}

func (in *installation) government(ctx context.Context, r *rand.Rand, version int) (what string, err error) {
	tenant := append([]string{""}, stormTenants...)[r.IntN(1+len(stormTenants))]
	switch r.IntN(11) {
	case 0:
		_, err := in.store.Operator.StartSweep(ctx, tenant, 0, "", "storm")
		return "sweep started", err
	case 1:
		sweeps, err := in.store.Operator.Sweeps(ctx, 0, 3)
		if err != nil || len(sweeps) == 0 {
			return "sweep steered", err
		}
		action := []string{store.SweepPause, store.SweepResume, store.SweepCancel}[r.IntN(3)]
		return "sweep steered", in.store.Operator.SteerSweep(ctx, sweeps[r.IntN(len(sweeps))].ID, action, "", "storm", 0)
	case 2:
		model := []string{"", stormModels[r.IntN(len(stormModels))]}[r.IntN(2)]
		scope := store.PauseScope{Tenant: tenant, Model: model, Policy: []string{"", "default"}[r.IntN(2)]}
		if err := in.store.Operator.PauseRuns(ctx, scope, "storm", "storm"); err != nil {
			return "pause", err
		}
		_ = backoff.Wait(ctx, time.Duration(r.IntN(1500))*time.Millisecond)
		return "pause", in.resume(scope)
	case 3, 6:
		if r.IntN(2) == 0 {
			return "parent", in.store.SetParent(ctx, in.recent(r).key, in.recent(r).key.Session)
		}
		return "labels", in.store.SetLabels(ctx, in.recent(r).key, map[string]string{"agent": []string{"storm", "calm"}[r.IntN(2)]})
	case 4:
		return "policy applied", in.applyPolicy(ctx, version)
	case 7, 9, 10:
		return "fork", in.fork(ctx, r, version)
	case 5:
		return "bulk compact", in.compactMany(ctx, r, tenant)
	default:
		return "bulk undo", in.undoMany(ctx, r, tenant)
	}
}

// resume ends a pause, whatever dies meanwhile.
func (in *installation) resume(scope store.PauseScope) error {
	ctx := context.WithoutCancel(in.t.Context())
	for deadline := time.Now().Add(stormQuiet); ; {
		err := in.store.Operator.ResumeRuns(ctx, scope, "storm")
		if err == nil || !transient(err) || time.Now().After(deadline) {
			return err
		}
		_ = backoff.Wait(ctx, 20*time.Millisecond)
	}
}

// applyPolicy puts another version of the policy in force, by the program.
func (in *installation) applyPolicy(ctx context.Context, version int) error {
	path := filepath.Join(in.folder, fmt.Sprintf("policy-%s-%d.yaml", in.schema, version))
	if err := os.WriteFile(path, fmt.Appendf(nil, stormPolicy, 2500+100*(version%9), 1500), 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, in.binary, "policy", "apply", path, "--yes", "--config", in.config)
	cmd.Env = in.environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %w: %s", store.ErrUnavailable, err, out) // connections are cut meanwhile
	}
	return nil
}

// undoMany undoes some of what matches, and leaves the rest for later.
func (in *installation) undoMany(ctx context.Context, r *rand.Rand, tenant string) error {
	m := store.RunMatch{Strategy: []string{"handoff", "truncation"}[r.IntN(2)], Since: time.Now().Add(-10 * time.Second)}
	id, err := in.store.Operator.StartBulkUndo(ctx, tenant, m, r.IntN(2) == 0, "", "storm")
	if err != nil {
		return err
	}
	for range r.IntN(8) {
		step, err := in.store.Operator.NextBulkUndo(ctx, id)
		if err != nil || step.Run == 0 {
			return err
		}
		in.counted.add("bulk undo: " + step.Code)
	}
	return in.store.Operator.CancelBulk(ctx, store.BulkUndo, id, "ada")
}

// compactMany compacts again what matches, or the part that the scheduler comes to.
func (in *installation) compactMany(ctx context.Context, r *rand.Rand, tenant string) error {
	m := store.RunMatch{Outcome: []string{OutcomeApplied, OutcomeAboveTarget}[r.IntN(2)], Since: time.Now().Add(-10 * time.Second)}
	id, err := in.store.Operator.StartBulkCompact(ctx, tenant, m, store.Options{From: []string{"", "view"}[r.IntN(2)]}, 0, "", "storm")
	if err != nil || r.IntN(2) == 0 {
		return err
	}
	_ = backoff.Wait(ctx, time.Duration(r.IntN(200))*time.Millisecond)
	return in.store.Operator.CancelBulk(ctx, store.BulkCompact, id, "ada")
}
