package store

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/store/storetest"
)

// claimed returns a claimed run of a new session.
func claimed(t *testing.T, s *Store) *Claim {
	t.Helper()
	k := Key{Session: "s"}
	add(t, s, k, talk("m", 4)...)
	return start(t, s, k)
}

func TestAnAnswerIsPaidForOnce(t *testing.T) {
	s := fresh(t)
	c := claimed(t, s)
	q := SummaryCall{Run: c.Run, Fence: c.Fence, Key: "k", PromptHash: "p"}
	id, a, _, err := s.Worker.AskSummary(t.Context(), q)
	if err != nil || id == 0 || a != nil {
		t.Fatalf("first question: %d, %v, %v", id, a, err)
	}
	// A question that is still open was left behind by a worker that died.
	second, a, _, err := s.Worker.AskSummary(t.Context(), q)
	if err != nil || second == id || second == 0 || a != nil {
		t.Fatalf("the question of a dead worker: %d, %v, %v", second, a, err)
	}
	paid := SummaryAnswer{Text: "so far", Model: "m", FinishReason: "stop", Attempts: 2, Input: 10, Cached: 3, Output: 4, Reasoning: 1, CostMicros: 7, Took: time.Second}
	noError(t, s.Worker.AnswerSummary(t.Context(), second, paid))
	wantError(t, s.Worker.AnswerSummary(t.Context(), id, paid), ErrNotApplicable, "a second answer to the same question")
	if err := s.Worker.FailSummary(t.Context(), id, "timeout", SummaryAnswer{Attempts: 1, CostMicros: 2}); err != nil {
		t.Errorf("what the dead worker paid is recorded when it comes back: %v", err)
	}
	id, a, rejected, err := s.Worker.AskSummary(t.Context(), q)
	if err != nil || id != 0 || rejected != "" || a == nil || a.Text != "so far" || a.FinishReason != "stop" || a.Model != "m" {
		t.Errorf("asked again: %d, %+v, %q, %v", id, a, rejected, err)
	}
	row := must(s.Run(t.Context(), c.Run))(t)
	if row.Calls != 2 || row.CostMicros != 9 || row.InputTokens != 10 || row.OutputTokens != 4 || row.Model == "" {
		t.Errorf("on the run: %+v", row)
	}
	states := []string{}
	for _, call := range must(s.Reader.SummaryCalls(t.Context(), c.Run))(t) {
		states = append(states, call.State+" "+call.Code)
	}
	if diff := cmp.Diff([]string{"failed timeout", "answered "}, states); diff != "" {
		t.Error(diff)
	}
}

