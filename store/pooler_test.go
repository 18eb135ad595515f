package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/migrations"
	"github.com/sessionstore/compactor/store/storetest"
	"github.com/sessionstore/compactor/strategies/chat"
)

// openPooled returns a store on a fresh database through a PgBouncer in transaction mode, and
// a direct one.
func openPooled(t *testing.T, c Config) (pooled, direct *Store) {
	t.Helper()
	direct, dsn := openDSN(t)
	c.URL = storetest.PgBouncer(t, dsn)
	pooled = must(Open(t.Context(), c))(t)
	t.Cleanup(pooled.Close)
	return pooled, direct
}

func TestApplicationsWorkThroughPgBouncer(t *testing.T) {
	t.Parallel()
	first, direct := openPooled(t, Config{})
	const clients, sessions, turns = 6, 3, 20
	var group sync.WaitGroup
	for c := range clients {
		group.Go(func() {
			s := first
			if c > 0 { // more clients than the pooler has connections
				var err error
				if s, err = Open(t.Context(), Config{URL: first.pool.Config().ConnString()}); err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
			}
			for turn := range turns {
				k := Key{Session: fmt.Sprintf("s%d", turn%sessions)}
				id := fmt.Sprintf("m-%d-%d", c, turn)
				if _, _, err := s.Append(t.Context(), k, "gpt-4o", []NewMessage{user(id, "question"), assistant(id+"-a", "answer")}); err != nil {
					t.Error(err)
				}
				if _, _, err := s.View(t.Context(), k); err != nil {
					t.Error(err)
				}
				if _, err := s.ReportUsage(t.Context(), k, 100, 0); err != nil {
					t.Error(err)
				}
				if err := s.Pin(t.Context(), k, id); err != nil {
					t.Error(err)
				}
				if _, err := s.Worker.Messages(t.Context(), 1, []chat.Seq{1}); err != nil && !errors.Is(err, ErrNotFound) {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if n := one[int](t, direct, `SELECT count(*) FROM compactor.message_log`); n != 2*clients*turns {
		t.Errorf("%d messages are stored, want %d", n, 2*clients*turns)
	}
	wantConsistent(t, direct)
}

func TestTimeoutsHoldThroughPgBouncer(t *testing.T) {
	t.Parallel()
	pooled, direct := openPooled(t, Config{LockTimeout: 100 * time.Millisecond, StatementTimeout: 2 * time.Second})
	k := Key{Session: "s"}
	add(t, direct, k, talk("m", 2)...)
	tx := must(direct.pool.Begin(t.Context()))(t)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), `SELECT FROM compactor.sessions FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	if err := pooled.Pin(t.Context(), k, "m1"); !errors.Is(err, ErrBusy) {
		t.Errorf("a statement that waits for a lock ends with %v, want ErrBusy", err)
	}
	if _, _, err := pooled.Append(t.Context(), k, "", []NewMessage{user("late", "x")}); !errors.Is(err, ErrBusy) {
		t.Errorf("a batch that waits for a lock ends with %v, want ErrBusy", err)
	}
	err := pgx.BeginFunc(t.Context(), pooled.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `SELECT FROM compactor.sessions FOR UPDATE`)
		return err
	})
	if err := mapError(err); !errors.Is(err, ErrBusy) {
		t.Errorf("a transaction that waits for a lock ends with %v, want ErrBusy", err)
	}
	if _, err := pooled.pool.Exec(t.Context(), `SELECT pg_sleep(60)`); !errors.Is(mapError(err), ErrUnavailable) {
		t.Errorf("a statement that takes too long ends with %v", err)
	}
	var n int
	if err := pooled.pool.QueryRow(t.Context(), `SELECT 1 FROM compactor.runs`).Scan(&n); !errors.Is(err, pgx.ErrNoRows) {
		t.Errorf("no row is %v", err)
	}
}

// What a process sets must not reach the others that share its server connections.
func TestSettingsStayWithTheirTransactionBehindPgBouncer(t *testing.T) {
	t.Parallel()
	pooled, direct := openPooled(t, Config{LockTimeout: time.Second})
	for i := range 20 {
		add(t, pooled, Key{Session: fmt.Sprintf("s%d", i)}, talk("m", 2)...)
	}
	conn := must(pgx.Connect(t.Context(), pooled.pool.Config().ConnString()))(t)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	want := one[string](t, direct, `SELECT boot_val FROM pg_settings WHERE name = 'lock_timeout'`)
	for range 20 {
		var got string
		if err := conn.QueryRow(t.Context(), `SELECT setting FROM pg_settings WHERE name = 'lock_timeout'`, pgx.QueryExecModeExec).Scan(&got); err != nil || got != want {
			t.Fatalf("lock_timeout of another client is %s, want %s; %v", got, want, err)
		}
	}
}

func TestMigrationsRunThroughPgBouncer(t *testing.T) {
	t.Parallel()
	dsn := storetest.PgBouncer(t, storetest.DB(t, "", nil))
	var group sync.WaitGroup
	applied := make([]int, 8) // more than the pooler has connections
	for i := range applied {
		group.Go(func() {
			done, err := migrations.Up(context.Background(), dsn, migrations.DefaultSchema)
			if err != nil {
				t.Error(err)
			}
			applied[i] = len(done)
		})
	}
	group.Wait()
	all := must(migrations.Status(t.Context(), dsn, migrations.DefaultSchema))(t)
	sum := 0
	for _, n := range applied {
		sum += n
	}
	if sum != len(all) {
		t.Errorf("%d migrations were applied %d times", len(all), sum)
	}
	for _, m := range all {
		if m.AppliedAt.IsZero() {
			t.Errorf("%s is not applied", m.Name)
		}
	}
}
