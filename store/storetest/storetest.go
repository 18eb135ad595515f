// Package storetest gives a test a fresh database or a fresh Redis. It is for test files
// only and needs no TestMain.
//
// If the environment names no server, all test processes of a `go test` run share one
// private Postgres of cmd/internal/dev/stack/stackd. It stops a few seconds after the last
// of them has ended. This package builds and runs stackd, as nothing outside cmd imports
// cmd.
//
// Servers that the machine lacks are fetched into the user's cache, unless COMPACTOR_NO_FETCH is
// set. Tests that need a server that cannot be had are skipped with the reason; with REQUIRE_DB=1
// they fail.
package storetest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
)

// errMissing means that a server cannot run on this machine.
var errMissing = errors.New("missing")

// postgres returns the server of this process: that of TEST_DATABASE_URL or DATABASE_URL,
// or a lease until the process ends.
var postgres = sync.OnceValues(func() (*lease, error) {
	for _, name := range []string{"TEST_DATABASE_URL", "DATABASE_URL"} {
		if dsn := os.Getenv(name); dsn != "" {
			return &lease{url: dsn}, nil
		}
	}
	return acquire("postgres")
})

// DB returns the DSN of a fresh database, dropped when the test ends. It is a copy of a
// template, which the first call with key creates with migrate: another migrate needs
// another key. migrate must close its connections; if it is nil, the database is empty.
//
// On a server of TEST_DATABASE_URL or DATABASE_URL, it changes no other databases, and
// templates stay for the next run.
func DB(t testing.TB, key string, migrate func(ctx context.Context, dsn string) error) string {
	t.Helper()
	l, err := postgres()
	if err != nil {
		unavailable(t, "Postgres", err)
	}
	server := l.url
	ctx := Context(t)
	template := "template0"
	if migrate != nil {
		if template, err = makeTemplate(ctx, server, key, migrate); err != nil {
			t.Fatalf("create template database: %v", err)
		}
	}
	name := "compactor_test_" + strings.ToLower(rand.Text())
	if err := admin(ctx, server, createFrom(name, template)+copying()); err != nil {
		t.Fatalf("create test database: %v", err)
	}
	t.Cleanup(func() {
		if err := admin(Context(t), server, "drop database if exists "+quote(name)+" with (force)"); err != nil {
			t.Errorf("drop test database: %v", err)
		}
	})
	return withDatabase(server, name)
}

// Redis returns the URL of a fresh in-process Redis. Its keys do not expire by themselves;
// tests that depend on that use RealRedis.
func Redis(t testing.TB) string {
	t.Helper()
	return "redis://" + miniredis.RunT(t).Addr() + "/0"
}

// RealRedis returns the URL of a redis-server for this test alone or, on a machine without
// one, of an empty database of the server of REDIS_URL, which must not be sent FLUSHALL.
func RealRedis(t testing.TB) string {
	t.Helper()
	l, err := acquire("redis")
	if err == nil {
		t.Cleanup(l.release)
		return l.url
	}
	given := os.Getenv("REDIS_URL")
	if !errors.Is(err, errMissing) || given == "" {
		unavailable(t, "Redis", err)
	}
	return emptyIndex(t, given)
}

// PgBouncer returns the DSN of a database of DB through a PgBouncer in transaction mode with
// four server connections, for this test alone.
func PgBouncer(t testing.TB, dsn string) string {
	t.Helper()
	l, err := acquire("pgbouncer " + dsn)
	if err != nil {
		unavailable(t, "PgBouncer", err)
	}
	t.Cleanup(l.release)
	return l.url
}

// unavailable skips the test if the machine lacks the server, unless REQUIRE_DB is set, and
// fails it otherwise.
func unavailable(t testing.TB, server string, err error) {
	t.Helper()
	if errors.Is(err, errMissing) && os.Getenv("REQUIRE_DB") != "1" {
		t.Skipf("no %s for this test: %v", server, err)
	}
	t.Fatalf("no %s for this test: %v", server, err)
}

