package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/chat"
)

// eager keeps in a table of its own the sessions as they would be if every change of policies
// rewrote all of them at once.
type eager struct {
	t *testing.T
	s *Store
}

func newEager(t *testing.T, s *Store) eager {
	t.Helper()
	exec(t, s, `CREATE TABLE eager AS SELECT sid, s, 0::bigint AS version, false AS rewritten FROM compactor.sessions s`)
	return eager{t, s}
}

// take stores the present state of the sessions.
func (e eager) take(where string, args ...any) {
	e.t.Helper()
	exec(e.t, e.s, `UPDATE eager SET s = s.* FROM compactor.sessions s WHERE s.sid = eager.sid AND `+where, args...)
}

// follow rewrites the sessions that have other thresholds than those in force, and notes for
// which that shows before their next write.
func (e eager) follow() {
	e.t.Helper()
	exec(e.t, e.s, `
		UPDATE eager e SET s = n.s, version = n.version, rewritten = n.rewritten FROM (
			SELECT x.sid, r.s, y.xmin::text::bigint AS version, (w.policy, w.due, w.state, w.quarantine_reason, w.hold_code, w.cooldown_until, w.next_check_at, w.timed, w.due_idle, w.due_age, w.due_since_run)
				IS DISTINCT FROM ((x.s).policy, (x.s).due, (x.s).state, (x.s).quarantine_reason, (x.s).hold_code, (x.s).cooldown_until, (x.s).next_check_at, (x.s).timed, (x.s).due_idle, (x.s).due_age, (x.s).due_since_run) AS rewritten
			FROM eager x JOIN compactor.sessions y USING (sid)
			CROSS JOIN LATERAL compactor.policy_of((x.s).tenant, (x.s).model, (x.s).labels, (x.s).policy_override) p(name)
			CROSS JOIN LATERAL compactor.thresholds_of(p.name, (x.s).model) h
			CROSS JOIN LATERAL (SELECT CASE WHEN ((x.s).policy, (x.s).thresholds_revision) = (p.name, h.revision) THEN x.s ELSE compactor.with_thresholds(x.s, p.name, h) END AS s) r
			CROSS JOIN LATERAL (SELECT (r.s).*) w) n
		WHERE e.sid = n.sid`)
}

// check fails unless all sessions show the expected values, the others are
// not written, and the others are.
func (e eager) check(what string) {
	e.t.Helper()
	for _, bad := range list[string](e.t, e.s, `
		SELECT x.id || ': ' || coalesce((SELECT string_agg(format('%s is %s, want %s', k, (to_jsonb(f) - 'due_since')->k, (to_jsonb(e.s) - 'due_since')->k), '; ')
			FROM jsonb_object_keys((to_jsonb(e.s) - 'due_since')) k WHERE (to_jsonb(f) - 'due_since')->k <> (to_jsonb(e.s) - 'due_since')->k), '') || CASE WHEN x.due <> (e.s).due THEN ' due' ELSE '' END
			|| CASE WHEN (x.xmin::text::bigint <> e.version) <> e.rewritten THEN ' rewritten, want '||e.rewritten ELSE '' END
		FROM compactor.sessions x JOIN eager e USING (sid) CROSS JOIN LATERAL compactor.shown_session(x.tenant, x.id) f
		WHERE (to_jsonb(f) - 'due_since') <> (to_jsonb(e.s) - 'due_since') OR x.due <> (e.s).due OR (x.xmin::text::bigint <> e.version) <> e.rewritten`) {
		e.t.Errorf("%s: %s", what, bad)
	}
}

// randomSessions sets thresholds and the values that are compared with them at random.
const randomSessions = `
	UPDATE compactor.sessions s SET live_tokens = r(200), live_estimated_tokens = r(50), messages_since_run = r(9), turns_since_run = r(9), tokens_since_run = r(200),
		live_messages = r(9), new_signals = r(16) & r(16), reported_prompt_tokens = CASE WHEN r(3) = 0 THEN r(200) END, tokens_since_report = r(9),
		checked_seq = CASE WHEN r(3) = 0 THEN last_source_seq - r(2) END, loop_seq = CASE WHEN r(6) = 0 THEN last_source_seq - r(2) END, awaits_answer = r(2) = 0,
		suspect_seq = CASE WHEN r(9) = 0 THEN 1 END, hold_seq = CASE WHEN r(6) = 0 THEN last_source_seq ELSE 0 END, timed = r(9) = 0,
		state = CASE r(12) WHEN 0 THEN 'quarantined' WHEN 1 THEN 'service_managed' ELSE 'active' END,
		hold_code = CASE WHEN r(9) = 0 THEN 'x' END, cooldown_until = CASE WHEN r(4) = 0 THEN now() + interval '1 hour' END,
		due_tokens = due_tokens + CASE WHEN r(3) = 0 THEN r(200) ELSE 0 END, due = false`

