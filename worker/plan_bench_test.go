package worker

import (
	"context"
	"math"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
)

// nowhere is a store that a run on metadata can end in.
type nowhere struct {
	Store
	claim *store.Claim
}

func (n nowhere) Load(context.Context, store.RunID) (*store.Claim, error) { return n.claim, nil }
func (nowhere) Apply(context.Context, store.RunID, int64, store.Change) (chat.Ranges, error) {
	return nil, nil
}
func (nowhere) EnsurePolicy(context.Context, string, string, any) error { return nil }

// BenchmarkRun measures a run of a truncation strategy without its database: the cost of the
// worker itself for 200 messages.
func BenchmarkRun(b *testing.B) {
	w := truncating(Config{})
	b.ReportAllocs()
	for b.Loop() {
		if err := w.execute(b.Context(), 1); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTracesGrowth reports how many times as long such a run takes with spans that are recorded, and how
// much of one without them its calls of the API are that would make them.
func BenchmarkTracesGrowth(b *testing.B) {
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(tracetest.NewSpanRecorder()))
	fastest := func(do func()) time.Duration {
		low := time.Duration(math.MaxInt64)
		for range 200 {
			began := time.Now()
			do()
			low = min(low, time.Since(began))
		}
		return low
	}
	run := func(w *Worker) func() {
		return func() {
			if err := w.execute(b.Context(), 1); err != nil {
				b.Fatal(err)
			}
		}
	}
	off, on := truncating(Config{}), truncating(Config{Tracer: tracer})
	a := &attempt{w: off, runContext: &runContext{claim: &store.Claim{}}}
	const calls = 100 // they are too short for the clock
	var without, with, api time.Duration
	for b.Loop() {
		without, with = fastest(run(off)), fastest(run(on))
		api = fastest(func() {
			for range calls {
				a.span = nil
				ctx := a.startSpan(b.Context())
				for range 2 { // a step and the change
					_, span := trace.SpanFromContext(ctx).TracerProvider().Tracer(tracerName).Start(ctx, "plan")
					span.End()
				}
				a.endSpan(store.StatusApplied)
			}
		})
	}
	b.ReportMetric(float64(with)/float64(without), "x-recorded")
	b.ReportMetric(1+float64(api)/calls/float64(without), "x-off")
	b.ReportMetric(0, "ns/op") // of all of these, which is meaningless
}

// truncating returns a worker whose run 1 is that of BenchmarkRun.
func truncating(config Config) *Worker {
	c := &store.Claim{Run: 1, Trigger: store.TriggerNightly, Session: store.Session{
		LiveMessages: 200, LiveTokens: 40_000, LastSeq: 200, LastSourceSeq: 200, Live: chat.Ranges{{Lo: 1, Hi: chat.Open}},
	}}
	roles := []chat.Role{chat.RoleUser, chat.RoleAssistant, chat.RoleTool, chat.RoleAssistant}
	for i := range 200 {
		m := chat.Meta{Seq: chat.Seq(i + 1), Position: chat.Seq(i + 1), Kind: chat.KindSource, Role: roles[i%4], Flags: chat.HasText, Tokens: 200}
		switch i % 4 {
		case 1:
			m.Calls = 1
		case 2:
			m.Flags |= chat.Paired
		}
		c.View = append(c.View, m)
	}
	p := policy.Default()
	p.Pipeline = []policy.Step{{Strategy: "truncation"}}
	p.StartTokens, p.TargetTokens = 30_000, 20_000
	return New(nowhere{claim: c}, testPlanner(p), config)
}
