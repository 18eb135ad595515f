package store

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// BenchmarkTracedAppendGrowth reports how many times as long appends take that carry a trace context to the run.
func BenchmarkTracedAppendGrowth(b *testing.B) {
	s := open(b)
	k := Key{Session: "s"}
	thresholds(b, s, Threshold{"", 10, 0, false, Counts{}})
	add(b, s, k, counted(user("m0", "x"), 11)) // it is due: each append writes into the outbox
	traced := trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled,
	}))
	n := 0
	appends := func(ctx context.Context) time.Duration {
		began := time.Now()
		for range 20 {
			n++
			if _, _, err := s.Append(ctx, k, "", []NewMessage{user(fmt.Sprint("n", n), "x")}); err != nil {
				b.Fatal(err)
			}
		}
		return time.Since(began)
	}
	without, with := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for b.Loop() {
		for range 20 { // by turns, as other load slows both down
			without, with = min(without, appends(context.Background())), min(with, appends(traced))
		}
	}
	b.ReportMetric(float64(with)/float64(without), "x-traced")
	b.ReportMetric(0, "ns/op") // of both, which is meaningless
}
