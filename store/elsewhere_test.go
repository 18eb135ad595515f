package store

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// exchange reports to each database of a fleet the use of the others.
func exchange(t *testing.T, fleet []*Store) {
	t.Helper()
	for i, s := range fleet {
		for j, other := range fleet {
			if i != j {
				use := must(other.Scheduler.LimitedUse(t.Context(), must(s.Scheduler.Limited(t.Context()))(t)))(t)
				noError(t, s.Scheduler.CountElsewhere(t.Context(), fmt.Sprint("installation ", j), fmt.Sprint("database ", j), use))
			}
		}
	}
}

func openFleet(t *testing.T, n int) (fleet []*Store) {
	t.Helper()
	for range n {
		fleet = append(fleet, open(t))
	}
	return fleet
}

// pass moves the times of limits of runs and of the use elsewhere back.
func pass(t *testing.T, fleet []*Store, d time.Duration) {
	t.Helper()
	for _, s := range fleet {
		exec(t, s, `WITH l AS (UPDATE compactor.spending_limits SET full_at = full_at - $1::interval) UPDATE compactor.used_elsewhere SET read_at = read_at - $1::interval`, d)
	}
}

// In any number of seconds all databases together start no more runs than the limit allows, but
// for the runs that each may start before the others know of them.
func TestALimitOfRunsHoldsOverAllDatabasesOfAFleet(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		databases int
		limit     float64
		tenant    string
		from      []int // the second from which on each has work
	}{
		"one":                           {databases: 1, limit: 5, tenant: "default"},
		"two":                           {databases: 2, limit: 5, tenant: "default"},
		"three":                         {databases: 3, limit: 2, tenant: "default"},
		"of all tenants":                {databases: 2, limit: 3},
		"slow":                          {databases: 3, limit: 0.2, tenant: "default"},
		"one after the other has begun": {databases: 2, limit: 4, tenant: "default", from: []int{0, 12}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const seconds, step = 24, 200 * time.Millisecond
			fleet := openFleet(t, c.databases)
			for _, s := range fleet {
				limitRuns(t, s, c.tenant, c.limit)
			}
			began := one[time.Time](t, fleet[0], `SELECT clock_timestamp()`)
			exchange(t, fleet)
			started := make([]int, c.databases)
			for at := time.Duration(0); at < seconds*time.Second; at += step {
				if at%time.Second == 0 {
					exchange(t, fleet)
				}
				for i, s := range fleet {
					if c.from != nil && at < time.Duration(c.from[i])*time.Second {
						continue
					}
					n := one[int](t, s, `SELECT most::int FROM compactor.startable_runs() WHERE tenant = $1`, c.tenant)
					exec(t, s, `SELECT compactor.count_started_runs(array_fill('default'::text, ARRAY[$1::int]))`, n)
					started[i] += n
				}
				pass(t, fleet, step)
			}
			took := seconds + one[float64](t, fleet[0], `SELECT extract(epoch FROM clock_timestamp() - $1::timestamptz)::float8`, began)
			total, burst := 0, max(1, c.limit)
			for _, n := range started {
				total += n
			}
			most := c.limit*took + burst + float64(c.databases-1)*(burst+c.limit)
			if least := int(c.limit * seconds * 0.8); float64(total) > most || total < least {
				t.Errorf("%v runs started in %.1f seconds, want %d to %.1f", started, took, least, most)
			}
			if c.from == nil && c.limit >= 1 && slices.Min(started)*2 < slices.Max(started) {
				t.Errorf("%v runs started: one database has much more than another", started)
			}
		})
	}
}

