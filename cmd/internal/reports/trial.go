package reports

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/policies"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
)

// Trial plans runs over sessions of a tenant under a policy, and makes none.
type Trial struct {
	Config   config.Config
	Registry *plan.Registry
	Tenant   string // empty: that which the file matches, or else the configuration's
	// File is the policy; with nil, each session's own.
	File *config.PolicyFile
	// Sessions are planned on; without any, Sample of them that are chosen at random among those that
	// the file matches.
	Sessions []string
	Sample   int
	// Within bounds the time; 0 does not.
	Within time.Duration
	// Begin is called with the number of sessions, and Each with what is planned; they may be nil.
	Begin func(sessions int)
	Each  func(Preview)
}

// TrialTotals sum up sessions.
type TrialTotals struct {
	Sessions     int            `json:"sessions"`
	Outcomes     map[string]int `json:"outcomes"`
	TargetMet    int            `json:"target_met"`
	TokensBefore chat.Tokens    `json:"tokens_before"`
	TokensAfter  chat.Tokens    `json:"tokens_after"`
	ModelCalls
	// Left are the sessions that there was no time for.
	Left int `json:"left,omitempty"`
}

func (t *TrialTotals) add(p Preview) {
	t.Sessions++
	t.Outcomes[p.Outcome]++
	if p.TargetMet {
		t.TargetMet++
	}
	t.TokensBefore, t.TokensAfter = t.TokensBefore+p.TokensBefore, t.TokensAfter+p.TokensAfter
	if p.Calls.Name != "" {
		t.Name = p.Calls.Name
	}
	t.Calls, t.Input, t.Output, t.Cost = t.Calls+p.Calls.Calls, t.Input+p.Calls.Input, t.Output+p.Calls.Output, t.Cost+p.Calls.Cost
}

// Run plans on the sessions, one after the other.
func (t Trial) Run(ctx context.Context, st *store.Store) (TrialTotals, error) {
	totals := TrialTotals{Outcomes: map[string]int{}}
	if t.Tenant == "" && t.File != nil {
		t.Tenant = t.File.Match["tenant"]
	}
	t.Tenant = cmp.Or(t.Tenant, t.Config.Tenant)
	within := ctx
	if t.Within > 0 {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, t.Within)
		defer cancel()
	}
	p := Planning{Config: t.Config, Registry: t.Registry}
	if t.File != nil {
		other := t.File.Policy
		other.ModelTable = t.Config.Models.Version()
		p.Other = &other
	}
	switch v, err := (policies.Ref{Name: policy.DefaultName}).Load(ctx, st); {
	case errors.Is(err, store.ErrNotFound): // no scheduler has saved its configuration yet
	case err != nil:
		return totals, err
	default:
		if own, err := policy.ReadSpec(v.Spec); err == nil {
			p.Config.Policy = own
		}
	}
	names, err := t.sessions(within, st)
	if err != nil {
		return totals, err
	}
	if t.Begin != nil {
		t.Begin(len(names))
	}
	for i, name := range names {
		x, err := p.Preview(within, st, store.Key{Tenant: t.Tenant, Session: name})
		switch {
		case err != nil && within.Err() != nil && ctx.Err() == nil:
			totals.Left = len(names) - i
			return totals, nil
		case err != nil:
			return totals, err
		}
		if t.File != nil {
			x.Policy, x.Version = t.File.Name, 0
		}
		if totals.add(x); t.Each != nil {
			t.Each(x)
		}
	}
	return totals, nil
}

// sessions returns the names of the sessions to plan on.
func (t Trial) sessions(ctx context.Context, st *store.Store) ([]string, error) {
	if len(t.Sessions) > 0 {
		return t.Sessions, nil
	}
	labels := map[string]string{}
	most := t.Sample
	if t.File != nil {
		for key, value := range t.File.Match {
			if key != "tenant" && key != "model" {
				labels[key] = value
			}
		}
		most *= 20 // of which the model may rule out most
	}
	rows, err := st.Operator.Sample(ctx, t.Tenant, labels, most)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, r := range rows {
		if len(names) < t.Sample && (t.File == nil || t.File.Match.Fits(policy.Subject{Tenant: t.Tenant, Model: r.Model, Labels: r.Labels})) {
			names = append(names, r.Session)
		}
	}
	return names, nil
}
