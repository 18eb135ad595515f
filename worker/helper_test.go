package worker

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sessionstore/compactor/migrations"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/store/storetest"
	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// longTests has the recorded sessions and crashes taken in full, which takes minutes.
var longTests = os.Getenv("LONG_TESTS") != ""

// TestMain lets this binary be the worker process that crash tests kill.
func TestMain(m *testing.M) {
	if step := os.Getenv(envCrashAt); step != "" {
		os.Exit(crashMain(step))
	}
	storetest.Draw()
	os.Exit(m.Run())
}

func database(t testing.TB) string {
	t.Helper()
	return storetest.DB(t, fmt.Sprintf("worker-%s-%d", migrations.Fingerprint(), storetest.Partitions()), func(ctx context.Context, dsn string) error {
		_, err := migrations.UpPartitioned(ctx, dsn, migrations.DefaultSchema, storetest.Partitions())
		return err
	})
}

func openStore(t testing.TB, dsn string) *store.Store {
	t.Helper()
	st, err := store.Open(t.Context(), store.Config{URL: dsn, MaxConns: 24})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	return st
}

// testPolicy starts at 1,000 tokens and compacts to 600; it gains 50 or nothing.
func testPolicy() policy.Policy {
	p := policy.Default()
	p.StartTokens, p.TargetTokens, p.MinGainTokens = 1000, 600, 50
	p.EstimateMargin = 0
	p.Pipeline = []policy.Step{{Strategy: "tool_result", Params: map[string]any{"keep_last_tool_call_groups": 1}}, {Strategy: "truncation"}}
	return p
}

func testPlanner(p policy.Policy) *Planner {
	return &Planner{
		Policy: p, Registry: builtin.Registry(), Window: tokens.Window,
		Counter: func(string) plan.Counter { return tokens.Chars4{} },
	}
}

// fixture is a worker without a queue, on a database of its own.
type fixture struct {
	t     testing.TB
	store *store.Store
	w     *Worker
	n     int
}

func setup(t testing.TB) *fixture {
	t.Helper()
	return setupWith(t, database(t), testPolicy(), Config{})
}

func setupWith(t testing.TB, dsn string, p policy.Policy, c Config) *fixture {
	t.Helper()
	f := &fixture{t: t, store: openStore(t, dsn)}
	bounds := p.Bounds("", tokens.Window)
	err := f.store.Scheduler.SavePolicy(t.Context(), p.FleetHash(), []byte(`{}`), []store.Threshold{{DueTokens: bounds.Tokens, Counts: store.Counts(bounds.Counts), EstimateMargin: p.EstimateMargin}})
	if err != nil {
		t.Fatal(err)
	}
	f.w = New(f.store.Worker, testPlanner(p), c)
	return f
}

func key(session string) store.Key { return store.Key{Session: session} }

// append adds messages of 100 tokens each, written as in transcript: s u a t for a
// role, c for an assistant message with a call, whose id t answers.
func (f *fixture) append(session, transcript string) {
	f.t.Helper()
	var msgs []store.NewMessage
	for _, r := range transcript {
		f.n++
		m := chat.Message{ID: fmt.Sprintf("%s-%d", session, f.n), Content: chat.TextContent(fmt.Sprintf("message %d", f.n))}
		switch r {
		case 's':
			m.Role = chat.RoleSystem
		case 'u':
			m.Role = chat.RoleUser
		case 'a':
			m.Role = chat.RoleAssistant
		case 'c':
			m.Role = chat.RoleAssistant
			m.ToolCalls = []chat.ToolCall{{ID: "call", Type: "function", Name: "look", Arguments: "{}"}}
		case 't':
			m.Role, m.ToolCallID = chat.RoleTool, "call"
		}
		msgs = append(msgs, store.NewMessage{Message: m, Tokens: 100, Counter: "test"})
	}
	if _, _, err := f.store.Append(f.t.Context(), key(session), "", msgs); err != nil {
		f.t.Fatal(err)
	}
}

// pin pins a message of session s.
func (f *fixture) pin(id string) {
	f.t.Helper()
	if err := f.store.Pin(f.t.Context(), key("s"), id); err != nil {
		f.t.Fatal(err)
	}
}

// event queues the event run of the one session that is due, as the relay does.
func (f *fixture) event() store.RunID {
	f.t.Helper()
	runs, err := f.store.Scheduler.Relay(f.t.Context(), 0, 0, 10, time.Minute)
	if err != nil {
		f.t.Fatal(err)
	}
	if len(runs) != 1 {
		f.t.Fatalf("the relay queued %d runs, want 1", len(runs))
	}
	return runs[0].Run
}

// sweep queues nightly runs for everything that is due.
func (f *fixture) sweep() []store.RunID {
	f.t.Helper()
	f.n++
	if _, err := f.store.Scheduler.FireTick(f.t.Context(), fmt.Sprintf("sweep-%d", f.n), time.Unix(int64(f.n), 0), "test"); err != nil {
		f.t.Fatal(err)
	}
	sweeps, err := f.store.Scheduler.OpenSweeps(f.t.Context())
	if err != nil || len(sweeps) == 0 {
		f.t.Fatalf("open sweeps: %v, %v", sweeps, err)
	}
	var ids []store.RunID
	for done := false; !done; {
		var page []store.Delivery
		page, done, err = f.store.Scheduler.SweepPage(f.t.Context(), sweeps[0].ID, 100, time.Minute)
		if err != nil {
			f.t.Fatal(err)
		}
		for _, d := range page {
			ids = append(ids, d.Run)
		}
	}
	return ids
}

func (f *fixture) operator(session string, o store.Options) store.RunID {
	f.t.Helper()
	id, err := f.store.Request(f.t.Context(), key(session), store.TriggerOperator, "test", o)
	if err != nil {
		f.t.Fatal(err)
	}
	return id
}

// run executes a run and returns its row.
func (f *fixture) run(id store.RunID) store.RunRow {
	f.t.Helper()
	if err := f.w.execute(f.t.Context(), id); err != nil {
		f.t.Fatalf("run %d: %v", id, err)
	}
	return f.row(id)
}

func (f *fixture) row(id store.RunID) store.RunRow {
	f.t.Helper()
	row, err := f.store.Run(f.t.Context(), id)
	if err != nil {
		f.t.Fatal(err)
	}
	return row
}

// view returns the roles of the session's view, in the letters of append; S and I are
// summaries and replacements. It checks that the view is valid.
func (f *fixture) view(session string) string {
	f.t.Helper()
	row, err := f.store.Session(f.t.Context(), key(session))
	if err != nil {
		f.t.Fatal(err)
	}
	metas, err := f.store.Operator.ViewMetas(f.t.Context(), row.SID)
	if err != nil {
		f.t.Fatal(err)
	}
	if faults := chat.Check(metas); len(faults) > 0 {
		f.t.Errorf("the view of %s is not valid: %v", session, faults)
	}
	var b strings.Builder
	for _, m := range metas {
		switch {
		case m.Kind == chat.KindSummary:
			b.WriteByte('S')
		case m.Kind == chat.KindReplacement:
			b.WriteByte('I')
		case m.Role == chat.RoleAssistant && m.Calls > 0:
			b.WriteByte('c')
		default:
			b.WriteByte(string(m.Role)[0])
		}
	}
	return b.String()
}

// sound checks the invariants over the whole database.
func (f *fixture) sound() {
	f.t.Helper()
	findings, err := f.store.Admin.Audit(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	for _, x := range findings {
		f.t.Errorf("broken: %s: %s", x.Check, x)
	}
}
