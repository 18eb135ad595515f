package store

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func pause(t *testing.T, s *Store, tenant, model string) {
	t.Helper()
	noError(t, s.Operator.PauseRuns(t.Context(), PauseScope{Tenant: tenant, Model: model}, "why", "ada"))
}

func resume(t *testing.T, s *Store, tenant, model string) {
	t.Helper()
	noError(t, s.Operator.ResumeRuns(t.Context(), PauseScope{Tenant: tenant, Model: model}, "ada"))
}

func TestWhatAPauseHolds(t *testing.T) {
	s := fresh(t)
	for _, x := range []struct{ tenant, session, model string }{
		{"acme", "a", "openai/gpt-4o"}, {"acme", "b", "claude-x"}, {"globex", "c", "ft:gpt-4o:org::id"}, {"globex", "d", ""},
	} {
		must2(s.Append(t.Context(), Key{Tenant: x.tenant, Session: x.session}, x.model, talk("m", 1)))(t)
	}
	put(t, s, PolicyChange{Name: "support", Match: map[string]string{"model": "gpt-4"}})
	put(t, s, PolicyChange{Name: "theirs", Match: map[string]string{"tenant": "globex", "team": "x"}})
	refresh(t, s, 9)
	for _, c := range []struct{ tenant, model, policy, want string }{
		{"", "", "", "abcd"},
		{"acme", "", "", "ab"},
		{"", "GPT-4", "", "ac"},
		{"acme", "gpt-4o", "", "a"},
		{"globex", "claude", "", ""},
		{"other", "", "", ""},
		{"", "openai/", "", "a"},
		{"", "", "support", "ac"},
		{"globex", "", "support", "c"},
		{"", "claude", "support", ""},
		{"", "claude", "default", "b"},
		{"", "", "theirs", ""},
		{"", "", "default", "bd"},
	} {
		scope := PauseScope{c.tenant, c.model, c.policy}
		noError(t, s.Operator.PauseRuns(t.Context(), scope, "why", "ada"))
		got := ""
		for _, row := range sessions(t, s, SessionFilter{Limit: 9}) {
			held := must(s.Operator.PausesOf(t.Context(), Key{Tenant: row.Tenant, Session: row.Session}))(t)
			if len(held) > 0 {
				got += row.Session
			}
			if claim := must(s.Worker.Load(t.Context(), must(s.Request(t.Context(), Key{Tenant: row.Tenant, Session: row.Session}, TriggerOperator, "", Options{}))(t)))(t); claim.Paused != (len(held) > 0) {
				t.Errorf("a run of %s is paused: %v", row.Session, claim.Paused)
			}
		}
		equal(t, c.want, got, "%+v pauses", scope)
		noError(t, s.Operator.ResumeRuns(t.Context(), scope, "ada"))
	}
	for _, scope := range []PauseScope{{Policy: "no-such"}, {Tenant: "acme", Policy: "theirs"}} {
		wantError(t, s.Operator.PauseRuns(t.Context(), scope, "", ""), ErrNotFound, "%+v", scope)
	}
}

func TestAPauseIsReplacedAndEndedOnce(t *testing.T) {
	s := fresh(t)
	pause(t, s, "acme", "")
	noError(t, s.Operator.PauseRuns(t.Context(), PauseScope{Tenant: "acme"}, "a better reason", "bob"))
	pause(t, s, "", "gpt")
	want := []Pause{{PauseScope: PauseScope{Tenant: "acme"}, Note: "a better reason", RequestedBy: "bob"}, {PauseScope: PauseScope{Model: "gpt"}, Note: "why", RequestedBy: "ada"}}
	noDiff(t, cmp.Diff(want, must(s.Operator.Pauses(t.Context()))(t), cmpopts.IgnoreFields(Pause{}, "ID", "PausedAt")), "pauses")
	resume(t, s, "acme", "")
	wantError(t, s.Operator.ResumeRuns(t.Context(), PauseScope{Tenant: "acme"}, "ada"), ErrNotFound, "resumed again")
	pause(t, s, "acme", "")
	equal(t, 3, one[int](t, s, `SELECT count(*) FROM compactor.pauses`), "pauses are remembered")
}