// A worker may lose its run to another one that makes the same call. Its answer is late, and
// its cost is stored nevertheless.
func TestTheCostOfALateAnswerIsKept(t *testing.T) {
	t.Parallel()
	for name, answered := range map[string]bool{"while the other waits": false, "after the other's answer": true} {
		t.Run(name, func(t *testing.T) {
			s := fresh(t)
			c := claimed(t, s)
			q := SummaryCall{Run: c.Run, Fence: c.Fence, Key: "k", PromptHash: "p"}
			first, _, _, err := s.Worker.AskSummary(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			second, _, _, err := s.Worker.AskSummary(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			a := SummaryAnswer{Text: "so far", Model: "m", Attempts: 1, Input: 10, Output: 4, CostMicros: 7}
			if answered {
				noError(t, s.Worker.AnswerSummary(t.Context(), second, a))
			}
			if err := s.Worker.AnswerSummary(t.Context(), first, SummaryAnswer{Text: "late", Model: "m", CostMicros: 5}); !errors.Is(err, ErrNotApplicable) {
				t.Errorf("a late answer: %v", err)
			}
			if !answered {
				noError(t, s.Worker.AnswerSummary(t.Context(), second, a))
			}
			if row := must(s.Run(t.Context(), c.Run))(t); row.CostMicros != 12 {
				t.Errorf("cost %d", row.CostMicros)
			}
			if _, got, _, err := s.Worker.AskSummary(t.Context(), q); err != nil || got == nil || got.Text != "so far" || got.CostMicros != 7 {
				t.Errorf("asked again: %+v, %v", got, err)
			}
		})
	}
}

func TestOnlyALaterRunCallsAgainAfterARejectedAnswer(t *testing.T) {
	s := fresh(t)
	c := claimed(t, s)
	q := SummaryCall{Run: c.Run, Fence: c.Fence, Key: "k", PromptHash: "p"}
	first, _, _, err := s.Worker.AskSummary(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Worker.AnswerSummary(t.Context(), first, SummaryAnswer{Text: "no"}), s.Worker.RejectSummary(t.Context(), c.Run, "k", "refusal")); err != nil {
		t.Fatal(err)
	}
	if id, a, rejected, err := s.Worker.AskSummary(t.Context(), q); err != nil || id != 0 || a.Text != "no" || rejected != "refusal" {
		t.Errorf("the same run: %d, %v, %q, %v", id, a, rejected, err)
	}
	noError(t, s.Worker.Finish(t.Context(), c, StatusSkipped, Ledger{Outcome: "no_summary"}, nil))
	if _, _, _, err := s.Worker.AskSummary(t.Context(), q); !errors.Is(err, ErrNotApplicable) {
		t.Errorf("a run that is over: %v", err)
	}
	later := must(s.Request(t.Context(), Key{Session: "s"}, TriggerOperator, "", Options{}))(t)
	claim := must(s.Worker.Claim(t.Context(), later, "w", time.Minute))(t)
	q.Run, q.Fence = claim.Run, claim.Fence
	id, a, _, err := s.Worker.AskSummary(t.Context(), q)
	if err != nil || id == 0 || a != nil {
		t.Errorf("a later run: %d, %v, %v", id, a, err)
	}
	// A third run may use its answer and reject it: that run does not call again.
	err = errors.Join(s.Worker.AnswerSummary(t.Context(), id, SummaryAnswer{Text: "hm"}), s.Worker.Finish(t.Context(), claim, StatusSkipped, Ledger{Outcome: "no_summary"}, nil))
	if err != nil {
		t.Fatal(err)
	}
	third := must(s.Request(t.Context(), Key{Session: "s"}, TriggerOperator, "", Options{}))(t)
	claim = must(s.Worker.Claim(t.Context(), third, "w", time.Minute))(t)
	q.Run, q.Fence = claim.Run, claim.Fence
	if id, a, _, err := s.Worker.AskSummary(t.Context(), q); err != nil || id != 0 || a.Text != "hm" {
		t.Errorf("a third run: %d, %v, %v", id, a, err)
	}
	noError(t, s.Worker.RejectSummary(t.Context(), third, "k", "empty"))
	if id, a, rejected, err := s.Worker.AskSummary(t.Context(), q); err != nil || id != 0 || a == nil || rejected != "empty" {
		t.Errorf("the third run once more: %d, %v, %q, %v", id, a, rejected, err)
	}
}

func TestAnswersAreForgottenAndCostsAreNot(t *testing.T) {
	s := fresh(t)
	c := claimed(t, s)
	q := SummaryCall{Run: c.Run, Fence: c.Fence, Key: "k", PromptHash: "p"}
	id, _, _, err := s.Worker.AskSummary(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	noError(t, s.Worker.AnswerSummary(t.Context(), id, SummaryAnswer{Text: "so far", CostMicros: 5}))
	if n, err := s.Scheduler.PurgeAnswers(t.Context(), time.Hour, 10); err != nil || n != 0 {
		t.Errorf("a young answer: %d, %v", n, err)
	}
	if n, err := s.Scheduler.PurgeAnswers(t.Context(), -time.Hour, 10); err != nil || n != 1 {
		t.Errorf("an old answer: %d, %v", n, err)
	}
	if id, a, _, err := s.Worker.AskSummary(t.Context(), q); err != nil || id == 0 || a != nil {
		t.Errorf("asked again: %d, %v, %v", id, a, err)
	}
	if row := must(s.Run(t.Context(), c.Run))(t); row.CostMicros != 5 {
		t.Errorf("cost %d", row.CostMicros)
	}
}

func TestCallsWhoseWorkerIsGoneAreLost(t *testing.T) {
	s := fresh(t)
	c := claimed(t, s)
	state := func() string { return one[string](t, s, `SELECT state FROM compactor.summary_calls`) }
	id, _, _, err := s.Worker.AskSummary(t.Context(), SummaryCall{Run: c.Run, Fence: c.Fence, Key: "k", PromptHash: "p"})
	if err != nil {
		t.Fatal(err)
	}
	if n := must(s.Scheduler.LoseCalls(t.Context(), 10))(t); n != 0 || state() != "asked" {
		t.Errorf("%d calls of a living worker are lost: %s", n, state())
	}
	expire(t, s, c.Run)
	must(s.Worker.Claim(t.Context(), c.Run, "w2", time.Minute))(t)
	if n := must(s.Scheduler.LoseCalls(t.Context(), 10))(t); n != 1 || state() != "lost" {
		t.Errorf("%d calls are lost: %s, want the one of the worker that died", n, state())
	}
	// An answer that arrives late is stored nevertheless.
	if err := s.Worker.AnswerSummary(t.Context(), id, SummaryAnswer{Text: "so far"}); err != nil || state() != "answered" {
		t.Errorf("%v, %s", err, state())
	}
}

func TestModelCooldowns(t *testing.T) {
	t.Parallel()
	c := open(t).Worker.Cooldowns()
	if until, err := c.Until(t.Context(), "m"); err != nil || !until.IsZero() {
		t.Errorf("%v, %v", until, err)
	}
	noError(t, c.Set(t.Context(), "m", time.Now().Add(-time.Second), "timeout"))
	if until, err := c.Until(t.Context(), "m"); err != nil || !until.IsZero() {
		t.Errorf("past: %v, %v", until, err)
	}
	// Of two times the later one counts, whichever is set first.
	want := time.Now().Add(10 * time.Minute).Truncate(time.Microsecond)
	for _, at := range []time.Time{want.Add(-time.Minute), want, want.Add(-9 * time.Minute)} {
		noError(t, c.Set(t.Context(), "m", at, "timeout"))
	}
	if until, err := c.Until(t.Context(), "m"); err != nil || !until.Equal(want) {
		t.Errorf("%v, %v, want %v", until, err, want)
	}
	all, err := c.All(t.Context())
	if err != nil || len(all) != 1 || all[0].Model != "m" || !all[0].Until.Equal(want) || all[0].Code != "timeout" {
		t.Errorf("all: %v, %v", all, err)
	}
}

// The answer of a server is on the call, and is erased with the content of the session, also if it arrives later.
func TestWhatAServerAnsweredIsOnTheCall(t *testing.T) {
	s := fresh(t)
	c := claimed(t, s)
	ask := func(key string) int64 {
		id, _, _, err := s.Worker.AskSummary(t.Context(), SummaryCall{Run: c.Run, Fence: c.Fence, Key: key, PromptHash: "p"})
		noError(t, err)
		return id
	}
	failed := SummaryAnswer{Model: "m", Attempts: 3, Estimated: 2, HTTPStatus: 404, ServerError: "model_not_found: no such model", Input: 5}
	first, late := ask("a"), ask("b")
	noError(t, s.Worker.FailSummary(t.Context(), first, "model_not_found", failed))
	want := SummaryCallRow{State: "failed", Code: "model_not_found", Model: "m", PromptHash: "p", Attempts: 3, Input: 5, Estimated: 2, HTTPStatus: 404, ServerError: failed.ServerError}
	noDiff(t, cmp.Diff(want, must(s.Reader.SummaryCalls(t.Context(), c.Run))(t)[0]), "difference")
	must(s.Admin.Erase(t.Context(), Key{Session: "s"}, []string{"m1"}, "note", "o", false))(t)
	noError(t, s.Worker.FailSummary(t.Context(), late, "model_not_found", failed))
	for _, call := range must(s.Reader.SummaryCalls(t.Context(), c.Run))(t) {
		if call.ServerError != "" || call.State != "failed" || call.HTTPStatus != 404 {
			t.Errorf("after the erasure: %+v", call)
		}
	}
}

// An erasure that began before a run was claimed does not take the run back, which may have read the words: no
// model is asked for it, as its answer would outlive the erasure.
func TestARunThatWasClaimedDuringAnErasureAsksNoModel(t *testing.T) {
	s := fresh(t)
	k := Key{Session: "s"}
	add(t, s, k, talk("m", 4)...)
	run := must(s.Request(t.Context(), k, TriggerOperator, "test", Options{}))(t)
	tx := must(s.pool.Begin(t.Context()))(t)
	defer func() { _ = tx.Rollback(t.Context()) }()
	must(tx.Exec(t.Context(), s.q(`SELECT compactor.erase('default', 's', '{m1}', 'why', 'by')`)))(t)
	c := must(s.Worker.Claim(t.Context(), run, "worker", time.Minute))(t)
	asked := make(chan error, 1)
	go func() {
		_, _, _, err := s.Worker.AskSummary(t.Context(), SummaryCall{Run: run, Fence: c.Fence, Key: "k", PromptHash: "p"})
		asked <- err
	}()
	storetest.Await(t, "it waits for the erasure", func() bool { return len(asked) > 0 || waiters(t, s) > 0 })
	noError(t, tx.Commit(t.Context()))
	wantError(t, <-asked, ErrNotApplicable, "a question of a run from before the erasure")
	again := must(s.Worker.Claim(t.Context(), run, "worker", time.Minute))(t) // the run begins again
	id, _, _, err := s.Worker.AskSummary(t.Context(), SummaryCall{Run: run, Fence: again.Fence, Key: "k", PromptHash: "p"})
	if err != nil || id == 0 {
		t.Errorf("after the erasure: %d, %v", id, err)
	}
}
