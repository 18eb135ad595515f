package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
)

type policyExplainCmd struct {
	Session    string     `arg:"" optional:"" help:"The session."`
	ErrorsOnly bool       `help:"Instead of one session, list those whose last run failed or that are quarantined."`
	AllTenants allTenants `help:"With --errors-only: sessions of every tenant."`
	Limit      int        `default:"50" range:"1,100000" help:"With --errors-only: maximum number of sessions."`
}

func (c *policyExplainCmd) Validate() error {
	if (c.Session == "") != c.ErrorsOnly {
		return errors.New("want a session, or --errors-only")
	}
	return nil
}

func (c *policyExplainCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	if c.ErrorsOnly {
		return c.errors(ctx, e, st, cfg)
	}
	x, out, err := reports.Explain(ctx, st, key(cfg, c.Session), cfg, e.Registry, e.now())
	if err != nil {
		return err
	}
	return e.show(out, func() { printExplanation(e, out, x) })
}

// errors lists the sessions that need a look.
func (c *policyExplainCmd) errors(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	rows, err := st.Operator.Errors(ctx, c.AllTenants.tenant(cfg), c.Limit)
	if err != nil {
		return err
	}
	return list(e, "errors", rows, "no session is quarantined, and no last run has failed", columns[store.ErrorRow]{
		{"session", term.Text("SESSION"), func(r store.ErrorRow) any { return store.Key{Tenant: r.Tenant, Session: r.Session}.String() }},
		{"policy", term.Text("POLICY"), nil},
		{"code", term.Text("CODE"), func(r store.ErrorRow) any { return term.Styled{Value: r.Code, As: e.Out.Red} }},
		{"run", term.ID("RUN"), func(r store.ErrorRow) any { return when(r.Run > 0, any(r.Run)) }},
		{"since", term.Num("SINCE"), func(r store.ErrorRow) any {
			if r.Since == nil {
				return nil
			}
			return e.since(*r.Since)
		}},
		{"error", term.Text("ERROR"), nil},
	})
}

// printExplanation writes an explanation for people, in lines of at most 80 columns.
func printExplanation(e *Env, out reports.Explanation, x reports.Explainer) {
	pairs := []pair{
		{"session", store.Key{Tenant: out.Tenant, Session: out.Session}.String()},
		{"parent", out.Parent},
		{"children", when(out.Children > 0, term.Count(out.Children))},
		{"model", fmt.Sprintf("%s, window %s", orDash(out.Model), term.Count(out.Window))},
		{"labels", policy.Match(out.Labels).String()},
		{"policy", fmt.Sprintf("%s: %s", title(x.Version), out.Why)},
	}
	add := func(name string, value any) { pairs = append(pairs, pair{name, value}) }
	for _, p := range out.PassedOver {
		add("", fmt.Sprintf("not %s (%s): %s", p.Policy, cmp.Or(p.Match, "no match"), p.Why))
	}
	if !out.Follows {
		add("", "its limits are not those of the policy yet: see compactor policy list")
	}
	if out.DueAbove == 0 {
		add("size", fmt.Sprintf("%s tokens of a window of %s (%s)", term.Count(out.Tokens), term.Count(out.Window),
			term.Percent(out.Tokens, out.Window)))
	} else {
		add("size", fmt.Sprintf("%s of %s tokens (%s)", term.Count(out.Tokens), term.Count(out.DueAbove),
			term.Percent(out.Tokens, out.DueAbove)))
	}
	add("", out.Count)
	if out.Due {
		add("due", term.Styled{Value: "yes: " + out.WhyDue, As: e.Out.Yellow})
	} else {
		add("due", term.Styled{Value: "no: " + out.WhyDue, As: e.Out.Green})
	}
	for i, t := range out.Triggers {
		add(when(i == 0, "triggers"), fmt.Sprintf("%s, %s: %s", t.Name, yesOrNo(t.Holds), t.When))
		add("", strings.Join(t.Values, ", "))
	}
	turns := x.InForce.TargetTurns
	add("a run", fmt.Sprintf("%s, down to %s tokens%s", strings.Join(out.Steps, " → "), term.Count(out.Target),
		when(turns > 0, fmt.Sprintf(" or less, for %d turns", turns))))
	for i, h := range out.HeldBack {
		text := h.Code
		if h.Since != nil {
			text += ", for " + term.Duration(e.since(*h.Since))
		}
		add(when(i == 0, "held back"), term.Styled{Value: text, As: e.Out.Yellow})
		add("", h.Text)
		if h.EndsBy != "" {
			pairs = append(pairs, endedBy(h.EndsBy)...)
		}
	}
	add("next run", out.NextRun)
	if out.NextAt != nil {
		add("", fmt.Sprintf("in %s (%s)", term.Duration(max(0, out.NextAt.Sub(x.Now))), timeText(*out.NextAt)))
	}
	if r := out.LastRun; r != nil {
		under := when(r.Policy != "", " under "+r.Policy) + when(r.Fired != "", ", trigger "+r.Fired)
		add("last run", fmt.Sprintf("%d%s: %s", r.Run, under, joined(r.Outcome, modelFailure(*x.Last))))
		pairs = append(pairs, failedCalls(r.Calls)...)
	}
	e.pairs(pairs...)
}
