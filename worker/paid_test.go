package worker

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/summary"
)

// answering is a model that does something as it answers.
type answering struct {
	summary.Model
	then func()
}

func (m answering) Complete(ctx context.Context, c llm.Call) (llm.Answer, error) {
	a, err := m.Model.Complete(ctx, c)
	m.then()
	return a, err
}

// An answer that arrives as the run's time is up is stored: the next delivery has it.
func TestAnAnswerInTheLastMomentIsStored(t *testing.T) {
	t.Parallel()
	for name, cause := range map[string]error{"the worker stops": ErrStopping, "the run was taken over": errLost, "the time is up": context.DeadlineExceeded} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, server := modelled(t, database(t), modelPolicy())
			f.w.config.Lease, f.w.config.Heartbeat = 100*time.Millisecond, time.Hour
			id := f.event()
			ctx, cancel := context.WithCancelCause(t.Context())
			f.w.planner.Model = answering{f.w.planner.Model, func() { cancel(cause) }}
			f.must(f.w.execute(ctx, id))
			if got := strings.Join(f.calls(id), ", "); got != "answered" {
				t.Fatalf("calls %s", got)
			}
			if row := f.finish(id); row.Outcome != OutcomeApplied || server.Paid() != 1 {
				t.Errorf("%s, %d paid", row.Outcome, server.Paid())
			}
		})
	}
}

// away is a store whose database is away for some writes of answers.
type away struct {
	Store
	times atomic.Int64
}

func (s *away) AnswerSummary(ctx context.Context, id int64, a store.SummaryAnswer) error {
	if s.times.Add(-1) >= 0 {
		return &store.Error{Kind: store.ErrUnavailable, Message: "database: away"}
	}
	return s.Store.AnswerSummary(ctx, id, a)
}

// Postgres may go away between an answer and its insert: only a crash may lose it (I9).
func TestAnAnswerOutlastsAnOutage(t *testing.T) {
	t.Parallel()
	f, server := modelled(t, database(t), modelPolicy())
	st := &away{Store: f.store.Worker}
	st.times.Store(3)
	f.w.store = st
	if row := f.run(f.event()); row.Outcome != OutcomeApplied || row.Attempts != 1 || server.Paid() != 1 {
		t.Errorf("%s after %d attempts, %d paid", row.Outcome, row.Attempts, server.Paid())
	}
	// It is not waited for longer than the run may take.
	f.talk("s", 20)
	id := f.operator("s", store.Options{From: "view"})
	st.times.Store(1 << 40)
	ctx, cancel := context.WithCancelCause(t.Context())
	f.w.planner.Model = answering{f.w.planner.Model, func() { cancel(ErrStopping) }}
	if err := f.w.execute(ctx, id); err != nil || f.row(id).Status != "queued" {
		t.Errorf("%v, run is %s", err, f.row(id).Status)
	}
}

// A dry run and the run after it share one paid answer, and so does a run after an undo.
func TestARunReusesTheAnswerOfItsDryRun(t *testing.T) {
	t.Parallel()
	f, server := modelled(t, database(t), modelPolicy())
	o := store.Options{From: "view", DryRun: true}
	if row := f.run(f.operator("s", o)); row.Outcome != OutcomeDryRun || server.Paid() != 1 {
		t.Fatalf("%s, %d paid", row.Outcome, server.Paid())
	}
	o.DryRun = false
	id := f.operator("s", o)
	if row := f.run(id); row.Outcome != OutcomeApplied || server.Paid() != 1 {
		t.Fatalf("%s, %d paid", row.Outcome, server.Paid())
	}
	f.undo(id)
	if row := f.run(f.operator("s", o)); row.Outcome != OutcomeApplied || server.Paid() != 1 {
		t.Errorf("%s, %d paid", row.Outcome, server.Paid())
	}
	f.sound()

	// Nor does it matter that the prompt may name a time.
	clears := func(queued time.Time) time.Time {
		c := &store.Claim{QueuedAt: queued}
		return f.w.planner.summaryOptions(f.w.planner.newRunContext(c, namedPolicy{policy: f.w.planner.Policy}), nil).At
	}
	morning := time.Date(2026, time.May, 4, 8, 0, 0, 0, time.UTC)
	if at := clears(morning); !at.Equal(clears(morning.Add(9*time.Hour))) || at.Equal(clears(morning.AddDate(0, 0, 1))) {
		t.Errorf("%v", at)
	}
}

// billed is a model that fails as the run's time is up, and sends its bill.
type billed struct {
	summary.Model
	then func()
}

func (m billed) Complete(context.Context, llm.Call) (llm.Answer, error) {
	m.then()
	return llm.Answer{}, &llm.Error{Class: llm.Canceled, Model: "m", Attempts: 2, CostMicros: 42, Usage: llm.Usage{Input: 7}}
}

func TestTheCostOfAFailedCallIsKeptAfterTheDeadline(t *testing.T) {
	t.Parallel()
	f, server := modelled(t, database(t), modelPolicy())
	id := f.event()
	ctx, cancel := context.WithCancelCause(t.Context())
	first := f.w.planner.Model
	f.w.planner.Model = billed{first, func() { cancel(ErrStopping) }}
	f.must(f.w.execute(ctx, id))
	if row := f.row(id); row.Status != "queued" || row.CostMicros != 42 || strings.Join(f.calls(id), ", ") != "failed canceled" {
		t.Errorf("%s, calls %v for %d", row.Status, f.calls(id), row.CostMicros)
	}
	f.w.planner.Model = first
	if row := f.run(id); row.Outcome != OutcomeApplied || server.Paid() != 1 || row.CostMicros <= 42 {
		t.Errorf("%s, %d paid, cost %d", row.Outcome, server.Paid(), row.CostMicros)
	}
}