func TestAChangeOfThresholdsLeavesWhatARewriteOfAllSessionsWould(t *testing.T) {
	s := fresh(t)
	exec(t, s, `CREATE SEQUENCE draws`)
	exec(t, s, `CREATE FUNCTION r(n int) RETURNS int LANGUAGE sql VOLATILE AS $$ SELECT (hashint8(nextval('draws')) & 65535) % n $$`)
	random := rand.New(rand.NewPCG(1, 2))
	maybe := func(n int64) int64 { return max(0, random.Int64N(2*n)-n) }
	change := func() {
		var ts []Threshold
		for _, prefix := range []string{"", "gpt-"} {
			x := Threshold{ModelPrefix: prefix, DueTokens: chat.Tokens(random.IntN(250)), EstimateMargin: float64(random.IntN(3)) / 2}
			if random.IntN(3) == 0 {
				x.Counts = Counts{NewTokens: chat.Tokens(maybe(200)), NewMessages: maybe(9), NewTurns: maybe(9), Messages: maybe(9), Signals: int(maybe(16))}
			}
			ts = append(ts, x)
		}
		switch random.IntN(6) {
		case 0:
			ts[0].Idle = 3600
		case 1:
			put(t, s, PolicyChange{Name: "odd", Match: map[string]string{"odd": "yes"}, Thresholds: ts})
			return
		}
		thresholds(t, s, ts...)
	}
	change()
	for i := range 60 {
		k := Key{Session: fmt.Sprintf("s%02d", i)}
		if i%3 == 0 {
			noError(t, s.SetLabels(t.Context(), k, map[string]string{"odd": "yes"}))
		}
		must2(s.Append(t.Context(), k, []string{"", "gpt-5"}[i%2], talk("m", 1+i%4)))(t)
	}
	exec(t, s, `INSERT INTO compactor.calibrations (tenant, model, counted, reported, reports, overhead, scale, updated_at)
		VALUES ('default', 'gpt-5', '{1}', '{1}', 1, 20, 1.5, now())`)
	refresh(t, s, 500)
	exec(t, s, randomSessions)
	exec(t, s, `UPDATE compactor.sessions s SET due = true WHERE compactor.is_due(s)`)
	e := newEager(t, s)
	rewritten := 0
	for step := range 40 {
		change()
		if step%4 == 0 {
			exec(t, s, `UPDATE compactor.sessions SET policy_override = CASE r(3) WHEN 0 THEN 'odd' WHEN 1 THEN 'default' END WHERE r(9) = 0`)
			e.take(`true`)
			followTogether(t, s)
		}
		e.follow()
		// A session that another policy has now is refreshed, not left to its next write.
		moved := one[bool](t, s, `SELECT EXISTS (SELECT FROM compactor.sessions x JOIN eager e USING (sid) WHERE x.policy <> (e.s).policy)`)
		if n := one[int](t, s, `SELECT count(*) FROM eager WHERE rewritten`); random.IntN(2) == 0 || n == 0 || moved {
			rewritten += n
			refresh(t, s, 7)
			e.check(fmt.Sprint("refreshed ", step))
		}
		// A write gives a session the thresholds in force, before the refresh too.
		k := Key{Session: fmt.Sprintf("s%02d", random.IntN(60))}
		const where = `s.id = $1`
		noError(t, s.Pin(t.Context(), k, "m1"))
		if diff := one[string](t, s, `SELECT coalesce(string_agg(format('%s is %s, want %s', k, (to_jsonb(x) - 'due_since')->k, (to_jsonb(e.s) - 'due_since')->k), '; '), '') FROM compactor.sessions x JOIN eager e USING (sid),
			jsonb_object_keys((to_jsonb(x) - 'due_since')) k WHERE x.id = $1 AND k NOT IN ('pinned') AND (to_jsonb(x) - 'due_since')->k <> (to_jsonb(e.s) - 'due_since')->k`, k.Session); diff != "" {
			t.Errorf("step %d, written %s: %s", step, k.Session, diff)
		}
		add(t, s, k, talk(fmt.Sprint("n", step, "-"), 1+random.IntN(2))...)
		e.take(where, k.Session)
		refresh(t, s, 7)
	}
	if rewritten == 0 {
		t.Error("no session was rewritten")
	}
}

