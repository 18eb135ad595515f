package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
)

func TestApplyWritesTheWholeChange(t *testing.T) {
	s, k := freshSession(t)
	var msgs []NewMessage
	for i, m := range talk("m", 10) {
		msgs = append(msgs, counted(m, chat.Tokens(10+i)))
	}
	add(t, s, k, append(msgs, user("estimated", "x"))...)
	first := apply(t, s, k, exclude(span(1, 2)))
	c := start(t, s, k)
	plan := summarize(span(3, 4), "three and four")
	plan.Exclude = exclude(span(6, 7)).Exclude
	plan.Include = span(1, 1)
	st := replacement(c.View[7], "short") // seq 10
	st.Additions[0].Message = result("", "call", "cut").Message
	plan.Additions = append(plan.Additions, st.Additions...)
	ch := must(c.change(s, plan))(t)
	ch.Ledger = Ledger{Kind: "compact", Outcome: "applied", MessagesBefore: 9, MessagesAfter: 8, TokensBefore: 1, TokensAfter: 2, Utilization: 0.5, Steps: []string{"a"}, PlanMicros: 3, TotalMicros: 4}
	settled := "fingerprint"
	ch.PostRunState = PostRunState{DueTokens: 77, EstimateMargin: 0.25, PolicyHash: "h", DecisionFingerprint: settled, CooldownSeconds: 60, Ineffective: true}
	appended := must(s.Worker.Apply(t.Context(), c.Run, c.Fence, ch))(t)
	equal(t, span(12, 13), appended, "appended")
	equal(t, []chat.Seq{1, 12, 5, 8, 9, 13, 11}, liveSeqs(t, s, k), "view")
	row := must(s.Run(t.Context(), c.Run))(t)
	if row.Status != "applied" || row.Outcome != "applied" || !row.InForce || row.Revision != 2 || row.MessagesAfter != 8 || row.Utilization != 0.5 || row.EndedAt == nil {
		t.Errorf("ledger row is %+v", row)
	}
	got := list[string](t, s, `SELECT concat_ws(' ', run, reason, seqs, summary_seq) FROM compactor.exclusions ORDER BY run, seqs`)
	want := []string{
		fmt.Sprintf("%d truncated {[1,3)}", first), fmt.Sprintf("%d summarized {[3,5)} 12", c.Run),
		fmt.Sprintf("%d truncated {[6,8)}", c.Run), fmt.Sprintf("%d clamped {[10,11)} 13", c.Run),
	}
	equal(t, want, got, "exclusions")
	claim := start(t, s, k).Session
	if claim.DecisionFingerprint != settled || claim.IneffectiveRuns != 1 || !claim.CoolingDown || claim.Revision != 2 {
		t.Errorf("session is %+v", claim)
	}
	if got := one[string](t, s, `SELECT due_tokens || ' ' || estimate_margin || ' ' || policy_hash || ' ' || tail_start_seq FROM compactor.sessions`); got != "77 0.25 h 11" {
		t.Errorf("settled as %q", got)
	}
	if got := one[string](t, s, `SELECT tool_call_id || ' ' || role_code::text || ' ' || run FROM compactor.message_log WHERE seq = 13`); got != fmt.Sprintf("call a %d", c.Run) && got != fmt.Sprintf("call t %d", c.Run) {
		t.Errorf("replacement is stored as %q", got)
	}
	wantConsistent(t, s)
}

func TestApplyingTwiceIsApplyingOnce(t *testing.T) {
	s, k := freshTalk(t, 6)
	c := start(t, s, k)
	ch := must(c.change(s, summarize(span(1, 3), "start")))(t)
	results := make(chan error)
	for range 4 {
		go func() {
			_, err := s.Worker.Apply(context.Background(), c.Run, c.Fence, ch)
			results <- err
		}()
	}
	applied := 0
	for range 4 {
		if err := <-results; err == nil {
			applied++
		} else if !errors.Is(err, ErrNotApplicable) {
			t.Errorf("second apply: %v, want not applicable", err)
		}
	}
	equal(t, 1, applied, "applied times")
	equal(t, []chat.Seq{7, 4, 5, 6}, liveSeqs(t, s, k), "view")
	wantConsistent(t, s)
}

