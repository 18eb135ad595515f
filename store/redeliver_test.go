package store

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestWhatRedisHadIsDeliveredAgain(t *testing.T) {
	s := fresh(t)
	dueSessions(t, s, 2)
	age(t, s, time.Hour, time.Hour)
	events := must(s.Scheduler.Relay(t.Context(), 0, 0, 2, time.Hour))(t)
	requested := map[string]RunID{}
	for _, name := range []string{"waiting", "snoozed", "running", "paused", "new"} {
		k := Key{Tenant: name, Session: name}
		add(t, s, k, talk("m", 2)...)
		requested[name] = request(t, s, k, TriggerApplication)
		if name == "paused" {
			pause(t, s, name, "")
		}
		if name != "new" {
			must(s.Scheduler.Undelivered(t.Context(), 10, time.Hour))(t)
		}
	}
	must(s.Worker.Snooze(t.Context(), requested["snoozed"], time.Hour, "busy"))(t)
	must(s.Worker.Claim(t.Context(), requested["running"], "w", time.Minute))(t)
	equal(t, 3, must(s.Scheduler.RedeliverAll(t.Context()))(t), "runs")
	got := runsOf(must(s.Scheduler.Undelivered(t.Context(), 10, time.Hour))(t))
	want := []RunID{events[0].Run, events[1].Run, requested["waiting"], requested["new"]}
	noDiff(t, cmp.Diff(want, got, cmpopts.SortSlices(func(a, b RunID) bool { return a < b })), "delivered")
}

func TestRequestsOfApplicationsAreDeliveredInOrderAndWithinTheirLimit(t *testing.T) {
	s := fresh(t)
	var requests []RunID
	for _, name := range []string{"a", "b", "c", "d"} {
		add(t, s, Key{Session: name}, talk("m", 2)...)
		trigger := TriggerApplication
		if name == "d" {
			trigger = TriggerOperator
		}
		requests = append(requests, request(t, s, Key{Session: name}, trigger))
	}
	var got [][]RunID
	for _, room := range []int{0, 2, 2} {
		page := runsOf(must(s.Scheduler.Deliver(t.Context(), room, 10, time.Hour))(t))
		got = append(got, page)
	}
	want := [][]RunID{requests[3:], requests[:2], requests[2:3]}
	noDiff(t, cmp.Diff(want, got, cmpopts.SortSlices(func(a, b RunID) bool { return a < b })), "delivered")
	if n, _ := must2(s.Scheduler.Waiting(t.Context(), TriggerApplication, 10))(t); n != 3 {
		t.Errorf("%d requests wait in Redis, want 3", n)
	}
}
