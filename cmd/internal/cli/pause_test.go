package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/store"
)

func TestPauseReadsWell(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	env := []string{"DATABASE_URL=" + p.config.Database.URL.Reveal(), "REDIS_URL=" + p.config.Redis.URL.Reveal(), "USER=ada"}
	p.fleet(2, "acme")
	var out strings.Builder
	show := func(code int, args ...string) {
		r := invoke(t, env, args...).want(t, code)
		fmt.Fprintf(&out, "$ compactor %s\n%s%s\n", strings.Join(args, " "), wantWidth(t, r.stdout), r.stderr)
	}
	show(0, "pause", "--list")
	show(exitUsage, "pause", "--note=everything?")
	show(0, "pause", "--tenant=acme", "--note=migrating their agents")
	show(exitNotFound, "pause", "--policy=no-such")
	show(0, "pause", "--policy=default", "--tenant=globex")
	show(0, "resume", "--policy=default", "--tenant=globex")
	show(0, "pause", "--model=Claude-Fable", "--note=400s after the update")
	show(exitRefused, "compact", "f1", "--tenant=acme")
	show(exitNotFound, "resume", "--all")
	golden(t, "pause", scrubTimes(out.String()))

	got := decode[struct{ Pauses []store.Pause }](t, invoke(t, env, "pause", "--list", "--json").want(t, 0))
	if len(got.Pauses) != 2 || got.Pauses[1].Model != "claude-fable" || got.Pauses[1].RequestedBy != "cli:ada" {
		t.Errorf("%+v", got)
	}
	invoke(t, env, "pause", "--all", "--tenant=acme").want(t, exitUsage, "give --all, or --tenant, --model and --policy")
	invoke(t, env, "pause", "--list", "--all").want(t, exitUsage, "give --list alone")
	invoke(t, env, "doctor").want(t, 0, "! pauses: tenant acme is paused", "by cli:ada: migrating their agents")
	sweep := decode[store.SweepReport](t, invoke(t, env, "sweep", "start", "--tenant=acme", "--json").want(t, 0)).ID
	invoke(t, env, "sweep", "show", fmt.Sprint(sweep)).want(t, 0, "waits", "tenant acme is paused since")
	invoke(t, env, "resume", "--tenant=acme").want(t, 0, "claude-fable")
	invoke(t, env, "resume", "--model=claude-fable").want(t, 0, "nothing is paused")
	invoke(t, env, "compact", "f1", "--tenant=acme", "--force", "--no-wait").want(t, 0, "is queued")
}

