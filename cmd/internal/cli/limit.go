package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
)

type limitCmd struct {
	List  limitListCmd  `cmd:"" default:"1" help:"List the limits, and their present use."`
	Set   limitSetCmd   `cmd:"" help:"Set the limits of a tenant, or of all together."`
	Clear limitClearCmd `cmd:"" help:"Take the limits of a tenant, or of all together, away."`
}

// limitScope selects whose limits are meant; with --tenant, which is a setting.
type limitScope struct {
	All bool `help:"All tenants together."`
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
	if *c == (limitSetCmd{limitScope: c.limitScope, Note: c.Note}) {
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
	micros := func(cost *float64) *int64 {
		if cost == nil {
			return nil
		}
		return new(int64(*cost * 1e6))
	}
	err := c.set(ctx, e, st, store.SpendingLimit{
		MicrosPerHour: micros(c.CostPerHour), MicrosPerDay: micros(c.CostPerDay), CallsPerHour: c.CallsPerHour,
		TokensPerHour: c.TokensPerHour, RunsPerSecond: c.RunsPerSecond, Note: c.Note,
	})
	if err != nil {
		return err
	}
	return listLimits(ctx, e, st, e.flags["tenant"])
}

// set replaces the limits of the scope.
func (s limitScope) set(ctx context.Context, e *Env, st *store.Store, limit store.SpendingLimit) error {
	tenant := e.flags["tenant"]
	if s.All != (tenant == "") {
		return wrong("give --tenant or --all: whose limits to change has no default")
	}
	limit.Tenant, limit.ChangedBy = tenant, e.by()
	return st.Operator.LimitSpending(ctx, limit)
}

type limitClearCmd struct{ limitScope }

func (c *limitClearCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	if err := c.set(ctx, e, st, store.SpendingLimit{}); err != nil {
		return err
	}
	return listLimits(ctx, e, st, "")
}

type limitListCmd struct{}

func (*limitListCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	return listLimits(ctx, e, st, e.flags["tenant"])
}

// limitUse is one of the limits of a tenant, and its present use.
type limitUse struct {
	store.Spending
	of          string
	used, limit any
	waiting     any
	reached     bool
}

// limitUses returns the limits of tenants one by one.
func limitUses(rows []store.Spending) (out []limitUse) {
	for _, r := range rows {
		add := func(of string, used int64, limit *int64, text func(int64) string) {
			if limit != nil {
				out = append(out, limitUse{Spending: r, of: of, used: text(used), limit: text(*limit), reached: used >= *limit})
			}
		}
		add("cost in an hour", r.Hour, r.MicrosPerHour, money)
		add("cost in a day", r.Day, r.MicrosPerDay, money)
		add("calls in an hour", r.Calls, r.CallsPerHour, term.Count)
		add("tokens in an hour", r.Tokens, r.TokensPerHour, term.Count)
		if limit := r.RunsPerSecond; limit != nil {
			use := limitUse{
				Spending: r, of: "runs in a second", used: fmt.Sprintf("%g", r.Started),
				limit: fmt.Sprintf("%g", *limit), reached: r.Throttled > 0,
			}
			if r.Tenant != "" { // those of all together wait in the outbox, among all else
				use.waiting = r.Throttled
			}
			out = append(out, use)
		}
	}
	return out
}

func listLimits(ctx context.Context, e *Env, st *store.Store, tenant string) error {
	rows, err := st.Operator.Spending(ctx, tenant)
	if err != nil {
		return err
	}
	if e.JSON || len(rows) == 0 {
		return list(e, "limits", rows, "no limits", nil)
	}
	columns[limitUse]{
		{"tenant", term.Text("LIMITED TENANT"), func(u limitUse) any {
			if u.reached {
				return term.Styled{Value: cmp.Or(u.Tenant, "all"), As: e.Out.Red}
			}
			return term.Styled{Value: cmp.Or(u.Tenant, "all"), As: e.Out.Green}
		}},
		{"", term.Text("OF"), func(u limitUse) any { return u.of }},
		{"", term.Num("USED"), func(u limitUse) any { return u.used }},
		{"", term.Num("LIMIT"), func(u limitUse) any { return u.limit }},
		{"throttled", term.Num("WAITING"), func(u limitUse) any { return u.waiting }},
		{"changed_by", term.Text("BY"), nil},
		{"note", term.Text("NOTE"), nil},
	}.write(e, limitUses(rows))
	for _, r := range rows {
		if r.Estimated > 0 {
			e.say("%s: the tokens and the cost of %s in the last day are estimates, as the server reported none",
				term.Clean(cmp.Or(r.Tenant, "all")), plural(r.Estimated, "call"))
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
			text = fmt.Sprintf(format, perSecond, reports.TenantText(r.Tenant))
			if e.loaded != nil && len(e.loaded.Siblings()) > 0 {
				text += ", in all databases together"
			}
		}
	}
	return perSecond, text, err
}
