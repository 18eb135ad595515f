package cli

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/migrations"
	"github.com/sessionstore/compactor/store/storetest"
)

// A dump is restored as deploy/docs/backup.md says, whatever of the roles is there.
func TestADumpIsRestored(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"pg_dump", "pg_restore"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	for schema, c := range map[string]struct {
		args      []string // of pg_restore
		dropRoles bool
		want      string // of migrate up
	}{
		"dump_with_roles":         {want: "schema dump_with_roles is up to date"},
		"dump_without_privileges": {args: []string{"--no-privileges", "--no-owner"}, want: "rights of roles and 0 policies of row-level security"},
		"dump_without_roles":      {dropRoles: true, want: "policies of row-level security, which were missing"},
	} {
		t.Run(schema, func(t *testing.T) {
			t.Parallel()
			redis := storetest.Redis(t)
			env := func(dsn string) []string {
				return []string{"DATABASE_URL=" + dsn, "REDIS_URL=" + redis, "COMPACTOR_DATABASE_SCHEMA=" + schema, "USER=ada"}
			}
			from, to := storetest.DB(t, "", nil), storetest.DB(t, "", nil)
			t.Cleanup(func() {
				dropRoles(context.WithoutCancel(t.Context()), t, schema, to, from)
			})
			invoke(t, env(from), "migrate", "up").want(t, 0, "created role "+schema+"_worker", "applied functions")
			invoke(t, env(from), "import", file(t, "s.jsonl", conversation("chat", 8)+conversation("other", 3)), "--tenant=acme").want(t, 0)
			execute(t.Context(), t, from, strings.ReplaceAll(`
				SELECT SCHEMA.pin('acme', 'chat', (SELECT id FROM SCHEMA.messages WHERE session = 'chat' AND seq = 1));
				SELECT SCHEMA.replace_view('acme', 'chat', revision, (SELECT json_agg(m) FROM (SELECT m FROM json_array_elements(messages) WITH ORDINALITY x(m, n)
					WHERE n = 1 OR n > 20) x), '', seen) FROM SCHEMA.view_with_revision('acme', 'chat');
				INSERT INTO SCHEMA.tenant_bindings (role, tenant) VALUES ('somebody', 'acme')`, "SCHEMA", schema))
			invoke(t, env(from), "archive", "--tenant=acme", "--older-than=0s").want(t, 0)
			invoke(t, env(from), "compact", "other", "--tenant=acme", "--no-wait").want(t, 0) // a run that waits

			dump := filepath.Join(t.TempDir(), "compactor.dump")
			if out, err := exec.CommandContext(t.Context(), "pg_dump", "-Fc", "-n", schema, "-f", dump, from).CombinedOutput(); err != nil {
				t.Fatalf("pg_dump: %v\n%s", err, out)
			}
			before := shown(t, env(from))
			if c.dropRoles {
				dropRoles(t.Context(), t, schema, from)
			}
			out, err := exec.CommandContext(t.Context(), "pg_restore", append(c.args, "-d", to, dump)...).CombinedOutput()
			if (err != nil) != c.dropRoles { // it goes on after errors about roles
				t.Fatalf("pg_restore: %v\n%s", err, out)
			}
			invoke(t, env(to), "migrate", "up").want(t, 0, c.want)
			invoke(t, env(to), "migrate", "up").want(t, 0, "is up to date")
			invoke(t, env(to), "doctor", "--deep").want(t, 0, "all checks passed", "✓ sessions checked: 2 of 2", "✓ no role may do more or less than it should")
			if diff := cmp.Diff(before, shown(t, env(to))); diff != "" {
				t.Errorf("restored (-before +after):\n%s", diff)
			}
		})
	}
}

// shown returns what commands say of all sessions.
func shown(t *testing.T, env []string) (out []string) {
	t.Helper()
	for _, args := range [][]string{
		{"sessions"}, {"view", "chat"}, {"view", "chat", "--all"}, {"view", "other"}, {"runs", "chat"}, {"runs", "other"},
	} {
		out = append(out, invoke(t, env, append(args, "--tenant=acme", "--json")...).want(t, 0).stdout)
	}
	return out
}

func execute(ctx context.Context, t *testing.T, dsn, sql string) {
	t.Helper()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Error(err)
	}
}

// dropRoles drops the roles of a schema, whose rights are in these databases.
func dropRoles(ctx context.Context, t *testing.T, schema string, dsns ...string) {
	t.Helper()
	for _, dsn := range dsns {
		for _, role := range migrations.Roles(schema) {
			execute(ctx, t, dsn, `DO $$ BEGIN IF EXISTS (SELECT FROM pg_roles WHERE rolname = '`+role+`') THEN DROP OWNED BY `+role+`; END IF; END $$`)
		}
	}
	for _, role := range migrations.Roles(schema) {
		execute(ctx, t, dsns[0], `DROP ROLE IF EXISTS `+role)
	}
}
