package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
)

// setupTraced returns a fixture whose spans are recorded, and a function that returns and forgets them, as text.
func setupTraced(t *testing.T, pipeline ...policy.Step) (f *fixture, spans func() []string) {
	t.Helper()
	recorder := tracetest.NewSpanRecorder()
	p := testPolicy()
	p.Pipeline = pipeline
	f = setupWith(t, database(t), p, Config{Tracer: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))})
	return f, func() (out []string) {
		for _, s := range recorder.Ended() {
			text := s.Name()
			for _, key := range []attribute.Key{"compactor.result", "compactor.outcome", "error.type", "gen_ai.conversation.compacted"} {
				if i := slices.IndexFunc(s.Attributes(), func(a attribute.KeyValue) bool { return a.Key == key }); i >= 0 {
					text += " " + s.Attributes()[i].Value.String()
				}
			}
			if s.Status().Code == codes.Error {
				text += ": " + s.Status().Description
			}
			out = append(out, text)
		}
		recorder.Reset()
		return out
	}
}

// A run that declines has no span, one that plans without effect has one without a result, and only one that
// fails has an error.
func TestSpansOfRuns(t *testing.T) {
	t.Parallel()
	f, spans := setupTraced(t, testPolicy().Pipeline...)
	want := func(what string, names ...string) {
		t.Helper()
		if got := spans(); !slices.Equal(got, names) {
			t.Errorf("%s: spans %q, want %q", what, got, names)
		}
	}
	f.append("s", "suauauauauaua")
	id := f.event()
	f.run(id)
	want("applied", "plan tool_result", "plan truncation", "apply", "run event applied applied true")
	f.run(id)
	want("delivered twice")
	f.run(must(f.store.Request(t.Context(), key("s"), store.TriggerApplication, "", store.Options{From: "view"}))(t))
	want("nothing left to do", "run application skipped nothing_to_compact")
	f.append("s", "uauauauaua")
	id = f.event()
	f.must(f.store.Operator.PauseRuns(t.Context(), store.PauseScope{Policy: "default"}, "", "ada"))
	f.run(id)
	want("paused")
	f.must(f.store.Operator.ResumeRuns(t.Context(), store.PauseScope{Policy: "default"}, "ada"))

	f.run(f.operator("s", store.Options{DryRun: true}))
	want("dry run", "plan tool_result", "plan truncation", "run operator skipped dry_run")
	f.w.store = applyingNothing{f.w.store}
	run := f.operator("s", store.Options{})
	if err := f.w.execute(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	want("failed", "plan tool_result", "plan truncation", "apply internal: internal", "run operator retried internal internal: internal")
}

// applyingNothing is a store that applies nothing.
type applyingNothing struct{ Store }

func (applyingNothing) Apply(context.Context, store.RunID, int64, store.Change) (chat.Ranges, error) {
	return nil, errors.New("broken")
}

// Runs that end together have a span each, without children.
func TestSpansOfAPage(t *testing.T) {
	t.Parallel()
	f, spans := setupTraced(t, policy.Step{Strategy: "truncation"})
	var want []string
	for i := range 3 {
		f.append(fmt.Sprint("s", i), "suauauauauaua")
		want = append(want, "run nightly applied applied true")
	}
	f.must(f.w.executePage(t.Context(), f.sweep()))
	if got := spans(); !slices.Equal(got, want) {
		t.Errorf("spans %q", got)
	}
}