// A limit of models is compared with the use of all databases.
func TestLimitsOfModelsHoldOverAllDatabasesOfAFleet(t *testing.T) {
	t.Parallel()
	n := func(i int64) *int64 { return &i }
	for name, c := range map[string]struct {
		limit   SpendingLimit
		limited bool
	}{
		"calls below":            {SpendingLimit{CallsPerHour: n(5)}, false},
		"calls at":               {SpendingLimit{CallsPerHour: n(4)}, true},
		"cost of the hour below": {SpendingLimit{MicrosPerHour: n(61)}, false},
		"cost of the hour at":    {SpendingLimit{MicrosPerHour: n(60)}, true},
		"cost of the day below":  {SpendingLimit{MicrosPerDay: n(261)}, false},
		"cost of the day at":     {SpendingLimit{MicrosPerDay: n(260)}, true},
		"tokens below":           {SpendingLimit{TokensPerHour: n(61)}, false},
		"tokens at":              {SpendingLimit{Tenant: "default", TokensPerHour: n(60)}, true},
		"another tenant":         {SpendingLimit{Tenant: "acme", CallsPerHour: n(1)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fleet := openFleet(t, 2)
			var run RunID
			var fence int64
			for _, s := range fleet {
				k := Key{Session: "s"}
				add(t, s, k, talk("m", 4)...)
				claim := must(s.Worker.Claim(t.Context(), must(s.Request(t.Context(), k, TriggerApplication, "", Options{}))(t), "w", time.Minute))(t)
				run, fence = claim.Run, claim.Fence
				exec(t, s, `INSERT INTO compactor.summary_calls (key, sid, run, fence, state, code, prompt_hash, attempts, input_tokens, output_tokens, cost_micros, ended_at)
				SELECT k::text, sid, id, 1, 'failed', 'timeout', '', 1, cost - 1, 1, cost, now() - age FROM compactor.runs,
				(VALUES (1, 10, interval '1 minute'), (2, 20, interval '58 minutes'), (3, 100, interval '23 hours')) x(k, cost, age)`)
			}
			s := fleet[1]
			noError(t, s.Operator.LimitSpending(t.Context(), c.limit)) // the first has none
			limited := func(when string, want bool) {
				t.Helper()
				_, _, _, err := s.Worker.AskSummary(t.Context(), SummaryCall{Run: run, Fence: fence, Key: when, PromptHash: "p"})
				if got := errors.Is(err, ErrSpendingLimit); got != want || !got && err != nil {
					t.Errorf("%s: %v, want a limit: %t", when, err, want)
				}
				exec(t, s, `DELETE FROM compactor.summary_calls WHERE state = 'asked'`)
				if l := must(s.Operator.Spending(t.Context(), c.limit.Tenant))(t)[0]; c.limit.Tenant != "acme" && l.Reached() != want {
					t.Errorf("%s: %+v, want reached: %t", when, l, want)
				}
			}
			limited("alone", false)
			exchange(t, fleet)
			limited("together", c.limited)
			pass(t, fleet, 59*time.Minute)
			limited("away for less than an hour", c.limited)
			pass(t, fleet, 2*time.Minute)
			limited("away for an hour", c.limited && c.limit.MicrosPerDay != nil)
			pass(t, fleet, 24*time.Hour)
			limited("away for a day", false)
		})
	}
}

// Starts count that happened while the other database was read regularly, and once.
func TestStartsElsewhereCountOnce(t *testing.T) {
	t.Parallel()
	fleet := openFleet(t, 2)
	for _, s := range fleet {
		limitRuns(t, s, "default", 1e-3) // so that no test run is long enough for one more to start
	}
	start := func(n int) {
		exec(t, fleet[0], `SELECT compactor.count_started_runs(array_fill('default'::text, ARRAY[$1::int]))`, n)
	}
	paid := func() int { // runs that the limit of the other database still pays for
		return one[int](t, fleet[1], `SELECT round(runs_per_second * extract(epoch FROM greatest(full_at, now()) - now()))::int FROM compactor.spending_limits`)
	}
	want := func(when string, want int) {
		t.Helper()
		exchange(t, fleet)
		equal(t, want, paid(), "%s: starts count", when)
	}
	start(7)
	want("before the first reading", 0)
	start(2)
	want("between two readings", 2)
	want("read again", 2)
	start(40)
	exec(t, fleet[1], `UPDATE compactor.used_elsewhere SET read_at = read_at - interval '1 minute'`)
	want("while it was away", 2)
	start(1)
	want("when it is back", 3)
	noError(t, fleet[0].Operator.LimitSpending(t.Context(), SpendingLimit{Tenant: "default"}))
	want("no limit there", 3)
	limitRuns(t, fleet[0], "default", 1e-3)
	start(1)
	want("a new limit there", 4)
	if l := must(fleet[1].Admin.Elsewhere(t.Context()))(t); len(l) != 1 || l[0].Database != "database 0" || l[0].Age > time.Minute {
		t.Errorf("%+v", l)
	}
	noError(t, fleet[1].Operator.LimitSpending(t.Context(), SpendingLimit{Tenant: "default"}))
	if l := must(fleet[1].Admin.Elsewhere(t.Context()))(t); len(l) != 0 {
		t.Errorf("%+v, want none without a limit", l)
	}
}

// Use that stays as it is is not written at each reading.
func TestUnchangedUseElsewhereIsWrittenNowAndThen(t *testing.T) {
	t.Parallel()
	fleet := openFleet(t, 2)
	limitRuns(t, fleet[0], "default", 1)
	exchange(t, fleet)
	row := func() string { return one[string](t, fleet[0], `SELECT ctid::text FROM compactor.used_elsewhere`) }
	first := row()
	exec(t, fleet[0], `UPDATE compactor.used_elsewhere SET read_at = now()`)
	second := row()
	exchange(t, fleet)
	if row() != second || first == second {
		t.Error("the row is written again")
	}
	pass(t, fleet, ElsewhereWritten+time.Second)
	aged := row()
	exchange(t, fleet)
	if row() == aged {
		t.Error("the row is not written after ten seconds")
	}
}
