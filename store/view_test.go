package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sessionstore/compactor/store/storetest"
	"github.com/sessionstore/compactor/strategies/chat"
)

func TestAViewIsOrderedByPositionWithSummariesFirst(t *testing.T) {
	s, k := freshTalk(t, 8)
	c := start(t, s, k)
	plan := summarize(span(3, 5), "what was said")                                           // becomes 9, at 3
	plan.Additions = append(plan.Additions, replacement(c.View[6], "shorter").Additions...)  // 10, at 7
	plan.Additions = append(plan.Additions, summarize(span(1, 1), "the start").Additions...) // 11, at 1 …
	plan.Additions[2].Position = 2                                                           // … but put before 2
	ch := must(c.change(s, plan))(t)
	appended := must(s.Worker.Apply(t.Context(), c.Run, c.Fence, ch))(t)
	equal(t, span(9, 11), appended, "appended")
	add(t, s, k, talk("n", 1)...)
	equal(t, []chat.Seq{11, 2, 9, 6, 10, 8, 12}, liveSeqs(t, s, k), "view")
	metas := must(s.Operator.ViewMetas(t.Context(), c.Session.SID))(t)
	var seqs []chat.Seq
	for _, m := range metas {
		seqs = append(seqs, m.Seq)
	}
	equal(t, liveSeqs(t, s, k), seqs, "metadata is in another order, -view +metadata")
	wantConsistent(t, s)
}

func TestReadingGivesBackTheWholeMessageThatWasAppended(t *testing.T) {
	s, k := freshSession(t)
	m := call("a", "c1")
	m.SourceID, m.Name, m.CreatedAt = "memory", "helper", time.Date(2025, 1, 2, 3, 4, 5, 6000, time.UTC)
	m.Reasoning, m.ReasoningKey = "hm", "reasoning"
	m.Extra = map[string]json.RawMessage{"x": json.RawMessage(`{"b":1e2, "a":[]}`)}
	add(t, s, k, m)
	want := must(m.MarshalJSON())(t)
	view, _ := must2(s.View(t.Context(), k))(t)
	all := must(s.All(t.Context(), k))(t)
	some := must(s.Worker.Messages(t.Context(), session(t, s, k).SID, []chat.Seq{1}))(t)
	for name, got := range map[string]chat.Message{"View": view[0].Message, "All": all[0].Message, "Messages": *some[1]} {
		equal(t, string(want), string(must(got.MarshalJSON())(t)), "%s, -appended +read", name)
	}
	// The body for a provider is the stored one, without the id and the time.
	var stored string
	noError(t, s.pool.QueryRow(t.Context(), `SELECT message::text FROM compactor.view('default', 's')`).Scan(&stored))
	if diff := cmp.Diff(stored, string(must(view[0].Body().MarshalJSON())(t))); diff != "" || strings.Contains(stored, "created_at") {
		t.Errorf("Body (-stored +read):\n%s", diff)
	}
}

// A view in many pieces is read by longer ranges, with the messages between them.
func TestAViewInManyPiecesHasThePiecesAlone(t *testing.T) {
	s := fresh(t)
	const n = 3000
	random := rand.New(rand.NewPCG(1, 2))
	for name, gap := range map[string]int{"close": 5, "apart": 60} {
		k := Key{Session: name}
		add(t, s, k, talk("m", n)...)
		var seqs []chat.Seq
		for q := 1; q <= n; q += 1 + random.IntN(gap) {
			seqs = append(seqs, chat.Seq(q))
		}
		apply(t, s, k, exclude(span(1, n).Minus(chat.RangesOf(seqs...))))
		add(t, s, k, talk("n", 2)...)
		equal(t, append(seqs, n+1, n+2), liveSeqs(t, s, k), "%s: view", name)
	}
}

