package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sessionstore/compactor/strategies/chat"
)

// dueSessions makes n sessions that are due, s01, s02, …, and their outbox rows.
func dueSessions(t *testing.T, s *Store, n int) []Key {
	t.Helper()
	thresholds(t, s, Threshold{"", 10, 0, false, Counts{}})
	keys := make([]Key, n)
	for i := range keys {
		keys[i] = Key{Session: fmt.Sprintf("s%02d", i+1)}
		add(t, s, keys[i], counted(user("m1", "x"), 11))
	}
	return keys
}

// age lets the outbox rows be older.
func age(t *testing.T, s *Store, first, last time.Duration) {
	t.Helper()
	exec(t, s, `UPDATE compactor.outbox SET first_at = now() - $1::interval, last_at = now() - $2::interval`, first, last)
}

// runsOf returns the runs of deliveries.
func runsOf(ds []Delivery) (runs []RunID) {
	for _, d := range ds {
		runs = append(runs, d.Run)
	}
	return runs
}

// sessionsOf returns the sessions of deliveries by name.
func sessionsOf(t *testing.T, s *Store, ds []Delivery) []string {
	t.Helper()
	return list[string](t, s, `SELECT s.id FROM compactor.runs r JOIN compactor.sessions s USING (sid) WHERE r.id = ANY($1) ORDER BY 1`, runsOf(ds))
}

func TestOneHolderLeads(t *testing.T) {
	s := fresh(t)
	lead := func(holder string, want bool) {
		t.Helper()
		equal(t, want, must(s.Scheduler.Lead(t.Context(), "scheduler", holder, time.Minute))(t), "lead of %s", holder)
	}
	fence := func(want int) {
		t.Helper()
		equal(t, want, one[int](t, s, `SELECT fence FROM compactor.leader`), "fence")
	}
	lead("a", true)
	lead("b", false)
	lead("a", true)
	fence(1)
	exec(t, s, `UPDATE compactor.leader SET expires_at = now() - interval '1 second'`)
	lead("b", true)
	lead("a", false)
	fence(2)
	noError(t, s.Scheduler.Resign(t.Context(), "scheduler", "a"))
	lead("a", false)
	noError(t, s.Scheduler.Resign(t.Context(), "scheduler", "b"))
	lead("a", true)
	if !must(s.Scheduler.Lead(t.Context(), "another role", "b", time.Minute))(t) {
		t.Error("roles share a lead")
	}
}

func TestOfManySchedulersOneFiresASlot(t *testing.T) {
	s := fresh(t)
	tick := time.Date(2025, 6, 1, 3, 0, 0, 0, time.UTC)
	if last := must(s.Scheduler.LastTick(t.Context(), "nightly"))(t); !last.IsZero() {
		t.Errorf("last tick %v, want none", last)
	}
	var fired atomic.Int32
	done := make(chan error)
	for i := range 8 {
		go func() {
			ok, err := s.Scheduler.FireTick(context.Background(), "nightly", tick, fmt.Sprint("scheduler ", i))
			if ok {
				fired.Add(1)
			}
			done <- err
		}()
	}
	for range 8 {
		noError(t, <-done)
	}
	equal(t, 1, fired.Load(), "fired times")
	if !must(s.Scheduler.FireTick(t.Context(), "nightly", tick.Add(24*time.Hour), "x"))(t) || !must(s.Scheduler.FireTick(t.Context(), "weekly", tick, "x"))(t) {
		t.Error("another tick or entry did not fire")
	}
	if last := must(s.Scheduler.LastTick(t.Context(), "nightly"))(t); !last.Equal(tick.Add(24 * time.Hour)) {
		t.Errorf("last tick %v", last)
	}
	sweeps := must(s.Scheduler.OpenSweeps(t.Context()))(t)
	// The sweep of the first tick has not begun, so it stands for the others as well, which go over the same sessions.
	want := []Sweep{{Entry: "nightly", Tick: tick, Waits: true}} // for the first policy
	noDiff(t, cmp.Diff(want, sweeps, cmpopts.IgnoreFields(Sweep{}, "ID"), cmpopts.EquateApproxTime(0)), "open sweeps")
}

