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
	run := must(s.Request(context.Background(), k, trigger, "test", Options{}))(t)
	return run
}

func TestARequestIsQueuedOncePerTrigger(t *testing.T) {
	s := fresh(t)
	k := Key{Tenant: "t", Session: "s"}
	add(t, s, k, talk("m", 3)...)
	o := Options{From: "view", Pipeline: []Step{{Strategy: "truncation", Params: map[string]any{"max": 3.0}}}, Focus: "prices", AllowGrowth: true}
	first := must(s.Request(t.Context(), k, TriggerOperator, "ann", o))(t)
	equal(t, first, must(s.Request(t.Context(), k, TriggerOperator, "bob", o))(t), "the same request is run")
	_, err := s.Request(t.Context(), k, TriggerOperator, "bob", Options{})
	if !errors.Is(err, ErrInUse) || !strings.Contains(fmt.Sprint(err), fmt.Sprintf("run %d", first)) {
		t.Errorf("a request with other options: %v, want in use, naming run %d", err, first)
	}
	if other := must(s.Request(t.Context(), k, TriggerApplication, "app", Options{}))(t); other == first {
		t.Error("another trigger shares the run")
	}
	c := must(s.Worker.Claim(t.Context(), first, "w", time.Minute))(t)
	equal(t, o, c.Options, "options")
	if next := must(s.Request(t.Context(), k, TriggerOperator, "bob", Options{}))(t); next == first {
		t.Error("a request while a run is running got that run")
	}
	row := must(s.Run(t.Context(), first))(t)
	if row.RequestedBy != "ann" || row.Session != "s" || row.Tenant != "t" || row.Status != "running" || row.Attempts != 1 {
		t.Errorf("ledger row is %+v", row)
	}
	wantError(t, second(s.Request(t.Context(), Key{Session: "unknown"}, TriggerOperator, "", Options{})), ErrNotFound, "unknown session")
	for _, trigger := range []string{TriggerNightly, TriggerEvent, "whim"} {
		wantError(t, second(s.Request(t.Context(), k, trigger, "", Options{})), ErrInvalid, "trigger %s", trigger)
	}
}

func TestAClaimHoldsTheSnapshotItPlansOn(t *testing.T) {
	s, k := freshSession(t)
	add(t, s, k, counted(user("a", "x"), 5), call("b", "c1", "c2"), result("c", "c1", "x"), result("d", "c2", "x"), assistant("e", "done"))
	noError(t, s.Pin(t.Context(), k, "a"))
	apply(t, s, k, exclude(span(5, 5)))
	c := start(t, s, k)
	equal(t, chat.Ranges{{Lo: 1, Hi: 5}, {Lo: 6, Hi: chat.Open}}, c.Session.Live, "live")
	equal(t, span(1, 1), c.Session.Pinned, "pinned")
	if c.Session.Revision != 1 || c.Session.LastSeq != 5 || c.Session.LiveMessages != 4 || len(c.View) != 4 {
		t.Errorf("snapshot is %+v with %d messages", c.Session, len(c.View))
	}
	want := chat.Meta{Seq: 1, Position: 1, Kind: chat.KindSource, Role: chat.RoleUser, Flags: chat.HasText, Tokens: 5}
	equal(t, want, c.View[0], "metadata")
	if m := c.View[1]; m.Calls != 2 || m.Role != chat.RoleAssistant || !c.View[3].Has(chat.Paired|chat.Estimated) {
		t.Errorf("metadata is %+v", c.View)
	}
	log := must(s.Worker.Log(t.Context(), c.Session.SID, 4))(t)
	noDiff(t, cmp.Diff(c.View, log), "the log up to 4 differs from the view")
	msgs := must(s.Worker.Messages(t.Context(), c.Session.SID, []chat.Seq{3, 5}))(t)
	if len(msgs) != 2 || msgs[3].ToolCallID != "c1" || msgs[5].ID != "e" {
		t.Errorf("messages are %+v", msgs)
	}
	wantError(t, second(s.Worker.Messages(t.Context(), c.Session.SID, []chat.Seq{3, 6})), ErrNotFound, "a message that is not there")
}

func TestOneRunOfASessionIsClaimedAtATime(t *testing.T) {
	s, k := freshTalk(t, 3)
	a, b := request(t, s, k, TriggerOperator), request(t, s, k, TriggerApplication)
	c := must(s.Worker.Claim(t.Context(), a, "w1", time.Minute))(t)
	for _, run := range []RunID{a, b} {
		wantError(t, second(s.Worker.Claim(t.Context(), run, "w2", time.Minute)), ErrBusy, "claim of run %d beside a live worker", run)
	}
	noError(t, s.Worker.Finish(t.Context(), c, StatusSkipped, Ledger{Outcome: "nothing_to_compact"}, nil))
	wantError(t, second(s.Worker.Claim(t.Context(), a, "w2", time.Minute)), ErrNotFound, "claim of an ended run")
	wantError(t, second(s.Worker.Claim(t.Context(), 1<<40, "w2", time.Minute)), ErrNotFound, "claim of a run that never was")
	wantError(t, second(s.Worker.Claim(t.Context(), b, "w2", time.Minute)), nil, "claim of the next run")
}

