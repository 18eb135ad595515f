package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/summary"
)

// errPolicy is wrapped by the error of a run whose policy this version cannot read or run.
var errPolicy = errors.New("policy")

// namedKey is a version of a named policy; the version is 0 for the policy of the
// configuration.
type namedKey struct {
	name    string
	version int
}

// namedPolicy is a version of a policy as it was read, or the error of that.
type namedPolicy struct {
	policy policy.Policy
	err    error
}

// maxNamed bounds the cache of named policies.
const maxNamed = 1000

// policyOf returns the policy that a session has: the configured one, or a version of a named
// one, which never changes and is read once. The error is that of the database.
func (p *Planner) policyOf(ctx context.Context, st Store, s *store.Session) (namedPolicy, error) {
	if s.PolicyVersion == 0 {
		return namedPolicy{policy: p.Policy}, nil
	}
	key := namedKey{s.Policy, s.PolicyVersion}
	p.mu.Lock()
	n, known := p.named[key]
	p.mu.Unlock()
	if known {
		return n, nil
	}
	v, err := st.Policy(ctx, s.Policy, s.PolicyVersion)
	switch {
	case errors.Is(err, store.ErrNotFound): // changed by hand
		return namedPolicy{policy: p.Policy, err: fmt.Errorf("%w: %w", errPolicy, err)}, nil
	case err != nil:
		return namedPolicy{}, err
	}
	n.policy, n.err = p.Read(v)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.named == nil || len(p.named) >= maxNamed {
		p.named = map[namedKey]namedPolicy{}
	}
	p.named[key] = n
	return n, nil
}

// Read reads and validates a version of a policy.
func (p *Planner) Read(v store.PolicyVersion) (policy.Policy, error) {
	out, err := policy.ReadSpec(v.Spec)
	if err == nil {
		registry := p.Registry
		if registry.Summarizer == nil {
			registry = registry.With(summary.New(summary.Options{}))
		}
		err = out.Check(registry.Fill, func(name string, params map[string]any) error {
			_, err := registry.New(name, params)
			return err
		})
	}
	if err != nil {
		return p.Policy, fmt.Errorf("%w %s: %w", errPolicy, store.PolicyName(v.Name, v.Version), err)
	}
	out.ModelTable = p.Policy.ModelTable
	return out, nil
}
