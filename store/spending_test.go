package store

import (
	"errors"
	"testing"
	"time"
)

// Each limit counts the calls of its tenant, or of all, in its time, up to and without it.
func TestLimitsOfSpending(t *testing.T) {
	t.Parallel()
	n := func(i int64) *int64 { return &i }
	for name, c := range map[string]struct {
		limit   SpendingLimit
		limited bool
	}{
		"calls below":            {SpendingLimit{CallsPerHour: n(3)}, false},
		"calls at":               {SpendingLimit{CallsPerHour: n(2)}, true},
		"cost of the hour below": {SpendingLimit{MicrosPerHour: n(31)}, false},
		"cost of the hour at":    {SpendingLimit{MicrosPerHour: n(30)}, true},
		"cost of the day below":  {SpendingLimit{MicrosPerDay: n(131)}, false},
		"cost of the day at":     {SpendingLimit{MicrosPerDay: n(130)}, true},
		"none may be asked":      {SpendingLimit{CallsPerHour: n(0)}, true},
		"its tenant":             {SpendingLimit{Tenant: "default", MicrosPerHour: n(30)}, true},
		"another tenant":         {SpendingLimit{Tenant: "acme", CallsPerHour: n(0)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			k := Key{Session: "s"}
			add(t, s, k, talk("m", 4)...)
			claim := must(s.Claim(t.Context(), must(s.Request(t.Context(), k, TriggerApplication, "", Options{}))(t), "w", time.Minute))(t)
			// Two calls in the last hour, one before it, and one before the day.
			exec(t, s, `INSERT INTO compactor.summary_calls (key, sid, run, fence, state, code, prompt_hash, attempts, cost_micros, ended_at)
				SELECT k::text, sid, id, 1, 'failed', 'timeout', '', 1, cost, now() - age FROM compactor.runs,
				(VALUES (1, 10, interval '1 minute'), (2, 20, interval '59 minutes'), (3, 100, interval '23 hours'), (4, 1000, interval '25 hours')) x(k, cost, age)`)
			if err := s.LimitSpending(t.Context(), c.limit); err != nil {
				t.Fatal(err)
			}
			rows, err := s.Spending(t.Context(), c.limit.Tenant)
			if err != nil || len(rows) != 1 || rows[0].Reached() != c.limited && c.limit.Tenant != "acme" {
				t.Errorf("%+v, %v", rows, err)
			}
			_, _, _, err = s.AskSummary(t.Context(), SummaryCall{Run: claim.Run, Fence: claim.Fence, Key: "k", PromptHash: "p"})
			if limited := errors.Is(err, ErrSpendingLimit); limited != c.limited || !limited && err != nil {
				t.Errorf("%v, want a limit: %t", err, c.limited)
			}
		})
	}
}
