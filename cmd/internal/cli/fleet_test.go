package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/migrations"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/store/storetest"
)

// twoDatabases returns an installation in each of two databases on one Redis, and the
// environment in which they are one fleet.
func twoDatabases(t *testing.T) (east, west *plant, env []string) {
	t.Helper()
	redis := storetest.RealRedis(t)
	east, west = newPlantIn(t, redis, migratedDB(t), migrations.DefaultSchema), newPlantIn(t, redis, migratedDB(t), migrations.DefaultSchema)
	return east, west, []string{
		fmt.Sprintf("COMPACTOR_DATABASES={east: {url: %q}, west: {url: %q}}", east.config.Database.URL.Reveal(), west.config.Database.URL.Reveal()),
		"REDIS_URL=" + redis,
	}
}

func TestRolesServeAllDatabasesOfAFleet(t *testing.T) {
	t.Parallel()
	east, west, env := twoDatabases(t)
	east.backlog(5)
	west.backlog(10)
	c := east.runIn(env, "serve")
	east.written("in-east")
	west.written("in-west")
	invoke(t, env, "sweep", "start").want(t, 0, "database east", "database west")
	for name, p := range map[string]*plant{"east": east, "west": west} {
		p.awaitRest()
		p.wantOneEffect()
		series := fmt.Sprintf(`scheduler_leading{database=%q}`, name)
		p.await("metrics have the label of the database", func() bool { v, ok := c.metric(series); return ok && v == 1 })
	}
	if code, body := c.get("/readyz"); code != 200 || !strings.Contains(body, "database east") || !strings.Contains(body, "schema west") {
		t.Errorf("%d %s", code, body)
	}
}

func TestCommandsGoOverAllDatabasesOrFindTheOneOfTheirSession(t *testing.T) {
	t.Parallel()
	east, west, env := twoDatabases(t)
	east.backlog(1)
	west.backlog(2) // s00 is in both
	west.written("in-west")

	type page struct{ Sessions []struct{ Session string } }
	got := decode[map[string]page](t, invoke(t, env, "sessions", "--json").want(t, 0))
	if len(got) != 2 || len(got["east"].Sessions) != 1 || len(got["west"].Sessions) != 3 {
		t.Errorf("%+v", got)
	}
	invoke(t, env, "sessions", "--database", "east").want(t, 0, "s00")
	invoke(t, env, "sessions", "--database", "north").want(t, exitUsage, `--database: "north"`, "east west")
	invoke(t, env, "view", "in-west").want(t, 0, "message in-west 0")
	invoke(t, env, "view", "nowhere").want(t, exitNotFound, "session nowhere: in none of the databases [east west]")
	invoke(t, env, "view", "s00").want(t, exitUsage, "in several databases [east west]", "--database")
	invoke(t, env, "view", "s00", "--database", "west").want(t, 0, "message s00 0")
	invoke(t, env, "import", "x.jsonl").want(t, exitUsage, "import: several databases are configured", "--database NAME")
	invoke(t, env, "export", "--all-sessions", "-o", t.TempDir()+"/x.jsonl").want(t, exitUsage, "export: several databases are configured", "--database NAME")
	invoke(t, env, "policy", "apply", "-").want(t, exitUsage, "standard input: several databases are configured")
	invoke(t, env, "export", "in-west").want(t, 0, "message in-west 0")
	invoke(t, env, "sweep", "show", "1").want(t, exitUsage, "--database NAME")
	invoke(t, env, "runs", "--run", "1").want(t, exitUsage, "--database NAME")

	invoke(t, env, "pause", "--tenant", "default", "--note", "why").want(t, 0, "database east", "database west")
	for _, p := range []*plant{east, west} {
		if n := p.number(`SELECT count(*) FROM compactor.pauses WHERE resumed_at IS NULL`); n != 1 {
			t.Errorf("%d pauses", n)
		}
	}
	invoke(t, env, "doctor").want(t, 0, "database east", "database west", "✓ maxmemory-policy: noeviction", "appendonly")
	invoke(t, env, "migrate", "status").want(t, 0, "database east", "database west")
	invoke(t, env, "version").want(t, 0)

	// One that is away does not keep a command from the others.
	env[0] = strings.Replace(env[0], "east: {url: ", "east: {url: \"postgres://127.0.0.1:1/x\"}, middle: {url: ", 1)
	r := invoke(t, env, "resume", "--tenant", "default").want(t, 1, "database east: ", "database west")
	if strings.Contains(r.stderr, "database west: ") {
		t.Errorf("west failed: %s", r.stderr)
	}
	for _, p := range []*plant{east, west} {
		if n := p.number(`SELECT count(*) FROM compactor.pauses WHERE resumed_at IS NULL`); n != 0 {
			t.Errorf("%d pauses are left", n)
		}
	}
}

