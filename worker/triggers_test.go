package worker

import (
	"fmt"
	"testing"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
)

func triggered(when ...string) func(p *policy.Policy) {
	return func(p *policy.Policy) {
		p.WindowTokens, p.StartTokens, p.TargetTokens, p.Start, p.Target = 2000, 0, 0, 0.5, 0.3
		for i, w := range when {
			p.Triggers = append(p.Triggers, policy.Trigger{Name: fmt.Sprint("t", i), When: policy.When(w)})
		}
	}
}

func (f *clocked) report(s store.State) {
	f.t.Helper()
	f.must(f.store.ReportState(f.t.Context(), key("s"), s))
}

// closeChild opens and closes a child of the session.
func (f *clocked) closeChild(child string) {
	f.t.Helper()
	f.must(f.store.SetParent(f.t.Context(), key(child), "s"))
	for _, closed := range []bool{false, true} {
		f.must(f.store.ReportState(f.t.Context(), key(child), store.State{Closed: &closed}))
	}
}

// Messages have 100 tokens each; the window has 2,000, and the target is 600.
func TestTriggersMakeSessionsDue(t *testing.T) {
	t.Parallel()
	yes := true
	closed := func(f *clocked) { f.report(store.State{Closed: &yes}) }
	overflow := func(f *clocked) { f.report(store.State{Overflow: &yes}) }
	closedChild := func(f *clocked) { f.closeChild("child") }
	add := func(transcript string) func(f *clocked) { return func(f *clocked) { f.append("s", transcript) } }
	pass := func(d time.Duration) func(f *clocked) { return func(f *clocked) { f.pass(d) } }
	type step struct {
		do   func(f *clocked)
		want string
	}
	tests := map[string]struct {
		when  []string
		steps []step
	}{
		"a share of the window": {[]string{"used > 0.6"}, []step{
			{add("suauauauauau"), ""}, {add("a"), OutcomeApplied}, {add("u"), ""},
		}},
		"headroom": {[]string{"headroom <= 700"}, []step{{add("suauauauauau"), ""}, {add("a"), OutcomeApplied}}},
		"the end of a turn": {[]string{"used > 0.6 && turn_completed"}, []step{
			{add("suauauauauauc"), OutcomeNotTriggered}, {add("tc"), ""}, {add("t"), ""}, {add("a"), OutcomeApplied},
		}},
		"the end of a turn above the window": {[]string{"used > 0.6 && turn_completed", "overflow"}, []step{
			{add("suauauauauauc"), OutcomeNotTriggered}, {overflow, OutcomeApplied},
		}},
		"messages since the last run": {[]string{"messages_since_run >= 10"}, []step{
			{add("suauauaua"), ""}, {add("u"), OutcomeApplied}, {add("auauauaua"), ""}, {add("u"), OutcomeApplied},
		}},
		"turns since the last run": {[]string{"turns_since_run >= 5"}, []step{
			{add("suaauaauaauaa"), ""}, {add("u"), OutcomeApplied}, {add("auauauau"), ""}, {add("au"), OutcomeApplied},
		}},
		"tokens since the last run": {[]string{"tokens_since_run > 900"}, []step{{add("suauauaua"), ""}, {add("u"), OutcomeApplied}}},
		"messages in the view":      {[]string{"messages > 9"}, []step{{add("suauauaua"), ""}, {add("u"), OutcomeApplied}, {add("aua"), ""}}},
		"turns in the view":         {[]string{"turns > 4"}, []step{{add("suauauaua"), OutcomeNotTriggered}, {add("u"), OutcomeApplied}}},
		"rounds of tools": {[]string{"tool_rounds >= 4 && turn_completed"}, []step{
			{add("suctctcta"), OutcomeNotTriggered}, {add("uct"), OutcomeNotTriggered}, {add("a"), OutcomeApplied}, {add("ua"), ""},
		}},
		"the output of a tool": {[]string{"tool_output >= 100 && messages >= 9"}, []step{
			{add("suauauaua"), OutcomeNotTriggered}, {add("ct"), OutcomeApplied},
		}},
		"a session that is closed": {[]string{"closed && tokens > 800"}, []step{
			{add("suauaua"), ""},
			{closed, OutcomeNotTriggered},
			{add("u"), OutcomeNotTriggered},
			{add("a"), OutcomeApplied},
			{add("uauaua"), ""},
			{closed, OutcomeApplied},
			{closed, OutcomeNotTriggered},
		}},
		"a child that is closed": {[]string{"child_closed && tokens > 800"}, []step{
			{add("suauauaua"), ""},
			{closedChild, OutcomeApplied},
			{closed, ""},
			{add("ua"), ""},
			{closedChild, OutcomeNotTriggered},
			{add("u"), OutcomeApplied},
			{add("auauauaua"), ""},
		}},
		"a prompt that did not fit": {[]string{"overflow"}, []step{
			{add("suauauauauaua"), ""}, {overflow, OutcomeApplied}, {add("uauaua"), ""},
		}},
		"a follow-up, and no input": {[]string{"needs_follow_up && not has_pending_input"}, []step{
			{add("suauauauauaua"), ""},
			{func(f *clocked) { f.report(store.State{NeedsFollowUp: &yes, HasPendingInput: &yes}) }, OutcomeNotTriggered},
			{func(f *clocked) { no := false; f.report(store.State{HasPendingInput: &no}) }, OutcomeApplied},
		}},
		"one of two": {[]string{"used > 0.9", "turns_since_run >= 6"}, []step{
			{add("suaaaauaaaua"), ""}, {add("uaua"), ""}, {add("uaua"), OutcomeApplied},
		}},
		"an idle session": {[]string{"idle >= 1 * hour"}, []step{
			{add("suauauauau"), ""},
			{pass(59 * time.Minute), ""},
			{add("a"), ""},
			{pass(59 * time.Minute), ""},
			{pass(2 * time.Minute), OutcomeApplied},
			{pass(2 * time.Hour), ""},
			{add("ua"), ""},
			{pass(59 * time.Minute), ""},
			{pass(time.Minute), OutcomeApplied},
		}},
		"an idle session that is small":     {[]string{"idle > 30 * minute"}, []step{{add("suau"), ""}, {pass(time.Hour), ""}, {add("aua"), ""}, {pass(time.Hour), OutcomeApplied}}},
		"an idle session of a certain size": {[]string{"idle > 30 * minute && used > 0.45"}, []step{{add("suauauaua"), ""}, {pass(time.Hour), ""}, {add("u"), ""}, {pass(time.Hour), OutcomeApplied}}},
		"an idle session, and more":         {[]string{"idle >= 1 * hour && turn_completed"}, []step{{add("suauauau"), ""}, {pass(time.Hour), OutcomeNotTriggered}, {pass(time.Hour), ""}, {add("a"), ""}, {pass(time.Hour), OutcomeApplied}}},
		"an idle session, or a large one":   {[]string{"idle >= 1 * hour", "used > 0.6"}, []step{{add("suauauauauaua"), OutcomeApplied}, {add("uaua"), ""}, {pass(time.Hour), OutcomeApplied}}},
		"an old session": {[]string{"age >= 1 * hour"}, []step{
			{add("suauauau"), ""},
			{pass(59 * time.Minute), ""},
			{add("a"), ""},
			{pass(time.Minute), OutcomeApplied},
			{pass(2 * time.Hour), ""},
			{add("ua"), OutcomeApplied}, // it is old for good: its start is the target now
		}},
		"an old session that is small": {[]string{"age >= 1 * hour && used > 0.45"}, []step{
			{add("suauauaua"), ""},
			{pass(2 * time.Hour), ""},
			{add("u"), OutcomeApplied},
		}},
		"an old session, and a turn": {[]string{"age >= 1 * hour && turn_completed"}, []step{
			{add("suauauau"), ""},
			{pass(time.Hour), OutcomeNotTriggered},
			{pass(time.Hour), ""},
			{add("a"), OutcomeApplied},
		}},
		"every six hours": {[]string{"time_since_run >= 6 * hour"}, []step{
			{add("suauauau"), ""},
			{pass(6*time.Hour - time.Minute), ""},
			{pass(time.Minute), OutcomeApplied},
			{add("ua"), ""},
			{pass(6*time.Hour - time.Minute), ""},
			{add("ua"), ""},
			{pass(2 * time.Minute), OutcomeApplied},
			{pass(12 * time.Hour), ""}, // small again
			{add("ua"), OutcomeApplied},
			{add("ua"), ""},
			{func(f *clocked) { f.run(f.operator("s", store.Options{From: "view"})) }, ""},
			{add("uaua"), ""},
			{pass(6 * time.Hour), OutcomeApplied},
		}},
		"every six hours, or above a size": {[]string{"time_since_run >= 6 * hour", "used > 0.6"}, []step{
			{add("suauau"), ""},
			{pass(3 * time.Hour), ""},
			{add("auauaua"), OutcomeApplied},
			{add("ua"), ""},
			{pass(6*time.Hour - time.Minute), ""},
			{pass(time.Minute), OutcomeApplied},
		}},
		"every six hours, when it is quiet": {[]string{"time_since_run >= 6 * hour && idle >= 10 * minute"}, []step{
			{add("suauauau"), ""},
			{pass(10 * time.Minute), OutcomeNotTriggered},
			{pass(5 * time.Hour), ""},
			{pass(50 * time.Minute), OutcomeApplied},
			{add("uaua"), ""},
			{pass(6*time.Hour - time.Minute), OutcomeNotTriggered},
			{add("ua"), ""},
			{pass(time.Minute), ""},
			{pass(9 * time.Minute), OutcomeApplied},
		}},
		"when it is idle, or every six hours": {[]string{"idle >= 10 * minute", "time_since_run >= 6 * hour"}, []step{
			{add("suauauau"), ""},
			{pass(10 * time.Minute), OutcomeApplied},
			{add("ua"), ""},
			{pass(10 * time.Minute), OutcomeApplied},
		}},
		"every hour, and nothing can go": {[]string{"time_since_run >= 1 * hour"}, []step{
			{add("ssssssssu"), ""},
			{pass(time.Hour), OutcomeNothingToCompact},
			{pass(time.Hour), ""},
			{add("a"), OutcomeNothingToCompact},
			{pass(time.Hour), ""},
		}},
		"a floor that is above": {[]string{"used > 0.5"}, []step{{add("ssssssssssssu"), OutcomeFloorAboveTrigger}, {func(*clocked) {}, ""}}},
		"nothing to do":         {[]string{"messages_since_run >= 4"}, []step{{add("suau"), OutcomeNothingToCompact}, {add("a"), ""}, {add("uaua"), OutcomeApplied}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setupClock(t, triggered(tt.when...))
			for i, s := range tt.steps {
				s.do(f)
				f.want(fmt.Sprint("step ", i+1), s.want)
				f.want(fmt.Sprint("after step ", i+1), "")
			}
			f.pass(24 * time.Hour)
			f.want("without news", "")
		})
	}
}

