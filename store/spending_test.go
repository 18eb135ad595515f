package store

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// Each limit counts the calls of its tenant, or of all, in its time, up to and without it.
func TestLimitsOfSpending(t *testing.T) {
	t.Parallel()
	n := func(i int64) *int64 { return &i }
	perSecond := 1.0
	limits := map[string]struct {
		limit   SpendingLimit
		limited bool
	}{
		"calls below":            {SpendingLimit{CallsPerHour: n(3)}, false},
		"calls at":               {SpendingLimit{CallsPerHour: n(2)}, true},
		"cost of the hour below": {SpendingLimit{MicrosPerHour: n(31)}, false},
		"cost of the hour at":    {SpendingLimit{MicrosPerHour: n(30)}, true},
		"cost of the day below":  {SpendingLimit{MicrosPerDay: n(131)}, false},
		"cost of the day at":     {SpendingLimit{MicrosPerDay: n(130)}, true},
		"tokens below":           {SpendingLimit{TokensPerHour: n(31)}, false},
		"tokens at":              {SpendingLimit{TokensPerHour: n(30)}, true},
		"runs only":              {SpendingLimit{RunsPerSecond: &perSecond}, false},
		"none may be asked":      {SpendingLimit{CallsPerHour: n(0)}, true},
		"its tenant":             {SpendingLimit{Tenant: "default", MicrosPerHour: n(30)}, true},
		"another tenant":         {SpendingLimit{Tenant: "acme", CallsPerHour: n(0)}, false},
	}
	for _, summed := range []bool{false, true} {
		t.Run(fmt.Sprint("summed up: ", summed), func(t *testing.T) {
			s, k := freshTalk(t, 4)
			c := must(s.Worker.Claim(t.Context(), request(t, s, k, TriggerApplication), "w", time.Minute))(t)
			// Two calls in the last hour, one before it, and one before the day.
			exec(t, s, `INSERT INTO compactor.summary_calls (key, sid, run, fence, state, code, prompt_hash, attempts, input_tokens, output_tokens, cost_micros, ended_at)
				SELECT k::text, sid, id, 1, 'failed', 'timeout', '', 1, cost - 1, 1, cost, now() - age FROM compactor.runs,
				(VALUES (1, 10, interval '1 minute'), (2, 20, interval '58 minutes'), (3, 100, interval '23 hours'), (4, 1000, interval '25 hours')) x(k, cost, age)`)
			if summed {
				for range 2 {
					must(s.Scheduler.SumSpending(t.Context()))(t)
				}
			}
			for name, l := range limits {
				noError(t, s.Operator.LimitSpending(t.Context(), l.limit))
				rows := must(s.Operator.Spending(t.Context(), l.limit.Tenant))(t)
				if len(rows) != 1 || rows[0].Reached() != l.limited && l.limit.Tenant != "acme" {
					t.Errorf("%s: %+v", name, rows)
				}
				_, _, _, err := s.Worker.AskSummary(t.Context(), SummaryCall{Run: c.Run, Fence: c.Fence, Key: "k", PromptHash: "p"})
				if limited := errors.Is(err, ErrSpendingLimit); limited != l.limited || !limited && err != nil {
					t.Errorf("%s: %v, want a limit: %t", name, err, l.limited)
				}
				exec(t, s, `DELETE FROM compactor.summary_calls WHERE state = 'asked'`)
				exec(t, s, `DELETE FROM compactor.spending_limits`)
			}
		})
	}
}