func TestEveryMessageSaysWhyItIsNotInTheView(t *testing.T) {
	s, k := freshTalk(t, 6)
	noError(t, s.Pin(t.Context(), k, "m6"))
	first := apply(t, s, k, exclude(span(1, 1)))
	second := apply(t, s, k, summarize(span(2, 3), "two and three"))
	summary := fmt.Sprintf("summary-7-%d", second)
	third := apply(t, s, k, summarize(chat.RangesOf(4, 7), "more"))
	over := fmt.Sprintf("summary-8-%d", third)
	want := []string{
		fmt.Sprintf("1 m1 source truncated %d - - false", first),
		fmt.Sprintf("2 m2 source summarized %d %s - false", second, summary),
		fmt.Sprintf("3 m3 source summarized %d %s - false", second, summary),
		fmt.Sprintf("4 m4 source summarized %d %s - false", third, over),
		"5 m5 source - - - - false",
		"6 m6 source - - - - true",
		fmt.Sprintf("7 %s summary summarized %d %s {[2,4)} false", summary, third, over),
		fmt.Sprintf("8 %s summary - - - {[4,5),[7,8)} false", over),
	}
	got := list[string](t, s, `SELECT concat_ws(' ', seq, id, kind, coalesce(exclude_reason, '-'), coalesce(excluded_by::text, '-'),
		coalesce(summarized_by, '-'), coalesce(summary_of::text, '-'), pinned::text) FROM compactor.messages WHERE session = 's' AND excluded <> included ORDER BY seq`)
	equal(t, want, got, "messages")
	for _, m := range must(s.All(t.Context(), k))(t) {
		line := want[m.Seq-1]
		if m.Included != strings.Contains(line, " - - - ") || !strings.Contains(line, m.ID) || !strings.Contains(line, m.SummarizedBy) ||
			m.Pinned != strings.HasSuffix(line, "true") {
			t.Errorf("in Go message %d is %+v, want %s", m.Seq, m, line)
		}
	}
}

func TestExplainingALongSessionIsNotMessagesTimesRuns(t *testing.T) {
	const messages, runs, each = 2000, 50, 20
	s, k := freshTalk(t, messages)
	for i := range chat.Seq(runs) {
		apply(t, s, k, exclude(span(1+2*each*i, each+2*each*i)))
	}
	out := 0
	for _, m := range must(s.All(t.Context(), k))(t) {
		if !m.Included && m.ExcludedBy != 0 {
			out++
		}
	}
	equal(t, runs*each, out, "messages that are explained")
	// Message by message these would be messages*runs looks at an exclusion.
	if rows := explain(t, s, `SELECT * FROM compactor.messages WHERE tenant = $1 AND session = $2`, k.tenant(), k.Session).rows(); rows > messages*runs/4 {
		t.Errorf("the plan touches %.0f rows for %d messages and %d runs", rows, messages, runs)
	}
}

// plan is a node of the output of EXPLAIN with the nodes below it.
type planOf struct {
	Type  string   `json:"Node Type"`
	Hit   int      `json:"Shared Hit Blocks"`
	Read  int      `json:"Shared Read Blocks"`
	Index string   `json:"Index Name"`
	Plans []planOf `json:"Plans"`

	// These are for each of Loops.
	Rows     float64 `json:"Actual Rows"`
	Filtered float64 `json:"Rows Removed by Filter"`
	Unjoined float64 `json:"Rows Removed by Join Filter"`
	Loops    float64 `json:"Actual Loops"`
}

// rows returns how many rows all nodes have returned or looked at in vain.
func (p planOf) rows() float64 {
	n := (p.Rows + p.Filtered + p.Unjoined) * p.Loops
	for _, q := range p.Plans {
		n += q.rows()
	}
	return n
}

// ofPartition matches the part of an index name that only partitions have.
var ofPartition = regexp.MustCompile(`_p\d+`)

func (p planOf) has(node, index string) bool {
	return p.Type == node && ofPartition.ReplaceAllString(p.Index, "") == index || slices.ContainsFunc(p.Plans, func(q planOf) bool { return q.has(node, index) })
}

// explain explains the second execution, as the first one on a connection also reads the catalog
// to plan functions.
func explain(t *testing.T, s *Store, sql string, args ...any) planOf {
	t.Helper()
	var out []struct{ Plan planOf }
	must(s.pool.Exec(t.Context(), sql, append([]any{pgx.QueryExecModeExec}, args...)...))(t)
	rows := must(s.pool.Query(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+sql, append([]any{pgx.QueryExecModeExec}, args...)...))(t)
	noError(t, json.Unmarshal(must(pgx.CollectExactlyOneRow(rows, pgx.RowTo[[]byte]))(t), &out))
	return out[0].Plan
}

