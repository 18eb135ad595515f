package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/migrations"
	"github.com/sessionstore/compactor/store/storetest"
	"github.com/sessionstore/compactor/strategies/chat"
)

func TestMain(m *testing.M) {
	storetest.Draw()
	os.Exit(m.Run())
}

// open returns a store on a fresh migrated database.
func open(t testing.TB) *Store {
	t.Helper()
	s, _ := openDSN(t)
	return s
}

// openDSN is open for tests that need connections of their own.
func openDSN(t testing.TB) (*Store, string) {
	t.Helper()
	return openPartitioned(t, storetest.Partitions())
}

// openPartitioned is openDSN with a number of partitions of the log.
func openPartitioned(t testing.TB, partitions int) (*Store, string) {
	t.Helper()
	dsn := storetest.DB(t, fmt.Sprintf("store-%s-%d", migrations.Fingerprint(), partitions), func(ctx context.Context, dsn string) error {
		_, err := migrations.UpPartitioned(ctx, dsn, migrations.DefaultSchema, partitions)
		return err
	})
	s := must(Open(t.Context(), Config{URL: dsn}))(t)
	t.Cleanup(s.Close)
	return s, dsn
}

// fresh is open for a test that runs in parallel to others.
func fresh(t *testing.T) *Store {
	t.Helper()
	t.Parallel()
	return open(t)
}

// freshSession is fresh with the key of a session that does not exist yet.
func freshSession(t *testing.T) (*Store, Key) {
	t.Helper()
	return fresh(t), Key{Session: "s"}
}

// freshTalk is fresh with a session of n messages.
func freshTalk(t *testing.T, n int) (*Store, Key) {
	t.Helper()
	s, k := freshSession(t)
	add(t, s, k, talk("m", n)...)
	return s, k
}

// begin returns a transaction that has executed a statement. It is rolled back when the test ends.
func begin(t testing.TB, s *Store, sql string, args ...any) pgx.Tx {
	t.Helper()
	tx := must(s.pool.Begin(t.Context()))(t)
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	must(tx.Exec(t.Context(), s.q(sql), args...))(t)
	return tx
}

