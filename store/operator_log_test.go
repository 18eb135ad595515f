package store

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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
