package store

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sessionstore/compactor/strategies/chat"
)

func TestTheFleetIsWhatWaits(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{"", 10, 0.5, false, Counts{}})
	session := func(tenant, id string, tokens chat.Tokens) Key {
		k := Key{Tenant: tenant, Session: id}
		add(t, s, k, counted(user("m1", "x"), tokens))
		return k
	}
	session("a", "small", 5)
	session("a", "over", 30)
	session("b", "more", 110)
	held := session("b", "cools down", 20)
	session("c", "little", 12)
	repair := session("d", "invalid", 3)
	exec(t, s, `UPDATE compactor.sessions SET cooldown_until = now() + interval '1 hour' WHERE id = $1`, held.Session)
	exec(t, s, `UPDATE compactor.sessions SET suspect_seq = 1, due = true WHERE id = $1`, repair.Session)
	exec(t, s, `DELETE FROM compactor.outbox WHERE sid = (SELECT sid FROM compactor.sessions WHERE id = 'over')`)
	exec(t, s, `UPDATE compactor.outbox SET first_at = now() - interval '90 seconds' WHERE sid = (SELECT sid FROM compactor.sessions WHERE id = 'more')`)
	exec(t, s, `UPDATE compactor.sessions SET created_at = now() - interval '2 hours', last_message_at = now() - interval '1 hour' WHERE id IN ('more', 'little')`)
	// One became due half an hour ago, which a change of its settings does not take back; of the other that was not noted.
	exec(t, s, `UPDATE compactor.sessions SET due_since = CASE id WHEN 'more' THEN now() - interval '30 minutes' END WHERE id IN ('more', 'little')`)
	exec(t, s, `UPDATE compactor.policies SET created_at = CASE WHEN hash = (SELECT policy_hash FROM compactor.sessions WHERE id = 'little') THEN now() - interval '30 minutes' ELSE now() END`)
	request(t, s, Key{Tenant: "a", Session: "small"}, TriggerOperator)
	exec(t, s, `UPDATE compactor.runs SET queued_at = now() - interval '200 seconds'`)
	exec(t, s, `INSERT INTO compactor.runs (sid, trigger, status, lease_until) SELECT sid, 'event', 'running', now() FROM compactor.sessions WHERE id = 'over'`)
	if !must(s.Scheduler.FireTick(t.Context(), "nightly", time.Now(), "x"))(t) {
		t.Fatal("did not fire")
	}
	exec(t, s, `UPDATE compactor.sweeps SET started_at = now() - interval '100 seconds', queued = 7, due = 11`)
	exec(t, s, `INSERT INTO compactor.sweep_tenants (sweep, tenant, due, seen, passed) SELECT id, 'a', 6, 4, false FROM compactor.sweeps UNION ALL
		SELECT id, 'b', 2, 0, false FROM compactor.sweeps UNION ALL SELECT id, 'c', 3, 1, true FROM compactor.sweeps`)

	got := must(s.Operator.Fleet(t.Context(), "", 2))(t)
	want := Fleet{
		Tenants: []TenantDue{
			{Tenant: "b", Sessions: 2, Cooling: 1, Debt: 110, OldestSeconds: 1800},
			{Tenant: "a", Sessions: 1, Debt: 20},
			{Others: true, Sessions: 2, Repairs: 1, Debt: 2, OldestSeconds: 1800},
		},
		Outbox: 3, OldestOutboxSeconds: 90,
		Active: []ActiveRuns{{Trigger: "event", Running: 1}, {Trigger: "operator", Queued: 1, OldestQueuedSeconds: 200}},
		Sweeps: []SweepProgress{{Entry: "nightly", Queued: 7, Left: 4, Seconds: 100}},
	}
	same := []cmp.Option{cmpopts.EquateApprox(0, 30), cmpopts.IgnoreFields(SweepProgress{}, "ID")}
	noDiff(t, cmp.Diff(want, got, same...), "fleet")
	noDiff(t, cmp.Diff(TenantDue{Sessions: 5, Cooling: 1, Repairs: 1, Debt: 132, OldestSeconds: 1800}, got.Due(), same...), "sum")
	exec(t, s, `UPDATE compactor.outbox SET first_at = now() + interval '1 minute'`)
	if later := must(s.Operator.Fleet(t.Context(), "", 2))(t); later.Outbox != 3 || later.OldestOutboxSeconds != 0 {
		t.Errorf("rows whose time is to come: %+v", later)
	}
	if none := must(s.Operator.Fleet(t.Context(), "", 0))(t); len(none.Tenants) != 1 || !none.Tenants[0].Others || none.Due().Debt != 132 {
		t.Errorf("without names: %+v", none.Tenants)
	}
	exec(t, s, `UPDATE compactor.sessions SET due = false`)
	exec(t, s, `DELETE FROM compactor.outbox`)
	if rest := must(s.Operator.Fleet(t.Context(), "", 2))(t); len(rest.Tenants) != 0 || rest.Outbox != 0 || rest.OldestOutboxSeconds != 0 {
		t.Errorf("at rest: %+v", rest)
	}
}