// makeTemplate returns the name of the template database of a key, and creates it if it is
// missing. It is renamed when it is complete, so that a crash leaves no incomplete one.
func makeTemplate(ctx context.Context, server, key string, migrate func(context.Context, string) error) (string, error) {
	sum := sha256.Sum256([]byte(key))
	name := "compactor_template_" + hex.EncodeToString(sum[:8])
	half := name + "_half"
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	exists := func() (found bool, err error) {
		err = conn.QueryRow(ctx, "select exists (select from pg_database where datname = $1)", name).Scan(&found)
		return found, err
	}
	if found, err := exists(); err != nil || found {
		return name, err
	}
	id := fnv.New64a()
	id.Write([]byte(name))
	// The lock ends with the connection.
	if _, err := conn.Exec(ctx, "select pg_advisory_lock($1)", int64(id.Sum64())); err != nil { //nolint:gosec // any 64 bits will do
		return "", err
	}
	if found, err := exists(); err != nil || found {
		return name, err
	}
	for _, sql := range []string{"drop database if exists " + quote(half) + " with (force)", createFrom(half, "template0")} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return "", err
		}
	}
	if err := migrate(ctx, withDatabase(server, half)); err != nil {
		return "", fmt.Errorf("migrate: %w", err)
	}
	_, err = conn.Exec(ctx, "alter database "+quote(half)+" rename to "+quote(name))
	return name, err
}

// admin runs one statement on the server's own database.
func admin(ctx context.Context, server, sql string) error {
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	return err
}

// createFrom returns the statement that copies a database.
func createFrom(name, template string) string {
	return "create database " + quote(name) + " template " + quote(template)
}

// copying returns what a statement of createFrom ends with to be fast on the server of this process.
// Copying the files of a template takes half the time of writing all its blocks to the log, which
// is the default since Postgres 15, but waits for checkpoints: they are cheap only where nothing is
// flushed to a disk.
var copying = sync.OnceValue(func() string {
	l, err := postgres()
	if err != nil {
		return ""
	}
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, l.url)
	if err != nil {
		return ""
	}
	defer conn.Close(ctx)
	var files bool
	const query = "select current_setting('fsync') = 'off' and current_setting('server_version_num')::int >= 150000"
	if err := conn.QueryRow(ctx, query).Scan(&files); err != nil || !files {
		return "" // it is only slower
	}
	return " strategy file_copy"
})

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// withDatabase returns the DSN of another database on the same server.
func withDatabase(dsn, name string) string {
	if u, err := url.Parse(dsn); err == nil && strings.HasPrefix(u.Scheme, "postgres") {
		u.Path = "/" + name
		return u.String()
	}
	return dsn + " dbname=" + name
}

// emptyIndex claims an empty database of the server until the test ends, and then empties
// it.
func emptyIndex(t testing.TB, given string) string {
	t.Helper()
	const (
		mark  = "compactor:storetest"
		claim = `if redis.call('DBSIZE') == 0 then return redis.call('SET', KEYS[1], '1', 'EX', 3600) end return false`
	)
	options, err := redis.ParseURL(given)
	if err != nil {
		t.Fatalf("REDIS_URL: %v", err)
	}
	for index := 1; index < 16; index++ {
		options.DB = index
		client := redis.NewClient(options)
		err := client.Eval(t.Context(), claim, []string{mark}).Err()
		if err != nil {
			_ = client.Close()
			if errors.Is(err, redis.Nil) {
				continue // in use
			}
			t.Fatalf("REDIS_URL, database %d: %v", index, err)
		}
		t.Cleanup(func() {
			if err := client.FlushDB(context.WithoutCancel(t.Context())).Err(); err != nil {
				t.Errorf("empty redis database %d: %v", index, err)
			}
			_ = client.Close()
		})
		u, err := url.Parse(given)
		if err != nil {
			t.Fatalf("REDIS_URL: %v", err)
		}
		u.Path = fmt.Sprintf("/%d", index)
		return u.String()
	}
	t.Fatal("REDIS_URL: databases 1 to 15 are all in use")
	return ""
}

// Printed returns the text that run writes to standard output. Tests that call it must not
// run in parallel.
func Printed(t testing.TB, run func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = w
	run()
	os.Stdout = stdout
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Partitions returns the number of partitions that the log has in tests, by
// COMPACTOR_TEST_PARTITIONS; 0 without it.
func Partitions() int {
	n, _ := strconv.Atoi(os.Getenv("COMPACTOR_TEST_PARTITIONS"))
	return n
}