func TestASweepGoesOverEveryDueSessionOnce(t *testing.T) {
	s := fresh(t)
	keys := dueSessions(t, s, 7)
	add(t, s, Key{Session: "small"}, counted(user("m1", "x"), 1))
	request(t, s, keys[1], TriggerOperator)
	must(s.Request(t.Context(), keys[3], TriggerOperator, "test", Options{DryRun: true}))(t)
	exec(t, s, `INSERT INTO compactor.runs (sid, trigger) SELECT sid, 'nightly' FROM compactor.sessions WHERE id = 's03'`)
	if !must(s.Scheduler.FireTick(t.Context(), "nightly", time.Now(), "x"))(t) {
		t.Fatal("did not fire")
	}
	sweep := must(s.Scheduler.OpenSweeps(t.Context()))(t)[0].ID
	var got [][]string
	for range 5 {
		page, done := must2(s.Scheduler.SweepPage(t.Context(), sweep, 3, time.Minute))(t)
		for _, d := range page {
			if d.Attempt != 1 || d.Trigger != TriggerNightly {
				t.Errorf("delivery %+v", d)
			}
		}
		got = append(got, sessionsOf(t, s, page))
		if done {
			break
		}
		// A scheduler that starts anew asks for the open sweeps and goes on.
		if open := must(s.Scheduler.OpenSweeps(t.Context()))(t); len(open) != 1 || open[0].ID != sweep {
			t.Fatalf("open sweeps are %+v", open)
		}
	}
	// The queued runs of s02 and s03 stand for a run of the sweep; the dry run of s04 does not.
	noDiff(t, cmp.Diff([][]string{{"s01"}, {"s04", "s05", "s06"}, {"s07"}, nil}, got, cmpopts.EquateEmpty()), "pages")
	if open := must(s.Scheduler.OpenSweeps(t.Context()))(t); len(open) != 0 {
		t.Errorf("open sweeps are %+v, want none", open)
	}
	if page, done, err := s.Scheduler.SweepPage(t.Context(), sweep, 3, time.Minute); len(page) > 0 || !done || err != nil {
		t.Errorf("a page of an ended sweep: %v, %v, %v", page, done, err)
	}
	equal(t, 5, one[int](t, s, `SELECT queued FROM compactor.sweeps`), "the sweep counts queued runs")
	if _, done, err := s.Scheduler.SweepPage(t.Context(), 999, 3, time.Minute); !done || err != nil {
		t.Errorf("a sweep that never was: done %v, %v", done, err)
	}
}

func TestSchedulersAtOnceQueueASessionOnce(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]func(t *testing.T, s *Store) (take func() (int, error)){
		"a sweep": func(t *testing.T, s *Store) func() (int, error) {
			sweep := startSweep(t, s, "", 0)
			return func() (int, error) {
				ds, _, err := s.Scheduler.SweepPage(context.Background(), sweep, 3, time.Minute)
				return len(ds), err
			}
		},
		"the relay": func(_ *testing.T, s *Store) func() (int, error) {
			return func() (int, error) {
				ds, err := s.Scheduler.Relay(context.Background(), 0, 0, 3, time.Minute)
				return len(ds), err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := fresh(t)
			dueSessions(t, s, 20)
			take := work(t, s)
			var total atomic.Int64
			var group sync.WaitGroup
			for range 4 {
				group.Go(func() {
					for range 10 {
						n, err := take()
						if err != nil {
							t.Error(err)
						}
						total.Add(int64(n))
					}
				})
			}
			group.Wait()
			equal(t, 20, total.Load(), "runs queued")
			equal(t, 20, one[int](t, s, `SELECT count(DISTINCT sid) FROM compactor.runs`), "sessions with a run")
		})
	}
}

