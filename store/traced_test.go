package store

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// parent returns a trace context in the form of W3C.
func parent(digit string) string {
	text := "00-"
	for range 32 {
		text += digit
	}
	return text + "-00000000000000" + digit + digit + "-01"
}

// The latest write with a trace context gives its own to the run, from SQL, where anything else in its place is
// ignored; also where the run waits for a limit.
func TestARunHasTheTraceContextOfTheLatestWriteWithOne(t *testing.T) {
	s := fresh(t)
	k := dueSessions(t, s, 1)[0]
	write := func(id, traceparent, want string) {
		t.Helper()
		tx := must(s.pool.Begin(t.Context()))(t)
		defer func() { _ = tx.Rollback(t.Context()) }()
		_, err := tx.Exec(t.Context(), `SELECT set_config('compactor.traceparent', $1, true), compactor.append($2, $3, $4::json)`,
			traceparent, k.tenant(), k.Session, `[{"id": "`+id+`", "role": "user", "content": "x"}]`)
		noError(t, err)
		noError(t, tx.Commit(t.Context()))
		equal(t, want, one[string](t, s, `SELECT coalesce(traceparent, '') FROM compactor.outbox`), "after %q", traceparent)
	}
	write("m2", "", "")
	write("m3", parent("a"), parent("a"))
	write("m4", "'); DROP TABLE runs; --", parent("a"))
	write("m5", "cc-"+parent("a"), parent("a"))
	write("m6", parent("b"), parent("b"))
	add(t, s, k, user("m7", "x"))
	limitRuns(t, s, "default", 1)
	letStart(t, s, false)
	relay := func() []Delivery {
		must(s.Scheduler.ReleaseThrottled(t.Context()))(t)
		return must(s.Scheduler.Relay(t.Context(), 0, 0, 100, time.Minute))(t)
	}
	none(t, relay(), "while the limit holds it back")
	equal(t, 1, one[int](t, s, `SELECT count(*)::int FROM compactor.throttled`), "throttled")
	letStart(t, s, true)
	relay()
	run := must(s.Worker.Load(t.Context(), one[RunID](t, s, `SELECT id FROM compactor.runs`)))(t)
	equal(t, parent("b"), run.Traceparent, "the run")
}

func TestASpanOfTheApplicationIsThatOfItsWrites(t *testing.T) {
	s := fresh(t)
	k := dueSessions(t, s, 1)[0]
	c := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	const want = "00-01000000000000000000000000000000-0200000000000000-01"
	unsampled := trace.ContextWithSpanContext(t.Context(), c.WithTraceFlags(0))
	must2(s.Append(unsampled, k, "", []NewMessage{user("m2", "x")}))(t)
	equal(t, "", one[string](t, s, `SELECT coalesce(traceparent, '') FROM compactor.outbox`), "of a span that is not recorded")
	ctx := trace.ContextWithSpanContext(t.Context(), c)
	must2(s.Append(ctx, k, "", []NewMessage{user("m3", "x")}))(t)
	equal(t, want, one[string](t, s, `SELECT coalesce(traceparent, '') FROM compactor.outbox`), "of an append")
	equal(t, want, must(s.Worker.Load(t.Context(), must(s.Request(ctx, k, TriggerOperator, "", Options{}))(t)))(t).Traceparent, "of a request")
	must(s.Request(t.Context(), k, TriggerApplication, "", Options{}))(t)
	equal(t, 1, one[int](t, s, `SELECT count(traceparent)::int FROM compactor.runs`), "no other transaction has it")
}
