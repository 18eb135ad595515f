package storetest

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run runs statements on a database.
func run(ctx context.Context, dsn string, statements ...string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

func TestDatabasesAreFreshCopiesOfOneTemplate(t *testing.T) {
	t.Parallel()
	if _, err := postgres(); err != nil {
		unavailable(t, "Postgres", err)
	}
	key := rand.Text()
	var migrated atomic.Int32
	migrate := func(ctx context.Context, dsn string) error {
		migrated.Add(1)
		return run(ctx, dsn, "create table notes (text text unique)")
	}
	var all sync.Map
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			dsn := DB(t, key, migrate)
			if _, twice := all.LoadOrStore(dsn, nil); twice {
				t.Errorf("database given twice: %s", dsn)
			}
			if err := run(t.Context(), dsn, "insert into notes values ('one')"); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := migrated.Load(); n != 1 {
		t.Errorf("migrated %d times, want once", n)
	}
}

func TestDatabaseWithoutMigrationIsEmpty(t *testing.T) {
	t.Parallel()
	if err := run(t.Context(), DB(t, "", nil), "create table notes ()"); err != nil {
		t.Error(err)
	}
}

func TestFailedMigrationIsRepeated(t *testing.T) {
	t.Parallel()
	key := rand.Text()
	l, err := postgres()
	if err != nil {
		unavailable(t, "Postgres", err)
	}
	half := func(ctx context.Context, dsn string) error {
		return run(ctx, dsn, "create table notes ()", "gibberish")
	}
	if _, err := makeTemplate(t.Context(), l.url, key, half); err == nil || !strings.Contains(err.Error(), "gibberish") {
		t.Fatalf("got %v", err)
	}
	whole := func(ctx context.Context, dsn string) error { return run(ctx, dsn, "create table notes ()") }
	if err := run(t.Context(), DB(t, key, whole), "select from notes"); err != nil {
		t.Error(err)
	}
}

func TestDatabaseIsDroppedAtTheEnd(t *testing.T) {
	t.Parallel()
	var dsn string
	if !t.Run("test", func(t *testing.T) {
		dsn = DB(t, "", nil)
		conn, err := pgx.Connect(context.Background(), dsn) // forgotten open
		if err != nil {
			t.Fatal(err)
		}
		_ = conn
	}) {
		return
	}
	if dsn == "" {
		t.Skip("no server")
	}
	if err := run(t.Context(), dsn, "select 1"); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("got %v", err)
	}
}

func TestWithDatabase(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]string{
		"postgres://u:p@h:1/old?sslmode=disable": "postgres://u:p@h:1/new?sslmode=disable",
		"postgresql://h":                         "postgresql://h/new",
		"host=h dbname=old":                      "host=h dbname=old dbname=new",
	} {
		got := withDatabase(dsn, "new")
		if got != want {
			t.Errorf("%s: got %s, want %s", dsn, got, want)
		}
		if c, err := pgx.ParseConfig(got); err != nil || c.Database != "new" {
			t.Errorf("%s: pgx understands %+v, %v", dsn, c, err)
		}
	}
}

// client returns a client of a Redis that answers.
func client(t *testing.T, url string) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { c.Close() })
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRedis(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB) string{"in process": Redis, "real": RealRedis} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := client(t, start(t)), client(t, start(t))
			if err := a.Set(t.Context(), "k", "v", 0).Err(); err != nil {
				t.Fatal(err)
			}
			if n := b.Exists(t.Context(), "k").Val(); n != 0 {
				t.Error("two calls gave the same server")
			}
		})
	}
}

func TestGivenRedisLendsEmptyDatabases(t *testing.T) {
	t.Parallel()
	url := RealRedis(t)
	occupied := client(t, strings.TrimSuffix(url, "/0")+"/1")
	if err := occupied.Set(t.Context(), "precious", "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	t.Run("test", func(t *testing.T) {
		for _, want := range []string{"/2", "/3"} {
			if got := emptyIndex(t, url); !strings.HasSuffix(got, want) {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	})
	t.Run("the next test", func(t *testing.T) {
		if got := emptyIndex(t, url); !strings.HasSuffix(got, "/2") {
			t.Errorf("got %s: what was lent before is not empty", got)
		}
	})
	if n := occupied.Exists(t.Context(), "precious").Val(); n != 1 {
		t.Error("a database in use was touched")
	}
}