func TestASessionHasOneAutomaticRunInTheQueue(t *testing.T) {
	s := fresh(t)
	keys := dueSessions(t, s, 3)
	exec(t, s, `DELETE FROM compactor.outbox WHERE sid = (SELECT sid FROM compactor.sessions WHERE id = 's03')`)
	age(t, s, time.Hour, time.Hour)
	relay := func() []Delivery {
		t.Helper()
		return must(s.Scheduler.Relay(t.Context(), 0, 0, 10, time.Minute))(t)
	}
	must(s.Scheduler.FireTick(t.Context(), "nightly", time.Now(), "x"))(t)
	none(t, must(s.Scheduler.Forgotten(t.Context(), 10, time.Minute))(t), "the reconciler queues while a sweep is open")
	sweep := must(s.Scheduler.OpenSweeps(t.Context()))(t)[0].ID
	page, _ := must2(s.Scheduler.SweepPage(t.Context(), sweep, 2, time.Minute))(t)
	// An event does not wait behind the sweep, nor does it have a run beside that of the sweep.
	want := []Delivery{{page[0].Run, 2, TriggerEvent}, {page[1].Run, 2, TriggerEvent}}
	ds := relay()
	equal(t, want, ds, "relayed")
	if ds = relay(); len(ds) > 0 || len(gens(t, s)) > 0 {
		t.Errorf("relayed %v again, outbox %v", ds, gens(t, s))
	}
	// A run of the sweep that was attempted waits for its next attempt, and the event has its own.
	c := must(s.Worker.Claim(t.Context(), page[0].Run, "w", time.Minute))(t)
	noError(t, s.Worker.Requeue(t.Context(), c.Run, c.Fence, time.Hour, true, "timeout", ""))
	add(t, s, keys[0], user("m2", "x"))
	add(t, s, keys[2], user("m2", "x"))
	if ds = relay(); len(ds) != 2 || ds[0].Attempt != 1 || ds[0].Run == c.Run {
		t.Errorf("relayed %v, want a run of s01 beside that of the sweep, and one of s03", ds)
	}
	for done := false; !done; {
		page, done = must2(s.Scheduler.SweepPage(t.Context(), sweep, 2, time.Minute))(t)
		if len(page) > 0 {
			t.Errorf("the sweep queues %v beside an event run", page)
		}
	}
	equal(t, 4, one[int](t, s, `SELECT count(*) FROM compactor.runs`), "runs")
}

// passes moves the times of the runs back, as if d had passed.
func passes(t *testing.T, s *Store, d time.Duration) {
	t.Helper()
	exec(t, s, `UPDATE compactor.runs SET deliver_at = deliver_at - $1::interval, waiting_since = waiting_since - $1::interval`, d)
}

func TestAnUnclaimedRunIsDeliveredAgainWithGrowingDelays(t *testing.T) {
	t.Parallel()
	const s0, m = 5 * time.Second, time.Minute
	for trigger, waits := range map[string][]time.Duration{
		TriggerApplication: {m, m, 2 * m, 4 * m, 8 * m, 16 * m, 32 * m, 32 * m},
		TriggerOperator:    {s0, s0, 2 * s0, 4 * s0, 8 * s0, m, m},
	} {
		t.Run(trigger, func(t *testing.T) {
			s, k := freshTalk(t, 2)
			run := request(t, s, k, trigger)
			deliver := func(attempt int, want time.Duration) {
				t.Helper()
				before := one[time.Time](t, s, `SELECT clock_timestamp()`)
				ds := must(s.Scheduler.Undelivered(t.Context(), 10, time.Minute))(t)
				if diff := cmp.Diff([]Delivery{{Run: run, Attempt: attempt, Trigger: trigger}}, ds); diff != "" {
					t.Fatalf("delivery (-want +got):\n%s", diff)
				}
				if again := must(s.Scheduler.Undelivered(t.Context(), 10, time.Minute))(t); len(again) > 0 {
					t.Fatalf("delivered again at once: %v", again)
				}
				wait := one[time.Duration](t, s, `SELECT deliver_at - now() FROM compactor.runs`)
				if most := one[time.Duration](t, s, `SELECT deliver_at - $1 FROM compactor.runs`, before); wait > want*3/2 || most < want/2 {
					t.Errorf("delivery %d waits %v to %v, want about %v", attempt, wait, most, want)
				}
				passes(t, s, wait)
			}
			for i, want := range waits {
				deliver(i+1, want)
			}
			// An attempt shows that deliveries arrive: only those that are lost count.
			for i := range 10 {
				must(s.Worker.Snooze(t.Context(), run, 0, "busy"))(t)
				deliver(len(waits)+i+1, waits[0])
			}
			c := must(s.Worker.Claim(t.Context(), run, "w", time.Minute))(t)
			noError(t, s.Worker.Requeue(t.Context(), run, c.Fence, 0, true, "timeout", ""))
			deliver(len(waits)+11, waits[0])
		})
	}
}