// A command works on all databases and says so, or on the one that its session or --database
// selects.
func TestNoCommandWorksOnTheFirstDatabaseAlone(t *testing.T) {
	t.Parallel()
	east, west, env := twoDatabases(t)
	east.backlog(1)
	west.backlog(2) // s01 is in west alone
	policyFile := file(t, "support.yaml", "name: support\nstart: 0.6\ntarget: 0.4\n")
	for _, args := range []string{
		"stats", "runs", "sessions --due", "sweep list", "sweep start --dry-run", "sweep start", "schedule list", "schedule show nightly",
		"schedule pause nightly", "schedule resume nightly", "schedule run nightly", "pause --all --note why", "pause --list", "resume --all",
		"limit set --all --calls-per-hour 3", "limit list", "limit clear --all", "policy apply FILE --yes", "policy list", "policy history support",
		"policy show support@1", "policy diff support FILE", "policy disable support --yes", "policy rollback support --yes", "policy explain --errors-only",
		"policy test --sample 1 --file FILE", "bulk-undo start --since 12h --yes", "bulk-undo list", "bulk-compact start --since 12h --yes --no-wait", "bulk-compact list",
		"archive --older-than 1d", "erase list", "models gpt-5", "migrate up", "migrate status", "doctor", "erase tenant --note why",
	} {
		invoke(t, env, strings.Fields(strings.ReplaceAll(args, "FILE", policyFile))...).want(t, 0, "database east", "database west")
	}
	for _, args := range []string{
		"sweep show 1", "sweep watch 1", "bulk-undo show 1", "bulk-undo resume 1", "bulk-compact cancel 1", "erase confirm 1 --yes", "summary show summary-1-1", "undo 1",
		"runs --run 1", "policy apply -", "policy test --sample 1 --file -", "import FILE", "export --all-sessions", "eval --limit 5",
	} {
		invoke(t, env, strings.Fields(strings.ReplaceAll(args, "FILE", policyFile))...).want(t, exitUsage, "several databases are configured", "--database NAME", "east west")
	}
	for _, args := range []string{
		"view s01", "runs s01", "policy explain s01", "policy assign s01 support", "policy test s01 --file FILE", "pin s01 s01-3", "unpin s01 s01-3", "set-model s01 gpt-5",
		"set-parent child s01", "set-parent child", "fork s01 s01-again", "archive s01", "restore s01", "export s01",
	} {
		r := invoke(t, env, strings.Fields(strings.ReplaceAll(args, "FILE", policyFile))...).want(t, 0)
		if strings.Contains(r.stdout, "database") {
			t.Errorf("%s: %s", args, r.stdout)
		}
	}
	if n := west.number(`SELECT count(*) FROM compactor.sessions WHERE id IN ('child', 's01-again')`); n != 2 {
		t.Errorf("%d sessions were created beside the one that they belong to", n)
	}
	for _, name := range []string{"east", "west"} {
		for _, id := range []string{"1", "2"} {
			invoke(t, env, "sweep", "cancel", id, "--database", name)
		}
	}
	invoke(t, env, "sweep", "start").want(t, 0, "`compactor sweep watch 3 --database west` follows it")
}

