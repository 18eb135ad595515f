package store

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sessionstore/compactor/store/storetest"
)

func TestTheAuditLogSaysWhoDidWhat(t *testing.T) {
	s, _ := openRoles(t)
	k := Key{Tenant: "acme", Session: "s1"}
	add(t, s, k, talk("m", 6)...)
	request(t, s, k, TriggerOperator)
	exec(t, s, `INSERT INTO compactor.runs (sid, trigger, status, outcome, queued_at, ended_at, revision, live_before, live_after) -- without a requester
		SELECT sid, trigger, 'skipped', 'dry_run', queued_at + interval '1 microsecond', now(), 1, '{}', '{}'
		FROM compactor.runs CROSS JOIN generate_series(1, 3)`)
	request(t, s, k, TriggerApplication)
	noError(t, s.Operator.PauseRuns(t.Context(), PauseScope{Tenant: "acme"}, "why", "ada"))
	noError(t, s.Operator.ResumeRuns(t.Context(), PauseScope{Tenant: "acme"}, "bob"))
	noError(t, s.Operator.PauseRuns(t.Context(), PauseScope{Tenant: "other"}, "", "ada"))
	noError(t, s.Operator.PauseSchedule(t.Context(), "nightly", "later", "ada"))
	calls := int64(5)
	noError(t, s.Operator.LimitSpending(t.Context(), SpendingLimit{Tenant: "acme", CallsPerHour: &calls, Note: "plan", ChangedBy: "ada"}))
	noError(t, s.Operator.LimitSpending(t.Context(), SpendingLimit{Tenant: "acme", ChangedBy: "bob"}))
	sweep := must(s.Operator.Start(t.Context(), SweepOptions{Tenant: "acme", Note: "now", By: "ada"}))(t)
	noError(t, s.Operator.SteerSweep(t.Context(), sweep, SweepPause, "wait", "bob", 0))
	noError(t, s.Operator.SteerSweep(t.Context(), sweep, SweepCancel, "", "bob", 0))
	put(t, s, PolicyChange{Name: "theirs", Match: map[string]string{"tenant": "acme"}, Note: "first", Thresholds: []Threshold{{DueTokens: 1}}})
	_, _, err := s.Admin.CreateKey(t.Context(), NewKey{Name: "a-key", Scope: ScopeRead, Tenant: "acme", Note: "tests"}, "ada")
	noError(t, err)
	must(s.Admin.RevokeKey(t.Context(), "acme", "a-key", "bob"))(t)
	bulk := must(s.Operator.StartBulkUndo(t.Context(), "acme", RunMatch{Trigger: TriggerNightly}, false, "", "ada"))(t)
	noError(t, s.Operator.CancelBulk(t.Context(), BulkUndo, bulk, "bob"))

	type row struct{ Who, What, Of, Why string }
	read := func(tenant string, limit int) (rows []row) {
		for before := ""; ; {
			page := must(s.Admin.AuditLog(t.Context(), tenant, before, limit))(t)
			for _, a := range page {
				rows = append(rows, row{a.By, a.Action, a.Tenant, a.Note})
			}
			if len(page) < limit {
				return rows
			}
			before = page[limit-1].Place
		}
	}
	want := []row{
		{"bob", "bulk.cancel", "acme", ""},
		{"ada", "bulk.undo", "acme", ""},
		{"bob", "key.revoke", "acme", ""},
		{"ada", "key.create", "acme", "read, tests"},
		{"test", "policy.apply", "acme", "first"},
		{"bob", "sweep.cancel", "acme", ""},
		{"bob", "sweep.pause", "acme", "wait"},
		{"ada", "sweep.start", "acme", "now"},
		{"bob", "limit.clear", "acme", ""},
		{"ada", "limit.set", "acme", "plan"},
		{"bob", "pause.end", "acme", ""},
		{"ada", "pause.create", "acme", "why"},
		{"test", "run.compact", "acme", ""},
	}
	noDiff(t, cmp.Diff(want, read("acme", 100)), "the log of a tenant")
	noDiff(t, cmp.Diff(want, read("acme", 2)), "in pages of two")
	noDiff(t, cmp.Diff(want, read("acme", 1)), "in pages of one")
	all := read("", 3)
	noDiff(t, cmp.Diff([]row{{"ada", "pause.create", "other", ""}, {"ada", "schedule.pause", "", "later"}}, all,
		cmpopts.IgnoreSliceElements(func(r row) bool { return r.Of == "acme" }),
		cmpopts.SortSlices(func(a, b row) bool { return a.What < b.What })), "what else all have")
	wantError(t, second(s.Admin.AuditLog(t.Context(), "", "x", 1)), ErrInvalid, "a place that is none")
	bound := s.Bound("acme", true)
	noDiff(t, cmp.Diff(len(want), len(must(bound.Admin.AuditLog(t.Context(), "", "", 100))(t))), "the log of a bound store")
	wantError(t, second(bound.Admin.AuditLog(t.Context(), "other", "", 9)), ErrForbidden, "that of another tenant")
	if got := must(bound.Operator.Pauses(t.Context()))(t); len(got) != 0 {
		t.Errorf("sees pauses of others: %v", got)
	}
}

