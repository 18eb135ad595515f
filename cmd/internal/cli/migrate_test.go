package cli

import (
	"context"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3/lock"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/migrations"
	"github.com/sessionstore/compactor/strategies/builtin"
)

func TestMigrate(t *testing.T) {
	t.Parallel()
	db := database(t)
	env := append(db, "COMPACTOR_DATABASE_SCHEMA=other")
	invoke(t, env, "sessions").want(t, exitInternal, "compactor migrate up")
	invoke(t, env, "migrate", "status").want(t, 0, "pending", "00001_schema.sql")
	invoke(t, env, "doctor").want(t, exitFindings, "✗ migrations: pending")
	invoke(t, env, "worker").want(t, exitInternal, "are not applied", "--migrate") // without waiting for that
	invoke(t, env, "migrate", "up").want(t, 0, "applied 00001_schema.sql")
	invoke(t, env, "migrate", "up").want(t, 0, "schema other is up to date")
	got := decode[struct{ Migrations []migrations.Migration }](t, invoke(t, env, "migrate", "status", "--json").want(t, 0))
	if len(got.Migrations) != int(migrations.Newest())+1 || got.Migrations[0].AppliedAt.IsZero() {
		t.Errorf("%+v", got)
	}
	invoke(t, env, "sessions").want(t, 0)
	invoke(t, db, "sessions", "--database-schema=No").want(t, exitUsage, "database.schema")
}

// Keys of one tenant need the role operator: serve --migrate creates it as migrate up does, and key create says where it lacks.
func TestServeMigratesWithTheRoles(t *testing.T) {
	t.Parallel()
	env := append(database(t), "COMPACTOR_DATABASE_SCHEMA=served")
	c, err := config.Load(config.LoadOptions{Environ: env, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	drop := func() {
		conn, err := pgx.Connect(context.Background(), c.Database.URL.Reveal())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		for _, role := range migrations.Roles("served") {
			_, _ = conn.Exec(context.Background(), "DROP OWNED BY "+role+"; DROP ROLE "+role)
		}
	}
	drop() // of a run of this test that was killed
	t.Cleanup(drop)
	open := func(o AppOptions) {
		t.Helper()
		o.Registry = builtin.Registry()
		app, err := NewApp(t.Context(), c, slog.New(slog.DiscardHandler), o)
		if err != nil {
			t.Fatal(err)
		}
		_ = app.Close()
	}
	create := func(name string) result {
		return invoke(t, env, "key", "create", name, "--scope=read", "--tenant=acme").want(t, 0, "cpk_")
	}
	const refuses = "refuses keys of one tenant"
	open(AppOptions{Migrate: true})
	invoke(t, env, "key", "create", "first", "--scope=read", "--all-tenants", "--if-none", "--expires=20000d").want(t, 0, "cpk_")
	create("before").want(t, 0, refuses)
	invoke(t, env, "key", "create", "second", "--scope=read", "--all-tenants", "--if-none").want(t, 0, "nothing was made")
	if r := invoke(t, env, "doctor"); !strings.Contains(r.stdout, "1 of them of one tenant, which a server with this login refuses") {
		t.Error(r)
	}
	open(AppOptions{Migrate: true, Roles: true})
	if r := invoke(t, env, "doctor"); !strings.Contains(r.stdout, "keys: 2 in force, 1 of them of one tenant\n") {
		t.Error(r)
	}
	if r := create("after"); strings.Contains(r.stdout+r.stderr, refuses) {
		t.Error(r)
	}
}

func TestTheAppWaitsForPostgres(t *testing.T) {
	t.Parallel()
	dsn, _ := strings.CutPrefix(database(t)[0], "DATABASE_URL=")
	// with returns the URL of the database with something else in it.
	with := func(change func(u *url.URL)) string {
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		change(u)
		return u.String()
	}
	e := Env{Err: discard()}
	for name, test := range map[string]struct {
		url  string
		wait time.Duration
		want string
	}{
		"no server":        {"postgres://127.0.0.1:1/x", 50 * time.Millisecond, "gave up waiting for postgres after 50ms"},
		"no such database": {with(func(u *url.URL) { u.Path = "/orders" }), time.Hour, "3D000"},
		"no such login":    {with(func(u *url.URL) { u.User = url.UserPassword("marta", "k3y") }), time.Hour, "28"},
	} {
		c, err := config.Load(config.LoadOptions{Flags: map[string]string{"database.url": test.url, "redis.url": "redis://127.0.0.1:1"}, Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		_, err = NewApp(t.Context(), c, e.Err.Logger("info", "json"), AppOptions{Registry: builtin.Registry(), Wait: test.wait})
		if err == nil || !strings.Contains(err.Error(), test.want) || time.Since(begin) > time.Minute {
			t.Errorf("%s: got %v after %s", name, err, time.Since(begin))
		}
	}
}

// Migrations may take longer than an attempt to connect.
func TestMigratingIsNoAttempt(t *testing.T) {
	t.Parallel()
	env := database(t)
	c, err := config.Load(config.LoadOptions{Environ: env, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	other, err := pgx.Connect(t.Context(), c.Database.URL.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Exec(t.Context(), "SELECT pg_advisory_lock($1)", lock.DefaultLockID); err != nil { // as who migrates
		t.Fatal(err)
	}
	time.AfterFunc(waitAttempt+time.Second, func() { _ = other.Close(context.Background()) })
	app, err := NewApp(t.Context(), c, slog.New(slog.DiscardHandler), AppOptions{Registry: builtin.Registry(), Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	_ = app.Close()
}