func TestATriggerHasATargetOfItsOwn(t *testing.T) {
	t.Parallel()
	yes := true
	f := setupClock(t, func(p *policy.Policy) {
		triggered("used > 0.6", "closed")(p)
		p.Triggers[1].Target = 0.15
	})
	f.append("s", "suauauauauaua")
	f.want("the budget", OutcomeApplied)
	if got := f.view("s"); got != "sauaua" {
		t.Errorf("view %s", got)
	}
	f.append("s", "uaua")
	f.report(store.State{Closed: &yes})
	f.want("the end", OutcomeApplied)
	if got := f.view("s"); got != "sua" {
		t.Errorf("view %s", got)
	}
}

// A session of which no trigger holds is not due, so that neither a sweep nor anything else
// takes it before its next write.
func TestASessionWithoutATriggerThatHoldsIsNotDue(t *testing.T) {
	t.Parallel()
	f := setupClock(t, triggered("used > 0.6 && tool_rounds == 3"))
	f.append("s", "suauauauauaua")
	f.want("the first run", OutcomeNotTriggered)
	if ids := f.sweep(); len(ids) != 0 {
		t.Errorf("a sweep takes it: %v", ids)
	}
	must(f.store.ReportUsage(t.Context(), key("s"), 1500, 0))(t)
	f.want("a report is news", OutcomeNotTriggered)
	f.append("s", "uctctct")
	f.want("a write is, too", OutcomeApplied)
}