func TestOfManyClaimsAtOnceOneWins(t *testing.T) {
	s, k := freshTalk(t, 3)
	runs := []RunID{request(t, s, k, TriggerOperator), request(t, s, k, TriggerApplication)}
	results := make(chan error)
	for i := range 8 {
		go func() {
			_, err := s.Worker.Claim(context.Background(), runs[i%2], fmt.Sprint("w", i), time.Minute)
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
	equal(t, 1, won, "claims won")
}

func TestAWorkerPastItsLeaseLosesItsFence(t *testing.T) {
	s, k := freshTalk(t, 6)
	old := start(t, s, k)
	expire(t, s, old.Run)
	now := must(s.Worker.Claim(t.Context(), old.Run, "w2", time.Minute))(t)
	if row := must(s.Run(t.Context(), now.Run))(t); now.Fence <= old.Fence || row.Attempts != 2 {
		t.Errorf("fence %d after %d, attempt %d", now.Fence, old.Fence, row.Attempts)
	}
	ch := must(old.change(s, exclude(span(1, 2))))(t)
	_, applyErr := s.Worker.Apply(t.Context(), old.Run, old.Fence, ch)
	for what, err := range map[string]error{
		"apply":     applyErr,
		"finish":    s.Worker.Finish(t.Context(), old, StatusFailed, Ledger{Outcome: "x"}, nil),
		"heartbeat": s.Worker.Heartbeat(t.Context(), old.Run, old.Fence, time.Minute),
		"requeue":   s.Worker.Requeue(t.Context(), old.Run, old.Fence, 0, true, "x", ""),
	} {
		if !errors.Is(err, ErrNotApplicable) {
			t.Errorf("%s with a lost fence: %v, want not applicable", what, err)
		}
	}
	wantError(t, s.Worker.Heartbeat(t.Context(), now.Run, now.Fence, time.Hour), nil, "heartbeat of the new worker")
	wantError(t, second(s.Worker.Apply(t.Context(), now.Run, now.Fence, ch)), nil, "apply of the new worker")
	wantConsistent(t, s)
}

func TestAnExpiredRunMakesWayForAnother(t *testing.T) {
	s, k := freshTalk(t, 6)
	old := start(t, s, k)
	other := request(t, s, k, TriggerApplication)
	expire(t, s, old.Run)
	c := must(s.Worker.Claim(t.Context(), other, "w2", time.Minute))(t)
	if row := must(s.Run(t.Context(), old.Run))(t); row.Status != "queued" {
		t.Errorf("the expired run is %s, want queued", row.Status)
	}
	noError(t, s.Worker.Finish(t.Context(), c, StatusSkipped, Ledger{Outcome: "x"}, nil))
	// The same, where the run that is claimed has the expired one's trigger and asks for something else.
	old = must(s.Worker.Claim(t.Context(), old.Run, "w1", time.Minute))(t)
	twin := must(s.Request(t.Context(), k, TriggerOperator, "test", Options{Focus: "prices"}))(t)
	expire(t, s, old.Run)
	must(s.Worker.Claim(t.Context(), twin, "w2", time.Minute))(t)
	row := must(s.Run(t.Context(), old.Run))(t)
	if row.Status != "queued" || row.Failures != 2 || row.ErrorCode != "lease_expired" {
		t.Errorf("the expired run is %+v, want it queued", row)
	}
}

func TestARunFailsOnceAsManyWorkersDiedOfIt(t *testing.T) {
	s, k := freshTalk(t, 6)
	run, other := request(t, s, k, TriggerOperator), request(t, s, k, TriggerApplication)
	for range MaxFailures - 1 {
		must(s.Worker.Claim(t.Context(), run, "w", time.Minute))(t)
		expire(t, s, run)
	}
	must(s.Worker.Claim(t.Context(), run, "w", time.Minute))(t)
	expire(t, s, run)
	wantError(t, second(s.Worker.Claim(t.Context(), run, "w", time.Minute)), ErrNotFound, "one claim more")
	row := must(s.Run(t.Context(), run))(t)
	if row.Status != "failed" || row.Outcome != "lease_expired" || row.Failures != MaxFailures || row.EndedAt == nil {
		t.Errorf("the run is %+v, want it failed", row)
	}
	must(s.Worker.Claim(t.Context(), other, "w", time.Minute))(t)
}

// A claim is committed asynchronously: a crash of the server may undo it after its worker has the reply.
func TestAClaimThatTheServerForgotDoesNotShareItsFence(t *testing.T) {
	s, k := freshTalk(t, 6)
	run := request(t, s, k, TriggerOperator)
	before := one[string](t, s, `SELECT to_json(r) FROM compactor.runs r`)
	lost := must(s.Worker.Claim(t.Context(), run, "w1", time.Minute))(t)
	exec(t, s, `UPDATE compactor.runs r SET status = b.status, fence = b.fence, attempts = b.attempts, lease_until = b.lease_until
		FROM json_populate_record(NULL::compactor.runs, $1) b`, before)
	now := must(s.Worker.Claim(t.Context(), run, "w2", time.Minute))(t)
	if _, err := s.Worker.Apply(t.Context(), run, lost.Fence, must(lost.change(s, exclude(span(1, 2))))(t)); !errors.Is(err, ErrNotApplicable) {
		t.Errorf("apply under a claim that is forgotten: %v, want not applicable", err)
	}
	if _, err := s.Worker.Apply(t.Context(), run, now.Fence, must(now.change(s, exclude(span(3, 4))))(t)); err != nil {
		t.Errorf("apply under the present claim: %v", err)
	}
}

func TestARunIsPostponedAndAbandoned(t *testing.T) {
	s, k := freshTalk(t, 3)
	c := start(t, s, k)
	noError(t, s.Worker.Requeue(t.Context(), c.Run, c.Fence, time.Hour, true, "model_down", strings.Repeat("é", 600)))
	row := must(s.Run(t.Context(), c.Run))(t)
	if row.Status != "queued" || row.Failures != 1 || row.Snoozes != 0 || row.ErrorCode != "model_down" || len([]rune(row.Error)) != 500 {
		t.Errorf("after a failure the row is %+v", row)
	}
	equal(t, 1, must(s.Worker.Snooze(t.Context(), c.Run, time.Hour, "busy"))(t), "snoozed times")
	none(t, must(s.Scheduler.Undelivered(t.Context(), 10, time.Minute))(t), "delivered")
	c = must(s.Worker.Claim(t.Context(), c.Run, "w", time.Minute))(t)
	if row := must(s.Run(t.Context(), c.Run))(t); c.Failures != 1 || c.Snoozes != 1 || row.Attempts != 2 {
		t.Errorf("claim counts %d failures, %d snoozes, %d attempts", c.Failures, c.Snoozes, row.Attempts)
	}
	wantError(t, second(s.Worker.Snooze(t.Context(), c.Run, 0, "busy")), ErrNotFound, "snooze of a running run")
	noError(t, s.Worker.Abandon(t.Context(), c.Run, "busy"))
	if row := must(s.Run(t.Context(), c.Run))(t); row.Status != "running" {
		t.Errorf("abandon ended a running run: %s", row.Status)
	}
	noError(t, s.Worker.Requeue(t.Context(), c.Run, c.Fence, 0, false, "busy", ""))
	noError(t, s.Worker.Abandon(t.Context(), c.Run, "busy"))
	if row := must(s.Run(t.Context(), c.Run))(t); row.Status != "skipped" || row.Outcome != "busy" || row.Snoozes != 2 {
		t.Errorf("after all the row is %+v", row)
	}
	// The failure that ends a run counts as others do.
	c = start(t, s, k)
	noError(t, s.Worker.Finish(t.Context(), c, StatusFailed, Ledger{Outcome: "model_down"}, nil))
	equal(t, 1, must(s.Run(t.Context(), c.Run))(t).Failures, "failures")
}

func TestPinsNameSourceMessages(t *testing.T) {
	s, k := freshTalk(t, 4)
	run := apply(t, s, k, summarize(span(1, 2), "x"))
	for name, do := range map[string]func() error{
		"unknown message":     func() error { return s.Pin(t.Context(), k, "nothing") },
		"summary":             func() error { return s.Pin(t.Context(), k, fmt.Sprintf("summary-5-%d", run)) },
		"unknown session":     func() error { return s.Pin(t.Context(), Key{Session: "no"}, "m1") },
		"unpin what is loose": func() error { return s.Unpin(t.Context(), k, "m1") },
	} {
		wantError(t, do(), ErrNotFound, "%s", name)
	}
	for range 2 {
		noError(t, s.Pin(t.Context(), k, "m3"))
	}
	none(t, gens(t, s), "a pin in the view enqueued a run")
	noError(t, s.Pin(t.Context(), k, "m1"))
	if row := session(t, s, k); !row.Due || !row.Suspect {
		t.Errorf("a pin out of the view leaves %+v, want it due", row)
	}
	equal(t, []string{"s 1"}, gens(t, s), "outbox")
	noError(t, s.Unpin(t.Context(), k, "m3"))
	equal(t, "{[1,2)}", one[string](t, s, `SELECT pinned::text FROM compactor.sessions`), "pinned")
	wantConsistent(t, s)
}