func TestAPauseIsObeyedByEveryPart(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	p.fleet(200, "acme", "globex")
	due := func(tenant string) int {
		return p.number(`SELECT count(*) FROM compactor.sessions WHERE due AND tenant = $1`, tenant)
	}
	before := due("acme")
	pause := func(tenant string) {
		t.Helper()
		if err := p.store.Operator.PauseRuns(t.Context(), store.PauseScope{Tenant: tenant}, "why", "test"); err != nil {
			t.Fatal(err)
		}
	}
	pause("acme")
	p.start(schedules, works)
	p.start(schedules, works)
	p.sweep()
	asked, err := p.store.Request(t.Context(), store.Key{Tenant: "acme", Session: "f2"}, store.TriggerApplication, "test", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.store.Append(t.Context(), store.Key{Tenant: "acme", Session: "f4"}, "", transcript("later", "ua")); err != nil {
		t.Fatal(err)
	}
	p.await("the other tenant's sessions are compacted", func() bool { return due("globex") == 0 })
	p.await("the sweep has ended", func() bool { return p.number(`SELECT count(*) FROM compactor.sweeps WHERE ended_at IS NULL`) == 0 })
	// Redis forgets, and the pause is none of its business.
	if err := p.queue.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	p.await("the request is held", func() bool {
		return p.number(`SELECT count(*) FROM compactor.runs WHERE id = $1 AND status = 'queued' AND error_code = 'paused'`, asked) == 1
	})
	if n := p.number(`SELECT count(*) FROM compactor.sessions WHERE tenant = 'acme' AND revision > 0`); n != 0 || due("acme") != before {
		t.Errorf("%d paused sessions were compacted, %d of %d are due", n, due("acme"), before)
	}
	if err := p.store.Operator.ResumeRuns(t.Context(), store.PauseScope{Tenant: "acme"}, "test"); err != nil {
		t.Fatal(err)
	}
	p.awaitRest()
	if n := p.number(`SELECT count(*) FROM compactor.sessions WHERE revision <> 1`); n != 0 {
		t.Errorf("%d sessions were not compacted once", n)
	}
	if n := p.number(twice); n != 0 {
		t.Errorf("%d sessions were run twice", n)
	}
}

func TestALimitOfRunsIsObeyedByEveryPart(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	p.fleet(100, "acme", "globex")
	due := func(tenant string) int {
		return p.number(`SELECT count(*) FROM compactor.sessions WHERE due AND tenant = $1`, tenant)
	}
	before, one := due("acme"), 0.001 // in a second: one, and none for a long time
	if err := p.store.Operator.LimitSpending(t.Context(), store.SpendingLimit{Tenant: "acme", RunsPerSecond: &one}); err != nil {
		t.Fatal(err)
	}
	p.start(schedules, works)
	p.start(schedules, works)
	p.sweep()
	for _, tenant := range []string{"acme", "globex"} {
		for i := range 10 {
			k := store.Key{Tenant: tenant, Session: fmt.Sprintf("later-%d", i)}
			if _, _, err := p.store.Append(t.Context(), k, "", transcript("later", overStart)); err != nil {
				t.Fatal(err)
			}
			if _, err := p.store.Request(t.Context(), k, store.TriggerApplication, "test", store.Options{From: "view"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.await("the other tenant's sessions are compacted", func() bool { return due("globex") == 0 })
	operator, err := p.store.Request(t.Context(), store.Key{Tenant: "acme", Session: "later-5"}, store.TriggerOperator, "test", store.Options{From: "view"})
	if err != nil {
		t.Fatal(err)
	}
	p.await("an operator's run has ended", func() bool {
		return p.number(`SELECT count(*) FROM compactor.runs WHERE id = $1 AND status IN ('applied', 'skipped')`, operator) == 1
	})
	if err := p.queue.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	n := p.number(`SELECT count(*) FROM compactor.runs r JOIN compactor.sessions s USING (sid) WHERE s.tenant = 'acme' AND r.attempts > 0 AND r.trigger <> 'operator'`)
	paid := p.number(`SELECT round(runs_per_second * extract(epoch FROM full_at - now()))::int FROM compactor.spending_limits WHERE tenant = 'acme'`)
	if n > 1 || n > paid {
		t.Errorf("%d runs of the limited tenant were executed, want one, and its limit has paid for %d", n, paid)
	}
	env := []string{"DATABASE_URL=" + p.config.Database.URL.Reveal(), "REDIS_URL=" + p.config.Redis.URL.Reveal()}
	invoke(t, env, "limit", "list").want(t, 0, "runs in a second")
	if out := invoke(t, env, "doctor").stdout; !strings.Contains(out, "wait for one of the 0.001 runs that start in a second") {
		t.Errorf("doctor does not tell of what waits:\n%s", out)
	}
	invoke(t, env, "policy", "explain", "later-9", "--tenant=acme").want(t, 0, "run_limit, for ", "0.001 runs of tenant acme may start in a second")
	if left := due("acme"); left < before+10-2 { // one run, and that of the operator
		t.Errorf("%d of %d sessions of the limited tenant are due", left, before+10)
	}
	if err := p.store.Operator.LimitSpending(t.Context(), store.SpendingLimit{Tenant: "acme"}); err != nil {
		t.Fatal(err)
	}
	p.awaitRest()
	if n := p.number(`SELECT count(*) FROM compactor.sessions WHERE revision = 0`); n != 0 {
		t.Errorf("%d sessions were not compacted", n)
	}
	if n := p.number(`SELECT count(*) FROM compactor.throttled`); n != 0 {
		t.Errorf("%d rows wait for a limit that is gone", n)
	}
}
