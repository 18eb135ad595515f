package store

import (
	"errors"
	"testing"
	"time"
)

// Calls for messages that are in no session are paid for once for each tenant, and count as spent.
func TestAnAnswerWithoutASessionIsPaidForOnce(t *testing.T) {
	s := fresh(t)
	ask := func(tenant, key string, patience time.Duration) (int64, *SummaryAnswer, string, error) {
		return s.Worker.AskStateless(t.Context(), tenant, SummaryCall{Key: key, PromptHash: "p"}, patience)
	}
	first, a, _, err := ask("acme", "k", time.Hour)
	if err != nil || first == 0 || a != nil {
		t.Fatalf("first question: %d, %v, %v", first, a, err)
	}
	_, _, _, err = ask("acme", "k", time.Hour)
	wantError(t, err, ErrBusy, "while it is being answered")
	id, _, _, err := ask("acme", "k", 0)
	if err != nil || id == 0 || id == first {
		t.Fatalf("the question of a dead process: %d, %v", id, err)
	}
	noError(t, s.Worker.AnswerSummary(t.Context(), id, SummaryAnswer{Text: "so far", Attempts: 1, Input: 10, CostMicros: 7}))
	if id, a, rejected, err := ask("acme", "k", 0); err != nil || id != 0 || rejected != "" || a == nil || a.Text != "so far" {
		t.Errorf("asked again: %d, %+v, %q, %v", id, a, rejected, err)
	}
	if _, _, _, err := ask("other", "k", 0); !errors.Is(err, ErrBusy) { // keys hold the tenant, so this one is a forged one
		t.Errorf("another tenant with the key: %v, want no answer", err)
	}
	noError(t, s.Worker.RejectSummary(t.Context(), 0, "k", "echo"))
	if _, _, rejected, err := ask("acme", "k", 0); err != nil || rejected != "echo" {
		t.Errorf("a rejected answer: %q, %v", rejected, err)
	}
	forgotten, _, _, err := ask("acme", "f", 0)
	noError(t, err)
	noError(t, s.Worker.ForgetSummary(t.Context(), forgotten, SummaryAnswer{Text: "not stored", Attempts: 1, CostMicros: 5}))
	equal(t, 1, one[int](t, s, `SELECT count(*)::int FROM compactor.summary_calls WHERE answer IS NOT NULL`), "answers")
	equal(t, "2 12", one[string](t, s, `SELECT calls || ' ' || hour FROM compactor.spending('acme')`), "spent")
	equal(t, "0 0", one[string](t, s, `SELECT calls || ' ' || hour FROM compactor.spending('other')`), "spent for another tenant")
	exec(t, s, `UPDATE compactor.summary_calls SET ended_at = now() - interval '5 minutes'`)
	equal(t, 2, one[int64](t, s, `SELECT compactor.sum_spending()`), "sums")
	equal(t, "2 12", one[string](t, s, `SELECT calls || ' ' || hour FROM compactor.spending('acme')`), "summed up")
	limit := int64(12)
	noError(t, s.Operator.LimitSpending(t.Context(), SpendingLimit{Tenant: "acme", MicrosPerHour: &limit}))
	_, _, _, err = ask("acme", "new", 0)
	wantError(t, err, ErrSpendingLimit, "above the limit")
	lost, _, _, err := ask("other", "lost", 0)
	noError(t, err)
	exec(t, s, `UPDATE compactor.summary_calls SET asked_at = now() - interval '2 hours' WHERE id = $1`, lost)
	equal(t, 1, must(s.Scheduler.LoseCalls(t.Context(), 10))(t), "calls of dead processes")
}

// The erasure of a tenant reaches answers that are in no session; a call under way stores none.
func TestTheErasureOfATenantReachesAnswersWithoutASession(t *testing.T) {
	s := fresh(t)
	ask := func(tenant, key string) int64 {
		id, _, _, err := s.Worker.AskStateless(t.Context(), tenant, SummaryCall{Key: key, PromptHash: "p"}, time.Hour)
		noError(t, err)
		return id
	}
	answer := SummaryAnswer{Text: "words", Attempts: 1, CostMicros: 3, ServerError: "words"}
	noError(t, s.Worker.AnswerSummary(t.Context(), ask("acme", "done"), answer))
	noError(t, s.Worker.FailSummary(t.Context(), ask("acme", "failed"), "overloaded", answer))
	noError(t, s.Worker.AnswerSummary(t.Context(), ask("other", "theirs"), answer))
	noError(t, s.Worker.AnswerSummary(t.Context(), ask("acme", "rejected"), answer))
	noError(t, s.Worker.RejectSummary(t.Context(), 0, "rejected", "echo"))
	early := ask("acme", "early")
	e := must(s.Admin.RequestErasure(t.Context(), "acme", "law", "ada"))(t)
	must(s.Admin.ConfirmErasure(t.Context(), e.ID, "acme", "ada"))(t)
	late := ask("acme", "late")
	for e.EndedAt.IsZero() {
		e = must(s.Admin.NextErasure(t.Context(), e.ID, "acme"))(t)
	}
	for _, id := range []int64{early, late} {
		wantError(t, s.Worker.AnswerSummary(t.Context(), id, answer), ErrNotApplicable, "after the erasure")
	}
	equal(t, 4, e.Answers, "answers erased")
	equal(t, 0, one[int](t, s, `SELECT count(*)::int FROM compactor.summary_calls c WHERE tenant = 'acme' AND c::text LIKE '%words%'`), "rows with words")
	equal(t, 15, one[int](t, s, `SELECT sum(cost_micros)::int FROM compactor.summary_calls WHERE tenant = 'acme'`), "cost")
	equal(t, "words", one[string](t, s, `SELECT answer FROM compactor.summary_calls WHERE tenant = 'other'`), "of another tenant")
	equal(t, 0, one[int](t, s, `SELECT count(*)::int FROM compactor.summary_calls WHERE run IS NULL AND server_error IS NOT NULL`), "server errors")
}

func TestKeysKeepTheirOutput(t *testing.T) {
	s := fresh(t)
	_, _, err := s.Admin.CreateKey(t.Context(), NewKey{Name: "a", Scope: ScopeAppend, Output: OutputItem}, "test")
	noError(t, err)
	_, secret, err := s.Admin.RotateKey(t.Context(), "", "a", 0, "test")
	noError(t, err)
	equal(t, OutputItem, must(s.Admin.UseKey(t.Context(), secret))(t).Output, "of the new key")
	_, _, err = s.Admin.CreateKey(t.Context(), NewKey{Name: "b", Scope: ScopeAppend, Output: "both"}, "test")
	wantError(t, err, ErrInvalid, "another output")
}
