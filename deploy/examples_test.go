package deploy_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/migrations"
	"github.com/sessionstore/compactor/store/storetest"
)

// python finds an interpreter that has psycopg; "" for none.
func python() string {
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import psycopg").Run() == nil {
			return name
		}
	}
	return ""
}

// read returns the text of a file.
func read(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// missing skips the test, or fails it where nothing may be skipped.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("REQUIRE_DB") == "1" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// The applications that docs/sql.md shows append, read their view and ask for a
// compaction, on a database of their own.
func TestExamplesRun(t *testing.T) {
	t.Parallel()
	examples := map[string]struct {
		dir     string
		command []string
		needs   func() string // what is missing, or ""
	}{
		"psql": {command: []string{"psql", "-X", "-v", "ON_ERROR_STOP=1", "-f", "examples/agent.sql"}, needs: func() string {
			if _, err := exec.LookPath("psql"); err != nil {
				return "psql is not installed"
			}
			return ""
		}},
		"python": {command: []string{python(), "examples/agent.py"}, needs: func() string {
			if python() == "" {
				return "no python3 with psycopg"
			}
			return ""
		}},
		"typescript": {dir: "examples/typescript", command: []string{"npm", "start", "--silent"}, needs: func() string {
			if _, err := os.Stat("examples/typescript/node_modules/.bin/tsc"); err != nil {
				return "run npm ci in deploy/examples/typescript first"
			}
			return ""
		}},
		"go": {command: []string{"go", "run", "./examples/go"}, needs: func() string { return "" }},
	}
	for name, example := range examples {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if what := example.needs(); what != "" {
				missing(t, what)
			}
			dsn := storetest.DB(t, "", func(context.Context, string) error { return nil })
			if _, err := migrations.Up(t.Context(), dsn, migrations.DefaultSchema); err != nil {
				t.Fatal(err)
			}
			command := example.command
			if name == "psql" {
				command = append(command, dsn)
			}
			run := exec.CommandContext(t.Context(), command[0], command[1:]...)
			run.Dir = example.dir
			run.Env = append(os.Environ(), "DATABASE_URL="+dsn)
			out, err := run.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if !strings.Contains(string(out), "On its way.") {
				t.Errorf("the view did not come back:\n%s", out)
			}
			if !regexp.MustCompile(`run: [1-9]|request_compaction *\n-+\n +[1-9]`).Match(out) {
				t.Errorf("no run was made:\n%s", out)
			}
		})
	}
}

// The logins that docs/security.md creates need no other right for what docs/sql.md shows.
func TestRolesExampleSuffices(t *testing.T) {
	t.Parallel()
	dsn := storetest.DB(t, "", nil)
	_, _, err := migrations.CreateRoles(t.Context(), dsn, migrations.DefaultSchema)
	if err == nil {
		_, err = migrations.Up(t.Context(), dsn, migrations.DefaultSchema)
	}
	if err != nil {
		t.Fatal(err)
	}
	// execute executes an example, in which the logins of this test stand for those it names.
	execute := func(dsn, sql string) error {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			return err
		}
		defer conn.Close(t.Context())
		_, err = conn.Exec(t.Context(), sql)
		return err
	}
	logins := map[string]string{} // by the name in the example
	roles := read(t, "examples/roles.sql")
	for _, m := range regexp.MustCompile(`(?m)^CREATE ROLE (\w+) LOGIN.*\n`).FindAllStringSubmatch(roles, -1) {
		name, login := storetest.Login(t, dsn, "")
		logins[m[1]] = login
		roles = strings.ReplaceAll(roles, m[0], "")
		roles = regexp.MustCompile(`\b`+m[1]+`\b`).ReplaceAllString(roles, name)
	}
	if err := execute(dsn, roles); err != nil {
		t.Fatal(err)
	}
	agent := read(t, "examples/agent.sql")
	ofAcme := strings.ReplaceAll(agent, "'default'", "'acme'")
	if err := execute(logins["support"], agent+ofAcme); err != nil {
		t.Errorf("an application: %v", err)
	}
	if err := execute(logins["support_acme"], ofAcme); err != nil {
		t.Errorf("an application of the tenant acme: %v", err)
	}
	if err := execute(logins["support_acme"], agent); err == nil || !strings.Contains(err.Error(), "bound to tenant acme") {
		t.Errorf("an application of the tenant acme with another tenant: %v, want it refused", err)
	}
	if err := execute(logins["compactor_serve"], agent); err != nil {
		t.Errorf("serve: %v", err)
	}
}

