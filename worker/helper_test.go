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

// failer is a testing.TB or a rapid.T.
type failer interface {
	Helper()
	Fatal(args ...any)
}

// must returns the result of a call, which fails the test if it has an error.
func must[T any](v T, err error) func(failer) T {
	return func(t failer) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func noError(t failer, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openStore(t testing.TB, dsn string) *store.Store {
	t.Helper()
	st := must(store.Open(t.Context(), store.Config{URL: dsn, MaxConns: 24}))(t)
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
	f.must(err)
	f.w = New(f.store.Worker, testPlanner(p), c)
	t.Cleanup(f.sound)
	return f
}

func (f *fixture) must(err error) {
	f.t.Helper()
	noError(f.t, err)
}

// session returns the row of a session.
func (f *fixture) session(name string) store.SessionRow {
	f.t.Helper()
	return must(f.store.Session(f.t.Context(), key(name)))(f.t)
}

// write appends messages to a session.
func (f *fixture) write(session string, msgs ...store.NewMessage) {
	f.t.Helper()
	_, _, err := f.store.Append(f.t.Context(), key(session), "", msgs)
	f.must(err)
}

// stored returns the view of a session.
func (f *fixture) stored(session string) []store.Stored {
	f.t.Helper()
	view, _, err := f.store.View(f.t.Context(), key(session))
	f.must(err)
	return view
}

// replace replaces the view of session s by what change makes of its messages.
func (f *fixture) replace(change func(view []store.NewMessage) []store.NewMessage) {
	f.t.Helper()
	view, revision, err := f.store.View(f.t.Context(), key("s"))
	f.must(err)
	msgs := make([]store.NewMessage, len(view))
	for i, m := range view {
		msgs[i].Message = m.Message
	}
	must(f.store.Replace(f.t.Context(), key("s"), revision, change(msgs), "test"))(f.t)
}

// undo undoes a run of session s.
func (f *fixture) undo(run store.RunID) {
	f.t.Helper()
	must(f.store.Undo(f.t.Context(), key("s"), run, false, "test"))(f.t)
}

// at calls do whenever a run comes to a step.
func (f *fixture) at(step string, do func()) {
	f.w.failpoint = func(s string) {
		if s == step {
			do()
		}
	}
}

// relay queues the event runs of the sessions that are due.
func (f *fixture) relay() []store.Delivery {
	f.t.Helper()
	return must(f.store.Scheduler.Relay(f.t.Context(), 0, 0, 10, time.Minute))(f.t)
}

// forgotten queues runs for the sessions that are due without one.
func (f *fixture) forgotten() []store.Delivery {
	f.t.Helper()
	return must(f.store.Scheduler.Forgotten(f.t.Context(), 10, time.Minute))(f.t)
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
	f.write(session, msgs...)
}

// pin pins a message of session s.
func (f *fixture) pin(id string) {
	f.t.Helper()
	f.must(f.store.Pin(f.t.Context(), key("s"), id))
}

// event queues the event run of the one session that is due, as the relay does.
func (f *fixture) event() store.RunID {
	f.t.Helper()
	runs := must(f.store.Scheduler.Relay(f.t.Context(), 0, 0, 10, time.Minute))(f.t)
	if len(runs) != 1 {
		f.t.Fatalf("the relay queued %d runs, want 1", len(runs))
	}
	return runs[0].Run
}

// sweep queues nightly runs for everything that is due.
func (f *fixture) sweep() []store.RunID {
	f.t.Helper()
	f.n++
	must(f.store.Scheduler.FireTick(f.t.Context(), fmt.Sprintf("sweep-%d", f.n), time.Unix(int64(f.n), 0), "test"))(f.t)
	sweeps, err := f.store.Scheduler.OpenSweeps(f.t.Context())
	if err != nil || len(sweeps) == 0 {
		f.t.Fatalf("open sweeps: %v, %v", sweeps, err)
	}
	var ids []store.RunID
	for done := false; !done; {
		var page []store.Delivery
		page, done, err = f.store.Scheduler.SweepPage(f.t.Context(), sweeps[0].ID, 100, time.Minute)
		f.must(err)
		for _, d := range page {
			ids = append(ids, d.Run)
		}
	}
	return ids
}

// late queues an automatic run of the session that is due, which a worker has given back: others run before it.
func (f *fixture) late() store.RunID {
	f.t.Helper()
	id := f.sweep()[0]
	c := must(f.store.Worker.Claim(f.t.Context(), id, "another", time.Minute))(f.t)
	f.must(f.store.Worker.Requeue(f.t.Context(), id, c.Fence, 0, false, "stopping", ""))
	return id
}

func (f *fixture) operator(session string, o store.Options) store.RunID {
	f.t.Helper()
	id := must(f.store.Request(f.t.Context(), key(session), store.TriggerOperator, "test", o))(f.t)
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
	row := must(f.store.Run(f.t.Context(), id))(f.t)
	return row
}

// view returns the roles of the session's view, in the letters of append; S and I are
// summaries and replacements. It checks that the view is valid.
func (f *fixture) view(session string) string {
	f.t.Helper()
	row := must(f.store.Session(f.t.Context(), key(session)))(f.t)
	metas := must(f.store.Operator.ViewMetas(f.t.Context(), row.SID))(f.t)
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

// sound checks the invariants over the whole database, as each test does at its end.
func (f *fixture) sound() {
	f.t.Helper()
	for _, x := range must(f.store.Admin.Audit(storetest.Context(f.t)))(f.t) {
		f.t.Errorf("broken: %s: %s", x.Check, x)
	}
}
