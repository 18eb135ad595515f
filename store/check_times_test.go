package store

import (
	"testing"
)

func TestIdleSessionsAreFoundWhenTheirTimeHasCome(t *testing.T) {
	t.Parallel()
	s := open(t)
	k := Key{Session: "s"}
	thresholds(t, s, Threshold{DueTokens: 1 << 40, Counts: Counts{Idle: 3600, IdleTokens: 50}})
	pass := func(interval string) {
		t.Helper()
		exec(t, s, `UPDATE compactor.sessions SET last_message_at = last_message_at - $1::interval, next_check_at = next_check_at - $1::interval`, interval)
	}
	check := func(what string, looked int, due bool) {
		t.Helper()
		if n := must(s.CheckTimes(t.Context(), 10))(t); n != looked {
			t.Errorf("%s: looked at %d sessions, want %d", what, n, looked)
		}
		if row := session(t, s, k); row.Due != due || due != (len(gens(t, s)) > 0) {
			t.Errorf("%s: due %t with outbox %v, want %t", what, row.Due, gens(t, s), due)
		}
		wantConsistent(t, s)
	}
	add(t, s, k, counted(user("1", "x"), 51))
	first := one[string](t, s, `SELECT next_check_at::text FROM compactor.sessions`)
	pass("59 minutes")
	check("before its time", 0, false)
	before := one[string](t, s, `SELECT next_check_at::text FROM compactor.sessions`)
	add(t, s, k, counted(user("2", "x"), 1))
	if now := one[string](t, s, `SELECT next_check_at::text FROM compactor.sessions`); now != before || now == first {
		t.Errorf("an append moves the time from %s to %s: the row would not be updated in place", before, now)
	}
	pass("2 minutes")
	check("written since", 1, false)
	pass("59 minutes")
	check("idle for long enough", 1, true)
	add(t, s, k, counted(user("3", "x"), 1))
	if session(t, s, k).Due {
		t.Error("due although it is not idle any more")
	}

	small := open(t)
	thresholds(t, small, Threshold{DueTokens: 1 << 40, Counts: Counts{Idle: 3600, IdleTokens: 50}})
	add(t, small, k, counted(user("1", "x"), 50))
	exec(t, small, `UPDATE compactor.sessions SET last_message_at = now() - interval '2 hours', next_check_at = now()`)
	if n := must(small.CheckTimes(t.Context(), 10))(t); n != 1 || session(t, small, k).Due {
		t.Errorf("a small session: looked at %d, due %t", n, session(t, small, k).Due)
	}
	if n := must(small.CheckTimes(t.Context(), 10))(t); n != 0 {
		t.Errorf("it is looked at again")
	}

	// A policy without such a trigger looks at none.
	none := open(t)
	thresholds(t, none, Threshold{DueTokens: 1 << 40})
	add(t, none, k, counted(user("1", "x"), 500))
	if got := one[bool](t, none, `SELECT next_check_at IS NULL FROM compactor.sessions`); !got {
		t.Error("a time without a trigger that waits")
	}
}