func TestNothingIsQueuedForAPausedSession(t *testing.T) {
	t.Parallel()
	for name, scope := range map[string]PauseScope{"a tenant": {Tenant: "acme"}, "a policy": {Policy: "support"}} {
		t.Run(name, func(t *testing.T) {
			s := fresh(t)
			thresholds(t, s, Threshold{"", 10, 0, false, Counts{}})
			put(t, s, PolicyChange{Name: "support", Match: map[string]string{"tenant": "acme"}, Thresholds: []Threshold{{DueTokens: 10}}})
			dueOf(t, s, "acme", 3)
			dueOf(t, s, "globex", 3)
			held, other := Key{Tenant: "acme", Session: "acme000"}, Key{Tenant: "globex", Session: "globex000"}
			for _, k := range []Key{held, other} {
				add(t, s, k, user("m2", "x"))
			}
			asked := must(s.Request(t.Context(), held, TriggerApplication, "", Options{}))(t)
			forced := must(s.Request(t.Context(), held, TriggerOperator, "", Options{Force: true}))(t)
			noError(t, s.Operator.PauseRuns(t.Context(), scope, "why", "ada"))
			equal(t, 3, must(s.Operator.ForecastSweep(t.Context(), ""))(t).Paused, "paused sessions of a sweep")
			relay := func() []string {
				t.Helper()
				return sessionsOf(t, s, must(s.Scheduler.Relay(t.Context(), 0, 0, 10, time.Minute))(t))
			}
			deliver := func() (runs []RunID) {
				t.Helper()
				return runsOf(must(s.Scheduler.Undelivered(t.Context(), 10, time.Minute))(t))
			}
			equal(t, []RunID{forced}, deliver(), "delivered while paused")
			equal(t, []string{"globex000"}, relay(), "relayed")
			sweep := startSweep(t, s, "", 0)
			if got, _ := page(t, s, sweep, 100); !slices.Equal(got, []string{"globex001", "globex002"}) {
				t.Errorf("swept %v", got)
			}
			page(t, s, sweep, 100)
			wantSweep(t, s, sweep, `done "" due 6 queued 2 left out 4 remaining 0`)
			none(t, must(s.Scheduler.Forgotten(t.Context(), 10, time.Minute))(t), "the reconciler queues")
			exec(t, s, `UPDATE compactor.runs SET waiting_since = now() - interval '30 days' WHERE id = $1`, asked)
			equal(t, 0, must(s.Scheduler.Expire(t.Context(), time.Hour, 10))(t), "paused runs expire")
			if row := must(s.Run(t.Context(), asked))(t); row.Status != "queued" || row.ErrorCode != CodePaused || row.Snoozes != 0 {
				t.Errorf("the requested run is %+v", row)
			}
			// A sweep of a tenant that is paused waits; it passes over the sessions of a policy that is.
			waiting := startSweep(t, s, "acme", 0)
			if got, done := page(t, s, waiting, 100); len(got) > 0 || done {
				t.Errorf("swept %v, done %v", got, done)
			}

			noError(t, s.Operator.ResumeRuns(t.Context(), scope, "ada"))
			equal(t, []RunID{asked}, deliver(), "delivered after the pause")
			if got, _ := page(t, s, waiting, 100); scope.Tenant != "" && !slices.Equal(got, []string{"acme001", "acme002"}) {
				t.Errorf("swept %v after the pause", got)
			}
			exec(t, s, `UPDATE compactor.runs SET status = 'skipped', outcome = 'x', ended_at = now(), snapshot_seq = 0`)
			equal(t, []string{"acme000"}, relay(), "relayed after the pause")
		})
	}
}

func TestOnlyAnOperatorForces(t *testing.T) {
	s, k := freshTalk(t, 2)
	wantError(t, second(s.Request(t.Context(), k, TriggerApplication, "", Options{Force: true})), ErrInvalid, "an application forces a run")
	run := must(s.Request(t.Context(), k, TriggerOperator, "", Options{Force: true}))(t)
	pause(t, s, "", "")
	if c := must(s.Worker.Claim(t.Context(), run, "w", time.Minute))(t); c.Paused {
		t.Error("a forced run is paused")
	}
}

// What an operator of all tenants has set for a tenant, the tenant's own connections do not change.
func TestATenantEndsItsOwnPausesAndLimitsAlone(t *testing.T) {
	s, _ := openRoles(t)
	own := s.Bound("acme", true).Operator
	scope, model := PauseScope{Tenant: "acme"}, PauseScope{Tenant: "acme", Model: "gpt"}
	limit := func(o Operator, calls int64) error {
		l := SpendingLimit{Tenant: "acme", CallsPerHour: &calls, ChangedBy: "ada"}
		if calls == 0 {
			l.CallsPerHour = nil
		}
		return o.LimitSpending(t.Context(), l)
	}
	noError(t, own.PauseRuns(t.Context(), model, "ours", "key"))
	noError(t, own.PauseRuns(t.Context(), model, "ours still", "key"))
	noError(t, own.ResumeRuns(t.Context(), model, "key"))
	noError(t, limit(own, 5))
	noError(t, limit(own, 7))
	noError(t, limit(own, 0))

	noError(t, own.PauseRuns(t.Context(), model, "ours", "key"))
	noError(t, limit(own, 5))
	noError(t, s.Operator.PauseRuns(t.Context(), model, "taken over", "ada"))
	noError(t, s.Operator.PauseRuns(t.Context(), scope, "theirs", "ada"))
	noError(t, limit(s.Operator, 9))
	pauses, limits := must(s.Operator.Pauses(t.Context()))(t), must(s.Operator.Spending(t.Context(), "acme"))(t)
	for _, p := range []PauseScope{scope, model} {
		wantError(t, own.PauseRuns(t.Context(), p, "mine", "key"), ErrForbidden, "pause %+v again", p)
		wantError(t, own.ResumeRuns(t.Context(), p, "key"), ErrForbidden, "resume %+v", p)
	}
	wantError(t, limit(own, 1000), ErrForbidden, "set the limit")
	wantError(t, limit(own, 0), ErrForbidden, "clear the limit")
	noDiff(t, cmp.Diff(pauses, must(s.Operator.Pauses(t.Context()))(t)), "pauses")
	noDiff(t, cmp.Diff(limits, must(s.Operator.Spending(t.Context(), "acme"))(t)), "limits")
	noError(t, s.Operator.ResumeRuns(t.Context(), scope, "ada"))
	noError(t, s.Operator.ResumeRuns(t.Context(), model, "ada"))
	noError(t, limit(s.Operator, 0))
	wantError(t, limit(own, 0), ErrNotFound, "clear none")
	noError(t, limit(own, 5))
}
