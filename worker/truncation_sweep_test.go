package worker

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// setupSwept returns sessions of tenants that a sweep finds, and the rules for them.
func setupSwept(t *testing.T, perTenant map[string]int) (*paged, []store.Truncation) {
	t.Helper()
	f := setupPaged(t, truncatingPolicy(), Config{})
	for tenant, n := range perTenant {
		for i := range n {
			f.append(fmt.Sprint(tenant, i), "suauauauauauauaua")
		}
		must(f.conn.Exec(t.Context(), `UPDATE compactor.sessions SET tenant = $1 WHERE tenant = 'default'`, tenant))(t)
	}
	must(f.conn.Exec(t.Context(), `DELETE FROM compactor.outbox`))(t)
	return f, []store.Truncation{must(f.w.planner.Truncation(t.Context(), f.store.Worker, store.SessionKind{Policy: "default"}))(t)}
}

func (f *paged) together(sweep int64, limit int, rules []store.Truncation) store.SweptPage {
	f.t.Helper()
	page, err := f.store.Scheduler.SweepTogether(f.t.Context(), sweep, limit, time.Minute, rules, "test")
	f.must(err)
	return page
}

// togetherBehind commits a transaction once it holds up the page, or the page has ended.
func (f *paged) togetherBehind(tx pgx.Tx, sweep int64, rules []store.Truncation) store.SweptPage {
	f.t.Helper()
	pages := make(chan store.SweptPage, 1)
	go func() { pages <- f.together(sweep, 10, rules) }()
	f.await("the page waits", func() bool {
		var waiting int
		f.must(tx.QueryRow(f.t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting))
		return waiting > 0 || len(pages) > 0
	})
	f.must(tx.Commit(f.t.Context()))
	return <-pages
}

func (f *paged) count(query string) (n int) {
	f.t.Helper()
	f.must(f.conn.QueryRow(f.t.Context(), query).Scan(&n))
	return n
}

const (
	countApplied = `SELECT count(*) FROM compactor.runs WHERE status = 'applied'`
	countTwice   = `SELECT count(*) FROM (SELECT FROM compactor.runs GROUP BY sid HAVING count(*) > 1) twice`
)

// A scheduler that dies in the middle of a page has done nothing of it, and the next one does
// all of it once.
func TestAPageOfTruncatedSessionsIsDoneAllOrNotAtAll(t *testing.T) {
	t.Parallel()
	f, rules := setupSwept(t, map[string]int{"a": 30})
	sweep := must(f.store.Operator.StartSweep(t.Context(), "", 0, "", "test"))(t)
	if page := f.together(sweep, 10, rules); page.Ended != 10 {
		t.Fatalf("%+v", page)
	}
	tx, err := f.conn.Begin(t.Context())
	f.must(err)
	must(tx.Exec(t.Context(), `SELECT FROM compactor.sweep_tenants FOR UPDATE`))(t) // which a page writes last
	died := make(chan error)
	go func() {
		_, err := f.store.Scheduler.SweepTogether(context.WithoutCancel(t.Context()), sweep, 10, time.Minute, rules, "test")
		died <- err
	}()
	f.await("the page waits", func() bool {
		var killed int
		f.must(tx.QueryRow(t.Context(), `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%sweep_page%'`).Scan(&killed))
		return killed > 0
	})
	if err := <-died; err == nil {
		t.Error("the page ended without an error")
	}
	f.must(tx.Rollback(t.Context()))
	if n := f.count(countApplied); n != 10 {
		t.Errorf("%d runs are applied, want the 10 of the first page", n)
	}
	for done := false; !done; {
		done = f.together(sweep, 10, rules).Done
	}
	if n, twice := f.count(countApplied), f.count(countTwice); n != 30 || twice > 0 {
		t.Errorf("%d runs are applied and %d sessions have two, want 30 and none", n, twice)
	}
	row := must(f.store.Operator.Sweep(t.Context(), sweep))(t)
	if row.Queued != 30 || row.Remaining != 0 || !row.Settled() {
		t.Errorf("%+v", row)
	}
}

