package store

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestTheRelayWaitsForQuietButNotForEver(t *testing.T) {
	s := fresh(t)
	keys := dueSessions(t, s, 2)
	relay := func(want ...string) []Delivery {
		t.Helper()
		ds := must(s.Scheduler.Relay(t.Context(), 10*time.Minute, time.Hour, 100, time.Minute))(t)
		noDiff(t, cmp.Diff(want, sessionsOf(t, s, ds), cmpopts.EquateEmpty()), "relayed")
		return ds
	}
	relay()
	age(t, s, 20*time.Minute, 5*time.Minute)
	relay()
	age(t, s, 70*time.Minute, 5*time.Minute)
	exec(t, s, `UPDATE compactor.outbox SET first_at = now() WHERE sid = (SELECT sid FROM compactor.sessions WHERE id = 's02')`)
	ds := relay("s01")
	if ds[0].Attempt != 1 || ds[0].Trigger != TriggerEvent {
		t.Errorf("delivery %+v", ds[0])
	}
	age(t, s, 20*time.Minute, 11*time.Minute)
	relay("s02")
	relay()
	// While a run is queued or running the row of a new message stays.
	for _, m := range []string{"m2", "m3"} {
		add(t, s, keys[0], counted(user(m, "x"), 1))
	}
	age(t, s, 2*time.Hour, 2*time.Hour)
	relay()
	c := must(s.Worker.Claim(t.Context(), ds[0].Run, "w", time.Minute))(t)
	relay()
	equal(t, []string{"s01 2"}, gens(t, s), "outbox")
	// A cooling session keeps its row too.
	noError(t, s.Worker.Finish(t.Context(), c, StatusSkipped, Ledger{Outcome: "ineffective"}, &PostRunState{DueTokens: 10, CooldownSeconds: 3600}))
	exec(t, s, `UPDATE compactor.outbox SET first_at = now() - interval '2 hours', last_at = now() - interval '2 hours'`)
	relay()
	exec(t, s, `UPDATE compactor.sessions SET cooldown_until = now() - interval '1 second' WHERE id = 's01'`)
	relay("s01")
	none(t, gens(t, s), "outbox")
}

func TestTheRelayDropsSessionsThatAreNoLongerDue(t *testing.T) {
	s := fresh(t)
	keys := dueSessions(t, s, 2)
	must(s.ReportUsage(t.Context(), keys[0], 1, 0))(t)
	age(t, s, time.Hour, time.Hour)
	ds := must(s.Scheduler.Relay(t.Context(), time.Second, time.Minute, 100, time.Minute))(t)
	equal(t, []string{"s02"}, sessionsOf(t, s, ds), "relayed")
	none(t, gens(t, s), "outbox")
}

func TestTheRelayKeepsARowThatIsWrittenToMeanwhile(t *testing.T) {
	s := fresh(t)
	keys := dueSessions(t, s, 1)
	must(s.ReportUsage(t.Context(), keys[0], 1, 1))(t) // the row of a session that is not due would be dropped
	if session(t, s, keys[0]).Due {
		t.Fatal("due, want it not")
	}
	age(t, s, time.Hour, time.Hour)
	tx := begin(t, s, `SELECT compactor.append(NULL, 's01', '{"role":"user","content":"x","token_count":50}')`)
	// The row is locked by the writer: the relay neither waits nor drops it.
	none(t, must(s.Scheduler.Relay(t.Context(), time.Second, time.Minute, 100, time.Minute))(t), "relayed beside a writer")
	noError(t, tx.Commit(t.Context()))
	age(t, s, time.Hour, time.Hour)
	if ds := must(s.Scheduler.Relay(t.Context(), time.Second, time.Minute, 100, time.Minute))(t); len(ds) != 1 {
		t.Errorf("relayed %v after the writer, want one run", ds)
	}
}
