package reports

import (
	"context"
	"errors"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/policies"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
)

// SessionItem is a session of a list.
type SessionItem struct {
	store.SessionRow
	Detail *store.SessionDetail `json:"detail,omitempty" doc:"With the parameter detail."`
}

// Details adds details to sessions, with the windows and targets of their policies. held is a reason that
// holds back all of them, or empty.
func Details(ctx context.Context, st *store.Store, c config.Config, items []SessionItem, texts bool, held string) error {
	sids := make([]int64, len(items))
	for i, x := range items {
		sids[i] = x.SID
	}
	details, err := st.Reader.SessionDetails(ctx, sids, texts, held)
	if err != nil {
		return err
	}
	inForce := map[string]policy.Policy{}
	for i, x := range items {
		p, ok := inForce[x.Policy]
		if !ok {
			if p, err = policyOf(ctx, st, c, x.Policy); err != nil {
				return err
			}
			inForce[x.Policy] = p
		}
		d := details[x.SID]
		limits := p.Limits(x.Model, c.Models.Window)
		d.Window, d.Target = limits.Window, limits.Target
		d.NextCheckAt, d.EndedAt, d.HeldUntil = UTC(d.NextCheckAt), UTC(d.EndedAt), UTC(d.HeldUntil)
		items[i].Detail = &d
	}
	return nil
}

// policyOf returns the policy of a name that is in force, that of the configuration where it has none or cannot be read.
func policyOf(ctx context.Context, st *store.Store, c config.Config, name string) (policy.Policy, error) {
	v, err := policies.Ref{Name: name}.Load(ctx, st)
	if errors.Is(err, store.ErrNotFound) {
		return c.Policy, nil
	}
	if err != nil {
		return c.Policy, err
	}
	p, err := policy.ReadSpec(v.Spec)
	if err != nil {
		return c.Policy, nil //nolint:nilerr // Explain says that it cannot be read
	}
	return p, nil
}
