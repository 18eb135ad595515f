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

// expire ends the lease of a run, as time would.
func expire(t fataler, s *Store, run RunID) {
	t.Helper()
	if exec(t, s, `UPDATE compactor.runs SET lease_until = now() - interval '1 second' WHERE id = $1 AND status = 'running'`, run) != 1 {
		t.Fatalf("run %d is not running", run)
	}
}

func request(t fataler, s *Store, k Key, trigger string) RunID {
	t.Helper()
	run, err := s.Request(context.Background(), k, trigger, "test", Options{})
	if err != nil {
		t.Fatalf("request: %v", err)
	}
	return run
}

func TestARequestIsQueuedOncePerTrigger(t *testing.T) {
	t.Parallel()
	s := open(t)
	k := Key{Tenant: "t", Session: "s"}
	add(t, s, k, talk("m", 3)...)
	o := Options{From: "view", Pipeline: []Step{{Strategy: "truncation", Params: map[string]any{"max": 3.0}}}, Focus: "prices", AllowGrowth: true}
	first := must(s.Request(t.Context(), k, TriggerOperator, "ann", o))(t)
	if again := must(s.Request(t.Context(), k, TriggerOperator, "bob", o))(t); again != first {
		t.Errorf("the same request is run %d, want %d as before", again, first)
	}
	_, err := s.Request(t.Context(), k, TriggerOperator, "bob", Options{})
	if !errors.Is(err, ErrInUse) || !strings.Contains(fmt.Sprint(err), fmt.Sprintf("run %d", first)) {
		t.Errorf("a request with other options: %v, want in use, naming run %d", err, first)
	}
	if other := must(s.Request(t.Context(), k, TriggerApplication, "app", Options{}))(t); other == first {
		t.Error("another trigger shares the run")
	}
	c := must(s.Claim(t.Context(), first, "w", time.Minute))(t)
	if diff := cmp.Diff(o, c.Options); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
	if next := must(s.Request(t.Context(), k, TriggerOperator, "bob", Options{}))(t); next == first {
		t.Error("a request while a run is running got that run")
	}
	row := must(s.Run(t.Context(), first))(t)
	if row.RequestedBy != "ann" || row.Session != "s" || row.Tenant != "t" || row.Status != "running" || row.Attempts != 1 {
		t.Errorf("ledger row is %+v", row)
	}
	if _, err := s.Request(t.Context(), Key{Session: "unknown"}, TriggerOperator, "", Options{}); !errors.Is(err, ErrNotFound) {
		t.Errorf("unknown session: %v, want not found", err)
	}
	for _, trigger := range []string{TriggerNightly, TriggerEvent, "whim"} {
		if _, err := s.Request(t.Context(), k, trigger, "", Options{}); !errors.Is(err, ErrInvalid) {
			t.Errorf("trigger %s: %v, want it refused", trigger, err)
		}
	}
}

