package store

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestRunsOfRemovedTasksAreDeliveredAtOnce(t *testing.T) {
	t.Parallel()
	s := open(t)
	var runs []RunID
	for _, name := range []string{"a", "b", "c"} {
		add(t, s, Key{Session: name}, talk("m", 2)...)
		runs = append(runs, request(t, s, Key{Session: name}, TriggerOperator))
	}
	must(s.Undelivered(t.Context(), 10, time.Hour))(t)
	if err := s.Abandon(t.Context(), runs[1], "superseded"); err != nil {
		t.Fatal(err)
	}
	got := must(s.Redeliver(t.Context(), []RunID{runs[0], runs[1], 999}))(t)
	want := []Delivery{{Run: runs[0], Attempt: 1, Trigger: TriggerOperator}, {Run: runs[1], Attempt: 1, Trigger: TriggerOperator}}
	if diff := cmp.Diff(want, got, cmpopts.SortSlices(func(a, b Delivery) bool { return a.Run < b.Run })); diff != "" {
		t.Errorf("last deliveries (-want +got):\n%s", diff)
	}
	due := must(s.Undelivered(t.Context(), 10, time.Hour))(t)
	if diff := cmp.Diff([]Delivery{{Run: runs[0], Attempt: 2, Trigger: TriggerOperator}}, due); diff != "" {
		t.Errorf("due now (-want +got):\n%s", diff)
	}
}