func TestManySchedulersTruncateASessionOnce(t *testing.T) {
	t.Parallel()
	f, rules := setupSwept(t, map[string]int{"a": 40, "b": 40})
	var all sync.WaitGroup
	shared := must(f.store.Operator.StartSweep(t.Context(), "", 0, "", "test"))(t)
	for range 4 {
		all.Go(func() {
			for done := false; !done; {
				page, err := f.store.Scheduler.SweepTogether(t.Context(), shared, 7, time.Minute, rules, "test")
				if done = page.Done; err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	for _, run := range must(f.store.Operator.Runs(t.Context(), store.RunFilter{Status: "queued", Limit: 100}))(t) {
		f.run(run.ID) // of a session that another one had locked
	}
	var most int
	f.must(f.conn.QueryRow(t.Context(), `SELECT max(revision) FROM compactor.sessions`).Scan(&most))
	if n := f.count(countApplied); n != 80 || most != 1 {
		t.Errorf("%d runs are applied, want 80; the views changed up to %d times, want 1", n, most)
	}
}

// It would make the writers of the other sessions wait.
func TestALockedSessionOfASweepIsQueued(t *testing.T) {
	t.Parallel()
	f, rules := setupSwept(t, map[string]int{"a": 3})
	sweep := must(f.store.Operator.StartSweep(t.Context(), "", 0, "", "test"))(t)
	tx, err := f.conn.Begin(t.Context())
	f.must(err)
	must(tx.Exec(t.Context(), `SELECT FROM compactor.sessions WHERE id = 'a1' FOR NO KEY UPDATE`))(t)
	page := f.together(sweep, 10, rules)
	f.must(tx.Rollback(t.Context()))
	if page.Ended != 2 || len(page.Queued) != 1 {
		t.Errorf("%+v, want the locked one queued", page)
	}
	if row := f.run(page.Queued[0].Run); row.Outcome != OutcomeApplied {
		t.Errorf("%+v", row)
	}
}

// Limits, pauses, windows and canaries hold for runs without a queue, too.
func TestWhatHoldsSweepsBackHoldsTruncationBack(t *testing.T) {
	t.Parallel()
	one := 0.01 // at once, and the next after 100 seconds
	limit := func(tenant string) func(f *paged) {
		return func(f *paged) {
			f.must(f.store.Operator.LimitSpending(t.Context(), store.SpendingLimit{Tenant: tenant, RunsPerSecond: &one}))
		}
	}
	pause := func(tenant string) func(f *paged) {
		return func(f *paged) {
			f.must(f.store.Operator.PauseRuns(t.Context(), store.PauseScope{Tenant: tenant}, "", ""))
		}
	}
	for name, c := range map[string]struct {
		prepare func(f *paged)
		options store.SweepOptions
		ended   []int // of pages of twenty
	}{
		"nothing":                 {func(*paged) {}, store.SweepOptions{}, []int{20, 0}},
		"a limit of all":          {limit(""), store.SweepOptions{}, []int{1, 0}},
		"a limit of a tenant":     {limit("a"), store.SweepOptions{}, []int{11, 0}},
		"a paused tenant":         {pause("a"), store.SweepOptions{}, []int{10, 0}},
		"a pause of all":          {pause(""), store.SweepOptions{}, []int{0}},
		"a window that has ended": {func(*paged) {}, store.SweepOptions{Window: time.Microsecond}, []int{0}},
		"a canary":                {func(*paged) {}, store.SweepOptions{Canary: 0.2}, []int{4, 16}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, rules := setupSwept(t, map[string]int{"a": 10, "b": 10})
			c.prepare(f)
			sweep := must(f.store.Operator.Start(t.Context(), c.options))(t)
			var got []int
			for range c.ended {
				page := f.together(sweep, 20, rules)
				if got = append(got, page.Ended); len(page.Queued) > 0 {
					t.Errorf("%+v", page)
				}
			}
			if diff := cmp.Diff(c.ended, got); diff != "" {
				t.Errorf("ended in each page (-want +got):\n%s", diff)
			}
		})
	}
}

// Recorded sessions end in the same state, too.
func TestRecordedSessionsAreTruncatedAsBySingleRuns(t *testing.T) {
	t.Parallel()
	p := truncatingPolicy()
	p.StartTokens, p.TargetTokens, p.EstimateMargin = 3000, 2000, 0.1
	f := setupPaged(t, p, Config{Name: "one"})
	f.w.planner.BindsReasoning = tokens.BindsReasoning
	all := recorded(t, 10)
	for i, s := range all {
		var msgs []store.NewMessage
		for _, m := range s.Messages {
			m.ID = ""
			msgs = append(msgs, store.NewMessage{Message: m, Tokens: tokens.Chars4{}.Message(&m), Counter: []string{"test", chat.CounterChars4}[i%2]})
		}
		for _, tenant := range []string{"single", "set"} {
			_, _, err := f.store.Import(t.Context(), store.Key{Tenant: tenant, Session: fmt.Sprint(i)}, "gpt-4o", msgs)
			f.must(err)
		}
	}
	sweep := must(f.store.Operator.StartSweep(t.Context(), "single", 0, "", "test"))(t)
	for done := false; !done; {
		var page []store.Delivery
		var err error
		page, done, err = f.store.Scheduler.SweepPage(t.Context(), sweep, 100, time.Minute)
		f.must(err)
		for _, d := range page {
			f.run(d.Run)
		}
	}
	queued, ended, err := sweepTogether(t.Context(), f.store, f.w.planner, "set", "one")
	f.must(err)
	for _, run := range queued {
		f.run(run)
	}
	t.Logf("%d sessions were truncated by the database, %d by workers", ended, len(queued))
	for i := range all {
		single, err := sweptOf(t.Context(), f.conn, "single", i)
		f.must(err)
		set, err := sweptOf(t.Context(), f.conn, "set", i)
		f.must(err)
		if diff := cmp.Diff(single, set); diff != "" {
			t.Errorf("session %s (-single +set):\n%s", all[i].ID, diff)
		}
	}
}

// The relay has the event of a session, and its run is not committed yet.
func TestASweepLeavesASessionToItsEvent(t *testing.T) {
	t.Parallel()
	f, rules := setupSwept(t, map[string]int{"a": 3})
	must(f.conn.Exec(t.Context(), `INSERT INTO compactor.outbox (sid) SELECT sid FROM compactor.sessions WHERE id = 'a1'`))(t)
	sweep := must(f.store.Operator.StartSweep(t.Context(), "", 0, "", "test"))(t)
	relay, err := f.conn.Begin(t.Context())
	f.must(err)
	must(relay.Exec(t.Context(), `WITH gone AS (DELETE FROM compactor.outbox RETURNING sid) INSERT INTO compactor.runs (sid, trigger) SELECT sid, 'event' FROM gone`))(t)
	if page := f.togetherBehind(relay, sweep, rules); page.Ended != 2 {
		t.Errorf("%+v, want that two are truncated", page)
	}
	if n, twice := f.count(`SELECT count(*) FROM compactor.runs`), f.count(countTwice); n != 3 || twice > 0 {
		t.Errorf("%d runs, and %d sessions have two, want 3 and none", n, twice)
	}
}

// The rules that were read would be those of another version than the thresholds of the session.
func TestAPageOfTruncatedSessionsWaitsForAChangeOfThePolicy(t *testing.T) {
	t.Parallel()
	f, rules := setupSwept(t, map[string]int{"a": 3})
	sweep := must(f.store.Operator.StartSweep(t.Context(), "", 0, "", "test"))(t)
	change, err := f.conn.Begin(t.Context())
	f.must(err)
	_, err = change.Exec(t.Context(), `SELECT compactor.change_policies('[{"name": "default", "expect": 0, "spec": {}, "hash": "new", "fleet_hash": "new",
		"thresholds": [{"model_prefix": "", "due_tokens": 1, "estimate_margin": 0}]}]', 'test')`)
	f.must(err)
	if page := f.togetherBehind(change, sweep, rules); page.Ended != 0 || len(page.Unknown) != 1 {
		t.Errorf("%+v, want the kind of the sessions unknown, as the rules are of another version", page)
	}
}