// followTogether fails unless sessions that follow the thresholds in force together are left as
// each alone, with the same runs woken. It changes nothing.
func followTogether(t *testing.T, s *Store) {
	t.Helper()
	left := func(how string) []string {
		tx := must(s.pool.Begin(t.Context()))(t)
		defer func() { _ = tx.Rollback(context.Background()) }()
		for _, query := range []string{`DELETE FROM compactor.outbox`, `SELECT count(*) FROM (SELECT FROM compactor.sessions FOR NO KEY UPDATE) s`, how} {
			must(tx.Exec(t.Context(), s.q(query)))(t)
		}
		rows, _ := tx.Query(t.Context(), s.q(`SELECT (to_jsonb(s) - 'due_since')::text || ' woken ' || (s.sid IN (SELECT o.sid FROM compactor.outbox o)) FROM compactor.sessions s ORDER BY s.sid`))
		return must(pgx.CollectRows(rows, pgx.RowTo[string]))(t)
	}
	alone := left(`SELECT compactor.follow_policy(s) FROM compactor.sessions s`)
	equal(t, alone, left(`SELECT compactor.follow_policies(ARRAY(SELECT sid FROM compactor.sessions))`), "together, -each alone +together")
}

// stale returns a session of 60 tokens that a change from a start of 1000 to one of 70, and of
// 5 to a run of signals, has not rewritten.
func stale(t *testing.T, s *Store, name string) Key {
	t.Helper()
	k := Key{Session: name}
	thresholds(t, s, Threshold{DueTokens: 1000})
	for i := range 6 {
		add(t, s, k, counted(talk(fmt.Sprint("m", i), 1)[0], 10))
	}
	apply(t, s, k, exclude(chat.RangesOf(1)))
	exec(t, s, `UPDATE compactor.sessions SET suspect_seq = NULL, due = false, due_tokens = 1000 WHERE id = $1`, name)
	refresh(t, s, 9)
	version := one[string](t, s, `SELECT xmin::text FROM compactor.sessions WHERE id = $1`, name)
	thresholds(t, s, Threshold{DueTokens: 70, Counts: Counts{Signals: 17}})
	refresh(t, s, 9)
	if got := one[string](t, s, `SELECT xmin::text FROM compactor.sessions WHERE id = $1`, name); got != version {
		t.Errorf("%s: a session that is not due before and after the change was written", name)
	}
	return k
}

