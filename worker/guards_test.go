package worker

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
)

// clocked is a fixture whose database has a clock that tests set.
type clocked struct {
	*fixture
	conn *pgx.Conn
	ran  []string // the outcomes of all runs
}

func setupClock(t *testing.T, change func(p *policy.Policy)) *clocked {
	t.Helper()
	dsn := database(t)
	p := testPolicy()
	change(&p)
	noError(t, p.Validate())
	conn := must(pgx.Connect(t.Context(), dsn))(t)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return &clocked{fixture: setupWith(t, dsn, p, Config{}), conn: conn}
}

func (f *clocked) exec(sql string, args ...any) {
	f.t.Helper()
	must(f.conn.Exec(f.t.Context(), sql, args...))(f.t)
}

// pass lets time pass: everything becomes that much older.
func (f *clocked) pass(d time.Duration) {
	f.t.Helper()
	f.exec(`UPDATE compactor.runs SET ended_at = ended_at - $1::interval, started_at = started_at - $1::interval WHERE ended_at IS NOT NULL`, d)
	f.exec(`UPDATE compactor.sessions SET cooldown_until = cooldown_until - $1::interval, last_message_at = last_message_at - $1::interval,
		created_at = created_at - $1::interval, view_changed_at = view_changed_at - $1::interval, next_check_at = next_check_at - $1::interval`, d)
}

// work does what the scheduler does and the runs that it queues, until it queues none, and
// returns their outcomes. In a session that a guard holds it must not go on for ever.
func (f *clocked) work() string {
	f.t.Helper()
	var out []string
	for range 10 {
		must(f.store.Scheduler.CheckTimes(f.t.Context(), 10))(f.t)
		events := f.relay()
		found := f.forgotten()
		events = append(events, found...)
		if len(events) == 0 {
			f.ran = append(f.ran, out...)
			return strings.Join(out, " ")
		}
		for _, d := range events {
			row := f.run(d.Run)
			out = append(out, row.Outcome)
		}
	}
	f.t.Fatalf("runs without end: %v", out)
	return ""
}

// want works and compares the outcomes.
func (f *clocked) want(what, outcomes string) {
	f.t.Helper()
	if got := f.work(); got != outcomes {
		f.t.Fatalf("%s: runs ended as %q, want %q", what, got, outcomes)
	}
}

// over brings the session "s" above its start of 1,000 tokens, with turns that can go.
func (f *clocked) over() { f.append("s", "uauauauaua") }

func TestGuardsHoldASessionUntilTheTimeIsOver(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(g *policy.Guards)
		runs   int // that are applied, a minute apart
		code   string
		until  time.Duration // after the last one
	}{
		"an interval":                     {func(g *policy.Guards) { g.MinInterval = 10 * time.Minute }, 1, OutcomeMinInterval, 10 * time.Minute},
		"so many an hour":                 {func(g *policy.Guards) { g.MaxPerHour = 3 }, 3, OutcomeMaxPerHour, 58 * time.Minute},
		"so many a day":                   {func(g *policy.Guards) { g.MaxPerDay = 2 }, 2, OutcomeMaxPerDay, 24*time.Hour - time.Minute},
		"the longest of an hour and more": {func(g *policy.Guards) { g.MinInterval, g.MaxPerHour = 50*time.Minute, 1 }, 1, OutcomeMaxPerHour, time.Hour},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setupClock(t, func(p *policy.Policy) { tt.change(&p.Guards) })
			f.append("s", "s")
			for i := range tt.runs {
				if i > 0 {
					f.pass(time.Minute)
				}
				f.over()
				f.want(fmt.Sprint("run ", i+1), OutcomeApplied)
			}
			f.over()
			f.want("the next one", tt.code)
			f.append("s", "ua")
			f.want("while it is held, whatever comes", "")
			if row := f.run(f.sweep()[0]); row.Outcome != tt.code {
				t.Errorf("a sweep ends %s, want %s", row.Outcome, tt.code)
			}
			f.pass(tt.until - time.Minute)
			f.want("before the time is over", "")
			f.pass(time.Minute)
			f.want("when it is over", OutcomeApplied)
		})
	}
}