// Nor does it with row-level security.
func TestReadingAViewDoesNotReadTheLog(t *testing.T) {
	t.Parallel()
	s, dsn := openRoles(t)
	k := Key{Session: "s"}
	add(t, s, Key{Session: "another"}, talk("m", 1500)...)
	add(t, s, k, talk("m", 11000)...)
	apply(t, s, k, exclude(chat.Ranges{{Lo: 3, Hi: 3000}, {Lo: 3010, Hi: 5000}, {Lo: 5010, Hi: 10920}}))
	if n := len(liveSeqs(t, s, k)); n != 103 {
		t.Fatalf("%d messages in the view, want 103", n)
	}
	run := request(t, s, k, TriggerOperator)
	exec(t, s, `VACUUM ANALYZE compactor.message_log, compactor.message_body`)
	exec(t, s, `VACUUM ANALYZE compactor.sessions`)
	equal(t, true, one[bool](t, s, `SELECT sum(pg_relation_size(oid)) > 200 * 8192 FROM pg_class WHERE relname ~ '^message_log(_p[0-9]+)?$'`), "the log has more pages than a view may read")
	for name, p := range map[string]planOf{
		"compactor.view": explain(t, s, `SELECT * FROM compactor.view($1, $2)`, "default", "s"),
		"View":           explain(t, s, queryView, "default", "s"),
		"Claim":          explain(t, s, queryClaimView, run),
		"ViewMetas":      explain(t, s, queryViewMetas, session(t, s, k).SID),
	} {
		if p.Hit+p.Read >= 100 {
			t.Errorf("%s reads %d buffers, want less than 100", name, p.Hit+p.Read)
		}
		if (name == "Claim" || name == "ViewMetas") && !p.has("Index Only Scan", "message_log_pkey") {
			t.Errorf("%s does not scan the index of the log alone: %+v", name, p)
		}
	}
	_, login := storetest.Login(t, dsn, "compactor_worker")
	worker := must(Open(t.Context(), Config{URL: login}))(t)
	t.Cleanup(worker.Close)
	for name, query := range map[string]string{"Load": queryRun, "Claim": queryClaimView, "ViewMetas": queryViewMetas, "runs": queryRuns + ` WHERE r.id = $1`} {
		plan := func(s *Store) []string { return list[string](t, s, `EXPLAIN `+query, pgx.QueryExecModeExec, run) }
		equal(t, plan(s), plan(worker), "%s, -owner +worker", name)
	}
}

func TestTheDatabaseRejectsChangesOfSourceMessages(t *testing.T) {
	s, k := freshTalk(t, 3)
	apply(t, s, k, exclude(span(1, 1)))
	for _, sql := range []string{
		`UPDATE compactor.message_log SET role = ''`, `UPDATE compactor.message_body SET body = '{}'`, `DELETE FROM compactor.message_body`,
		`TRUNCATE compactor.message_body`, `DELETE FROM compactor.message_log`, `TRUNCATE compactor.message_log CASCADE`,
		`DELETE FROM compactor.message_log WHERE false`, `UPDATE compactor.exclusions SET reason = 'x'`, `DELETE FROM compactor.exclusions`,
		`TRUNCATE compactor.exclusions`,
	} {
		_, err := s.pool.Exec(t.Context(), sql)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "23001" || !strings.Contains(pg.Message, "append-only") {
			t.Errorf("%s: %v, want it refused", sql, err)
		}
	}
}

// An index that mentions a column, be it in its predicate, ends HOT updates of that column.
func TestNoIndexHasAColumnThatAnAppendOrALeaseChanges(t *testing.T) {
	s := fresh(t)
	got := list[string](t, s, `
		SELECT c.relname || ': ' || string_agg(DISTINCT a.attname, ' ' ORDER BY a.attname)
		FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
		JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid AND d.refobjid = i.indrelid AND d.refobjsubid > 0
			OR d.classid = 'pg_constraint'::regclass AND d.refobjid = i.indrelid AND d.refobjsubid > 0
				AND d.objid = (SELECT oid FROM pg_constraint WHERE conindid = i.indexrelid AND contype IN ('p', 'u'))
		JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = d.refobjsubid
		WHERE c.relnamespace = 'compactor'::regnamespace AND c.relname IN ('sessions', 'runs', 'outbox')
		GROUP BY c.relname ORDER BY 1`)
	want := []string{
		"outbox: first_at sid tenant",
		// queued_at and requested_by never change, kind with the status alone.
		"runs: attempts bulk deliver_at ended_at id kind outcome queued_at requested_by sid status sweep trigger turn_of",
		// next_check_at changes under triggers that wait alone, loop_seq and hold_seq with runs that wait, undos and pins.
		"sessions: due hold_seq id loop_seq next_check_at parent sid state tenant",
	}
	equal(t, want, got, "columns in indexes")
}

