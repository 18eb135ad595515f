package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// paged is a fixture with sessions that metadata decides, and a count of the runs that pages
// have ended.
type paged struct {
	*fixture
	dsn  string
	conn *pgx.Conn
	st   *pageCounter
}

// pageCounter notes the runs that ApplyPage ends, and what time the others have.
type pageCounter struct {
	store.Worker
	mu        sync.Mutex
	ended     []store.RunID
	deadlines []time.Time // of the runs that are loaded alone
}

func (p *pageCounter) Load(ctx context.Context, run store.RunID) (*store.Claim, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d, ok := ctx.Deadline(); ok {
		p.deadlines = append(p.deadlines, d)
	}
	return p.Worker.Load(ctx, run)
}

func (p *pageCounter) ApplyPage(ctx context.Context, changes []store.RunChange) ([]store.RunID, error) {
	applied, err := p.Worker.ApplyPage(ctx, changes)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = append(p.ended, applied...)
	return applied, err
}

func truncatingPolicy() policy.Policy {
	p := testPolicy()
	p.Pipeline = []policy.Step{{Strategy: "truncation"}}
	return p
}

func setupPaged(t *testing.T, p policy.Policy, c Config) *paged {
	t.Helper()
	f := &paged{dsn: database(t)}
	f.fixture = setupWith(t, f.dsn, p, c)
	f.n = 10_000 // numbers of one length, as what is written of them is counted
	f.st = &pageCounter{Worker: f.store.Worker}
	f.w.store = f.st
	f.conn = must(pgx.Connect(t.Context(), f.dsn))(t)
	t.Cleanup(func() { _ = f.conn.Close(context.WithoutCancel(t.Context())) })
	return f
}

// page executes runs as one task.
func (f *paged) page(runs ...store.RunID) {
	f.t.Helper()
	f.must(f.w.executePage(f.t.Context(), runs))
}

// end returns what a run left of its session in all tables, without ids and times.
func (f *paged) end(run store.RunID) map[string]any {
	f.t.Helper()
	out, err := endOf(f.t.Context(), f.conn, run)
	f.must(err)
	return out
}

func endOf(ctx context.Context, conn *pgx.Conn, run store.RunID) (out map[string]any, err error) {
	const query = `
		SELECT json_build_object(
			'session', to_jsonb(s) - '{sid,tenant,id,head_run,created_at,last_message_at,due_since,cooldown_until,view_changed_at,next_check_at}'::text[]
				|| jsonb_build_object('is_head', s.head_run = r.id, 'cools', s.cooldown_until IS NOT NULL, 'changed', s.view_changed_at IS NOT NULL,
					'check_minutes', round(extract(epoch FROM s.next_check_at - s.view_changed_at) / 60)),
			'run', to_jsonb(r) - '{id,sid,fence,base_run,requested_by,queued_at,started_at,ended_at,waiting_since,deliver_at,written_at,plan_us,total_us,sweep}'::text[]
				|| jsonb_build_object('base', r.base_run IS NULL, 'started', r.started_at IS NOT NULL, 'ended', r.ended_at IS NOT NULL),
			'exclusions', (SELECT jsonb_agg(to_jsonb(e) - '{run,sid}'::text[] ORDER BY e.seqs) FROM compactor.exclusions e WHERE e.run = r.id),
			'wakes', EXISTS (SELECT FROM compactor.outbox o WHERE o.sid = s.sid))
		FROM compactor.runs r JOIN compactor.sessions s USING (sid) WHERE r.id = $1`
	var raw []byte
	if err := conn.QueryRow(ctx, query, run).Scan(&raw); err != nil {
		return nil, err
	}
	return out, json.Unmarshal(raw, &out)
}

// pageKinds are the kinds of sessions that a sweep meets, by what makes them. paged: a page ends their runs, which the
// others leave. set: the database truncates them without a run in the queue.
var pageKinds = map[string]struct {
	make       func(f *paged, session string)
	paged, set bool
}{
	"plain": {func(*paged, string) {}, true, true},
	"compacted before": {func(f *paged, s string) {
		f.run(f.operator(s, store.Options{From: "view"}))
		f.append(s, "uauauauaua")
	}, true, true},
	"reported usage": {func(f *paged, s string) {
		_, err := f.store.ReportUsage(f.t.Context(), key(s), 320, 3)
		f.must(err)
	}, true, true},
	"estimated counts": {func(f *paged, s string) {
		f.must(f.add(s, chat.Message{Role: chat.RoleUser, Content: chat.TextContent("x")}, "chars4"))
	}, true, true},
	"a reported event": {func(f *paged, s string) {
		_, err := f.conn.Exec(f.t.Context(), `SELECT compactor.report_state(NULL, $1, '{"overflow": true}')`, s)
		f.must(err)
	}, true, true},
	"a child that was closed": {func(f *paged, s string) {
		_, err := f.conn.Exec(f.t.Context(), `UPDATE compactor.sessions SET signals = 16, new_signals = 16 WHERE id = $1`, s)
		f.must(err)
	}, true, true},
	"an open tool call": {func(f *paged, s string) { f.append(s, "uc") }, true, false},
	"signed reasoning": {func(f *paged, s string) {
		f.must(f.add(s, sessiontest.Sign(sessiontest.Says("thought"), 0, 1), "test"))
	}, false, false},
	"a pin":                 {func(f *paged, s string) { f.must(f.store.Pin(f.t.Context(), key(s), f.second(s))) }, false, false},
	"a result without call": {func(f *paged, s string) { f.append(s, "tu") }, false, false},
	"an undo before": {func(f *paged, s string) {
		run := f.operator(s, store.Options{From: "view"})
		f.run(run)
		_, err := f.store.Undo(f.t.Context(), key(s), run, false, "test")
		f.must(err)
		f.append(s, "ua")
	}, false, false},
	"only system messages": {func(f *paged, s string) { f.append(s, "ssssssssssssu") }, false, false},
}