func TestMessagesAppendedDuringARunStayAndDoNotDisturbIt(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{"", 1, 0, false, Counts{}})
	k := Key{Session: "s"}
	add(t, s, k, talk("m", 6)...)
	exec(t, s, `DELETE FROM compactor.outbox`)
	c := start(t, s, k)
	ch := must(c.change(s, summarize(span(1, 3), "start")))(t)
	ch.PostRunState.DueTokens = 10
	add(t, s, k, talk("n", 2)...)
	exec(t, s, `DELETE FROM compactor.outbox`)
	must(s.Worker.Apply(t.Context(), c.Run, c.Fence, ch))(t)
	equal(t, []chat.Seq{9, 4, 5, 6, 7, 8}, liveSeqs(t, s, k), "view")
	equal(t, []string{"s 1"}, gens(t, s), "the run did not wake anybody for what came meanwhile")
	wantConsistent(t, s)
	// With nothing new a session that is still due enqueues nothing.
	exec(t, s, `DELETE FROM compactor.outbox`)
	c = start(t, s, k)
	ch = must(c.change(s, exclude(span(4, 4))))(t)
	ch.PostRunState.DueTokens = 10
	must(s.Worker.Apply(t.Context(), c.Run, c.Fence, ch))(t)
	none(t, gens(t, s), "outbox")
}

func TestAChangeOfTheViewOrThePinsMakesAPlanStale(t *testing.T) {
	s := fresh(t)
	for name, meanwhile := range map[string]func(k Key, first RunID) error{
		"pin of what the plan takes out": func(k Key, _ RunID) error { return s.Pin(t.Context(), k, "m3") },
		"undo": func(k Key, first RunID) error {
			_, err := s.Undo(t.Context(), k, first, false, "test")
			return err
		},
		"replace": func(k Key, _ RunID) error {
			_, err := s.Replace(t.Context(), k, 1, talk("m", 3)[1:], "test")
			return err
		},
	} {
		k := Key{Session: name}
		add(t, s, k, talk("m", 6)...)
		first := apply(t, s, k, exclude(span(1, 1)))
		c := start(t, s, k)
		ch := must(c.change(s, summarize(span(2, 4), "start")))(t)
		if err := meanwhile(k, first); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		before := liveSeqs(t, s, k)
		wantError(t, second(s.Worker.Apply(t.Context(), c.Run, c.Fence, ch)), ErrStale, "apply after %s", name)
		noDiff(t, cmp.Diff(before, liveSeqs(t, s, k)), "%s: a stale apply changed the view", name)
	}
	wantConsistent(t, s)
}

func TestAPlanCannotNameMessagesOutsideItsSnapshot(t *testing.T) {
	s, k := freshTalk(t, 4)
	c := start(t, s, k)
	add(t, s, k, talk("n", 2)...)
	for name, plan := range map[string]chat.Plan{
		"exclude": exclude(span(4, 5)), "cover": summarize(span(4, 5), "x"), "include": {Include: span(5, 5)}, "no end": exclude(chat.Ranges{{Lo: 2, Hi: chat.Open}}),
	} {
		ch := Change{Plan: plan, SnapshotSeq: c.Session.LastSeq, Revision: c.Session.Revision, Ledger: Ledger{Kind: "compact", Outcome: "applied"}}
		wantError(t, second(s.Worker.Apply(t.Context(), c.Run, c.Fence, ch)), ErrStale, "%s", name)
	}
	equal(t, 6, len(liveSeqs(t, s, k)), "messages in the view")
}