func TestEveryWriteDecidesByTheThresholdsInForce(t *testing.T) {
	t.Parallel()
	yes := true
	closed := State{Closed: &yes}
	for name, tt := range map[string]struct {
		do   func(t *testing.T, s *Store, k Key)
		due  bool
		want int // due_tokens afterwards
	}{
		"append one":     {func(t *testing.T, s *Store, k Key) { add(t, s, k, counted(user("x", "x"), 30)) }, true, 70},
		"append too few": {func(t *testing.T, s *Store, k Key) { add(t, s, k, counted(user("x", "x"), 10)) }, false, 70},
		"append a batch": {func(t *testing.T, s *Store, k Key) {
			add(t, s, k, counted(user("x", "x"), 15), counted(user("y", "x"), 15))
		}, true, 70},
		"report usage":    {func(t *testing.T, s *Store, k Key) { must(s.ReportUsage(t.Context(), k, 71, 0))(t) }, true, 70},
		"report state":    {func(t *testing.T, s *Store, k Key) { noError(t, s.ReportState(t.Context(), k, closed)) }, true, 70},
		"pin in the view": {func(t *testing.T, s *Store, k Key) { noError(t, s.Pin(t.Context(), k, "m11")) }, false, 70},
		"undo": {func(t *testing.T, s *Store, k Key) {
			must(s.Undo(t.Context(), k, one[RunID](t, s, `SELECT id FROM compactor.runs WHERE kind = 'compact'`), false, ""))(t)
		}, false, 70},
		"replace": {func(t *testing.T, s *Store, k Key) {
			exec(t, s, `SELECT compactor.replace_view('default', $1, revision, '[{"role": "user", "content": "y", "token_count": 80}]') FROM compactor.sessions WHERE id = $1`, k.Session)
		}, true, 70},
		"set the model": {func(t *testing.T, s *Store, k Key) { noError(t, s.SetModel(t.Context(), k, "gpt")) }, false, 70},
		"truncated in the database": {func(t *testing.T, s *Store, k Key) {
			exec(t, s, `UPDATE compactor.sessions SET live_tokens = 100, due = true WHERE id = $1`, k.Session)
			sweep := must(s.Operator.StartSweep(t.Context(), "", time.Hour, "", ""))(t)
			most := int64(1)
			rules := []Truncation{{
				SessionKind: SessionKind{Policy: "default"}, Metric: "messages", Most: &most, Leave: &most, Window: 1000, Start: 50, Target: 90, DueTokens: 76, FreeReasoning: true,
			}}
			rules[0].FleetHash = one[string](t, s, `SELECT policy_hash FROM compactor.thresholds`)
			rules[0].Hash = rules[0].FleetHash
			if page := must(s.Scheduler.SweepTogether(t.Context(), sweep, 9, time.Minute, rules, "w"))(t); page.Ended != 1 {
				t.Errorf("%+v, want a run that has ended", page)
			}
			equal(t, rules[0].FleetHash, one[string](t, s, `SELECT policy_hash FROM compactor.sessions`), "hash")
		}, false, 76},
		"erase": {func(t *testing.T, s *Store, k Key) {
			must(s.Admin.Erase(t.Context(), k, []string{"m11"}, "x", "x", false))(t)
		}, false, 70},
		"fork": {func(t *testing.T, s *Store, k Key) {
			must(s.Fork(t.Context(), k, "fork", ""))(t)
			exec(t, s, `UPDATE compactor.sessions SET id = CASE id WHEN 's' THEN 'parent' ELSE 's' END`)
		}, true, 70}, // its view is checked
		"the times": {func(t *testing.T, s *Store, _ Key) {
			exec(t, s, `UPDATE compactor.sessions SET next_check_at = now(), live_tokens = 71`)
			must(s.Scheduler.CheckTimes(t.Context(), 9))(t)
		}, true, 70},
		"a child is closed": {func(t *testing.T, s *Store, k Key) {
			child := Key{Session: "child"}
			noError(t, s.SetParent(t.Context(), child, k.Session))
			exec(t, s, `INSERT INTO compactor.closed_children SELECT p.sid, c.sid FROM compactor.sessions p, compactor.sessions c WHERE p.id = $1 AND c.id = 'child'`, k.Session)
			must(s.Scheduler.CheckTimes(t.Context(), 9))(t)
		}, true, 70},
		"a run of thresholds of its own": {func(t *testing.T, s *Store, k Key) {
			c := start(t, s, k)
			must(0, s.Worker.Finish(t.Context(), c, StatusSkipped, Ledger{Outcome: "x"}, &PostRunState{
				Model: &c.Session.Model, BaseHash: c.Session.PolicyHash, DueTokens: 77, PolicyHash: c.Session.PolicyHash,
			}))(t)
		}, false, 77},
		"a run that read the thresholds before": {func(t *testing.T, s *Store, k Key) {
			c := start(t, s, k)
			thresholds(t, s, Threshold{DueTokens: 50})
			refreshed := one[string](t, s, `SELECT policy_hash FROM compactor.thresholds`)
			must(0, s.Worker.Finish(t.Context(), c, StatusSkipped, Ledger{Outcome: "x"}, &PostRunState{
				Model: &c.Session.Model, BaseHash: c.Session.PolicyHash, DueTokens: 777, PolicyHash: c.Session.PolicyHash,
			}))(t)
			equal(t, refreshed, one[string](t, s, `SELECT policy_hash FROM compactor.sessions`), "hash")
		}, false, 50},
		"a page of runs": {func(t *testing.T, s *Store, k Key) {
			run := must(s.Request(t.Context(), k, TriggerOperator, "", Options{}))(t)
			c := must(s.Worker.Load(t.Context(), run))(t)
			ch := must(c.change(s, exclude(chat.RangesOf(3))))(t)
			ch.PostRunState = PostRunState{Model: &c.Session.Model, BaseHash: c.Session.PolicyHash, PolicyHash: c.Session.PolicyHash, DueTokens: 75}
			if applied := must(s.Worker.ApplyPage(t.Context(), []RunChange{{run, c.Session.SID, ch}}))(t); len(applied) != 1 {
				t.Errorf("applied %v, want run %d", applied, run)
			}
		}, false, 75},
	} {
		t.Run(name, func(t *testing.T) {
			s := fresh(t)
			k := stale(t, s, "s")
			tt.do(t, s, k)
			if got := one[string](t, s, `SELECT format('%s %s %s', due, due_tokens, thresholds_revision = (SELECT max(revision) FROM compactor.thresholds)) FROM compactor.sessions WHERE id = 's'`); got != fmt.Sprintf("%s %d t", fmt.Sprint(tt.due)[:1], tt.want) {
				t.Errorf("due, start, follows: %s, want %t %d", got, tt.due, tt.want)
			}
		})
	}
}

