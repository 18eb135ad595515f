package store

import (
	"testing"
)

func TestCountsAndSignalsMakeASessionDue(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	closed, overflow := State{Closed: &yes}, State{Overflow: &yes}
	report := func(states ...State) func(s *Store, k Key) {
		return func(s *Store, k Key) {
			for _, state := range states {
				noError(t, s.ReportState(t.Context(), k, state))
			}
		}
	}
	appended := func(n int) func(s *Store, k Key) {
		return func(s *Store, k Key) {
			for range n {
				add(t, s, k, counted(user("", "x"), 10))
			}
		}
	}
	tests := map[string]struct {
		counts           Counts
		below, at, above func(s *Store, k Key)
		want             [3]bool
	}{
		"tokens since the run":   {Counts{NewTokens: 50}, appended(4), appended(1), appended(1), [3]bool{false, true, true}},
		"messages since the run": {Counts{NewMessages: 3}, appended(2), appended(1), appended(1), [3]bool{false, true, true}},
		"turns since the run":    {Counts{NewTurns: 3}, appended(2), appended(1), appended(1), [3]bool{false, true, true}},
		"messages in the view":   {Counts{Messages: 3}, appended(2), appended(1), appended(1), [3]bool{false, true, true}},
		"a signal":               {Counts{Signals: 1}, appended(9), report(closed), report(closed), [3]bool{false, true, true}},
		"another signal":         {Counts{Signals: 1}, appended(9), report(overflow), report(closed), [3]bool{false, false, true}},
		"one that is taken back": {Counts{Signals: 4}, appended(1), report(State{NeedsFollowUp: &yes}), report(State{NeedsFollowUp: &no}), [3]bool{false, true, false}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, k := freshSession(t)
			thresholds(t, s, Threshold{DueTokens: 1 << 40, Counts: tt.counts})
			for i, do := range []func(s *Store, k Key){tt.below, tt.at, tt.above} {
				do(s, k)
				equal(t, tt.want[i], session(t, s, k).Due, "step %d: due", i+1)
			}
			if got := len(gens(t, s)) > 0; got != (tt.want[0] || tt.want[1] || tt.want[2]) {
				t.Errorf("the relay is told: %t", got)
			}
			wantConsistent(t, s)
		})
	}
}

func TestStateIsReportedStrictly(t *testing.T) {
	s := fresh(t)
	add(t, s, Key{Session: "s"}, talk("m", 1)...)
	for _, state := range []string{`[]`, `"closed"`, `null`, `{"closed": 1}`, `{"close": true}`, `{"closed": true, "nightly": true}`} {
		wantError(t, mapError(second(s.pool.Exec(t.Context(), `SELECT compactor.report_state('default', 's', $1)`, state))), ErrInvalid, "%s", state)
	}
	yes := true
	wantError(t, s.ReportState(t.Context(), Key{Session: "ghost"}, State{Closed: &yes}), ErrNotFound, "an unknown session")
	noError(t, s.ReportState(t.Context(), Key{Session: "s"}, State{}))
}

// Events end when a run has seen them; the state that the application reports does not.
func TestARunSeesSignals(t *testing.T) {
	s, k := freshSession(t)
	yes := true
	thresholds(t, s, Threshold{DueTokens: 1 << 40, Counts: Counts{Signals: 15}})
	add(t, s, k, talk("m", 4)...)
	noError(t, s.ReportState(t.Context(), k, State{Closed: &yes, NeedsFollowUp: &yes}))
	c := must(s.Worker.Load(t.Context(), must(s.Scheduler.Relay(t.Context(), 0, 0, 9, 0))(t)[0].Run))(t)
	if c.Session.Signals != 5 || c.Session.NewSignals != 5 {
		t.Fatalf("signals %d, new %d", c.Session.Signals, c.Session.NewSignals)
	}
	noError(t, s.ReportState(t.Context(), k, State{Overflow: &yes})) // while it plans
	state := PostRunState{DueTokens: 1 << 40, Counts: Counts{Signals: 15}, SeenSignals: c.Session.NewSignals}
	noError(t, s.Worker.Finish(t.Context(), c, StatusSkipped, Ledger{Outcome: "ineffective"}, &state))
	equal(t, "6 2 true", one[string](t, s, `SELECT signals || ' ' || new_signals || ' ' || due FROM compactor.sessions`), "after the run")
	wantConsistent(t, s)
}

// The scheduler reports the ends of children to their parent, so that a writer of a child needs no
// lock of the parent.
func TestAParentIsToldThatAChildWasClosed(t *testing.T) {
	s := fresh(t)
	k, yes, no := Key{Session: "p"}, true, false
	thresholds(t, s, Threshold{DueTokens: 1 << 40, Counts: Counts{Signals: 16}})
	add(t, s, k, talk("m", 4)...)
	setParent(t, s, "", "a<p", "b<p", "deep<a")
	report := func(session string, state State) {
		t.Helper()
		noError(t, s.ReportState(t.Context(), Key{Session: session}, state))
	}
	check := func(what string, told int, due bool) {
		t.Helper()
		if n := must(s.Scheduler.CheckTimes(t.Context(), 10))(t); n != told || session(t, s, k).Due != due || (len(gens(t, s)) > 0) != due {
			t.Errorf("%s: told %d parents, due %t with outbox %v; want %d and %t", what, n, session(t, s, k).Due, gens(t, s), told, due)
		}
		wantConsistent(t, s)
	}
	report("a", State{Overflow: &yes, NeedsFollowUp: &yes})
	report("p", State{Closed: &yes})
	check("nothing of a child", 0, false)
	report("deep", State{Closed: &yes})
	check("a child's child", 1, false) // a got the report
	tx := begin(t, s, `SELECT FROM compactor.sessions WHERE id = 'p' FOR NO KEY UPDATE`)
	report("a", State{Closed: &yes}) // while a writer of the parent is at work
	report("b", State{Closed: &yes})
	check("while the parent is locked", 0, false)
	noError(t, tx.Rollback(t.Context()))
	check("afterwards, both", 1, true)
	check("again", 0, true)

	c := must(s.Worker.Load(t.Context(), must(s.Scheduler.Relay(t.Context(), 0, 0, 9, 0))(t)[0].Run))(t)
	state := PostRunState{DueTokens: 1 << 40, Counts: Counts{Signals: 16}, SeenSignals: c.Session.NewSignals}
	noError(t, s.Worker.Finish(t.Context(), c, StatusSkipped, Ledger{Outcome: "ineffective"}, &state))
	check("a run has seen it", 0, false)
	report("a", State{Closed: &yes})
	check("it is closed still", 0, false)
	report("a", State{Closed: &no})
	report("a", State{Closed: &yes})
	check("it is closed again", 1, true)
}