func TestTheFleetNamesFewOfManyTenants(t *testing.T) {
	s := fresh(t)
	exec(t, s, `
		INSERT INTO compactor.sessions (tenant, id, due, due_tokens, live_tokens)
		SELECT 'tenant ' || i % 1000, i::text, true, 100, 100 + i % 1000 FROM generate_series(0, 1999) i`)
	got := must(s.Operator.Fleet(t.Context(), "", 20))(t).Tenants
	if len(got) != 21 || got[0].Tenant != "tenant 999" || got[0].Debt != 2*999 || got[19].Tenant != "tenant 980" {
		t.Fatalf("%+v", got)
	}
	if others := got[20]; !others.Others || others.Sessions != 2*980 || others.Debt != 979*980 {
		t.Errorf("the others: %+v", others)
	}
}

// The debt of a session is the value that is_due compares, whatever the source of the count.
func TestDebtIsWhatDueCompares(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{"", 100, 0.5, false, Counts{}})
	for id, set := range map[string]string{
		"counted":    `live_tokens = 130`,
		"estimated":  `live_tokens = 130, live_estimated_tokens = 100`,
		"reported":   `live_tokens = 50, reported_prompt_tokens = 160, tokens_since_report = 15`,
		"calibrated": `live_tokens = 50, model = 'vendor/Known'`,
	} {
		add(t, s, Key{Session: id}, counted(user("m1", "x"), 1))
		exec(t, s, `UPDATE compactor.sessions SET `+set+` WHERE id = $1`, id)
	}
	exec(t, s, `INSERT INTO compactor.calibrations (tenant, model, counted, reported, reports, overhead, scale, updated_at) VALUES ('default', 'known', '{}', '{}', 9, 30, 2.5, now())`)
	for id, want := range map[string]int64{"counted": 30, "estimated": 80, "reported": 75, "calibrated": 55} {
		exec(t, s, `UPDATE compactor.sessions SET due = id = $1`, id)
		if got := must(s.Operator.Fleet(t.Context(), "", 1))(t).Due(); int64(got.Debt) != want || got.Sessions != 1 {
			t.Errorf("%s: %+v, want a debt of %d", id, got, want)
		}
		exact := one[bool](t, s, `
			SELECT compactor.is_due(jsonb_populate_record(s, jsonb_build_object('due_tokens', due_tokens + $2 - 1)))
				AND NOT compactor.is_due(jsonb_populate_record(s, jsonb_build_object('due_tokens', due_tokens + $2))) FROM compactor.sessions s WHERE id = $1`, id, want)
		if !exact {
			t.Errorf("%s: is_due has another debt than %d", id, want)
		}
	}
}

func TestRoundTripsAreObserved(t *testing.T) {
	t.Parallel()
	_, dsn := openDSN(t)
	var mu sync.Mutex
	seen := map[string]int{}
	var failed []error
	s := must(Open(t.Context(), Config{URL: dsn, MaxConns: 2, Observe: func(kind string, took time.Duration, err error) {
		mu.Lock()
		defer mu.Unlock()
		seen[kind]++
		if took <= 0 {
			t.Errorf("%s took %s", kind, took)
		}
		if err != nil {
			failed = append(failed, err)
		}
	}}))(t)
	defer s.Close()
	must(s.Operator.Fleet(t.Context(), "", 1))(t)
	if _, err := s.Session(t.Context(), Key{Session: "none"}); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if _, err := s.pool.Exec(context.Background(), `SELECT FROM compactor.no_such_table`); err == nil {
		t.Error("no error")
	}
	mu.Lock()
	defer mu.Unlock()
	if seen["batch"] != 1 || seen["query"] < 2 || seen["connect"] < 1 {
		t.Errorf("%v", seen)
	}
	if len(failed) != 1 || !errors.Is(failed[0], ErrNotMigrated) {
		t.Errorf("errors %v", failed)
	}
	if p := s.PoolStats(); p.Max != 2 || p.Busy != 0 || p.Idle < 1 {
		t.Errorf("%+v", p)
	}
}

func TestTheSchemaIsChecked(t *testing.T) {
	s := fresh(t)
	noError(t, s.CheckSchema(t.Context()))
	exec(t, s, `INSERT INTO compactor.compactor_migrations (version_id, is_applied) VALUES (99999, true)`)
	wantError(t, s.CheckSchema(t.Context()), nil, "a later version")
	exec(t, s, `DELETE FROM compactor.compactor_migrations WHERE version_id > 0`)
	wantError(t, s.CheckSchema(t.Context()), ErrNotMigrated, "without migrations")
}