func TestAnExclusionCannotNameASummaryThatIsNotThere(t *testing.T) {
	s, k := freshTalk(t, 4)
	run := apply(t, s, k, exclude(span(1, 1)))
	_, err := s.pool.Exec(t.Context(), `INSERT INTO compactor.exclusions (run, sid, reason, seqs, summary_seq) SELECT $1, sid, 'x', '{[2,3)}', 99 FROM compactor.sessions`, run)
	if err == nil || !strings.Contains(err.Error(), "23503") {
		t.Errorf("missing summary: %v, want the foreign key to refuse it", err)
	}
	_, err = s.pool.Exec(t.Context(), `INSERT INTO compactor.exclusions (run, sid, reason, seqs) SELECT 99999, sid, 'x', '{[2,3)}' FROM compactor.sessions`)
	if err != nil {
		t.Fatal(err)
	}
	if got := must(s.Admin.AuditSession(t.Context(), k))(t).Findings; len(got) != 1 || got[0].Check != "excluded messages name a run and a reason" {
		t.Errorf("missing run: %+v, want a finding, as the functions name the run that they end and no reference is kept for that", got)
	}
}

func TestARunThatChangesNothingIsStillRecorded(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{"", 1, 0, false, Counts{}})
	k := Key{Session: "s"}
	add(t, s, k, talk("m", 6)...)
	c := start(t, s, k)
	settled := "print"
	code, text := "too_small", strings.Repeat("long ", 200)
	err := s.Worker.Finish(t.Context(), c, StatusSkipped,
		Ledger{Outcome: "below_threshold", ErrorCode: &code, Error: &text, TokensBefore: 5}, &PostRunState{DueTokens: 1 << 30, DecisionFingerprint: settled})
	if err != nil {
		t.Fatal(err)
	}
	row := must(s.Run(t.Context(), c.Run))(t)
	if row.Status != "skipped" || row.Outcome != "below_threshold" || row.ErrorCode != code || len(row.Error) != 500 || row.Revision != 0 || row.InForce {
		t.Errorf("ledger row is %+v", row)
	}
	if session(t, s, k).Due {
		t.Error("still due, want it settled")
	}
	wantError(t, s.Worker.Finish(t.Context(), c, StatusSkipped, Ledger{Outcome: "again"}, nil), ErrNotApplicable, "second finish")
	wantError(t, second(s.Undo(t.Context(), k, c.Run, false, "")), ErrNotApplicable, "undo of a skipped run")
	wantConsistent(t, s)
}

// waiting blocks until some connection of the test's database waits for a lock.
func waiting(t fataler, s *Store) {
	t.Helper()
	for waiters(t, s) == 0 {
		exec(t, s, `SELECT pg_stat_clear_snapshot()`)
	}
}

func TestAWorkerPastItsLeaseCanStillApplyWhileAnotherRunLooks(t *testing.T) {
	s, k := freshTalk(t, 6)
	c := start(t, s, k)
	other := request(t, s, k, TriggerApplication)
	expire(t, s, c.Run)
	tx := must(s.pool.Begin(t.Context()))(t)
	defer func() { _ = tx.Rollback(context.Background()) }() // a test that fails here must not wait for its own connection
	_, err := tx.Exec(t.Context(), `SELECT compactor.end_run($1, $2, 'applied', 0, 6, '{truncated}', '{"{[1,3)}"}', '{null}', '{[1,3)}', '{}', NULL,
		'{"outcome":"applied","d_messages":-2,"d_tokens":-52,"d_estimated":-52,"estimate_margin":0,"fleet_hash":"","due_tokens":1000000}')`, c.Run, c.Fence)
	if err != nil {
		t.Fatal(err)
	}
	claimed := make(chan error)
	go func() {
		_, err := s.Worker.Claim(context.Background(), other, "w2", time.Minute)
		claimed <- err
	}()
	waiting(t, s)
	noError(t, tx.Commit(t.Context()))
	if err := <-claimed; err != nil && !errors.Is(err, ErrBusy) {
		t.Errorf("claim beside an apply: %v, want it claimed or busy", err)
	}
	if row := must(s.Run(t.Context(), c.Run))(t); row.Status != "applied" {
		t.Errorf("the applied run is %s", row.Status)
	}
	wantConsistent(t, s)
}

