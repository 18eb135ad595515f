package store

import (
	"testing"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
)

func TestIdleSessionsAreFoundWhenTheirTimeHasCome(t *testing.T) {
	s, k := freshSession(t)
	thresholds(t, s, Threshold{DueTokens: 1 << 40, Counts: Counts{Idle: 3600, IdleTokens: 50}})
	pass := func(interval string) {
		t.Helper()
		exec(t, s, `UPDATE compactor.sessions SET last_message_at = last_message_at - $1::interval, next_check_at = next_check_at - $1::interval`, interval)
	}
	check := func(what string, looked int, due bool) {
		t.Helper()
		equal(t, looked, must(s.Scheduler.CheckTimes(t.Context(), 10))(t), "%s: looked at sessions", what)
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
	if n := must(small.Scheduler.CheckTimes(t.Context(), 10))(t); n != 1 || session(t, small, k).Due {
		t.Errorf("a small session: looked at %d, due %t", n, session(t, small, k).Due)
	}
	if n := must(small.Scheduler.CheckTimes(t.Context(), 10))(t); n != 0 {
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

func TestOldSessionsAndOldViewsAreFoundWhenTheirTimeHasCome(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		counts Counts
		run    bool // sets the clock back
	}{
		"the session": {Counts{Age: 3600, IdleTokens: 50}, false},
		"its view":    {Counts{SinceRun: 3600, IdleTokens: 50}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, k := freshSession(t)
			thresholds(t, s, Threshold{DueTokens: 1 << 40, Counts: tt.counts})
			pass := func(interval string) {
				t.Helper()
				exec(t, s, `UPDATE compactor.sessions SET last_message_at = last_message_at - $1::interval, created_at = created_at - $1::interval,
					view_changed_at = view_changed_at - $1::interval, next_check_at = next_check_at - $1::interval`, interval)
			}
			check := func(what string, looked int, due bool) {
				t.Helper()
				equal(t, looked, must(s.Scheduler.CheckTimes(t.Context(), 10))(t), "%s: looked at sessions", what)
				if row := session(t, s, k); row.Due != due {
					t.Errorf("%s: due %t, want %t", what, row.Due, due)
				}
				wantConsistent(t, s)
			}
			add(t, s, k, counted(user("1", "x"), 50))
			pass("3599 seconds")
			check("before its time", 0, false)
			pass("1 second")
			check("at its time, but small", 1, false)
			check("again", 0, false)
			equal(t, 0, len(gens(t, s)), "notifications")
			add(t, s, k, counted(user("2", "x"), 1))
			check("larger", 0, true)
			run := must(s.Scheduler.Relay(t.Context(), 0, 0, 9, 0))(t)[0].Run
			c := must(s.Worker.Load(t.Context(), run))(t)
			if v := c.Session; v.Age < time.Hour || v.SinceRun < time.Hour || v.Timed {
				t.Errorf("%+v", v)
			}
			due := chat.Tokens(50)
			if tt.run {
				due = 1 << 40
			}
			must(s.Worker.Apply(t.Context(), run, 0, Change{
				SnapshotSeq: c.Session.LastSeq, Ledger: Ledger{Outcome: "applied"}, FreeReasoning: true,
				PostRunState: PostRunState{DueTokens: due, Counts: tt.counts},
			}))(t)
			if v := must(s.Worker.Load(t.Context(), must(s.Request(t.Context(), k, TriggerApplication, "", Options{}))(t)))(t).Session; v.SinceRun >= time.Hour || v.Age < time.Hour {
				t.Errorf("after the run: %s old, and its view %s", v.Age, v.SinceRun)
			}
			pass("59 minutes")
			check("after a run", 0, !tt.run)
			pass("2 minutes")
			check("an hour after it", map[bool]int{true: 1}[tt.run], true)
		})
	}

	// Who changes a view otherwise sets the clock, too.
	v := open(t)
	thresholds(t, v, Threshold{DueTokens: 1 << 40, Counts: Counts{SinceRun: 3600, IdleTokens: 50}})
	add(t, v, Key{Session: "s"}, talk("m", 4)...)
	run := apply(t, v, Key{Session: "s"}, exclude(span(2, 2)))
	for _, change := range []func(){
		func() { must(v.Undo(t.Context(), Key{Session: "s"}, run, false, ""))(t) },
		func() { must(v.Replace(t.Context(), Key{Session: "s"}, 2, talk("m", 3), ""))(t) },
	} {
		exec(t, v, `UPDATE compactor.sessions SET next_check_at = NULL, view_changed_at = now() - interval '1 day'`)
		change()
		if got := one[bool](t, v, `SELECT next_check_at = view_changed_at + interval '1 hour' AND next_check_at > now() FROM compactor.sessions`); !got {
			t.Error("the time since the change is not looked at")
		}
	}

	// An import is as old as its first message, and other labels keep the time.
	s := open(t)
	k := Key{Session: "s"}
	thresholds(t, s, Threshold{DueTokens: 1 << 40, Counts: Counts{Age: 86_400, IdleTokens: 50}})
	old := counted(user("1", "x"), 51)
	old.CreatedAt = time.Now().Add(-25 * time.Hour)
	add(t, s, k, old, counted(user("2", "x"), 1))
	exec(t, s, `SELECT compactor.set_labels('default', 's', '{"a": "b"}')`)
	if n := must(s.Scheduler.CheckTimes(t.Context(), 10))(t); n != 1 || !session(t, s, k).Due {
		t.Errorf("an import: looked at %d, due %t", n, session(t, s, k).Due)
	}
	// A change of labels restores the values of the policy, until check_times looks again.
	exec(t, s, `SELECT compactor.set_labels('default', 's', '{"a": "c"}')`)
	if session(t, s, k).Due || must(s.Scheduler.CheckTimes(t.Context(), 10))(t) != 1 || !session(t, s, k).Due {
		t.Error("after other labels it is not looked at again")
	}
}