// The signatures of docs/sql.md are those of the database, and its examples run in their order.
func TestFunctionsHaveTheSignaturesAndExamplesOfTheText(t *testing.T) {
	t.Parallel()
	dsn := storetest.DB(t, "", nil)
	if _, err := migrations.Up(t.Context(), dsn, migrations.DefaultSchema); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	rows := regexp.MustCompile("(?m)^\\| `(\\w+)\\((.*)\\)` \\| (?:`(.*)`|rows) \\| `(SELECT .*)` \\|$").FindAllStringSubmatch(read(t, "docs/sql.md"), -1)
	if len(rows) < 19 {
		t.Errorf("%d functions were found", len(rows))
	}
	for _, r := range rows {
		required, optional, _ := strings.Cut(r[2], " [, ")
		args := required
		if optional != "" {
			args += ", " + strings.TrimSuffix(optional, "]")
		}
		const query = `SELECT count(*) FROM pg_proc WHERE pronamespace = 'compactor'::regnamespace AND proname = $1
			AND starts_with(regexp_replace(pg_get_function_identity_arguments(oid), '\mp_', '', 'g'), $2) AND pronargs - pronargdefaults = $3
			AND (pg_get_function_result(oid) = $4 OR $4 = '' AND proretset OR proargmodes && '{o}')`
		n := 0
		if err := conn.QueryRow(t.Context(), query, r[1], args, strings.Count(required, ",")+1, r[3]).Scan(&n); err != nil || n != 1 {
			t.Errorf("%s(%s) returns %s: %d such functions, %v", r[1], args, r[3], n, err)
		}
		if _, err := conn.Exec(t.Context(), r[4]); err != nil {
			t.Errorf("%s: %v", r[4], err)
		}
	}
}

// A binary with a strategy of its own keeps the commands of the program, and its help.
func TestOwnStrategyRuns(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "own")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./examples/strategy").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	history := `[{"role":"user","content":"What is in the file?"},
		{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"read","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"1","content":"Error: no such file"},
		{"role":"assistant","tool_calls":[{"id":"2","type":"function","function":{"name":"read","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"2","content":"42"}]`
	file := filepath.Join(t.TempDir(), "history.json")
	if err := os.WriteFile(file, []byte(history), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"it plans":                {[]string{"compact-file", file, "--strategy", "drop_failed:keep_last=0", "--explain"}, "failed_tool_call"},
		"its parameters are help": {[]string{"compact-file", "--help"}, "keep_last=1"},
	} {
		out, err := exec.CommandContext(t.Context(), program, c.args...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v, want %q in\n%s", name, err, c.want, out)
		}
	}
}

// The examples in the texts are those that are tested here.
func TestTextsShowTheExamples(t *testing.T) {
	t.Parallel()
	for in, examples := range map[string][]string{
		"docs/sql.md": {"examples/agent.sql", "examples/agent.py"}, "docs/security.md": {"examples/roles.sql"},
	} {
		for _, example := range examples {
			if code := strings.TrimSpace(read(t, example)); !strings.Contains(read(t, in), code) {
				t.Errorf("%s does not hold %s as it is", in, example)
			}
		}
	}
	_, shown, _ := strings.Cut(read(t, "../README.md"), "```sql\n")
	shown, _, found := strings.Cut(shown, "```")
	if !found || !strings.HasPrefix(read(t, "examples/agent.sql"), shown) {
		t.Errorf("the README does not hold the beginning of examples/agent.sql, but\n%s", shown)
	}
}
