package cli

import (
	"strings"
	"testing"

	"github.com/sessionstore/compactor/store"
)

func TestLimitsAreSetListedAndTakenAway(t *testing.T) {
	t.Parallel()
	env := append(database(t), "USER=ada")
	invoke(t, env, "limit").want(t, 0, "no limits")
	invoke(t, env, "limit", "set", "--tenant=acme", "--cost-per-day=20.5", "--calls-per-hour=0", "--runs-per-second=2.5", "--note=their plan").want(t, 0,
		"LIMITED TENANT  OF                USED  LIMIT  WAITING  BY       NOTE",
		"acme            cost in a day     0.00  20.50           cli:ada  their plan",
		"acme            calls in an hour     0      0           cli:ada  their plan",
		"acme            runs in a second     0    2.5        0  cli:ada  their plan")
	invoke(t, env, "limit", "set", "--all", "--cost-per-hour=50").want(t, 0, "all ", "acme ")
	got := decode[struct{ Limits []store.Spending }](t, invoke(t, env, "limit", "list", "--json").want(t, 0)).Limits
	if len(got) != 2 || got[0].Tenant != "" || *got[0].MicrosPerHour != 50_000_000 || got[0].Reached() || !got[1].Reached() {
		t.Errorf("%+v", got)
	}
	invoke(t, env, "sweep", "start", "--tenant=acme", "--dry-run").want(t, 0, "2.5 runs of tenant acme start in a second: 0s or more")
	invoke(t, env, "sweep", "start", "--tenant=acme").want(t, 0, "sweep 1 is open")
	invoke(t, env, "sweep", "show", "1").want(t, 0, "2.5 runs of tenant acme start in a second")
	invoke(t, env, "limit", "set", "--tenant=acme", "--cost-per-day=0", "--runs-per-second=1").want(t, 0)
	invoke(t, env, "sweep", "show", "1").want(t, 0, "1 run of tenant acme starts in a second")
	invoke(t, env, "doctor").want(t, 0, "limits", "of tenant acme is reached")
	invoke(t, env, "limit", "clear", "--tenant=acme").want(t, 0, "all ")
	invoke(t, env, "limit", "clear", "--tenant=acme").want(t, exitNotFound, "there is no limit of tenant acme")
	for args, want := range map[string]string{
		"--cost-per-hour=1": "give --tenant or --all", "--all": "want a cost per hour", "--all --cost-per-day=-1": "cost per day: -1: want 0 to 1e+09",
		"--all --calls-per-hour=-1": "calls per hour: -1: want 0 or more", "--all --tokens-per-hour=-1": "tokens per hour: -1: want 0 or more",
		"--all --runs-per-second=0": "runs per second: 0: want 0.001 to 1e6; to hold all runs back there are pauses",
	} {
		invoke(t, env, append([]string{"limit", "set"}, strings.Fields(args)...)...).want(t, exitUsage, want)
	}
}