func TestLimitsHoldForAllDatabasesOfAFleet(t *testing.T) {
	t.Parallel()
	east, west, env := twoDatabases(t)
	east.backlog(4)
	west.backlog(3)
	invoke(t, env, "limit", "set", "--tenant", "default", "--runs-per-second", "100", "--calls-per-hour", "3").want(t, 0, "database east", "database west")
	invoke(t, env, "doctor").want(t, 0, "what is used in the database west is not counted", "what is used in the database east is not counted", "is a scheduler running")
	invoke(t, env, "sweep", "start", "--dry-run").want(t, 0, "100 runs of tenant default start in a second, in all databases together")

	east.runIn(env, "serve")
	invoke(t, env, "sweep", "start").want(t, 0)
	for _, p := range []*plant{east, west} {
		p.awaitRest()
	}
	for p, other := range map[*plant]*plant{east: west, west: east} {
		const ever = `SELECT coalesce(sum(started), 0) FROM compactor.`
		p.await("the starts in the other database are read", func() bool {
			return p.number(ever+`used_elsewhere`) == other.number(ever+`spending_limits`)
		})
	}
	if n := east.number(`SELECT started FROM compactor.spending_limits`); n != 4 {
		t.Errorf("%d runs started in the database with four sessions", n)
	}
	invoke(t, env, "doctor").want(t, 0, "what is used in the database west counts", "what is used in the database east counts")

	// The calls of one count in both.
	east.number(`WITH x AS (INSERT INTO compactor.summary_calls (key, sid, run, fence, state, code, prompt_hash, attempts, ended_at)
		SELECT i::text, sid, id, 1, 'failed', 'timeout', '', 1, now() FROM (SELECT * FROM compactor.runs LIMIT 1) r, generate_series(1, 3) i RETURNING 1) SELECT count(*) FROM x`)
	west.await("the calls in the other database are read", func() bool { return west.number(`SELECT sum(calls) FROM compactor.used_elsewhere`) == 3 })
	for name, l := range decode[map[string]struct{ Limits []store.Spending }](t, invoke(t, env, "limit", "--json").want(t, 0)) {
		if len(l.Limits) != 1 || l.Limits[0].Calls != 3 || !l.Limits[0].Reached() {
			t.Errorf("%s: %+v", name, l.Limits)
		}
	}
	model := `COMPACTOR_LLM_MODELS=[{name: m, base_url: "http://127.0.0.1:1/v1", window_tokens: 1000}]`
	invoke(t, append(env, model), "policy", "explain", "s00", "--database", "west").want(t, 0, "spending_limit", "no model is asked for tenant default")
	invoke(t, env, "doctor").want(t, 0, "of tenant default is reached: no model is asked")

	alone := []string{"DATABASE_URL=" + west.config.Database.URL.Reveal(), env[1]}
	invoke(t, alone, "doctor").want(t, 0, "a scheduler counts what is used in the database east, which this configuration lacks")
}

func TestADatabaseThatIsAwayKeepsItsUseAndStopsNoOther(t *testing.T) {
	t.Parallel()
	east, west, env := twoDatabases(t)
	west.backlog(1)
	invoke(t, env, "limit", "set", "--all", "--calls-per-hour", "5", "--runs-per-second", "100").want(t, 0)
	east.runIn(env, "serve")
	invoke(t, env, "sweep", "start").want(t, 0)
	west.awaitRest()
	west.number(`WITH x AS (INSERT INTO compactor.summary_calls (key, sid, run, fence, state, code, prompt_hash, attempts, ended_at)
		SELECT i::text, sid, id, 1, 'failed', 'timeout', '', 1, now() FROM (SELECT * FROM compactor.runs LIMIT 1) r, generate_series(1, 3) i RETURNING 1) SELECT count(*) FROM x`)
	east.await("the calls in the other database are read", func() bool { return east.number(`SELECT coalesce(sum(calls), 0) FROM compactor.used_elsewhere`) == 3 })

	var name string
	if err := west.db.QueryRow(t.Context(), `SELECT quote_ident(current_database())`).Scan(&name); err != nil {
		t.Fatal(err)
	}
	allow := func(yes string) {
		t.Helper()
		if _, err := east.db.Exec(t.Context(), `ALTER DATABASE `+name+` ALLOW_CONNECTIONS `+yes); err != nil {
			t.Fatal(err)
		}
	}
	allow("false")
	east.number(`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE quote_ident(datname) = $1`, name)
	east.written("in-east")
	east.awaitRest()
	east.wantOneEffect()
	if _, err := east.db.Exec(t.Context(), `UPDATE compactor.used_elsewhere SET read_at = read_at - interval '2 minutes'`); err != nil {
		t.Fatal(err)
	}
	got := decode[struct{ Limits []store.Spending }](t, invoke(t, env, "limit", "--json", "--database", "east").want(t, 0)).Limits
	if len(got) != 1 || got[0].Calls != 3 {
		t.Errorf("%+v, want the calls that were known", got)
	}
	invoke(t, env, "doctor", "--database", "east").want(t, 0, "what is used in the database west was last read 2m")
	allow("true")
	east.await("the other database is read again", func() bool {
		return east.number(`SELECT count(*) FROM compactor.used_elsewhere WHERE read_at > now() - interval '1 minute'`) == 1
	})
}