func TestAppendsUpdateTheSessionInPlace(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{"", 1 << 30, 0, false, Counts{}})
	keys := []Key{{Session: "a"}, {Session: "b"}, {Session: "c"}}
	// Statistics are sent at the end of a transaction, at most once a second; in one transaction, all of them.
	tx := must(s.pool.Begin(t.Context()))(t)
	for i := range 300 {
		must(tx.Exec(t.Context(), `SELECT compactor.append(NULL, $1, $2)`, keys[i%3].Session, `{"role":"user","content":"x"}`))(t)
	}
	var updated, hot int
	err := tx.QueryRow(t.Context(), `SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relid = 'compactor.sessions'::regclass`).Scan(&updated, &hot)
	if err != nil {
		t.Fatal(err)
	}
	noError(t, tx.Commit(t.Context()))
	t.Logf("%d of %d updates in place within one transaction", hot, updated)
	// Separate transactions let the page be cleaned up in between: nearly all stay on it.
	for i := range 300 {
		add(t, s, keys[i%3], talk(fmt.Sprint(i, "-"), 1)...)
	}
	exec(t, s, `SELECT pg_stat_force_next_flush()`)
	for {
		row := strings.Fields(one[string](t, s, `SELECT n_tup_upd || ' ' || n_tup_hot_upd FROM pg_stat_user_tables WHERE relid = 'compactor.sessions'::regclass`))
		must(fmt.Sscan(strings.Join(row, " "), &updated, &hot))(t)
		if updated >= 600 {
			break
		}
		exec(t, s, `SELECT pg_stat_force_next_flush(), pg_stat_clear_snapshot()`)
	}
	t.Logf("%d of %d updates in place", hot, updated)
	if hot < updated*8/10 {
		t.Errorf("%d of %d updates in place, want nearly all", hot, updated)
	}
}

// On a stock server, jit is on: plans with a high cost estimate are compiled, which takes seconds.
func TestJitLeavesTheViewOfMessagesAlone(t *testing.T) {
	t.Parallel()
	s, dsn := openDSN(t)
	conn := connect(t, dsn, map[string]string{"jit": "on"})
	for i := range 3 {
		k := Key{Session: fmt.Sprint("s", i)}
		add(t, s, k, talk("m", 1600)...)
		run := apply(t, s, k, exclude(span(1, 2)))
		// A reason for each five messages, as after some hundred runs.
		exec(t, s, `INSERT INTO compactor.exclusions (sid, run, reason, seqs)
			SELECT sid, run, reason, int8multirange(int8range(5 * n + 3, 5 * n + 8)) FROM compactor.exclusions, generate_series(0, 300) n WHERE run = $1`, run)
	}
	exec(t, s, `ANALYZE compactor.sessions, compactor.message_log, compactor.message_body, compactor.exclusions, compactor.runs`)
	for _, query := range []string{
		`SELECT count(*), count(excluded_by) FROM compactor.messages WHERE session = 's1' AND tenant = 'default'`,
		`SELECT * FROM compactor.messages WHERE session = 's1' AND tenant = 'default' ORDER BY position`,
		`SELECT count(*) FROM compactor.messages`,
		`SELECT count(*), sum(token_count) FROM compactor.messages WHERE role = 'user' AND excluded`,
		`SELECT count(*) FROM compactor.messages WHERE content LIKE '%x%'`,
	} {
		plan := strings.Join(texts(t, conn, `EXPLAIN ANALYZE `+query), "\n")
		if strings.Contains(plan, "JIT:") || !strings.Contains(plan, "Execution Time") {
			t.Errorf("%s is compiled:\n%s", query, plan)
		}
	}
}
