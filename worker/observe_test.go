package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/llm/llmtest"
	"github.com/sessionstore/compactor/strategies/policy"
)

// watcher is an Observer that remembers.
type watcher struct {
	mu       sync.Mutex
	attempts []Attempt
	calls    []ModelCall
	rejected []string
}

func (o *watcher) Attempted(a Attempt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.attempts = append(o.attempts, a)
}

func (o *watcher) Called(c ModelCall) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, c)
}

func (o *watcher) Rejected(code string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rejected = append(o.rejected, code)
}

// results returns the attempts, "trigger result code".
func (o *watcher) results() (out []string) {
	for _, a := range o.attempts {
		out = append(out, a.Trigger+" "+a.Result+" "+a.Code)
	}
	return out
}

// failing is a store that saves no policy, which is the first thing that a run does.
type failing struct {
	Store
	err error
}

func (s failing) EnsurePolicy(context.Context, string, string, any) error { return s.err }

func TestTheObserverIsToldOfEveryAttempt(t *testing.T) {
	t.Parallel()
	o := &watcher{}
	f := setupWith(t, database(t), testPolicy(), Config{Observer: o})
	f.append("s", "suauctauauaua")
	applied := f.run(f.event())
	f.append("s", "ua")
	f.run(f.operator("s", store.Options{DryRun: true}))
	f.w.store = failing{f.store.Worker, errors.New("unexpected")}
	f.w.policies.Clear()
	again := f.operator("s", store.Options{})
	f.run(again)
	f.w.store = failing{f.store.Worker, store.ErrStale}
	f.run(again)

	want := []string{"event applied applied", "operator skipped dry_run", "operator retried internal"}
	want = append(want, slices.Repeat([]string{"operator postponed stale"}, maxReplans)...)
	want = append(want, "operator skipped stale")
	if diff := cmp.Diff(want, o.results()); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	first, last := o.attempts[0], o.attempts[len(o.attempts)-1]
	if first.TokensBefore != applied.TokensBefore || first.TokensAfter != applied.TokensAfter || first.TokensAfter >= first.TokensBefore {
		t.Errorf("%+v, want the tokens of %+v", first, applied)
	}
	if first.SinceWrite <= first.Took || last.SinceWrite != 0 {
		t.Errorf("%s after the write, took %s; %s for an operator", first.SinceWrite, first.Took, last.SinceWrite)
	}
	if !first.First || first.Planned <= 0 || first.Took < first.Planned || last.First {
		t.Errorf("first %+v, last %+v", first, last)
	}
}

func TestTheObserverIsToldOfARunThatAnotherWorkerHas(t *testing.T) {
	t.Parallel()
	o := &watcher{}
	p := testPolicy()
	p.Pipeline = []policy.Step{{Strategy: "truncation"}} // such runs are not claimed
	f := setupWith(t, database(t), p, Config{Observer: o})
	f.append("s", "suauctauauaua")
	run := f.operator("s", store.Options{From: "view"})
	entered := false
	f.w.failpoint = func(step string) {
		if step == stepChecked && !entered { // another worker is faster
			entered = true
			f.run(run)
		}
	}
	f.run(run)
	if diff := cmp.Diff([]string{"operator applied applied", "operator lost fenced"}, o.results()); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}

func TestTheObserverIsToldOfCallsOfModels(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		step            llmtest.Step
		codes, rejected []string
	}{
		"a rejected answer": {llmtest.Step{Behaviour: llmtest.Refusal}, []string{"", ""}, []string{"refusal"}},
		"a failure":         {llmtest.Step{Behaviour: llmtest.AuthError}, []string{"auth"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &watcher{}
			f, _ := modelled(t, database(t), modelPolicy(), tt.step)
			f.w.config.Observer = o
			run := f.run(f.event())
			var codes []string
			var input, cost int64
			for _, c := range o.calls {
				codes, input, cost = append(codes, c.Code), input+c.Input, cost+c.CostMicros
				if c.Model != "m" || c.Requests == 0 || c.Code == "" && c.Took <= 0 {
					t.Errorf("%+v", c)
				}
			}
			if !slices.Equal(codes, tt.codes) || !slices.Equal(o.rejected, tt.rejected) {
				t.Errorf("calls %q, rejected %q", codes, o.rejected)
			}
			if len(o.calls) != run.Calls || input != run.InputTokens || cost != run.CostMicros {
				t.Errorf("%d calls, %d tokens for %d; the ledger has %d, %d for %d", len(o.calls), input, cost, run.Calls, run.InputTokens, run.CostMicros)
			}
		})
	}
}

// stale is a store whose sessions have always changed.
type stale struct{ Store }

func (stale) Apply(context.Context, store.RunID, int64, store.Change) (chat.Ranges, error) {
	return nil, store.ErrStale
}

func TestAPostponedAttemptLogsWhatItHasSpent(t *testing.T) {
	t.Parallel()
	f, _ := modelled(t, database(t), modelPolicy())
	var log strings.Builder
	f.w.logger = slog.New(slog.NewTextHandler(&log, nil))
	f.w.store = stale{f.store.Worker}
	row := f.run(f.event()) // the others have the stored answer
	want := fmt.Sprintf("model=m model_calls=1 input_tokens=%d output_tokens=%d cost=%v", row.InputTokens, row.OutputTokens, float64(row.CostMicros)/1e6)
	if row.Outcome != OutcomeStale || row.CostMicros == 0 || !strings.Contains(log.String(), `msg="run is planned again"`) || !strings.Contains(log.String(), want) {
		t.Errorf("status %s, log %s, want %s", row.Status, log.String(), want)
	}
	log.Reset()
	f.w.store = f.store.Worker
	if f.run(f.operator("s", store.Options{From: "view"})); !strings.Contains(log.String(), "outcome=applied") || strings.Contains(log.String(), "model_calls") {
		t.Errorf("with the stored answer: %s", log.String())
	}
}