// add appends a message of 200 tokens.
func (f *paged) add(session string, m chat.Message, counter string) error {
	f.n++
	m.ID = fmt.Sprint("added-", f.n)
	_, _, err := f.store.Append(f.t.Context(), key(session), "", []store.NewMessage{{Message: m, Tokens: 200, Counter: counter}})
	return err
}

// second returns the id of the second message of a session.
func (f *paged) second(session string) (id string) {
	f.t.Helper()
	f.must(f.conn.QueryRow(f.t.Context(), `SELECT m.id FROM compactor.message_log m JOIN compactor.sessions s USING (sid) WHERE s.id = $1 AND seq = 2`, session).Scan(&id))
	return id
}

// transcript returns random turns above the start.
func transcript(r *rand.Rand) string {
	out := "s"
	for len(out) < 12+r.IntN(20) {
		out += []string{"ua", "ucta", "uctcta", "uaa", "uu"}[r.IntN(5)]
	}
	return out + "ua"
}

// Runs that a page, or the database, ends together leave every table as if they had been executed one by one, and what
// they leave out is executed all the same.
func TestRunsThatEndTogetherEndAsSingleOnesDo(t *testing.T) {
	t.Parallel()
	f := setupPaged(t, truncatingPolicy(), Config{})
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test
	for kind, k := range pageKinds {
		for i := range 3 {
			roles := transcript(r)
			for _, how := range []string{"alone", "paged", "known", "swept"} { // names of one length, as replacements repeat them
				session := fmt.Sprintf("%s %d %s", kind, i, how)
				f.append(session, roles)
				k.make(f, session)
			}
		}
	}
	must(f.conn.Exec(t.Context(), `DELETE FROM compactor.outbox USING compactor.sessions s WHERE s.sid = outbox.sid AND s.id ~ '(known|swept)$'`))(t)
	runs := map[string]store.RunID{}
	var page []store.RunID
	for _, run := range f.sweep() {
		session := f.row(run).Session
		runs[session] = run
		switch {
		case strings.HasSuffix(session, "paged"):
			page = append(page, run)
		case strings.HasSuffix(session, "swept"):
			must(f.conn.Exec(t.Context(), `DELETE FROM compactor.runs WHERE id = $1`, run))(t)
		default:
			f.run(run)
		}
	}
	f.page(page...)
	queued, _, err := sweepTogether(t.Context(), f.store, f.w.planner, "", f.w.config.Name)
	f.must(err)
	for _, run := range queued {
		f.run(run)
	}
	for kind, k := range pageKinds {
		for i := range 3 {
			session := fmt.Sprintf("%s %d ", kind, i)
			if _, ok := runs[session+"alone"]; !ok {
				t.Errorf("%s is not due", session)
				continue
			}
			if diff := cmp.Diff(f.end(runs[session+"alone"]), f.end(runs[session+"paged"])); diff != "" {
				t.Errorf("%s (-single +page):\n%s", session, diff)
			}
			if got := slices.Contains(f.st.ended, runs[session+"paged"]); got != k.paged {
				t.Errorf("%s: ended together: %t, want %t", session, got, k.paged)
			}
			swept := f.swept(session + "swept")
			if diff := cmp.Diff(f.end(f.swept(session+"known")), f.end(swept)); diff != "" {
				t.Errorf("%s (-single +set):\n%s", session, diff)
			}
			if got := !slices.Contains(queued, swept); got != k.set {
				t.Errorf("%s: truncated without a run in the queue: %t", session, got)
			}
		}
	}
}

