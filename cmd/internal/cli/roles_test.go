package cli

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/migrations"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/store/storetest"
)

// roleLogin creates the schema's roles in a migrated database and returns the DSN of a
// login that is a member of one of them.
func roleLogin(t *testing.T, dsn, role string) string {
	t.Helper()
	_, _, err := migrations.CreateRoles(t.Context(), dsn, migrations.DefaultSchema)
	if err == nil {
		_, err = migrations.Up(t.Context(), dsn, migrations.DefaultSchema)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, login := storetest.Login(t, dsn, role)
	return login
}

// serve needs no more than the role worker: writes, a sweep, the runs, an undo.
func TestServeRunsWithTheRightsOfTheWorkerRole(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	p.config.Database.URL = config.Secret(roleLogin(t, p.config.Database.URL.Reveal(), "compactor_worker"))
	var err error
	if p.store, err = store.Open(t.Context(), StoreConfig(p.config)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.store.Close)
	names := p.backlog(3)
	p.start(schedules, works)
	p.sweep()
	p.written("written")
	p.awaitRest()
	p.wantOneEffect()
	for _, name := range append(names, "written") {
		for _, r := range p.runs(name) {
			if r.Status != "applied" {
				continue
			}
			if _, err := p.store.Undo(t.Context(), store.Key{Session: name}, r.ID, false, "test"); err != nil {
				t.Error(err)
			}
		}
	}
	p.awaitRest()
	p.wantSound()
}

func TestDoctorAndMigrateStatusCreateNothing(t *testing.T) {
	t.Parallel()
	db := withSession(t)
	dsn := db[0][len("DATABASE_URL="):]
	reader := append([]string{"DATABASE_URL=" + roleLogin(t, dsn, "compactor_reader")}, db[1:]...)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `REVOKE CREATE ON SCHEMA public FROM PUBLIC`); err != nil { // as of Postgres 15
		t.Fatal(err)
	}
	invoke(t, reader, "migrate", "status").want(t, 0, "00001_schema.sql")
	invoke(t, reader, "doctor").want(t, 0, "all checks passed", "✓ views are valid: 1 of 1")
	for _, args := range [][]string{{"sessions"}, {"view", "chat"}, {"view", "chat", "--all"}, {"runs"}, {"export", "chat"}} {
		invoke(t, reader, args...).want(t, 0)
	}
	for _, args := range [][]string{{"compact", "chat"}, {"undo", "1"}, {"pin", "chat", "m"}, {"migrate", "up"}} {
		if r := invoke(t, reader, args...); r.code == 0 {
			t.Errorf("a reader can %v", args)
		}
	}
	// In a database without the schema both say so, and leave it without.
	missing := append(reader, "COMPACTOR_DATABASE_SCHEMA=missing")
	invoke(t, missing, "migrate", "status").want(t, 0, "pending")
	invoke(t, missing, "doctor").want(t, exitFindings, "✗ migrations: pending")
	invoke(t, append(db, "COMPACTOR_DATABASE_SCHEMA=missing"), "doctor").want(t, exitFindings, "✗ migrations: pending")
	var schemas int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_namespace WHERE nspname = 'missing'`).Scan(&schemas); err != nil || schemas != 0 {
		t.Errorf("%d schemas were created, %v", schemas, err)
	}
}

func TestMigrateUpPrintsTheRolesThatItMayNotCreate(t *testing.T) {
	t.Parallel()
	dsn := storetest.DB(t, "", nil)
	name, login := storetest.Login(t, dsn, "")
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, `GRANT CREATE ON DATABASE `+pgx.Identifier{conn.Config().Database}.Sanitize()+` TO `+name); err != nil {
		t.Fatal(err)
	}
	env := []string{"DATABASE_URL=" + login, "COMPACTOR_DATABASE_SCHEMA=unprivileged"}
	invoke(t, env, "migrate", "up").want(t, 0, "applied functions", "may not create roles", "CREATE ROLE unprivileged_reader NOLOGIN;\n")
	invoke(t, env, "migrate", "up", "--json").want(t, 0, `"CREATE ROLE unprivileged_worker NOLOGIN"`)
	invoke(t, env, "migrate", "status").want(t, 0)
	if _, err := conn.Exec(ctx, `DROP OWNED BY `+name+` CASCADE`); err != nil { // or the login could not be dropped
		t.Error(err)
	}
}

func TestAnOperatorNeedsTheRightsOfItsRoleAlone(t *testing.T) {
	t.Parallel()
	db := database(t)
	startWorker(t, db, nil)
	operator := append([]string{"DATABASE_URL=" + roleLogin(t, db[0][len("DATABASE_URL="):], "compactor_operator")}, db[1:]...)
	invoke(t, operator, "import", file(t, "s.jsonl", conversation("chat", 8))).want(t, 0)
	invoke(t, operator, "compact", "chat", "--strategy=sliding_window:keep_last_groups=4").want(t, 0, "applied")
	invoke(t, operator, "undo", "1", "--tenant=acme").want(t, exitRefused, "run 1 is of tenant default, not acme")
	invoke(t, operator, "undo", "1").want(t, 0, "run 1 was undone")
	view := decode[struct{ Messages []store.MessageRow }](t, invoke(t, operator, "view", "chat", "--json"))
	invoke(t, operator, "pin", "chat", view.Messages[1].ID).want(t, 0)
	invoke(t, operator, "unpin", "chat", view.Messages[1].ID).want(t, 0)
	invoke(t, operator, "doctor").want(t, 0)
}
