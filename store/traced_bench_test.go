package store

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// BenchmarkTracedAppendGrowth reports how many times as long appends take that could carry a trace context to the
// run (x-off), and that do (x-traced), as those into a table that reads none.
func BenchmarkTracedAppendGrowth(b *testing.B) {
	k := Key{Session: "s"}
	n := 0
	appendsTo := func(ctx context.Context, s *Store) func() time.Duration {
		thresholds(b, s, Threshold{"", 10, 0, false, Counts{}})
		add(b, s, k, counted(user("m0", "x"), 11)) // it is due: each append writes into the outbox
		return func() time.Duration {
			began := time.Now()
			for range 10 {
				n++
				if _, _, err := s.Append(ctx, k, "", []NewMessage{user(fmt.Sprint("n", n), "x")}); err != nil {
					b.Fatal(err)
				}
			}
			return time.Since(began)
		}
	}
	bare := open(b)
	exec(b, bare, `ALTER TABLE compactor.outbox ALTER traceparent DROP DEFAULT`)
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	appends := []func() time.Duration{
		appendsTo(context.Background(), bare), appendsTo(context.Background(), open(b)), appendsTo(trace.ContextWithSpanContext(context.Background(), span), open(b)),
	}
	fastest := []time.Duration{math.MaxInt64, math.MaxInt64, math.MaxInt64}
	for b.Loop() {
		for range 40 { // by turns, as other load slows down all of them
			for i, some := range appends {
				fastest[i] = min(fastest[i], some())
			}
		}
	}
	b.ReportMetric(float64(fastest[1])/float64(fastest[0]), "x-off")
	b.ReportMetric(float64(fastest[2])/float64(fastest[0]), "x-traced")
	b.ReportMetric(0, "ns/op") // of all, which is meaningless
}
