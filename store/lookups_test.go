package store

import "testing"

func TestLookupsAreCountedForRunsOfTheTenant(t *testing.T) {
	t.Parallel()
	s := open(t)
	var runs []RunID
	for _, tenant := range []string{"ours", "theirs"} {
		k := Key{Tenant: tenant, Session: "chat"}
		add(t, s, k, talk("m", 6)...)
		runs = append(runs, apply(t, s, k, exclude(span(1, 2))))
	}
	queued := must(s.Request(t.Context(), Key{Tenant: "ours", Session: "chat"}, TriggerOperator, "test", Options{}))(t)
	for range 2 {
		noError(t, s.Bound("ours", false).Reader.NoteLookups(t.Context(), "ours", append(runs, queued, 999)))
	}
	wantError(t, s.Bound("ours", false).Reader.NoteLookups(t.Context(), "theirs", runs), ErrForbidden, "look-ups of another tenant")
	for i, want := range []int64{2, 0} {
		equal(t, want, must(s.Run(t.Context(), runs[i]))(t).LookedUp, "look-ups of run %d", i)
	}
	equal(t, 0, must(s.Run(t.Context(), queued))(t).LookedUp, "look-ups of a run that took nothing out")
	wantConsistent(t, s)
}