func TestAClaimHoldsTheSnapshotItPlansOn(t *testing.T) {
	t.Parallel()
	s := open(t)
	k := Key{Session: "s"}
	add(t, s, k, counted(user("a", "x"), 5), call("b", "c1", "c2"), result("c", "c1", "x"), result("d", "c2", "x"), assistant("e", "done"))
	if err := s.Pin(t.Context(), k, "a"); err != nil {
		t.Fatal(err)
	}
	apply(t, s, k, exclude(span(5, 5)))
	c := start(t, s, k)
	if diff := cmp.Diff(chat.Ranges{{Lo: 1, Hi: 5}, {Lo: 6, Hi: chat.Open}}, c.Session.Live); diff != "" {
		t.Errorf("live (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(span(1, 1), c.Session.Pinned); diff != "" {
		t.Errorf("pinned (-want +got):\n%s", diff)
	}
	if c.Session.Revision != 1 || c.Session.LastSeq != 5 || c.Session.LiveMessages != 4 || len(c.View) != 4 {
		t.Errorf("snapshot is %+v with %d messages", c.Session, len(c.View))
	}
	want := chat.Meta{Seq: 1, Position: 1, Kind: chat.KindSource, Role: chat.RoleUser, Flags: chat.HasText, Tokens: 5}
	if diff := cmp.Diff(want, c.View[0]); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	if m := c.View[1]; m.Calls != 2 || m.Role != chat.RoleAssistant || !c.View[3].Has(chat.Paired|chat.Estimated) {
		t.Errorf("metadata is %+v", c.View)
	}
	log := must(s.Log(t.Context(), c.Session.SID, 4))(t)
	if diff := cmp.Diff(c.View, log); diff != "" {
		t.Errorf("the log up to 4 differs from the view:\n%s", diff)
	}
	msgs := must(s.Messages(t.Context(), c.Session.SID, []chat.Seq{3, 5}))(t)
	if len(msgs) != 2 || msgs[3].ToolCallID != "c1" || msgs[5].ID != "e" {
		t.Errorf("messages are %+v", msgs)
	}
	if _, err := s.Messages(t.Context(), c.Session.SID, []chat.Seq{3, 6}); !errors.Is(err, ErrNotFound) {
		t.Errorf("a message that is not there: %v, want not found", err)
	}
}

func TestOneRunOfASessionIsClaimedAtATime(t *testing.T) {
	t.Parallel()
	s := open(t)
	k := Key{Session: "s"}
	add(t, s, k, talk("m", 3)...)
	a, b := request(t, s, k, TriggerOperator), request(t, s, k, TriggerApplication)
	c := must(s.Claim(t.Context(), a, "w1", time.Minute))(t)
	for _, run := range []RunID{a, b} {
		if _, err := s.Claim(t.Context(), run, "w2", time.Minute); !errors.Is(err, ErrBusy) {
			t.Errorf("claim of run %d beside a live worker: %v, want busy", run, err)
		}
	}
	if err := s.Finish(t.Context(), c, StatusSkipped, Ledger{Outcome: "nothing_to_compact"}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claim(t.Context(), a, "w2", time.Minute); !errors.Is(err, ErrNotFound) {
		t.Errorf("claim of an ended run: %v, want not found", err)
	}
	if _, err := s.Claim(t.Context(), 1<<40, "w2", time.Minute); !errors.Is(err, ErrNotFound) {
		t.Errorf("claim of a run that never was: %v, want not found", err)
	}
	if _, err := s.Claim(t.Context(), b, "w2", time.Minute); err != nil {
		t.Errorf("claim of the next run: %v", err)
	}
}

func TestOfManyClaimsAtOnceOneWins(t *testing.T) {
	t.Parallel()
	s := open(t)
	k := Key{Session: "s"}
	add(t, s, k, talk("m", 3)...)
	runs := []RunID{request(t, s, k, TriggerOperator), request(t, s, k, TriggerApplication)}
	results := make(chan error)
	for i := range 8 {
		go func() {
			_, err := s.Claim(context.Background(), runs[i%2], fmt.Sprint("w", i), time.Minute)
			results <- err
		}()
	}
	won := 0
	for range 8 {
		if err := <-results; err == nil {
			won++
		} else if !errors.Is(err, ErrBusy) {
			t.Errorf("a lost claim: %v, want busy", err)
		}
	}
	if won != 1 {
		t.Errorf("%d claims won, want 1", won)
	}
}

func TestAWorkerPastItsLeaseLosesItsFence(t *testing.T) {
	t.Parallel()
	s := open(t)
	k := Key{Session: "s"}
	add(t, s, k, talk("m", 6)...)
	old := start(t, s, k)
	expire(t, s, old.Run)
	now := must(s.Claim(t.Context(), old.Run, "w2", time.Minute))(t)
	if now.Fence <= old.Fence || now.Attempts != 2 {
		t.Errorf("fence %d after %d, attempt %d", now.Fence, old.Fence, now.Attempts)
	}
	ch := must(old.change(s, exclude(span(1, 2))))(t)
	_, applyErr := s.Apply(t.Context(), old.Run, old.Fence, ch)
	for what, err := range map[string]error{
		"apply":     applyErr,
		"finish":    s.Finish(t.Context(), old, StatusFailed, Ledger{Outcome: "x"}, nil),
		"heartbeat": s.Heartbeat(t.Context(), old.Run, old.Fence, time.Minute),
		"requeue":   s.Requeue(t.Context(), old.Run, old.Fence, 0, true, "x", ""),
	} {
		if !errors.Is(err, ErrNotApplicable) {
			t.Errorf("%s with a lost fence: %v, want not applicable", what, err)
		}
	}
	if err := s.Heartbeat(t.Context(), now.Run, now.Fence, time.Hour); err != nil {
		t.Errorf("heartbeat of the new worker: %v", err)
	}
	if _, err := s.Apply(t.Context(), now.Run, now.Fence, ch); err != nil {
		t.Errorf("apply of the new worker: %v", err)
	}
	wantConsistent(t, s)
}

func TestAnExpiredRunMakesWayForAnother(t *testing.T) {
	t.Parallel()
	s := open(t)
	k := Key{Session: "s"}
	add(t, s, k, talk("m", 6)...)
	old := start(t, s, k)
	other := request(t, s, k, TriggerApplication)
	expire(t, s, old.Run)
	c := must(s.Claim(t.Context(), other, "w2", time.Minute))(t)
	if row := must(s.Run(t.Context(), old.Run))(t); row.Status != "queued" {
		t.Errorf("the expired run is %s, want queued", row.Status)
	}
	if err := s.Finish(t.Context(), c, StatusSkipped, Ledger{Outcome: "x"}, nil); err != nil {
		t.Fatal(err)
	}
	// The same, with a queued run of the expired one's trigger in the queue: that one stands for both.
	old = must(s.Claim(t.Context(), old.Run, "w1", time.Minute))(t)
	twin := request(t, s, k, TriggerOperator)
	other = request(t, s, k, TriggerApplication)
	expire(t, s, old.Run)
	if _, err := s.Claim(t.Context(), other, "w2", time.Minute); err != nil {
		t.Fatal(err)
	}
	if row := must(s.Run(t.Context(), old.Run))(t); row.Status != "failed" || row.Outcome != "lease_expired" {
		t.Errorf("the expired run is %s %s, want failed lease_expired", row.Status, row.Outcome)
	}
	if row := must(s.Run(t.Context(), twin))(t); row.Status != "queued" {
		t.Errorf("its twin is %s, want queued", row.Status)
	}
}

func TestApplyWritesTheWholeChange(t *testing.T) {
	t.Parallel()
	s := open(t)
	k := Key{Session: "s"}
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
	st := standIn(c.View[7], "short") // seq 10
	st.Additions[0].Message = result("", "call", "cut").Message
	plan.Additions = append(plan.Additions, st.Additions...)
	ch := must(c.change(s, plan))(t)
	ch.Ledger = Ledger{Kind: "compact", Outcome: "applied", MessagesBefore: 9, MessagesAfter: 8, TokensBefore: 1, TokensAfter: 2, Utilization: 0.5, Steps: []string{"a"}, PlanMicros: 3, TotalMicros: 4}
	settled := "fingerprint"
	ch.Settlement = Settlement{DueTokens: 77, EstimateMargin: 0.25, PolicyHash: "h", Settled: settled, CooldownSeconds: 60, Ineffective: true}
	appended := must(s.Apply(t.Context(), c.Run, c.Fence, ch))(t)
	if diff := cmp.Diff(span(12, 13), appended); diff != "" {
		t.Errorf("appended (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]chat.Seq{1, 12, 5, 8, 9, 13, 11}, liveSeqs(t, s, k)); diff != "" {
		t.Errorf("view (-want +got):\n%s", diff)
	}
	row := must(s.Run(t.Context(), c.Run))(t)
	if row.Status != "applied" || row.Outcome != "applied" || !row.InForce || row.Revision != 2 || row.MessagesAfter != 8 || row.Utilization != 0.5 || row.EndedAt == nil {
		t.Errorf("ledger row is %+v", row)
	}
	got := list[string](t, s, `SELECT concat_ws(' ', run, reason, seqs, summary_seq) FROM compactor.exclusions ORDER BY run, seqs`)
	want := []string{
		fmt.Sprintf("%d truncated {[1,3)}", first), fmt.Sprintf("%d summarized {[3,5)} 12", c.Run),
		fmt.Sprintf("%d truncated {[6,8)}", c.Run), fmt.Sprintf("%d clamped {[10,11)} 13", c.Run),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("exclusions (-want +got):\n%s", diff)
	}
	claim := start(t, s, k).Session
	if claim.Settled != settled || claim.IneffectiveRuns != 1 || !claim.CoolingDown || claim.Revision != 2 {
		t.Errorf("session is %+v", claim)
	}
	if got := one[string](t, s, `SELECT due_tokens || ' ' || estimate_margin || ' ' || policy_hash || ' ' || tail_start_seq FROM compactor.sessions`); got != "77 0.25 h 11" {
		t.Errorf("settled as %q", got)
	}
	if got := one[string](t, s, `SELECT tool_call_id || ' ' || role_code::text || ' ' || run FROM compactor.message_log WHERE seq = 13`); got != fmt.Sprintf("call a %d", c.Run) && got != fmt.Sprintf("call t %d", c.Run) {
		t.Errorf("stand-in is stored as %q", got)
	}
	wantConsistent(t, s)
}

func TestApplyingTwiceIsApplyingOnce(t *testing.T) {
	t.Parallel()
	s := open(t)
	k := Key{Session: "s"}
	add(t, s, k, talk("m", 6)...)
	c := start(t, s, k)
	ch := must(c.change(s, summarize(span(1, 3), "start")))(t)
	results := make(chan error)
	for range 4 {
		go func() {
			_, err := s.Apply(context.Background(), c.Run, c.Fence, ch)
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
	if applied != 1 {
		t.Errorf("applied %d times, want once", applied)
	}
	if diff := cmp.Diff([]chat.Seq{7, 4, 5, 6}, liveSeqs(t, s, k)); diff != "" {
		t.Errorf("view (-want +got):\n%s", diff)
	}
	wantConsistent(t, s)
}

func TestWhatIsAppendedDuringARunStaysAndDoesNotDisturbIt(t *testing.T) {
	t.Parallel()
	s := open(t)
	thresholds(t, s, Threshold{"", 1, 0})
	k := Key{Session: "s"}
	add(t, s, k, talk("m", 6)...)
	exec(t, s, `DELETE FROM compactor.outbox`)
	c := start(t, s, k)
	ch := must(c.change(s, summarize(span(1, 3), "start")))(t)
	ch.Settlement.DueTokens = 10
	add(t, s, k, talk("n", 2)...)
	exec(t, s, `DELETE FROM compactor.outbox`)
	must(s.Apply(t.Context(), c.Run, c.Fence, ch))(t)
	if diff := cmp.Diff([]chat.Seq{9, 4, 5, 6, 7, 8}, liveSeqs(t, s, k)); diff != "" {
		t.Errorf("view (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"s 1"}, gens(t, s)); diff != "" {
		t.Errorf("the run did not wake anybody for what came meanwhile (-want +got):\n%s", diff)
	}
	wantConsistent(t, s)
	// With nothing new a session that is still due wakes nobody.
	exec(t, s, `DELETE FROM compactor.outbox`)
	c = start(t, s, k)
	ch = must(c.change(s, exclude(span(4, 4))))(t)
	ch.Settlement.DueTokens = 10
	must(s.Apply(t.Context(), c.Run, c.Fence, ch))(t)
	if got := gens(t, s); len(got) > 0 {
		t.Errorf("outbox has %v, want nothing", got)
	}
}

func TestAChangeOfTheViewOrThePinsMakesAPlanStale(t *testing.T) {
	t.Parallel()
	s := open(t)
	for name, meanwhile := range map[string]func(k Key, first RunID) error{
		"pin of what the plan takes out": func(k Key, _ RunID) error { return s.Pin(t.Context(), k, "m3") },
		"undo": func(_ Key, first RunID) error {
			_, err := s.Undo(t.Context(), first, false, "test")
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
		if _, err := s.Apply(t.Context(), c.Run, c.Fence, ch); !errors.Is(err, ErrStale) {
			t.Errorf("apply after %s: %v, want stale", name, err)
		}
		if diff := cmp.Diff(before, liveSeqs(t, s, k)); diff != "" {
			t.Errorf("%s: a stale apply changed the view:\n%s", name, diff)
		}
	}
	wantConsistent(t, s)
}

func TestAPlanCannotNameWhatItsSnapshotDidNotHold(t *testing.T) {
	t.Parallel()
	s := open(t)
	k := Key{Session: "s"}
	add(t, s, k, talk("m", 4)...)
	c := start(t, s, k)
	add(t, s, k, talk("n", 2)...)
	for name, plan := range map[string]chat.Plan{
		"exclude": exclude(span(4, 5)), "cover": summarize(span(4, 5), "x"), "include": {Include: span(5, 5)}, "no end": exclude(chat.Ranges{{Lo: 2, Hi: chat.Open}}),
	} {
		ch := Change{Plan: plan, SnapshotSeq: c.Session.LastSeq, Revision: c.Session.Revision, Ledger: Ledger{Kind: "compact", Outcome: "applied"}}
		if _, err := s.Apply(t.Context(), c.Run, c.Fence, ch); !errors.Is(err, ErrStale) {
			t.Errorf("%s: %v, want stale", name, err)
		}
	}
	if n := len(liveSeqs(t, s, k)); n != 6 {
		t.Errorf("%d messages in the view, want 6", n)
	}
}

func TestAnExclusionCannotNameASummaryThatIsNotThere(t *testing.T) {
	t.Parallel()
	s := open(t)
	k := Key{Session: "s"}
	add(t, s, k, talk("m", 4)...)
	run := apply(t, s, k, exclude(span(1, 1)))
	_, err := s.pool.Exec(t.Context(), `INSERT INTO compactor.exclusions (run, sid, reason, seqs, summary_seq) SELECT $1, sid, 'x', '{[2,3)}', 99 FROM compactor.sessions`, run)
	if err == nil || !strings.Contains(err.Error(), "23503") {
		t.Errorf("missing summary: %v, want the foreign key to refuse it", err)
	}
	_, err = s.pool.Exec(t.Context(), `INSERT INTO compactor.exclusions (run, sid, reason, seqs) SELECT 99999, sid, 'x', '{[2,3)}' FROM compactor.sessions`)
	if err == nil || !strings.Contains(err.Error(), "23503") {
		t.Errorf("missing run: %v, want the foreign key to refuse it", err)
	}
}

func TestARunThatChangesNothingIsStillRecorded(t *testing.T) {
	t.Parallel()
	s := open(t)
	thresholds(t, s, Threshold{"", 1, 0})
	k := Key{Session: "s"}
	add(t, s, k, talk("m", 6)...)
	c := start(t, s, k)
	settled := "print"
	code, text := "too_small", strings.Repeat("long ", 200)
	err := s.Finish(t.Context(), c, StatusSkipped,
		Ledger{Outcome: "below_threshold", ErrorCode: &code, Error: &text, TokensBefore: 5}, &Settlement{DueTokens: 1 << 30, Settled: settled})
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
	if err := s.Finish(t.Context(), c, StatusSkipped, Ledger{Outcome: "again"}, nil); !errors.Is(err, ErrNotApplicable) {
		t.Errorf("second finish: %v, want not applicable", err)
	}
	if _, err := s.Undo(t.Context(), c.Run, false, ""); !errors.Is(err, ErrNotApplicable) {
		t.Errorf("undo of a skipped run: %v, want not applicable", err)
	}
	wantConsistent(t, s)
}

func TestARunIsPostponedAndAbandoned(t *testing.T) {
	t.Parallel()
	s := open(t)
	k := Key{Session: "s"}
	add(t, s, k, talk("m", 3)...)
	c := start(t, s, k)
	if err := s.Requeue(t.Context(), c.Run, c.Fence, time.Hour, true, "model_down", strings.Repeat("é", 600)); err != nil {
		t.Fatal(err)
	}
	row := must(s.Run(t.Context(), c.Run))(t)
	if row.Status != "queued" || row.Failures != 1 || row.Snoozes != 0 || row.ErrorCode != "model_down" || len([]rune(row.Error)) != 500 {
		t.Errorf("after a failure the row is %+v", row)
	}
	if n := must(s.Snooze(t.Context(), c.Run, time.Hour, "busy"))(t); n != 1 {
		t.Errorf("snoozed %d times, want 1", n)
	}
	if got := must(s.Undelivered(t.Context(), 10, time.Minute))(t); len(got) > 0 {
		t.Errorf("delivered %v, want nothing before its time", got)
	}
	c = must(s.Claim(t.Context(), c.Run, "w", time.Minute))(t)
	if c.Failures != 1 || c.Snoozes != 1 || c.Attempts != 2 {
		t.Errorf("claim counts %d failures, %d snoozes, %d attempts", c.Failures, c.Snoozes, c.Attempts)
	}
	if _, err := s.Snooze(t.Context(), c.Run, 0, "busy"); !errors.Is(err, ErrNotFound) {
		t.Errorf("snooze of a running run: %v, want not found", err)
	}
	if err := s.Abandon(t.Context(), c.Run, "busy"); err != nil {
		t.Fatal(err)
	}
	if row := must(s.Run(t.Context(), c.Run))(t); row.Status != "running" {
		t.Errorf("abandon ended a running run: %s", row.Status)
	}
	if err := s.Requeue(t.Context(), c.Run, c.Fence, 0, false, "busy", ""); err != nil {
		t.Fatal(err)
	}
	if err := s.Abandon(t.Context(), c.Run, "busy"); err != nil {
		t.Fatal(err)
	}
	if row := must(s.Run(t.Context(), c.Run))(t); row.Status != "skipped" || row.Outcome != "busy" || row.Snoozes != 2 {
		t.Errorf("after all the row is %+v", row)
	}
}

func TestPinsNameSourceMessages(t *testing.T) {
	t.Parallel()
	s := open(t)
	k := Key{Session: "s"}
	add(t, s, k, talk("m", 4)...)
	run := apply(t, s, k, summarize(span(1, 2), "x"))
	for name, do := range map[string]func() error{
		"unknown message":     func() error { return s.Pin(t.Context(), k, "nothing") },
		"summary":             func() error { return s.Pin(t.Context(), k, fmt.Sprintf("summary-5-%d", run)) },
		"unknown session":     func() error { return s.Pin(t.Context(), Key{Session: "no"}, "m1") },
		"unpin what is loose": func() error { return s.Unpin(t.Context(), k, "m1") },
	} {
		if err := do(); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v, want not found", name, err)
		}
	}
	for range 2 {
		if err := s.Pin(t.Context(), k, "m3"); err != nil {
			t.Fatal(err)
		}
	}
	if got := gens(t, s); len(got) > 0 {
		t.Errorf("a pin in the view woke somebody: %v", got)
	}
	if err := s.Pin(t.Context(), k, "m1"); err != nil {
		t.Fatal(err)
	}
	if row := session(t, s, k); !row.Due || !row.Suspect {
		t.Errorf("a pin out of the view leaves %+v, want it due", row)
	}
	if diff := cmp.Diff([]string{"s 1"}, gens(t, s)); diff != "" {
		t.Errorf("outbox (-want +got):\n%s", diff)
	}
	if err := s.Unpin(t.Context(), k, "m3"); err != nil {
		t.Fatal(err)
	}
	if got := one[string](t, s, `SELECT pinned::text FROM compactor.sessions`); got != "{[1,2)}" {
		t.Errorf("pinned is %s", got)
	}
	wantConsistent(t, s)
}

// waiting blocks until some connection of the test's database waits for a lock.
func waiting(t fataler, s *Store) {
	t.Helper()
	for one[int](t, s, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 0 {
		exec(t, s, `SELECT pg_stat_clear_snapshot()`)
	}
}

func TestAWorkerPastItsLeaseCanStillApplyWhileAnotherRunLooks(t *testing.T) {
	t.Parallel()
	s := open(t)
	k := Key{Session: "s"}
	add(t, s, k, talk("m", 6)...)
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
		_, err := s.Claim(context.Background(), other, "w2", time.Minute)
		claimed <- err
	}()
	waiting(t, s)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-claimed; err != nil && !errors.Is(err, ErrBusy) {
		t.Errorf("claim beside an apply: %v, want it claimed or busy", err)
	}
	if row := must(s.Run(t.Context(), c.Run))(t); row.Status != "applied" {
		t.Errorf("the applied run is %s", row.Status)
	}
	wantConsistent(t, s)
}

func TestWhatIsAppendedDuringARunCountsTowardsTheNext(t *testing.T) {
	t.Parallel()
	s := open(t)
	k := Key{Session: "s"}
	add(t, s, k, talk("m", 6)...)
	exec(t, s, `UPDATE compactor.sessions SET due_messages = 5, due_turns = 10`)
	c := start(t, s, k)
	ch := must(c.change(s, exclude(span(1, 3))))(t)
	add(t, s, k, counted(user("n1", "x"), 5), counted(assistant("n2", "x"), 6))
	must(s.Apply(t.Context(), c.Run, c.Fence, ch))(t)
	const since = `SELECT concat_ws(' ', messages_since_run, tokens_since_run, turns_since_run, due) FROM compactor.sessions`
	if got := one[string](t, s, since); got != "2 11 1 f" {
		t.Errorf("since the run: %s, want 2 messages, 11 tokens, 1 turn, not due", got)
	}
	add(t, s, k, talk("o", 3)...)
	if !session(t, s, k).Due {
		t.Error("not due after due_messages messages")
	}
}

func TestAPinSetDuringARunIsNotForgotten(t *testing.T) {
	t.Parallel()
	s := open(t)
	for name, end := range map[string]func(c *Claim) error{
		"apply": func(c *Claim) error {
			_, err := s.Apply(t.Context(), c.Run, c.Fence, must(c.change(s, exclude(span(3, 3))))(t))
			return err
		},
		"finish": func(c *Claim) error {
			return s.Finish(t.Context(), c, StatusSkipped, Ledger{Outcome: "below_threshold"}, &Settlement{DueTokens: 1 << 40})
		},
	} {
		k := Key{Session: name}
		add(t, s, k, talk("m", 6)...)
		apply(t, s, k, exclude(span(1, 2)))
		c := start(t, s, k)
		if err := s.Pin(t.Context(), k, "m1"); err != nil {
			t.Fatal(err)
		}
		if err := end(c); err != nil {
			t.Fatal(err)
		}
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
	t.Parallel()
	s := open(t)
	k := Key{Session: "s"}
	add(t, s, k, talk("m", 6)...)
	c := start(t, s, k)
	must(s.Replace(t.Context(), k, 0, talk("m", 6)[3:], "test"))(t)
	settled := "old"
	err := s.Finish(t.Context(), c, StatusSkipped, Ledger{Outcome: "below_threshold"}, &Settlement{DueTokens: 1 << 40, Settled: settled})
	if err != nil {
		t.Fatal(err)
	}
	if row := session(t, s, k); !row.Due || !row.Suspect {
		t.Errorf("due: %v, suspect: %v; want both: nobody has looked at the view that was put in place meanwhile", row.Due, row.Suspect)
	}
	if got := start(t, s, k).Session.Settled; got != "" {
		t.Errorf("settled on %q, want nothing", got)
	}
}
