package store

import (
	"testing"
	"time"
)

func TestEventsAreTheLedgersOfATenant(t *testing.T) {
	s, k := freshSession(t)
	began := must(s.Reader.Now(t.Context()))(t)
	add(t, s, k, user("a", "x"), user("b", "y"))
	run := must(s.Exclude(t.Context(), k, []string{"a"}, "me"))(t)
	add(t, s, Key{Tenant: "other", Session: "s"}, user("a", "x"))
	theirs := must(s.Exclude(t.Context(), Key{Tenant: "other", Session: "s"}, []string{"a"}, "me"))(t)
	sweep := must(s.Operator.StartSweep(t.Context(), "other", 0, "", "me"))(t)
	all := must(s.Reader.events(t.Context(), "", Event{At: began}, 10))(t)
	var got []int64
	for _, e := range all {
		got = append(got, e.ID)
	}
	equal(t, []int64{run, theirs, sweep}, got, "events")
	if e := all[0]; e.Kind != "run" || e.Tenant != DefaultTenant || e.Session != "s" || e.Status != StatusApplied || e.Revision == 0 {
		t.Errorf("%+v", e)
	}
	rest := must(s.Reader.events(t.Context(), "", all[0], 10))(t)
	equal(t, all[1:], rest, "events after the first")
	own := must(s.Reader.events(t.Context(), "other", Event{At: began.Add(-time.Hour)}, 1))(t)
	equal(t, all[1:2], own, "the first of a tenant")
	var each []Event
	err := s.Reader.EachEvent(t.Context(), "", began, func(e Event) error {
		each = append(each, e)
		return nil
	})
	equal(t, all, each, "each event")
	if err != nil {
		t.Error(err)
	}
}