func TestARunThatNoWorkerAttemptsEndsAfterAWhile(t *testing.T) {
	s := fresh(t)
	keys := dueSessions(t, s, 4)
	age(t, s, time.Hour, time.Hour)
	must(s.Scheduler.Relay(t.Context(), 0, 0, 1, time.Minute))(t)
	exec(t, s, `INSERT INTO compactor.runs (sid, trigger, options) SELECT sid, 'nightly', '"unreadable"' FROM compactor.sessions WHERE id = 's02'`)
	request(t, s, keys[2], TriggerOperator)
	snoozed := request(t, s, keys[3], TriggerApplication)
	running := start(t, s, keys[3])
	passes(t, s, 2*time.Hour)
	must(s.Worker.Snooze(t.Context(), snoozed, time.Minute, "busy"))(t)
	expire := func(want int64) {
		t.Helper()
		equal(t, want, must(s.Scheduler.Expire(t.Context(), time.Hour, 10))(t), "runs end")
	}
	expire(3)
	expire(0)
	for _, row := range must(s.Operator.Runs(t.Context(), RunFilter{Limit: 9}))(t) {
		want := "failed not_attempted"
		switch row.ID {
		case snoozed:
			want = "queued "
		case running.Run:
			want = "running "
		}
		if got := row.Status + " " + row.Outcome; got != want || (row.EndedAt != nil) != (row.Status == "failed") {
			t.Errorf("the %s run is %s, want %s", row.Trigger, got, want)
		}
	}
	passes(t, s, 2*time.Hour)
	expire(1)
}

func TestARunWhoseWorkerIsGoneIsFound(t *testing.T) {
	s, k := freshTalk(t, 2)
	c := start(t, s, k)
	none(t, must(s.Scheduler.Orphaned(t.Context(), 10, time.Minute))(t), "while its worker lives")
	expire(t, s, c.Run)
	if diff := cmp.Diff([]Delivery{{Run: c.Run, Attempt: 1, Trigger: TriggerOperator}}, must(s.Scheduler.Orphaned(t.Context(), 10, time.Minute))(t)); diff != "" {
		t.Errorf("orphans (-want +got):\n%s", diff)
	}
	none(t, must(s.Scheduler.Orphaned(t.Context(), 10, time.Minute))(t), "again at once")
}

func TestADueSessionWithoutARunIsFound(t *testing.T) {
	s := fresh(t)
	keys := dueSessions(t, s, 5)
	exec(t, s, `DELETE FROM compactor.outbox WHERE sid <> (SELECT sid FROM compactor.sessions WHERE id = 's01')`)
	request(t, s, keys[1], TriggerOperator)
	exec(t, s, `UPDATE compactor.sessions SET cooldown_until = now() + interval '1 hour' WHERE id = 's03'`)
	c := start(t, s, keys[3])
	noError(t, s.Worker.Finish(t.Context(), c, StatusSkipped, Ledger{Outcome: "no_summary"}, nil))
	// Repairs and dry runs decide nothing.
	dry := `INSERT INTO compactor.runs (sid, trigger, options, status, outcome, snapshot_seq, ended_at) SELECT sid, 'operator', '{"dry_run": true}', 'skipped', 'would_grow', last_seq, now() FROM compactor.sessions WHERE id IN ('s04', 's05')`
	exec(t, s, dry)
	exec(t, s, `INSERT INTO compactor.runs (sid, trigger, kind, status, outcome, snapshot_seq, ended_at, revision, live_before, live_after)
		SELECT sid, 'application', 'repair', 'applied', 'repaired', last_seq, now(), revision, live, live FROM compactor.sessions WHERE id = 's05'`)
	exec(t, s, dry)
	must(s.Scheduler.Lead(t.Context(), "scheduler", "a", time.Minute))(t)
	none(t, must(s.Operator.Explain(t.Context(), keys[4]))(t).Held, "held back")
	ds := must(s.Scheduler.Forgotten(t.Context(), 10, time.Minute))(t)
	if diff := cmp.Diff([]string{"s05"}, sessionsOf(t, s, ds)); diff != "" {
		t.Fatalf("forgotten (-want +got):\n%s", diff)
	}
	asked := ds[0].Run
	none(t, must(s.Scheduler.Forgotten(t.Context(), 10, time.Minute))(t), "forgotten again")
	// A run that an application requested decides as others do.
	exec(t, s, `UPDATE compactor.runs SET trigger = 'application', status = 'skipped', outcome = 'no_summary', snapshot_seq = 99, ended_at = now() WHERE id = $1`, asked)
	none(t, must(s.Scheduler.Forgotten(t.Context(), 10, time.Minute))(t), "forgotten after a run that was requested")
	exec(t, s, `UPDATE compactor.sessions SET cooldown_until = NULL`)
	must2(s.Import(t.Context(), keys[3], "", talk("n", 1)))(t)
	ds = must(s.Scheduler.Forgotten(t.Context(), 10, time.Minute))(t)
	equal(t, []string{"s03", "s04"}, sessionsOf(t, s, ds), "forgotten after a cooldown and a message without a notification")
	b := must(s.Scheduler.Backlog(t.Context()))(t)
	if b.Sessions != 5 || b.Due != 5 || b.Queued != 3 || b.Running != 0 || b.Outbox != 1 || b.OldestQueued <= 0 {
		t.Errorf("backlog is %+v", b)
	}
}

