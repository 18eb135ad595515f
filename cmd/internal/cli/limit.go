package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
)

type limitCmd struct {
	List  limitListCmd  `cmd:"" default:"1" help:"List the limits, and their present use."`
	Set   limitSetCmd   `cmd:"" help:"Set the limits of a tenant, or of all together."`
	Clear limitClearCmd `cmd:"" help:"Take the limits of a tenant, or of all together, away."`
}

func (*limitCmd) Help() string {
	return `Limits what models may be asked for in the last hour and day, and how many runs start in a second, in Postgres, for all workers and schedulers. "limit set" replaces all limits that the tenant, or all together, had.

Once a limit of models is reached, automatic and requested runs ask no model: they end as policy.summary.on_failure says, with the code spending_limit, and automatic ones try again after policy.summary.cooldown. Calls that are under way when it is reached may exceed it. Tokens are those of input and output.

Beyond --runs-per-second, events, requests of applications, sweeps and bulk recompactions wait in Postgres (run_limit); other tenants do not wait with them, except behind a bulk recompaction of all tenants, which keeps its order. As a run writes a bounded number of rows, this is the limit of what runs write to the database, too: there is none of its own for writes. Up to a second's runs may start at once, and repeated deliveries do not count.

Runs of operators are not limited: they are few, and an operator waits for each.

With several databases in the configuration a limit is set in each, and holds for all together: about once a second a scheduler tells each database what the others have used, and the use that is listed is the sum. Until then each counts for itself: calls that the others begin within that second may exceed a limit of models, and D databases start at most N * (T + 2D - 1) runs in T seconds, where N runs may start in one (below 1: N * (T + D - 1) + D). While a database cannot be read, what models had cost there counts on until it is as old as the limit's hour or day; what is used there meanwhile does not count here, and runs per second hold for the others. In a database without the limit, by --database, nothing is held back and starts are not counted. A first limit is seen after at most 5 seconds.

Examples:

    compactor limit set --tenant acme --cost-per-day 20 --note "their plan"
    compactor limit set --all --cost-per-hour 50 --calls-per-hour 3000
    compactor limit set --tenant acme --runs-per-second 5 --tokens-per-hour 2000000
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

	CostPerHour   *float64 `placeholder:"COST" help:"Cost of the calls in an hour, in the unit of the models' prices."`
	CostPerDay    *float64 `placeholder:"COST" help:"Cost of the calls in a day."`
	CallsPerHour  *int64   `placeholder:"N" help:"Number of calls in an hour."`
	TokensPerHour *int64   `placeholder:"N" help:"Tokens of the calls in an hour, input and output."`
	RunsPerSecond *float64 `placeholder:"N" help:"Runs that start in a second; also 0.1 for one in ten seconds."`
	Note          string   `placeholder:"TEXT" help:"Why."`
}

func (c *limitSetCmd) Validate() error {
	if c.CostPerHour == nil && c.CostPerDay == nil && c.CallsPerHour == nil && c.TokensPerHour == nil && c.RunsPerSecond == nil {
		return errors.New("want --cost-per-hour, --cost-per-day, --calls-per-hour, --tokens-per-hour or --runs-per-second")
	}
	for flag, v := range map[string]*float64{"--cost-per-hour": c.CostPerHour, "--cost-per-day": c.CostPerDay} {
		if v != nil && !(*v >= 0 && *v <= 1e9) {
			return fmt.Errorf("%s: %v: want 0 to 1e9", flag, *v)
		}
	}
	for flag, v := range map[string]*int64{"--calls-per-hour": c.CallsPerHour, "--tokens-per-hour": c.TokensPerHour} {
		if v != nil && *v < 0 {
			return fmt.Errorf("%s: %d: want 0 or more", flag, *v)
		}
	}
	if r := c.RunsPerSecond; r != nil && !(*r >= 0.001 && *r <= 1e6) {
		return fmt.Errorf("--runs-per-second: %v: want 0.001 to 1e6; to hold all runs back there is `compactor pause`", *r)
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
	err = st.Operator.LimitSpending(ctx, store.SpendingLimit{
		Tenant: tenant, MicrosPerHour: micros(c.CostPerHour), MicrosPerDay: micros(c.CostPerDay), CallsPerHour: c.CallsPerHour,
		TokensPerHour: c.TokensPerHour, RunsPerSecond: c.RunsPerSecond, Note: c.Note, ChangedBy: e.by(),
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
		err = st.Operator.LimitSpending(ctx, store.SpendingLimit{Tenant: tenant, ChangedBy: e.by()})
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
	rows, err := st.Operator.Spending(ctx, tenant)
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
	t := e.Out.Table(term.Text("LIMITED TENANT"), term.Text("OF"), term.Num("USED"), term.Num("LIMIT"), term.Num("WAITING"), term.Text("BY"), term.Text("NOTE"))
	for _, r := range rows {
		row := func(of string, used, limit any, reached bool, waiting any) {
			tenant := term.Styled{Value: cmp.Or(r.Tenant, "all"), As: e.Out.Green}
			if reached {
				tenant.As = e.Out.Red
			}
			t.Row(tenant, of, used, limit, waiting, r.ChangedBy, r.Note)
		}
		cost := func(of string, used int64, limit *int64) {
			if limit != nil {
				row(of, money(used), money(*limit), used >= *limit, nil)
			}
		}
		count := func(of string, used int64, limit *int64) {
			if limit != nil {
				row(of, used, *limit, used >= *limit, nil)
			}
		}
		cost("cost in an hour", r.Hour, r.MicrosPerHour)
		cost("cost in a day", r.Day, r.MicrosPerDay)
		count("calls in an hour", r.Calls, r.CallsPerHour)
		count("tokens in an hour", r.Tokens, r.TokensPerHour)
		if limit := r.RunsPerSecond; limit != nil {
			waiting := any(r.Throttled)
			if r.Tenant == "" { // what that holds back is in the outbox, among all else
				waiting = nil
			}
			row("runs in a second", fmt.Sprintf("%g", r.Started), fmt.Sprintf("%g", *limit), r.Throttled > 0, waiting)
		}
	}
	if err := t.Write(); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Estimated > 0 {
			e.say("%s: the tokens and the cost of %s in the last day are estimates, as the server reported none", term.Clean(cmp.Or(r.Tenant, "all")), term.Plural(r.Estimated, "call", "calls"))
		}
	}
	return nil
}

// money returns a cost with all of its digits, and two after the point at least.
func money(micros int64) string {
	s := fmt.Sprintf("%.6f", float64(micros)/1e6)
	return s[:len(s)-4] + strings.TrimRight(s[len(s)-4:], "0")
}

// runLimit returns how many runs of a tenant, or of all with an empty one, may start in a second,
// and that in words; 0 without a limit.
func runLimit(ctx context.Context, e *Env, st *store.Store, tenant string) (perSecond float64, text string, err error) {
	rows, err := st.Operator.Spending(ctx, tenant)
	for _, r := range rows {
		if r.RunsPerSecond != nil && (r.Tenant == "" || r.Tenant == tenant) && (perSecond == 0 || *r.RunsPerSecond < perSecond) {
			perSecond = *r.RunsPerSecond
			format := "%g runs of %s start in a second"
			if perSecond == 1 {
				format = "%g run of %s starts in a second"
			}
			text = fmt.Sprintf(format, perSecond, map[bool]string{true: "all tenants", false: "tenant " + r.Tenant}[r.Tenant == ""])
			if e.loaded != nil && len(e.loaded.Siblings()) > 0 {
				text += ", in all databases together"
			}
		}
	}
	return perSecond, text, err
}