func TestASessionIsShownWithTheThresholdsInForce(t *testing.T) {
	s := fresh(t)
	k := stale(t, s, "s")
	hash := one[string](t, s, `SELECT policy_hash FROM compactor.thresholds`)
	x := must(s.Operator.Explain(t.Context(), k))(t)
	if row := session(t, s, k); row.DueTokens != 70 || x.DueTokens != 70 || x.PolicyHash != hash {
		t.Errorf("start %d, explained as %d with %s, want 70 and %s", row.DueTokens, x.DueTokens, x.PolicyHash, hash)
	}
	if c := must(s.Reader.Snapshot(t.Context(), k))(t); c.Session.PolicyHash != hash {
		t.Errorf("a run has %s, want %s", c.Session.PolicyHash, hash)
	}
	if got := must(s.Operator.PreviewPolicies(t.Context(), []PolicyChange{func() PolicyChange {
		c := named("other", 5, "tenant=other")
		c.Spec, c.Hash, c.FleetHash = []byte(`{}`), "h", "h"
		return c
	}()}))(t); len(got) != 0 {
		t.Errorf("another policy concerns %+v", got)
	}
	// One that was due and is so still.
	due := Key{Session: "due"}
	add(t, s, due, counted(user("m", "x"), 100))
	thresholds(t, s, Threshold{DueTokens: 90})
	refresh(t, s, 9)
	if got := must(s.Operator.Fleet(t.Context(), "", 9))(t).Due(); got.Debt != 10 || got.Sessions != 1 {
		t.Errorf("debt %+v, want 10 of one session", got)
	}
	if got := must(s.Operator.ForecastSweep(t.Context(), ""))(t); got.OverStart != 10 {
		t.Errorf("forecast %+v, want 10 over the start", got)
	}
	wantConsistent(t, s)
}

// A write under way has read the thresholds before it, and may decide by them behind the pass.
func TestARefreshWaitsForWritesThatHaveBegun(t *testing.T) {
	s := fresh(t)
	k := stale(t, s, "s")
	start := chat.Tokens(200)
	for name, write := range map[string]string{
		"a session that is locked":  `SELECT FROM compactor.sessions WHERE id = 's' FOR NO KEY UPDATE`,
		"a session that is written": `SELECT compactor.append('default', 's', '{"role": "user", "content": "x"}')`,
		"a session that is created": `SELECT compactor.append('default', 'late', '{"role": "user", "content": "x"}')`,
	} {
		tx := begin(t, s, write)
		start++
		thresholds(t, s, Threshold{DueTokens: start})
		var states []string
		for range 3 {
			_, state := must2(s.Scheduler.RefreshSessions(t.Context(), 9))(t)
			states = append(states, state)
		}
		equal(t, []string{RefreshPage, RefreshPass, RefreshPass}, states, "%s", name)
		noError(t, tx.Commit(t.Context()))
		refresh(t, s, 9)
		for _, shown := range policies(t, s) {
			if !strings.HasSuffix(shown, fmt.Sprint(" default ", start)) {
				t.Errorf("%s: %s", name, shown)
			}
		}
	}
	// One that sees the thresholds of its beginning for as long as it lasts fails instead.
	tx := must(s.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead}))(t)
	defer func() { _ = tx.Rollback(context.Background()) }()
	must(tx.Exec(t.Context(), `SELECT count(*) FROM compactor.sessions`))(t)
	thresholds(t, s, Threshold{DueTokens: 300})
	_, err := tx.Exec(t.Context(), `SELECT compactor.append('default', $1, '{"role": "user", "content": "x"}')`, k.Session)
	wantError(t, mapError(err), ErrBusy, "a transaction from before")
}
