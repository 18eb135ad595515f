package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/migrations"
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
	invoke(t, env, "doctor").want(t, 0, "database east", "database west")
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