// fataler holds the methods that a test and a rapid check share.
type fataler interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// exec runs a statement and reports how many rows it was about.
func exec(t fataler, s *Store, sql string, args ...any) int64 {
	t.Helper()
	tag, err := s.pool.Exec(context.Background(), sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return tag.RowsAffected()
}

// one returns the single value that a query returns.
func one[T any](t fataler, s *Store, sql string, args ...any) T {
	t.Helper()
	rows, err := s.pool.Query(context.Background(), sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// list returns the one column that a query returns.
func list[T any](t fataler, s *Store, sql string, args ...any) []T {
	t.Helper()
	rows, err := s.pool.Query(context.Background(), sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	v, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// must returns the value of a call that has to succeed.
func must[T any](v T, err error) func(fataler) T {
	return func(t fataler) T {
		t.Helper()
		if err != nil {
			t.Fatalf("unexpected error: %v", err)
		}
		return v
	}
}

// must2 is must for calls with two values.
func must2[T, U any](v T, u U, err error) func(fataler) (T, U) {
	return func(t fataler) (T, U) {
		t.Helper()
		if err != nil {
			t.Fatalf("unexpected error: %v", err)
		}
		return v, u
	}
}

// noError fails the test with an error.
func noError(t fataler, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// wantError reports an error that is not the one that is wanted.
func wantError(t fataler, err, want error, format string, args ...any) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", fmt.Sprintf(format, args...), err, want)
	}
}

// second returns the error of a call with one more result, and third of one with two.
func second[T any](_ T, err error) error { return err }

func third[T, U any](_ T, _ U, err error) error { return err }

// equal reports a difference between two values.
func equal[T any](t fataler, want, got T, format string, args ...any) {
	t.Helper()
	noDiff(t, cmp.Diff(want, got), format, args...)
}

// noDiff reports the difference between a value that is wanted and one that is there.
func noDiff(t fataler, diff, format string, args ...any) {
	t.Helper()
	if diff != "" {
		t.Errorf("%s (-want +got):\n%s", fmt.Sprintf(format, args...), diff)
	}
}

// none reports the values of a list that has to be empty.
func none[T any](t fataler, got []T, format string, args ...any) {
	t.Helper()
	if len(got) > 0 {
		t.Errorf("%s: %v, want none", fmt.Sprintf(format, args...), got)
	}
}

// Builders. An empty id leaves the naming to the store.

func text(id string, role chat.Role, content string) NewMessage {
	return NewMessage{Message: chat.Message{ID: id, Role: role, Content: chat.TextContent(content)}}
}

func user(id, content string) NewMessage { return text(id, chat.RoleUser, content) }

func assistant(id, content string) NewMessage { return text(id, chat.RoleAssistant, content) }

func call(id string, calls ...string) NewMessage {
	m := NewMessage{Message: chat.Message{ID: id, Role: chat.RoleAssistant, Content: chat.Content{Null: true}}}
	for _, c := range calls {
		m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: c, Type: "function", Name: "look", Arguments: "{}"})
	}
	return m
}

func result(id, callID, content string) NewMessage {
	m := text(id, chat.RoleTool, content)
	m.ToolCallID = callID
	return m
}

func counted(m NewMessage, tokens chat.Tokens) NewMessage {
	m.Tokens, m.Counter = tokens, "test"
	return m
}

// given returns messages of a view as an application gives them back.
func given(view []Stored) []NewMessage {
	out := make([]NewMessage, len(view))
	for i, m := range view {
		out[i].Message = m.Message
	}
	return out
}

// talk is n messages, user and assistant by turns, with ids prefix1, prefix2, ….
func talk(prefix string, n int) []NewMessage {
	out := make([]NewMessage, n)
	for i := range out {
		role := chat.RoleUser
		if i%2 == 1 {
			role = chat.RoleAssistant
		}
		out[i] = text(fmt.Sprintf("%s%d", prefix, i+1), role, fmt.Sprintf("message %d of a conversation about nothing much", i+1))
	}
	return out
}

// add appends, and fails the test where that fails.
func add(t fataler, s *Store, k Key, msgs ...NewMessage) []chat.Seq {
	t.Helper()
	seqs, _ := must2(s.Append(context.Background(), k, "", msgs))(t)
	return seqs
}

// appendSQL appends as an application does that speaks SQL.
func appendSQL(s *Store, k Key, messages string) (seqs []chat.Seq, err error) {
	err = s.pool.QueryRow(context.Background(), `SELECT compactor.append($1, $2, $3)`, k.tenant(), k.Session, messages).Scan(&seqs)
	return seqs, mapError(err)
}

// liveSeqs returns the seqs of a session's view in its order.
func liveSeqs(t fataler, s *Store, k Key) []chat.Seq {
	t.Helper()
	view, _ := must2(s.View(context.Background(), k))(t)
	out := make([]chat.Seq, len(view))
	for i, m := range view {
		out[i] = m.Seq
	}
	return out
}

// span returns the seqs lo to hi.
func span(lo, hi chat.Seq) chat.Ranges { return chat.Ranges{{Lo: lo, Hi: hi + 1}} }

// start requests a run and claims it.
func start(t fataler, s *Store, k Key) *Claim {
	t.Helper()
	run := must(s.Request(context.Background(), k, TriggerOperator, "test", Options{}))(t)
	c := must(s.Worker.Claim(context.Background(), run, "worker", time.Minute))(t)
	return c
}

// change wraps a plan as the worker does, with the changes of the counters.
func (c *Claim) change(s *Store, plan chat.Plan) (Change, error) {
	ch := Change{
		Plan: plan, SnapshotSeq: c.Session.LastSeq, Revision: c.Session.Revision,
		Ledger:       Ledger{Kind: "compact", Outcome: "applied"},
		PostRunState: PostRunState{DueTokens: 1 << 40},
	}
	var out chat.Ranges
	for _, x := range plan.Exclude {
		out = out.Union(x.Seqs)
	}
	for _, a := range plan.Additions {
		out = out.Union(a.Covers)
	}
	const query = `SELECT count(*), coalesce(sum(token_count), 0), coalesce(sum(token_count) FILTER (WHERE flags & 16 > 0), 0)
		FROM compactor.message_log WHERE sid = $1 AND $2::int8multirange @> seq`
	for _, part := range []struct {
		seqs chat.Ranges
		sign int64
	}{{out.Intersect(c.Session.Live), -1}, {plan.Include.Minus(c.Session.Live), 1}} {
		var n, tokens, estimated int64
		if err := s.pool.QueryRow(context.Background(), query, c.Session.SID, part.seqs.String()).Scan(&n, &tokens, &estimated); err != nil {
			return ch, err
		}
		ch.DeltaMessages += part.sign * n
		ch.DeltaTokens += part.sign * tokens
		ch.DeltaEstimated += part.sign * estimated
	}
	return ch, nil
}

// apply requests, claims and applies a plan and returns its run.
func apply(t fataler, s *Store, k Key, plan chat.Plan) RunID {
	t.Helper()
	c := start(t, s, k)
	ch := must(c.change(s, plan))(t)
	must(s.Worker.Apply(context.Background(), c.Run, c.Fence, ch))(t)
	return c.Run
}

// exclude returns a plan that takes messages out and puts nothing in their place.
func exclude(seqs chat.Ranges) chat.Plan {
	return chat.Plan{Exclude: []chat.Exclusion{{Reason: "truncated", Seqs: seqs}}}
}

// summarize returns a plan with one summary in place of messages.
func summarize(covers chat.Ranges, content string) chat.Plan {
	return chat.Plan{Additions: []chat.Addition{{
		Kind: chat.KindSummary, Reason: "summarized", Covers: covers, Position: covers[0].Lo, Tokens: 7, Counter: "test",
		Flags: chat.HasText, Message: chat.Message{Role: chat.RoleUser, Content: chat.TextContent(content)},
	}}}
}

// replacement returns a plan that rewrites one message of the view.
func replacement(m chat.Meta, content string) chat.Plan {
	return chat.Plan{Additions: []chat.Addition{{
		Kind: chat.KindReplacement, Reason: "clamped", Covers: chat.RangesOf(m.Seq), Position: m.Position, Tokens: 3, Counter: "test",
		Flags: chat.HasText, Message: chat.Message{Role: chat.RoleAssistant, Content: chat.TextContent(content)},
	}}}
}

// wantConsistent fails unless the counters of every session agree with its rows and no check
// of Audit finds a violation.
func wantConsistent(t fataler, s *Store) {
	t.Helper()
	const recount = `
		SELECT s.id || ': ' || to_json(x) || ' but the rows say ' || to_json(y) FROM compactor.sessions s
		CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE kind = 'm') AS messages, count(*) FILTER (WHERE kind = 'm' AND role = 'user') AS turns,
			coalesce(max(seq), 0) AS last_seq, coalesce(max(seq) FILTER (WHERE kind = 'm'), 0) AS last_source_seq,
			coalesce(sum(token_count) FILTER (WHERE kind = 'm'), 0) AS total_tokens,
			count(*) FILTER (WHERE shown) AS live_messages, coalesce(sum(token_count - reasoning) FILTER (WHERE shown), 0) AS live_tokens,
			coalesce(sum(token_count - reasoning) FILTER (WHERE shown AND flags & 16 > 0), 0) AS live_estimated_tokens,
			(SELECT lower(r) FROM unnest(s.live) r WHERE upper_inf(r)) AS tail_start_seq
			FROM (SELECT l.*, s.live @> seq AND NOT (bare AND role = 'assistant' AND calls = 0 AND flags & 5 = 0) AS shown,
					CASE WHEN bare THEN reasoning_tokens ELSE 0 END AS reasoning
				FROM (SELECT *, flags & 66 = 2 AND s.reasoning_out @> seq AS bare FROM compactor.message_log) l WHERE l.sid = s.sid) m) y
		CROSS JOIN LATERAL (SELECT s.messages, s.turns, s.last_seq, s.last_source_seq, s.total_tokens, s.live_messages, s.live_tokens,
			s.live_estimated_tokens, s.tail_start_seq) x
		WHERE to_jsonb(x) <> to_jsonb(y)`
	if bad := list[string](t, s, recount); len(bad) > 0 {
		t.Fatalf("counters are wrong:\n%s", strings.Join(bad, "\n"))
	}
	const running = `
		SELECT s.id || ' #' || m.seq FROM compactor.sessions s JOIN LATERAL (SELECT *, sum(token_count) FILTER (WHERE kind = 'm') OVER (ORDER BY seq) AS want
			FROM compactor.message_log l WHERE l.sid = s.sid) m ON true WHERE m.cumulative_tokens <> m.want LIMIT 3`
	if bad := list[string](t, s, running); len(bad) > 0 {
		t.Fatalf("cumulative_tokens are wrong: %v", bad)
	}
	findings := must(s.Admin.Audit(context.Background()))(t)
	for _, f := range findings {
		if strings.Contains(f.Want, "as the last message of the user") {
			continue // plans are kept from that by the pipeline, not by the store
		}
		t.Fatalf("audit: not true that %s: %s", f.Check, f)
	}
}

// sessions returns the first page of a list.
func sessions(t fataler, s *Store, f SessionFilter) []SessionRow {
	rows, _, err := s.Operator.Sessions(context.Background(), f)
	noError(t, err)
	return rows
}