func TestARequeuedRunGivesWayToItsTwin(t *testing.T) {
	s, k := freshTalk(t, 2)
	c := start(t, s, k)
	twin := request(t, s, k, TriggerOperator)
	noError(t, s.Worker.Requeue(t.Context(), c.Run, c.Fence, time.Minute, false, "stale", "moved on"))
	if row := must(s.Run(t.Context(), c.Run))(t); row.Status != "skipped" || row.Outcome != "superseded" || row.ErrorCode != "stale" || row.EndedAt == nil {
		t.Errorf("the run is %+v, want it superseded", row)
	}
	wantError(t, second(s.Worker.Claim(t.Context(), twin, "w", time.Minute)), nil, "claim of its twin")
}

func TestListsPageAndFilter(t *testing.T) {
	s := fresh(t)
	keys := dueSessions(t, s, 3)
	add(t, s, Key{Tenant: "other", Session: "x"}, counted(user("m1", "x"), 1))
	var got []string
	for after := int64(0); ; {
		rows := sessions(t, s, SessionFilter{After: after, Limit: 3})
		if len(rows) == 0 {
			break
		}
		for _, row := range rows {
			got = append(got, Key{row.Tenant, row.Session}.String())
		}
		after = rows[len(rows)-1].SID
	}
	equal(t, []string{"s01", "s02", "s03", "other/x"}, got, "sessions")
	for want, f := range map[int]SessionFilter{1: {Tenant: "other", Limit: 9}, 3: {Due: true, Limit: 9}, 0: {Tenant: "other", Due: true, Limit: 9}} {
		if rows := sessions(t, s, f); len(rows) != want {
			t.Errorf("%+v lists %d sessions, want %d", f, len(rows), want)
		}
	}
	a := apply(t, s, keys[0], chat.Plan{})
	b := request(t, s, keys[1], TriggerApplication)
	for want, f := range map[RunID]RunFilter{
		a: {Key: keys[0], Limit: 9}, b: {Status: "queued", Limit: 9}, 0: {Outcome: "failed", Limit: 9},
	} {
		rows := must(s.Operator.Runs(t.Context(), f))(t)
		if want == 0 && len(rows) > 0 || want > 0 && (len(rows) != 1 || rows[0].ID != want) {
			t.Errorf("%+v lists %+v, want run %d", f, rows, want)
		}
	}
	if rows := must(s.Operator.Runs(t.Context(), RunFilter{Before: b, Limit: 9}))(t); len(rows) != 1 || rows[0].ID != a {
		t.Errorf("runs before %d: %+v", b, rows)
	}
	if diff := cmp.Diff([]OutcomeRow{{Trigger: TriggerOperator, Outcome: "applied", Runs: 1}}, must(s.Operator.Outcomes(t.Context(), 0))(t)); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if row := must(s.Session(t.Context(), keys[2]))(t); row.Session != "s03" || row.LiveTokens != 11 {
		t.Errorf("session is %+v", row)
	}
	_, errS := s.Session(t.Context(), Key{Session: "none"})
	_, errR := s.Run(t.Context(), 999)
	if !errors.Is(errS, ErrNotFound) || !errors.Is(errR, ErrNotFound) {
		t.Errorf("unknown: %v, %v; want not found", errS, errR)
	}
	sum, n := must2(s.Admin.Checksum(t.Context(), session(t, s, keys[0]).SID, chat.Open-1))(t)
	if n != 1 || sum == "" {
		t.Errorf("checksum %q over %d", sum, n)
	}
}
