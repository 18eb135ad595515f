package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
)

// secret is in the error of a summarizer.
const secret = "sk-abcdefghijklmnopqrstuvwxyz123456"

// summarizing returns a fixture whose policy and operators may ask answer for summaries.
// It also returns the number of calls and the log.
func summarizing(t *testing.T, dsn string, answer func(context.Context) (string, error)) (f *fixture, asked *atomic.Int64, logged *strings.Builder) {
	t.Helper()
	p := testPolicy()
	p.Fallback = false
	p.Pipeline = []policy.Step{{Strategy: "summarize", Params: map[string]any{"threshold": 4, "keep_last_n": 2}}}
	logged, asked = &strings.Builder{}, new(atomic.Int64)
	f = setupWith(t, dsn, p, Config{Lease: 10 * time.Second, Logger: slog.New(slog.NewTextHandler(logged, nil))})
	f.w.planner.Registry.Summarizer = plan.Func(func(ctx context.Context, _ plan.Request) (string, error) {
		asked.Add(1)
		return answer(ctx)
	})
	return f, asked, logged
}

func TestASummaryIsWrittenAndUndone(t *testing.T) {
	t.Parallel()
	var f *fixture
	dsn := database(t)
	f, asked, _ := summarizing(t, dsn, func(context.Context) (string, error) {
		// Nothing waits for the model, and nothing is held for it (I5): this needs the
		// worker's only connection, and the session's lock.
		f.append("s", "u")
		return "notes\x00 \xff", nil // no text that Postgres holds
	})
	one := must(store.Open(t.Context(), store.Config{URL: dsn, MaxConns: 1}))(t)
	t.Cleanup(one.Close)
	all := f.store
	defer func() { f.store = all }()
	f.store, f.w = one, New(one.Worker, f.w.planner, Config{Lease: 10 * time.Second})
	f.append("s", "suauauauauaua")
	id := f.event()
	claim := must(f.store.Worker.Load(t.Context(), id))(t)
	if !f.w.planner.needsClaim(f.w.planner.newRunContext(claim, namedPolicy{policy: f.w.planner.Policy})) {
		t.Error("a run that asks a model is worth a claim with a lease")
	}
	row := f.run(id)
	if row.Outcome != OutcomeApplied || asked.Load() != 1 || strings.Contains(string(row.Steps), "no_summary") {
		t.Errorf("%s %s after %d calls, %s", row.Outcome, row.Error, asked.Load(), row.Steps)
	}
	if view := f.view("s"); !strings.Contains(view, "S") || !strings.HasSuffix(view, "u") {
		t.Errorf("view %s, want a summary, and what was said while it was made", view)
	}
	f.sound()
	f.undo(id)
	if view := f.view("s"); view != "suauauauauauau" {
		t.Errorf("view %s after the undo", view)
	}
}

func TestARunWithoutItsSummaryChangesNothing(t *testing.T) {
	t.Parallel()
	for code, err := range map[string]error{
		"failed":       fmt.Errorf("401 for %s: message 4 \x00\xff", secret),
		"timeout":      fmt.Errorf("the model: %w", context.DeadlineExceeded),
		"no_model":     plan.ErrNoModel,
		"empty_answer": nil,
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			f, asked, logged := summarizing(t, database(t), func(context.Context) (string, error) { return "\n", err })
			f.append("s", "suauauauauaua")
			late := f.late()
			row := f.run(f.event())
			if row.Status != "skipped" || row.Outcome != OutcomeNoSummary || !strings.Contains(string(row.Steps), `"no_summary": "`+code+`"`) {
				t.Errorf("%s %s, steps %s", row.Status, row.Outcome, row.Steps)
			}
			if all := string(row.Steps) + row.Error + logged.String(); strings.Contains(all, secret) || strings.Contains(all, "message 4") {
				t.Errorf("the summarizer's words got out: %s", all)
			}
			if view := f.view("s"); view != "suauauauauaua" {
				t.Errorf("view %s", view)
			}
			// Later automatic runs wait; a run of an operator does not.
			if again := f.run(late); again.Outcome != OutcomeCooldown {
				t.Errorf("the nightly run ended %s", again.Outcome)
			}
			f.append("s", "u")
			if runs, err := f.store.Scheduler.Relay(t.Context(), 0, 0, 10, time.Minute); err != nil || len(runs) > 0 {
				t.Errorf("the relay queued %v, %v", runs, err)
			}
			if n := asked.Load(); n != 1 {
				t.Errorf("the model was asked %d times", n)
			}
			if row := f.run(f.operator("s", store.Options{})); row.Outcome != OutcomeNoSummary || asked.Load() != 2 {
				t.Errorf("the operator's run ended %s after %d calls", row.Outcome, asked.Load())
			}
			if !f.session("s").Due {
				t.Error("the session is due until it has its summary")
			}
		})
	}
}

