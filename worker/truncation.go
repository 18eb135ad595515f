package worker

import (
	"context"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
)

// Truncation returns the rule by which the database truncates sessions of a kind without a worker:
// where nothing but counts decides, the policy's pipeline being a truncation. Without a Metric
// their runs need a worker. The SQL function truncate_sessions checks the sessions
// themselves. The policy is saved for the ledger to refer to.
func (p *Planner) Truncation(ctx context.Context, st Store, k store.SessionKind) (t store.Truncation, err error) {
	t.SessionKind = k
	of, err := p.policyOf(ctx, st, &store.Session{Policy: k.Policy, PolicyVersion: k.Version})
	if err != nil || of.err != nil {
		return t, err
	}
	pol, g := of.policy, of.policy.Guards
	r := p.forModel(namedKey{k.Policy, k.Version}, pol, k.Model)
	guarded := g.Rates() || g.ServiceManaged || g.MidTurn == policy.GuardWait
	if r.triggers != nil || pol.TargetTurns > 0 || pol.PinsAnyway() || !pol.PreserveSystem || guarded || len(pol.Pipeline) != 1 {
		return t, nil
	}
	step := pol.Steps(r.limits, p.Registry.Fill)[0]
	s, err := p.Registry.New(step.Strategy, step.Params)
	if err != nil {
		return t, nil //nolint:nilerr // its run reports it
	}
	cut, ok := s.(plan.Truncator)
	if !ok || !cut.Truncation().PreserveSystem {
		return t, nil
	}
	c := cut.Truncation()
	if t.Metric = "messages"; c.Tokens {
		t.Metric = "tokens"
	}
	if pol.Pipeline[0].Params["max_n"] != nil { // not that of the target
		t.Most, t.Leave = &c.Most, &c.Leave
	}
	t.Window, t.Start, t.Target, t.DueTokens = r.limits.Window, r.limits.Start, r.limits.Target, r.bounds.Tokens
	t.MinGain, t.MinGainShare, t.Margin = pol.MinGainTokens, g.MinGainShare, pol.EstimateMargin
	t.FreeReasoning, t.Hash, t.FleetHash = !r.bindsReasoning, r.hash, r.fleetHash
	return t, st.EnsurePolicy(ctx, r.hash, k.PolicyTenant, policySpec(pol, r.limits))
}

// policySpec returns the stored form of a policy that the ledger refers to.
func policySpec(pol policy.Policy, limits policy.Limits) map[string]any {
	return map[string]any{"policy": pol, "limits": limits}
}
