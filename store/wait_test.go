package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/store/storetest"
)

func TestWaitRunReturnsWhenTheRunHasEnded(t *testing.T) {
	s := fresh(t)
	k := Key{Tenant: "t", Session: "s"}
	add(t, s, k, talk("m", 4)...)
	c := start(t, s, k)
	const wait = `SELECT concat_ws(' ', status, outcome, error) FROM compactor.wait_run('t', 's', $1, $2)`
	equal(t, "running", one[string](t, s, wait, c.Run, time.Duration(0)), "at once")
	equal(t, "running", one[string](t, s, wait, c.Run, 50*time.Millisecond), "for a moment")
	short, cancel := context.WithTimeout(t.Context(), time.Second) // the state is read in that time
	defer cancel()
	if row, err := s.WaitRun(short, c.Run); !errors.Is(err, context.DeadlineExceeded) || row.Status != "running" {
		t.Errorf("in Go for a moment: %v, %s; want the deadline and the last state", err, row.Status)
	}
	var group sync.WaitGroup
	group.Go(func() {
		equal(t, "applied x", one[string](t, s, wait, c.Run, time.Minute), "in SQL")
	})
	group.Go(func() {
		row, err := s.WaitRun(context.Background(), c.Run)
		if err != nil || row.Status != "applied" || !row.Ended() {
			t.Errorf("in Go: %v, %+v", err, row)
		}
	})
	ch := must(c.change(s, exclude(span(1, 1))))(t)
	ch.Ledger.Outcome = "x"
	must(s.Worker.Apply(t.Context(), c.Run, c.Fence, ch))(t)
	group.Wait()

	for name, query := range map[string]string{
		"another tenant": `SELECT compactor.wait_run('u', 's', $1)`, "another session": `SELECT compactor.wait_run('t', 'u', $1)`,
		"another run": `SELECT compactor.wait_run('t', 's', $1 + 1)`,
	} {
		wantError(t, mapError(second(s.pool.Exec(t.Context(), query, c.Run))), ErrNotFound, "%s", name)
	}
}

func TestRunsAreWaitedForThroughPgBouncer(t *testing.T) {
	t.Parallel()
	pooled, direct := openPooled(t, Config{})
	k := Key{Session: "s"}
	add(t, direct, k, talk("m", 4)...)
	var group sync.WaitGroup
	c := start(t, pooled, k)
	group.Go(func() {
		if row, err := pooled.WaitRun(context.Background(), c.Run); err != nil || row.Outcome != "x" {
			t.Errorf("in Go: %v, %+v", err, row)
		}
	})
	group.Go(func() {
		equal(t, "x", one[string](t, pooled, `SELECT outcome FROM compactor.wait_run(NULL, 's', $1)`, c.Run), "in SQL")
	})
	noError(t, pooled.Worker.Finish(t.Context(), c, StatusSkipped, Ledger{Outcome: "x"}, nil))
	group.Wait()
}

func TestWaitRunRefusesWhereItCouldNeverSeeTheEnd(t *testing.T) {
	s := fresh(t)
	add(t, s, Key{Session: "s"}, talk("m", 4)...)
	for name, setup := range map[string]struct {
		options pgx.TxOptions
		query   string
	}{
		"requested in the same transaction": {pgx.TxOptions{}, `SELECT compactor.request_compaction(NULL, 's')`},
		"a snapshot of its own":             {pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, fmt.Sprint(`SELECT `, start(t, s, Key{Session: "s"}).Run, `::bigint`)},
	} {
		err := pgx.BeginTxFunc(t.Context(), s.pool, setup.options, func(tx pgx.Tx) error {
			var run RunID
			if err := tx.QueryRow(t.Context(), setup.query).Scan(&run); err != nil {
				return err
			}
			_, err := tx.Exec(t.Context(), `SELECT compactor.wait_run(NULL, 's', $1)`, run)
			return err
		})
		if !errors.Is(mapError(err), ErrNotApplicable) || !strings.Contains(fmt.Sprint(err), "cannot see the end") {
			t.Errorf("%s: %v, want it refused", name, err)
		}
	}
}

// listening returns a function that waits for the payload of the next notification.
func listening(t *testing.T, dsn string) (next func() string) {
	t.Helper()
	conn := must(pgx.Connect(t.Context(), dsn))(t)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	must(conn.Exec(t.Context(), `LISTEN compactor`))(t)
	return func() string {
		t.Helper()
		ctx := storetest.Context(t)
		n := must(conn.WaitForNotification(ctx))(t)
		equal(t, "compactor", n.Channel, "channel")
		return n.Payload
	}
}

// However a run ends, listeners get its id and nothing else.
func TestTheEndOfARunIsNotified(t *testing.T) {
	t.Parallel()
	s, dsn := openDSN(t)
	next := listening(t, dsn)
	k := Key{Session: "s"}
	add(t, s, k, talk("m", 9)...)
	var want []string
	ended := func(run RunID) { want = append(want, fmt.Sprint(run)) }
	applied := apply(t, s, k, exclude(span(1, 2)))
	ended(applied)
	ended(must(s.Undo(t.Context(), k, applied, false, ""))(t))
	c := start(t, s, k)
	noError(t, s.Worker.Finish(t.Context(), c, StatusSkipped, Ledger{Outcome: "x"}, nil))
	ended(c.Run)
	abandoned := request(t, s, k, TriggerOperator)
	noError(t, s.Worker.Abandon(t.Context(), abandoned, "busy"))
	ended(abandoned)
	_, revision := must2(s.View(t.Context(), k))(t)
	ended(must(s.Replace(t.Context(), k, revision, talk("m", 3), ""))(t))
	got := map[string]bool{}
	for len(got) < len(want) {
		got[next()] = true
	}
	for _, run := range want {
		if !got[run] {
			t.Errorf("run %s was not notified, but %v", run, got)
		}
	}
}

// Pending notifications are sent when a process ends.
func TestAStoreThatClosesSendsItsNotifications(t *testing.T) {
	t.Parallel()
	s, dsn := openDSN(t)
	next := listening(t, dsn)
	other := must(Open(t.Context(), Config{URL: dsn}))(t)
	add(t, s, Key{Session: "s"}, talk("m", 3)...)
	run := apply(t, other, Key{Session: "s"}, exclude(span(1, 1)))
	other.Close()
	equal(t, fmt.Sprint(run), next(), "notified of run")
}