func TestMessagesAppendedDuringARunCountTowardsTheNext(t *testing.T) {
	s, k := freshTalk(t, 6)
	exec(t, s, `UPDATE compactor.sessions SET due_messages = 5, due_turns = 10`)
	c := start(t, s, k)
	ch := must(c.change(s, exclude(span(1, 3))))(t)
	ch.PostRunState.Counts = Counts{NewMessages: 5, NewTurns: 10}
	add(t, s, k, counted(user("n1", "x"), 5), counted(assistant("n2", "x"), 6))
	must(s.Worker.Apply(t.Context(), c.Run, c.Fence, ch))(t)
	const since = `SELECT concat_ws(' ', messages_since_run, tokens_since_run, turns_since_run, due) FROM compactor.sessions`
	equal(t, "2 11 1 f", one[string](t, s, since), "since the run")
	add(t, s, k, talk("o", 3)...)
	if !session(t, s, k).Due {
		t.Error("not due after due_messages messages")
	}
}

func TestAPinSetDuringARunIsNotForgotten(t *testing.T) {
	s := fresh(t)
	for name, end := range map[string]func(c *Claim) error{
		"apply": func(c *Claim) error {
			_, err := s.Worker.Apply(t.Context(), c.Run, c.Fence, must(c.change(s, exclude(span(3, 3))))(t))
			return err
		},
		"finish": func(c *Claim) error {
			return s.Worker.Finish(t.Context(), c, StatusSkipped, Ledger{Outcome: "below_threshold"}, &PostRunState{DueTokens: 1 << 40})
		},
	} {
		k := Key{Session: name}
		add(t, s, k, talk("m", 6)...)
		apply(t, s, k, exclude(span(1, 2)))
		c := start(t, s, k)
		noError(t, s.Pin(t.Context(), k, "m1"))
		noError(t, end(c))
		if row := session(t, s, k); !row.Due || !row.Suspect {
			t.Errorf("after %s the session is due: %v, suspect: %v; want both, for the pin", name, row.Due, row.Suspect)
		}
		apply(t, s, k, chat.Plan{Include: span(1, 1)})
		if row := session(t, s, k); row.Due || row.Suspect {
			t.Errorf("after %s and a run that brought the pin back the session is due: %v, suspect: %v; want neither", name, row.Due, row.Suspect)
		}
	}
	wantConsistent(t, s)
}

func TestAVerdictOnAnEarlierViewDoesNotSettleTheSession(t *testing.T) {
	s, k := freshTalk(t, 6)
	c := start(t, s, k)
	must(s.Replace(t.Context(), k, 0, talk("m", 6)[3:], "test"))(t)
	settled := "old"
	err := s.Worker.Finish(t.Context(), c, StatusSkipped, Ledger{Outcome: "below_threshold"}, &PostRunState{DueTokens: 1 << 40, DecisionFingerprint: settled})
	if err != nil {
		t.Fatal(err)
	}
	if row := session(t, s, k); !row.Due || !row.Suspect {
		t.Errorf("due: %v, suspect: %v; want both: the view set meanwhile was not checked", row.Due, row.Suspect)
	}
	equal(t, "", start(t, s, k).Session.DecisionFingerprint, "settled")
}

func TestWhatStandsAtTheBeginningStaysAsItWas(t *testing.T) {
	s, k := freshSession(t)
	for i := range 8 {
		add(t, s, k, counted(user("", "x"), chat.Tokens(1<<i))) // seq i+1 has 1<<i
	}
	unchanged := func(run RunID, want chat.Tokens) {
		t.Helper()
		equal(t, want, must(s.Operator.Unchanged(t.Context(), run))(t), "run %d leaves tokens", run)
	}
	middle := apply(t, s, k, exclude(span(3, 4)))
	unchanged(middle, 1+2)
	summary := apply(t, s, k, summarize(span(6, 7), "notes")) // it stands before 8, as seq 9
	unchanged(summary, 1+2+16)
	add(t, s, k, counted(user("", "x"), 256))
	back := apply(t, s, k, chat.Plan{Include: span(4, 4)})
	unchanged(back, 1+2)
	first := apply(t, s, k, exclude(span(1, 1)))
	unchanged(first, 0)
	end := apply(t, s, k, exclude(span(10, 10)))
	unchanged(end, 2+8+16+7+128)
	unchanged(middle, 1+2) // whatever came after it
	noError(t, second(s.Operator.Unchanged(t.Context(), 999)))
}