func TestAnOperatorsRunAndARepairAreNotHeld(t *testing.T) {
	t.Parallel()
	f := setupClock(t, func(p *policy.Policy) { p.Guards.MaxPerDay, p.Guards.MidTurn = 1, policy.GuardWait })
	f.append("s", "suauauauauaua")
	f.want("the first run", OutcomeApplied)
	f.over()
	f.want("the second one", OutcomeMaxPerDay)
	if row := f.run(f.operator("s", store.Options{From: "view"})); row.Outcome != OutcomeApplied {
		t.Errorf("an operator's run ended %s", row.Outcome)
	}
	f.append("s", "tu")
	f.want("a repair of the view", OutcomeRepaired)
}

func TestASessionWhoseFloorIsAboveItsStartIsQuarantined(t *testing.T) {
	t.Parallel()
	for name, transcript := range map[string]string{"nothing can go": "sssssssssssu", "something can": "sssssssssssauau"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setupClock(t, func(p *policy.Policy) { p.Guards.MinGainShare = 0 })
			f.append("s", transcript)
			f.want("the first run", OutcomeFloorAboveTrigger)
			state := func() string {
				t.Helper()
				x := must(f.store.Operator.Explain(t.Context(), key("s")))(t)
				return fmt.Sprint(x.State, " ", x.Due, " ", x.QuarantineReason)
			}
			if got := state(); !strings.HasPrefix(got, "quarantined false 1,200 tokens are left that must stay, above the start of 1,000") {
				t.Errorf("its state is %s", got)
			}
			must(f.store.ReportUsage(t.Context(), key("s"), 50_000, 0))(t)
			f.want("a report is no news", "")
			if ids := f.sweep(); len(ids) != 0 {
				t.Errorf("a sweep takes it: %v", ids)
			}
			f.append("s", "a")
			if got := state(); strings.Contains(got, "quarantined") {
				t.Errorf("after a message its state is %s", got)
			}
		})
	}
}

func TestAnotherPolicyEndsAQuarantine(t *testing.T) {
	t.Parallel()
	f := setupClock(t, func(*policy.Policy) {})
	f.append("s", "sssssssssssu")
	f.want("the first run", OutcomeFloorAboveTrigger)
	p := testPolicy()
	p.StartTokens, p.TargetTokens = 1100, 1050
	f.w.planner = testPlanner(p)
	f.must(f.store.Scheduler.SavePolicy(t.Context(), p.FleetHash(), []byte(`{}`), []store.Threshold{{DueTokens: 1100}}))
	for state := ""; state != store.RefreshDone && state != store.RefreshIdle; {
		var err error
		if _, state, err = f.store.Scheduler.RefreshSessions(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
	}
	f.want("under another policy", OutcomeFloorAboveTrigger)
	f.want("without news", "")
}

// Messages that come while a run plans are news.
func TestAQuarantineIsNotSetOverNews(t *testing.T) {
	t.Parallel()
	f := setupClock(t, func(*policy.Policy) {})
	f.append("s", "sssssssssssu")
	id := f.event()
	f.at(stepPlanned, func() {
		f.append("s", "au")
	})
	if row := f.run(id); row.Outcome != OutcomeFloorAboveTrigger {
		t.Fatalf("ended %s", row.Outcome)
	}
	if x, err := f.store.Operator.Explain(t.Context(), key("s")); err != nil || x.State != "" {
		t.Errorf("its state is %s, %v", x.State, err)
	}
}

func TestARunWaitsForTheAgent(t *testing.T) {
	t.Parallel()
	wait := policy.GuardWait
	tests := map[string]struct {
		midTurn, tools string
		transcript     string // above the start
		outcome        string
		then           []string // what is appended next, and the outcomes
	}{
		"not by default":                        {transcript: "suauauauauaua" + "u", outcome: OutcomeApplied},
		"the user's message":                    {midTurn: wait, transcript: "suauauauauau", outcome: OutcomeMidTurn, then: []string{"a", OutcomeApplied}},
		"a turn that is complete":               {midTurn: wait, transcript: "suauauauauaua", outcome: OutcomeApplied},
		"a call":                                {midTurn: wait, transcript: "suauauauauauc", outcome: OutcomeMidTurn, then: []string{"t", "", "a", OutcomeApplied}},
		"a result":                              {midTurn: wait, transcript: "suauauauauauct", outcome: OutcomeMidTurn, then: []string{"ct", "", "a", OutcomeApplied}},
		"another message of the user meanwhile": {midTurn: wait, transcript: "suauauauauau", outcome: OutcomeMidTurn, then: []string{"u", "", "a", OutcomeApplied}},
		"only tools":                            {tools: wait, transcript: "suauauauauau", outcome: OutcomeApplied},
		"tools, and a call":                     {tools: wait, transcript: "suauauauauauc", outcome: OutcomeOpenToolLoop, then: []string{"t", "", "a", OutcomeApplied}},
		"tools, and a call passed by":           {tools: wait, transcript: "suauauauauauc", outcome: OutcomeOpenToolLoop, then: []string{"u", OutcomeApplied}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setupClock(t, func(p *policy.Policy) {
				p.Guards.MidTurn, p.Guards.OpenToolCall = max(tt.midTurn, policy.GuardCompact), max(tt.tools, policy.GuardCompact)
			})
			f.append("s", tt.transcript)
			f.want("the first run", tt.outcome)
			for i := 0; i < len(tt.then); i += 2 {
				f.append("s", tt.then[i])
				f.want("after "+tt.then[i], tt.then[i+1])
			}
		})
	}
}