// Sums take the place of the calls of a minute, once, and go after a day.
func TestSumsOfSpending(t *testing.T) {
	s := fresh(t)
	for _, tenant := range []string{"a", "b"} {
		add(t, s, Key{Tenant: tenant, Session: "s"}, talk("m", 4)...)
		must(s.Request(t.Context(), Key{Tenant: tenant, Session: "s"}, TriggerApplication, "", Options{}))(t)
	}
	exec(t, s, `INSERT INTO compactor.summary_calls (key, sid, run, fence, state, code, prompt_hash, attempts, input_tokens, cost_micros, estimated, ended_at)
		SELECT i::text, sid, id, 1, 'failed', 'timeout', '', 1, 2, 3, i % 3, now() - i * interval '10 seconds' FROM compactor.runs, generate_series(1, 600) i`)
	before, estimated := one[int](t, s, `SELECT x.day::int FROM compactor.spending('') x`), one[int](t, s, `SELECT x.estimated::int FROM compactor.spending('') x`)
	for range 3 {
		must(s.Scheduler.SumSpending(t.Context()))(t)
	}
	if after := one[int](t, s, `SELECT x.day::int FROM compactor.spending('') x`); after != before || before != 3600 {
		t.Errorf("%d was spent, and %d as the sums say, want 3600", before, after)
	}
	if after := one[int](t, s, `SELECT x.estimated::int FROM compactor.spending('') x`); after != estimated || estimated != 800 {
		t.Errorf("%d calls are estimated, and %d as the sums say, want 800", estimated, after)
	}
	if tokens := one[string](t, s, `SELECT string_agg((a.tokens = 2 * a.calls AND a.hour = 3 * a.calls AND 2 * a.calls = x.calls)::text, ' ')
		FROM unnest('{a,b}'::text[]) t, compactor.spending(t) a, compactor.spending('') x`); tokens != "true true" {
		t.Errorf("tenants and all together: %s", tokens)
	}
	if n := one[int](t, s, `SELECT count(*) FROM compactor.summary_calls WHERE ended_at >= compactor.spending_summed_to()`); n > 2*18 {
		t.Errorf("a look at a limit reads %d calls, want those of the last three minutes at most", n)
	}
	exec(t, s, `UPDATE compactor.spending_minutes SET minute = minute - interval '1 day'`)
	must(s.Scheduler.SumSpending(t.Context()))(t)
	if n := one[int](t, s, `SELECT count(*) FROM compactor.spending_minutes WHERE minute < now() - interval '25 hours'`); n != 0 {
		t.Errorf("%d minutes are older than a day", n)
	}
}

// An answer may be stored again, where the connection was lost with the reply. It is paid once.
func TestAnAnswerThatIsStoredAgainIsPaidOnce(t *testing.T) {
	s, k := freshTalk(t, 4)
	claim := must(s.Worker.Claim(t.Context(), must(s.Request(t.Context(), k, TriggerApplication, "", Options{}))(t), "w", time.Minute))(t)
	id, _, _, err := s.Worker.AskSummary(t.Context(), SummaryCall{Run: claim.Run, Fence: claim.Fence, Key: "k", PromptHash: "p"})
	noError(t, err)
	answer := SummaryAnswer{Text: "a summary", Model: "m", CostMicros: 10}
	answer.Attempts = 1
	noError(t, s.Worker.AnswerSummary(t.Context(), id, answer))
	exec(t, s, `UPDATE compactor.summary_calls SET ended_at = ended_at - interval '5 minutes'`)
	must(s.Scheduler.SumSpending(t.Context()))(t)
	noError(t, s.Worker.AnswerSummary(t.Context(), id, answer))
	if row := must(s.Run(t.Context(), claim.Run))(t); row.CostMicros != 10 || row.Calls != 1 {
		t.Errorf("%d calls for %d", row.Calls, row.CostMicros)
	}
	equal(t, 10, one[int](t, s, `SELECT x.day::int FROM compactor.spending('') x`), "was spent")
}

// Minutes that are lived again, as the clock was set back, are summed with the calls of both times.
func TestMinutesThatAreLivedAgainAreSummedAgain(t *testing.T) {
	s := fresh(t)
	add(t, s, Key{Session: "s"}, talk("m", 4)...)
	must(s.Request(t.Context(), Key{Session: "s"}, TriggerApplication, "", Options{}))(t)
	call := func() {
		exec(t, s, `INSERT INTO compactor.summary_calls (key, sid, run, fence, state, code, prompt_hash, attempts, input_tokens, cost_micros, ended_at)
			SELECT random()::text, sid, id, 1, 'failed', 'timeout', '', 1, 2, 10, now() - interval '5 minutes' FROM compactor.runs`)
		must(s.Scheduler.SumSpending(t.Context()))(t)
	}
	pass := func(by string) {
		exec(t, s, `UPDATE compactor.summary_calls SET ended_at = ended_at - $1::interval`, by)
		exec(t, s, `UPDATE compactor.spending_minutes SET minute = minute - $1::interval`, by)
	}
	must(s.Scheduler.Lead(t.Context(), "scheduler", "a", time.Minute))(t)
	call()
	pass("-10 minutes")
	exec(t, s, `UPDATE compactor.leader SET clock_back = '10 minutes'`)
	correctAll(t, s)
	pass("10 minutes")
	call()
	equal(t, 20, one[int](t, s, `SELECT x.day::int FROM compactor.spending('') x`), "was spent")
}