// What is noted of a change by a name is part of it: without the one there is not the other.
func TestAChangeAndItsNoteAreOne(t *testing.T) {
	s, _ := openRoles(t)
	k := Key{Tenant: "acme", Session: "s1"}
	add(t, s, k, talk("m", 6)...)
	add(t, s, Key{Tenant: "acme", Session: "parent"}, talk("m", 1)...)
	must(s.Exclude(t.Context(), k, []string{"m1", "m2"}, "app"))(t)
	put(t, s, PolicyChange{Name: "support"})
	text := func(v string) *string { return &v }
	calls := int64(5)
	name := "ada's" // which a pooler's settings quote
	for _, c := range []struct {
		action, session, object, note string
		change                        func(*Store) error
	}{
		{"message.pin", "s1", "m5, m6", "", func(s *Store) error { return s.Pin(t.Context(), k, "m5", "m6") }},
		{"message.restore", "s1", "m1", "", func(s *Store) error { return s.Pin(t.Context(), k, "m1") }},
		{"message.unpin", "s1", "m5", "", func(s *Store) error { return s.Unpin(t.Context(), k, "m5") }},
		{"policy.assign", "s1", "support", "", func(s *Store) error { return s.SetPolicy(t.Context(), k, "support") }},
		{"policy.assign", "s1", "", "", func(s *Store) error { return s.Configure(t.Context(), k, SessionChange{Policy: text("")}) }},
		{"session.model", "s1", "gpt-5", "", func(s *Store) error { return s.SetModel(t.Context(), k, "gpt-5") }},
		{"session.labels", "s1", "", "", func(s *Store) error { return s.SetLabels(t.Context(), k, map[string]string{"a": "b"}) }},
		{"session.parent", "s1", "parent", "", func(s *Store) error { return s.SetParent(t.Context(), k, "parent") }},
		{"pause.create", "", "2", "why", func(s *Store) error {
			return s.Operator.PauseRuns(t.Context(), PauseScope{Tenant: "acme"}, "why", name)
		}},
		{"pause.create", "", "2", "why else", func(s *Store) error {
			return s.Operator.PauseRuns(t.Context(), PauseScope{Tenant: "acme"}, "why else", name)
		}},
		{"pause.end", "", "2", "", func(s *Store) error { return s.Operator.ResumeRuns(t.Context(), PauseScope{Tenant: "acme"}, name) }},
		{"limit.set", "", "calls_per_hour 5", "", func(s *Store) error {
			return s.Operator.LimitSpending(t.Context(), SpendingLimit{Tenant: "acme", CallsPerHour: &calls, ChangedBy: name})
		}},
		{"limit.clear", "", "", "", func(s *Store) error {
			return s.Operator.LimitSpending(t.Context(), SpendingLimit{Tenant: "acme", ChangedBy: name})
		}},
	} {
		state := func() []string {
			return list[string](t, s, `SELECT to_jsonb(s)::text FROM compactor.sessions s UNION ALL SELECT to_jsonb(p)::text FROM compactor.pauses p
				UNION ALL SELECT to_jsonb(l)::text FROM compactor.spending_limits l UNION ALL SELECT to_jsonb(a)::text FROM compactor.operator_actions a`)
		}
		before := state()
		exec(t, s, `ALTER TABLE compactor.operator_actions ADD CONSTRAINT full_disk CHECK (false) NOT VALID`)
		wantError(t, c.change(s.By(name)), errInternal, "%s without its note", c.action)
		noDiff(t, cmp.Diff(before, state()), "%s after its note has failed", c.action)
		exec(t, s, `ALTER TABLE compactor.operator_actions DROP CONSTRAINT full_disk`)

		noError(t, c.change(s.Bound("acme", true).By(name)))
		got := must(s.Admin.AuditLog(t.Context(), "acme", "", 1))(t)[0]
		session := ""
		if got.Session != nil {
			session = *got.Session
		}
		equal(t, []string{name, c.action, c.session, c.object, c.note}, []string{got.By, got.Action, session, got.Object, got.Note}, "the note")
	}
	n := one[int](t, s, `SELECT count(*) FROM compactor.operator_actions`)
	noError(t, s.By(name).SetModel(t.Context(), k, "gpt-5")) // as it is
	noError(t, s.By(name).Pin(t.Context(), k, "m6"))
	noError(t, s.Pin(t.Context(), k, "m4")) // by an application
	equal(t, n, one[int](t, s, `SELECT count(*) FROM compactor.operator_actions`), "notes after what changes nothing, or is an application's")
}

// A page of the log reads the notes of its tenant alone, and not those before it.
func TestAPageOfTheAuditLogIsFoundByIndexes(t *testing.T) {
	s, _ := openRoles(t)
	exec(t, s, `INSERT INTO compactor.operator_actions (done_at, done_by, action, tenant)
		SELECT now() - n * interval '1 second', 'ada', 'message.pin', CASE WHEN n % 10000 = 0 THEN 'small' ELSE 'large' END FROM generate_series(1, 30000) n`)
	exec(t, s, `VACUUM ANALYZE compactor.operator_actions`)
	for tenant, want := range map[string]int{"": 100, "large": 100, "small": 3} {
		p := explain(t, s, `SELECT * FROM compactor.audit_log($1, NULL, 100)`, tenant)
		if p.Hit+p.Read > 150 || int(p.Rows) != want {
			t.Errorf("of %q: %d blocks for %v rows", tenant, p.Hit+p.Read, p.Rows)
		}
	}
}

// A program names itself for all of its connections, also through a pooler, whose settings are text.
func TestAProgramNamesWhoChangesSomething(t *testing.T) {
	s, dsn := openRoles(t)
	k := Key{Session: "s"}
	add(t, s, k, talk("m", 1)...)
	for model, url := range map[string]string{"a": dsn, "b": storetest.PgBouncer(t, dsn)} {
		named := must(Open(t.Context(), Config{URL: url, By: "cli:o'hara"}))(t)
		t.Cleanup(named.Close)
		noError(t, named.SetModel(t.Context(), k, model))
		got := must(s.Admin.AuditLog(t.Context(), "", "", 1))(t)[0]
		equal(t, []string{"cli:o'hara", "session.model", model}, []string{got.By, got.Action, got.Object}, "the note")
	}
}