// Above the window the agent could not answer.
func TestARunDoesNotWaitAboveTheWindow(t *testing.T) {
	t.Parallel()
	for tokens, want := range map[chat.Tokens]string{1249: "", 1250: "", 1251: OutcomeApplied} {
		f := setupClock(t, func(p *policy.Policy) { p.WindowTokens, p.Guards.MidTurn = 1250, policy.GuardWait })
		f.append("s", "suauauauauau")
		f.want("in the window", OutcomeMidTurn)
		must(f.store.ReportUsage(t.Context(), key("s"), tokens, 0))(t)
		f.want(fmt.Sprint(tokens, " of 1,250 tokens"), want)
	}
}

func TestASessionThatAServiceManagesIsLeftAlone(t *testing.T) {
	t.Parallel()
	labels := func(f *clocked, labels map[string]string) {
		t.Helper()
		f.must(f.store.SetLabels(t.Context(), key("s"), labels))
	}
	byPolicy := setupClock(t, func(p *policy.Policy) { p.Guards.ServiceManaged = true })
	byPolicy.append("s", "suauauauauaua")
	byPolicy.want("by its policy", OutcomeServiceManaged)
	byPolicy.append("s", "tuauaua") // and invalid
	byPolicy.want("once is enough", "")

	f := setupClock(t, func(*policy.Policy) {})
	labels(f, map[string]string{"service_managed": "true"})
	f.append("s", "suauauauauaua")
	f.want("by its label", OutcomeServiceManaged)
	f.append("s", "uaua")
	f.want("once is enough", "")
	if ids := f.sweep(); len(ids) != 0 {
		t.Errorf("a sweep takes it: %v", ids)
	}
	labels(f, map[string]string{"service_managed": "true", "agent": "x"})
	f.want("with other labels", OutcomeServiceManaged)
	if row := f.run(f.operator("s", store.Options{From: "view"})); row.Outcome != OutcomeApplied {
		t.Errorf("an operator's run ended %s", row.Outcome)
	}
	f.over()
	f.want("after an operator's run", "")
	labels(f, map[string]string{"agent": "x"})
	f.want("without the label", OutcomeApplied)
}

// The database is asked for the latest runs only where the policy counts them.
func TestRunsAreCountedOnlyWhereThePolicyAsks(t *testing.T) {
	t.Parallel()
	for rates, want := range map[bool]int{false: 0, true: 1} {
		f := setupClock(t, func(p *policy.Policy) {
			if rates {
				p.Guards.MaxPerDay = 5
			}
		})
		counting := &countingStore{Store: f.store.Worker}
		f.w.store = counting
		f.append("s", "suauauauauaua")
		f.want("a run", OutcomeApplied)
		if counting.n != want {
			t.Errorf("rates %t: the latest runs were read %d times, want %d", rates, counting.n, want)
		}
	}
}

type countingStore struct {
	Store
	n int
}

func (c *countingStore) AppliedAges(ctx context.Context, sid int64, runs int, age time.Duration) ([]time.Duration, error) {
	c.n++
	return c.Store.AppliedAges(ctx, sid, runs, age)
}
