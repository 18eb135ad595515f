package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
)

type limitCmd struct {
	List  limitListCmd  `cmd:"" default:"1" help:"List the limits, and what was spent."`
	Set   limitSetCmd   `cmd:"" help:"Set the limits of a tenant, or of all together."`
	Clear limitClearCmd `cmd:"" help:"Take the limits of a tenant, or of all together, away."`
}

func (*limitCmd) Help() string {
	return `Limits what models may be asked for in the last hour and day, in Postgres, for all workers. Once a limit is reached, automatic and requested runs ask no model: they end as policy.summary.on_failure says, with the code spending_limit, and automatic ones try again after policy.summary.cooldown. Runs of operators are not limited. Calls that are under way when it is reached may exceed it.

Examples:

    compactor limit set --tenant acme --cost-per-day 20 --note "their plan"
    compactor limit set --all --cost-per-hour 50 --calls-per-hour 3000
    compactor limit list`
}

// limitScope selects whose limits are meant; with --tenant, which is a setting.
type limitScope struct {
	All bool `help:"All tenants together."`
}

func (s limitScope) tenant(e *Env) (string, error) {
	if tenant := e.flags["tenant"]; s.All == (tenant == "") {
		return tenant, nil
	}
	return "", wrong("give --tenant or --all: whose limits to change has no default")
}

type limitSetCmd struct {
	limitScope

	CostPerHour  *float64 `placeholder:"COST" help:"Cost of the calls in an hour, in the unit of the models' prices."`
	CostPerDay   *float64 `placeholder:"COST" help:"Cost of the calls in a day."`
	CallsPerHour *int64   `placeholder:"N" help:"Number of calls in an hour."`
	Note         string   `placeholder:"TEXT" help:"Why."`
}

func (c *limitSetCmd) Validate() error {
	if c.CostPerHour == nil && c.CostPerDay == nil && c.CallsPerHour == nil {
		return errors.New("want --cost-per-hour, --cost-per-day or --calls-per-hour")
	}
	for flag, v := range map[string]*float64{"--cost-per-hour": c.CostPerHour, "--cost-per-day": c.CostPerDay} {
		if v != nil && !(*v >= 0 && *v <= 1e9) {
			return fmt.Errorf("%s: %v: want 0 to 1e9", flag, *v)
		}
	}
	if c.CallsPerHour != nil && *c.CallsPerHour < 0 {
		return fmt.Errorf("--calls-per-hour: %d: want 0 or more", *c.CallsPerHour)
	}
	return nil
}

func (c *limitSetCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	tenant, err := c.tenant(e)
	if err != nil {
		return err
	}
	micros := func(cost *float64) *int64 {
		if cost == nil {
			return nil
		}
		m := int64(*cost * 1e6)
		return &m
	}
	err = st.LimitSpending(ctx, store.SpendingLimit{
		Tenant: tenant, MicrosPerHour: micros(c.CostPerHour), MicrosPerDay: micros(c.CostPerDay), CallsPerHour: c.CallsPerHour, Note: c.Note, ChangedBy: e.by(),
	})
	if err != nil {
		return err
	}
	return listLimits(ctx, e, st, tenant)
}

type limitClearCmd struct{ limitScope }

func (c *limitClearCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	tenant, err := c.tenant(e)
	if err == nil {
		err = st.LimitSpending(ctx, store.SpendingLimit{Tenant: tenant, ChangedBy: e.by()})
	}
	if err != nil {
		return err
	}
	return listLimits(ctx, e, st, "")
}

type limitListCmd struct{}

func (*limitListCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	return listLimits(ctx, e, st, e.flags["tenant"])
}

func listLimits(ctx context.Context, e *Env, st *store.Store, tenant string) error {
	rows, err := st.Spending(ctx, tenant)
	if err != nil {
		return err
	}
	if e.JSON {
		return term.JSON(e.Out.W, map[string]any{"limits": append([]store.Spending{}, rows...)})
	}
	if len(rows) == 0 {
		e.say("no limits")
		return nil
	}
	t := e.Out.Table(term.Text("LIMITED TENANT"), term.Text("COST IN AN HOUR"), term.Text("IN A DAY"), term.Text("CALLS IN AN HOUR"), term.Text("BY"), term.Text("NOTE"))
	for _, r := range rows {
		tenant := term.Styled{Value: cmp.Or(r.Tenant, "all"), As: e.Out.Green}
		if r.Reached() {
			tenant.As = e.Out.Red
		}
		t.Row(tenant, spent(r.Hour, r.MicrosPerHour), spent(r.Day, r.MicrosPerDay), callsOf(r), r.ChangedBy, r.Note)
	}
	return t.Write()
}

// spent returns a cost with its limit, if it has one.
func spent(micros int64, limit *int64) string {
	if limit == nil {
		return fmt.Sprintf("%.2f", float64(micros)/1e6)
	}
	return fmt.Sprintf("%.2f of %.2f", float64(micros)/1e6, float64(*limit)/1e6)
}

func callsOf(r store.Spending) string {
	if r.CallsPerHour == nil {
		return term.Count(r.Calls)
	}
	return term.Count(r.Calls) + " of " + term.Count(*r.CallsPerHour)
}
