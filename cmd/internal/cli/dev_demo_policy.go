//go:build !nodev

package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/policies"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
	"github.com/sessionstore/compactor/strategies/policy"
)

// tighterPolicy is the name of the policy that the demo applies.
const tighterPolicy = "tighter"

// tighter returns a policy for the sessions of a tenant that starts and ends at three fifths
// of the sizes of p.
func tighter(p policy.Policy, tenant string) config.PolicyFile {
	const share = 3.0 / 5
	p.Start, p.Target = share*p.Start, share*p.Target
	p.StartTokens, p.TargetTokens = p.StartTokens*3/5, p.TargetTokens*3/5
	return config.PolicyFile{Name: tighterPolicy, Match: policy.Match{"tenant": tenant}, Policy: p, Note: "demo"}
}

// governed applies a policy and sweeps the sessions that it makes due: what a change of
// policy does to a fleet, with the forecast before and the report after.
func (d *demo) governed(ctx context.Context) error {
	st, cfg := d.app.Store, d.app.Config
	shown := d.shown()
	to, err := policies.NewVersion(policies.File{PolicyFile: tighter(cfg.Policy, cfg.Tenant)})
	if err != nil {
		return err
	}
	step, err := policies.NewStep(cfg, tighterPolicy, nil, to)
	if err != nil {
		return err
	}
	d.step("policy", "%s is applied: tenant %s starts at three fifths of the size, as `compactor policy apply` does", tighterPolicy, cfg.Tenant)
	effects, err := st.Operator.PreviewPolicies(ctx, []store.PolicyChange{step.Change})
	if err != nil {
		return err
	}
	writeEffects(shown, effects)
	if _, err := st.Operator.ChangePolicies(ctx, []store.PolicyChange{step.Change}, d.env.by()); err != nil {
		return err
	}
	for {
		p, err := st.PolicyProgress(ctx)
		if err != nil {
			return err
		}
		if !p.Pending {
			break
		}
		if err := backoff.Wait(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	if b, err := st.Scheduler.Backlog(ctx); err != nil || b.Due == 0 {
		d.step("", "no session becomes due by it")
		return err
	}
	fmt.Fprintln(d.out.W)
	d.step("forecast", "`compactor sweep start --dry-run` says")
	if err := forecastSweep(ctx, shown, st, cfg.Tenant); err != nil {
		return err
	}
	id, err := st.Operator.StartSweep(ctx, cfg.Tenant, 0, "demo", d.env.by())
	if err != nil {
		return err
	}
	if err := d.await(ctx, id); err != nil {
		return err
	}
	d.step("report", "`compactor sweep show %d` says", id)
	return showSweep(ctx, shown, st, id)
}

// await waits until all runs of a sweep have ended.
func (d *demo) await(ctx context.Context, id int64) error {
	progress := d.env.Err.Progress("sweep, sessions", 0)
	for {
		r, err := d.app.Store.Operator.Sweep(ctx, id)
		if err != nil {
			return err
		}
		if progress.Set(r.Ended); r.Settled() {
			progress.Done("")
			return nil
		}
		if err := backoff.Wait(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// explain explains a session that the last sweep left alone: one that is held back, or else
// the one closest to its limit.
func (d *demo) explain(ctx context.Context) error {
	rows, err := d.rows(ctx)
	if err != nil {
		return err
	}
	rows = slices.DeleteFunc(rows, func(r store.SessionRow) bool { return r.Due || r.DueTokens == 0 })
	if len(rows) == 0 {
		return nil
	}
	alone := slices.MaxFunc(rows, func(a, b store.SessionRow) int {
		return cmp.Compare(float64(a.ContextTokens)/float64(a.DueTokens), float64(b.ContextTokens)/float64(b.DueTokens))
	})
	d.env.say("\n%s\n", d.out.Bold(fmt.Sprintf("a session that was left alone, as `compactor policy explain %s` shows it", term.Clean(alone.Session))))
	c := policyExplainCmd{Session: alone.Session}
	return c.Run(ctx, d.env, d.app.Store, d.app.Config)
}

// shown returns the environment of commands whose output the demo shows: none with --json.
func (d *demo) shown() *Env {
	e := *d.env
	e.Out, e.JSON = d.out, false
	return &e
}