func TestTheTargetFollowsTheTurnsOfTheSession(t *testing.T) {
	t.Parallel()
	for turns, want := range map[int]string{0: "sauaua", 1: "sauaua", 2: "suaua", 3: "sua"} { // of 216 tokens each, up to a start of 1,000
		f := setupClock(t, func(p *policy.Policy) { p.TargetTurns = turns })
		f.append("s", "suauauauauaua")
		f.want("the run", OutcomeApplied)
		if got := f.view("s"); got != want {
			t.Errorf("for %d turns: view %s, want %s", turns, got, want)
		}
	}
}

func TestARunNamesTheTriggerThatHeld(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		when    []string
		outcome string
		want    string // empty for a column without a value
	}{
		"the first that holds": {[]string{"turns_since_run >= 30", "messages_since_run >= 9", "used > 0.6"}, OutcomeApplied, "t1"},
		"none":                 {[]string{"used > 0.6 && tool_rounds == 3"}, OutcomeNotTriggered, ""},
		"no triggers":          {nil, OutcomeApplied, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setupClock(t, triggered(tt.when...))
			f.append("s", "suauauauauaua")
			f.want("the run", tt.outcome)
			var got *string
			f.must(f.conn.QueryRow(t.Context(), `SELECT fired FROM compactor.runs`).Scan(&got))
			if (got == nil) != (tt.want == "") || got != nil && *got != tt.want {
				t.Errorf("fired %v, want %q", got, tt.want)
			}
			if runs, err := f.store.Operator.Runs(t.Context(), store.RunFilter{Limit: 1}); err != nil || runs[0].Fired != tt.want {
				t.Errorf("%+v, %v", runs, err)
			}
		})
	}
}