// Other steps still apply, and the fallback is that of the policy.
func TestAFailedSummaryIsOneStepOfAPipeline(t *testing.T) {
	t.Parallel()
	f, _, _ := summarizing(t, database(t), func(context.Context) (string, error) { return "", errors.New(secret) })
	f.append("s", "suauauauauaua")
	row := f.run(f.operator("s", store.Options{Pipeline: append(step("summarize", "threshold", 2, "keep_last_n", 1), step("truncation", "max_n", 3, "compact_to", 3)...)}))
	if row.Outcome != OutcomeApplied || !strings.Contains(string(row.Steps), `"no_summary": "failed"`) {
		t.Errorf("%s, steps %s", row.Outcome, row.Steps)
	}
	if view := f.view("s"); view != "sua" {
		t.Errorf("view %s", view)
	}
}

func TestAStoppingWorkerLeavesItsSummaryToTheNext(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	stopping := true
	f, asked, _ := summarizing(t, database(t), func(ctx context.Context) (string, error) {
		if !stopping {
			return "notes", nil
		}
		close(begun)
		<-ctx.Done()
		return "", ctx.Err()
	})
	f.append("s", "suauauauauaua")
	id := f.event()
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-begun
		cancel(ErrStopping)
	}()
	f.must(f.w.execute(ctx, id))
	if row := f.row(id); row.Status != "queued" || f.view("s") != "suauauauauaua" {
		t.Errorf("run is %s %s, view %s", row.Status, row.Outcome, f.view("s"))
	}
	stopping = false
	if row := f.run(id); row.Outcome != OutcomeApplied || asked.Load() != 2 {
		t.Errorf("the next worker ended %s after %d calls", row.Outcome, asked.Load())
	}
}

func TestAPanickingSummarizerFailsTheRun(t *testing.T) {
	t.Parallel()
	f, asked, logged := summarizing(t, database(t), func(context.Context) (string, error) { panic(secret) })
	f.append("s", "suauauauauaua")
	row := f.run(f.event())
	if row.Status != "failed" || row.Outcome != "strategy_panicked" || asked.Load() != 1 || strings.Contains(row.Error+logged.String(), secret) {
		t.Errorf("%s %s: %s after %d calls", row.Status, row.Outcome, row.Error, asked.Load())
	}
	// No automatic run tries again before a new message.
	if runs, err := f.store.Scheduler.Forgotten(t.Context(), 10, time.Minute); err != nil || len(runs) > 0 {
		t.Errorf("queued %v, %v", runs, err)
	}
	if view := f.view("s"); view != "suauauauauaua" {
		t.Errorf("view %s", view)
	}
}

func TestErrorTexts(t *testing.T) {
	t.Parallel()
	got := errorText(&pipeline.StrategyError{Strategy: "mine", Err: fmt.Errorf("token %s\nand\x00 %s", secret, strings.Repeat("é", 400))})
	if strings.Contains(got, secret) || strings.ContainsAny(got, "\n\x00\uFFFD") || len(got) > 500 || !strings.HasPrefix(got, "strategy mine: token") {
		t.Errorf("%q", got)
	}
}
