package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

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
				wantError(t, third(s.View(t.Context(), k)), nil, "view")
				wantError(t, second(s.ReportUsage(t.Context(), k, 100, 0)), nil, "report of usage")
				wantError(t, s.Pin(t.Context(), k, id), nil, "pin")
				if _, err := s.Worker.Messages(t.Context(), 1, []chat.Seq{1}); err != nil && !errors.Is(err, ErrNotFound) {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	equal(t, 2*clients*turns, one[int](t, direct, `SELECT count(*) FROM compactor.message_log`), "messages are stored")
	wantConsistent(t, direct)
}

func TestTimeoutsHoldThroughPgBouncer(t *testing.T) {
	t.Parallel()
	pooled, direct := openPooled(t, Config{LockTimeout: 100 * time.Millisecond, StatementTimeout: 2 * time.Second})
	k := Key{Session: "s"}
	add(t, direct, k, talk("m", 2)...)
	begin(t, direct, `SELECT FROM compactor.sessions FOR UPDATE`)
	wantError(t, pooled.Pin(t.Context(), k, "m1"), ErrBusy, "a statement that waits for a lock ends with")
	if _, _, err := pooled.Append(t.Context(), k, "", []NewMessage{user("late", "x")}); !errors.Is(err, ErrBusy) {
		t.Errorf("a batch that waits for a lock ends with %v, want ErrBusy", err)
	}
	err := pgx.BeginFunc(t.Context(), pooled.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `SELECT FROM compactor.sessions FOR UPDATE`)
		return err
	})
	wantError(t, mapError(err), ErrBusy, "a transaction that waits for a lock ends with")
	wantError(t, mapError(second(pooled.pool.Exec(t.Context(), `SELECT pg_sleep(60)`))), ErrUnavailable, "a statement that takes too long ends with")
	var n int
	wantError(t, pooled.pool.QueryRow(t.Context(), `SELECT 1 FROM compactor.runs`).Scan(&n), pgx.ErrNoRows, "no row is")
}

// Settings of a process must not reach the others that share its server connections.
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

// TestModesOfStatementsOfTheURLAreTaken checks the modes that are recommended for poolers.
func TestModesOfStatementsOfTheURLAreTaken(t *testing.T) {
	t.Parallel()
	_, dsn := openDSN(t)
	for _, mode := range []string{"exec", "simple_protocol", "describe_exec", "cache_describe"} {
		s := must(Open(t.Context(), Config{URL: dsn + "&default_query_exec_mode=" + mode}))(t)
		k, yes := Key{Session: mode}, true
		add(t, s, k, talk("m", 6)...)
		noError(t, s.SetLabels(t.Context(), k, map[string]string{"agent": "support"}))
		noError(t, s.ReportState(t.Context(), k, State{Closed: &yes}))
		apply(t, s, k, summarize(span(1, 4), "summary"))
		must(s.Operator.StartBulkUndo(t.Context(), "", RunMatch{Trigger: TriggerOperator}, false, "", "ann"))(t)
		wantConsistent(t, s)
		s.Close()
	}
}