// What triggers look at is the same, too.
func TestRunsOfAPageLeaveWhatTriggersLookAt(t *testing.T) {
	t.Parallel()
	p := truncatingPolicy()
	p.Triggers = []policy.Trigger{
		{Name: "every", When: "time_since_run >= 6 * hour"},
		{Name: "budget", When: "tokens > 1200"},
		{Name: "old", When: "age >= 1 * day"},
		{Name: "idle", When: "idle >= 2 * hour"},
	}
	f := setupPaged(t, p, Config{})
	for _, how := range []string{"single", "page"} {
		f.append(how, "suauauauauauauaua")
	}
	for _, run := range f.sweep() {
		if f.row(run).Session == "page" {
			f.page(run)
		} else {
			f.run(run)
		}
	}
	rows := must(f.store.Operator.Runs(t.Context(), store.RunFilter{Limit: 9}))(t)
	if len(rows) != 2 || len(f.st.ended) != 1 || rows[0].Outcome != OutcomeApplied {
		t.Fatalf("%d of %+v were ended together", len(f.st.ended), rows)
	}
	got := f.end(rows[0].ID)
	if diff := cmp.Diff(got, f.end(rows[1].ID)); diff != "" {
		t.Error(diff)
	}
	if s := got["session"].(map[string]any); s["check_minutes"] != 120.0 || s["changed"] != true || s["due_since_run"] != 21_600.0 {
		t.Errorf("%v", s)
	}
	if r := got["run"].(map[string]any); r["fired"] != "budget" {
		t.Errorf("%v", r)
	}
}

// A run that was postponed and then makes its change has no error any more.
func TestARunOfAPageThatWasPostponedEndsWithoutAnError(t *testing.T) {
	t.Parallel()
	f := setupPaged(t, truncatingPolicy(), Config{})
	for _, how := range []string{"single", "page"} {
		f.append(how, "suauauauauauauaua")
	}
	rows := map[string]store.RunID{}
	for _, run := range f.sweep() {
		f.must(f.store.Worker.Requeue(t.Context(), run, 0, 0, true, "database", "it was away"))
		rows[f.row(run).Session] = run
	}
	f.run(rows["single"])
	f.page(rows["page"])
	if len(f.st.ended) != 1 {
		t.Fatal("the page did not end its run")
	}
	if diff := cmp.Diff(f.end(rows["single"]), f.end(rows["page"])); diff != "" {
		t.Errorf("(-single +page):\n%s", diff)
	}
}

// Runs of a page that wait for one another have as much time each as if they came alone.
func TestEachRunOfAPageHasItsPartOfTheTime(t *testing.T) {
	t.Parallel()
	f := setupPaged(t, testPolicy(), Config{Concurrency: 1})
	for i := range 3 {
		f.append(fmt.Sprint("s", i), "suauctauuctauauauaua")
	}
	runs := f.sweep()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour)
	defer cancel()
	f.must(f.w.executePage(ctx, runs))
	end, _ := ctx.Deadline()
	if d := f.st.deadlines; len(d) != 3 || end.Sub(d[0]) < time.Hour {
		t.Errorf("runs may take until %v of a task that ends at %s, want a third of its time for each", d, end)
	}
}

// What happens to a session while its page is decided takes its run out of the page.
func TestASessionThatChangesWhileItsPageIsDecidedIsDecidedAgain(t *testing.T) {
	t.Parallel()
	f := setupPaged(t, truncatingPolicy(), Config{})
	meanwhile := map[string]func(s string){
		"a message": func(s string) { f.append(s, "u") },
		"a pin":     func(s string) { f.must(f.store.Pin(t.Context(), key(s), f.second(s))) },
		"a replacement of the view": func(s string) {
			must(f.conn.Exec(t.Context(), `SELECT compactor.replace_view(NULL, $1, 0, '[{"role":"user","content":"anew"}]'::json)`, s))(t)
		},
		"nothing": func(string) {},
	}
	for name := range meanwhile {
		f.append(name, "suauauauauauauaua")
	}
	runs := f.sweep()
	var once sync.Once
	f.at(stepChecked, func() {
		once.Do(func() {
			for name, happen := range meanwhile {
				happen(name)
			}
		})
	})
	f.page(runs...)
	if got := len(f.st.ended); got != 1 {
		t.Errorf("%d runs were ended together, want that of the session to which nothing happened", got)
	}
	for _, run := range runs {
		if row := f.row(run); row.EndedAt == nil {
			t.Errorf("the run of %s is %s", row.Session, row.Status)
		}
	}
	if got := f.view("a message"); !strings.HasSuffix(got, "auau") && !strings.HasSuffix(got, "uau") {
		t.Errorf("the message that came meanwhile is not in the view %s", got)
	}
	var pinned bool
	f.must(f.conn.QueryRow(t.Context(), `SELECT live @> 2::bigint FROM compactor.sessions WHERE id = 'a pin'`).Scan(&pinned))
	if !pinned {
		t.Error("the pin that came meanwhile is out of the view")
	}
}

// The views of a page are in memory together, so a large one goes alone.
func TestAPageLeavesALargeViewToASingleRun(t *testing.T) {
	t.Parallel()
	f := setupPaged(t, truncatingPolicy(), Config{})
	f.append("large", "s"+strings.Repeat("ua", 2500))
	f.append("small", "suauauauauauauaua")
	runs := f.sweep()
	f.page(runs...)
	for _, run := range runs {
		row := f.row(run)
		if together := slices.Contains(f.st.ended, run); row.Outcome != OutcomeApplied || together != (row.Session == "small") {
			t.Errorf("the run of %s: %s, together with others: %t", row.Session, row.Outcome, together)
		}
	}
}
