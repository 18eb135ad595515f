package builtin

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

func TestPipeline(t *testing.T) {
	t.Parallel()
	t.Run("stops before a step once the view is within the target", func(t *testing.T) {
		t.Parallel()
		s := sessiontest.Of(sessiontest.Talk()...)
		p := pipeline.Pipeline{Steps: []plan.Strategy{
			sessiontest.Strategy(t, Registry(), "sliding_window", plan.Params{"keep_last_groups": 2}),
			sessiontest.Strategy(t, Registry(), "selective_tool_call", plan.Params{"keep_last_tool_call_groups": 0}),
		}, Target: 30}
		r := s.Run(t, p, true)
		if len(r.Steps) != 1 || !r.Steps[0].Changed || r.Steps[0].After.IncludedGroups != 3 {
			t.Errorf("steps %+v", r.Steps)
		}
		if r.Gain() <= 0 || r.Grew() {
			t.Errorf("gain %d", r.Gain())
		}
	})
	t.Run("loads what a strategy reads and nothing else, and drops it", func(t *testing.T) {
		t.Parallel()
		s := sessiontest.Of(sessiontest.Talk()...)
		var asked []chat.Seq
		load := func(ctx context.Context, seqs []chat.Seq) (map[chat.Seq]*chat.Message, error) {
			asked = append(asked, seqs...)
			return s.Load(ctx, seqs)
		}
		tr := s.Transcript(true)
		p := pipeline.Pipeline{Steps: []plan.Strategy{
			sessiontest.Strategy(t, Registry(), "token_budget", plan.Params{"token_budget": 40, "strategies": []any{plan.Params{"strategy": "tool_result"}}}),
			sessiontest.StrategyFunc(func(tr *plan.Transcript) (chat.Plan, error) {
				for _, e := range tr.Entries {
					if plan.IsSource(e.Kind) && e.Message != nil {
						t.Errorf("content of %d is still there", e.Seq)
					}
				}
				return chat.Plan{}, nil
			}),
		}}
		if _, err := p.Run(t.Context(), tr, load); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]chat.Seq{3, 4, 5}, asked); diff != "" {
			t.Errorf("loaded (-want +got):\n%s", diff)
		}
	})
	t.Run("lets later steps see, exclude and cover what earlier ones wrote", func(t *testing.T) {
		t.Parallel()
		s := sessiontest.Of(sessiontest.Talk()...)
		cover := sessiontest.StrategyFunc(func(tr *plan.Transcript) (chat.Plan, error) {
			i := slices.IndexFunc(tr.Entries, func(e plan.Entry) bool { return e.Kind == chat.KindSummary })
			if tr.Entries[i].Tokens != 10 || !tr.Entries[i].Has(chat.HasText) || tr.Entries[i+1].Seq != 3 {
				t.Errorf("summary %+v before %d", tr.Entries[i], tr.Entries[i+1].Seq)
			}
			return chat.Plan{Additions: []chat.Addition{{
				Kind: chat.KindSummary, Covers: chat.RangesOf(2, tr.Entries[i].Seq), Message: sessiontest.Says("all of it"),
			}}}, nil
		})
		p := pipeline.Pipeline{Steps: []plan.Strategy{sessiontest.Strategy(t, Registry(), "tool_result", nil), cover}}
		tr := s.Transcript(true)
		tr.Counter = sessiontest.Equal(10)
		r, err := p.Run(t.Context(), tr, s.Load)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Plan.Exclude) != 0 || len(r.Plan.Additions) != 1 || r.Plan.Additions[0].Covers.String() != "{[2,6)}" {
			t.Errorf("plan %+v", r.Plan)
		}
		if r.View[1].Position != 2 || r.View[1].Seq != 12 {
			t.Errorf("view %+v", r.View)
		}
	})
	t.Run("a strategy that fails plans nothing", func(t *testing.T) {
		t.Parallel()
		cause := errors.New("no luck")
		for _, tt := range []struct {
			s    plan.Strategy
			code string
		}{
			{sessiontest.StrategyFunc(func(*plan.Transcript) (chat.Plan, error) { return chat.Plan{}, cause }), "strategy_failed"},
			{sessiontest.StrategyFunc(func(tr *plan.Transcript) (chat.Plan, error) { panic(tr.Entries[0].Message) }), "strategy_panicked"},
			{sessiontest.StrategyFunc(func(tr *plan.Transcript) (chat.Plan, error) { _ = tr.Entries[99]; return chat.Plan{}, nil }), "strategy_panicked"},
		} {
			s := sessiontest.Of(sessiontest.Talk()...)
			r, err := pipeline.Pipeline{Steps: []plan.Strategy{sessiontest.Strategy(t, Registry(), "selective_tool_call", nil), tt.s}}.Run(t.Context(), s.Transcript(true), s.Load)
			var failed *pipeline.StrategyError
			if !errors.As(err, &failed) || failed.Code() != tt.code || failed.Strategy != "spy" || !r.Plan.Empty() {
				t.Errorf("got %v", err)
			}
			if failed.Panic == (failed.Stack == nil) {
				t.Errorf("stack of %v: %s", err, failed.Stack)
			}
		}
	})
	t.Run("makes room for what the guard puts back", func(t *testing.T) {
		t.Parallel()
		s := sessiontest.Of(sessiontest.User(strings.Repeat("do it ", 7)), sessiontest.Says("one"), sessiontest.Says("two"), sessiontest.Says("three"), sessiontest.Says("four"))
		r := s.Run(t, pipeline.Pipeline{
			Steps: []plan.Strategy{sessiontest.Strategy(t, Registry(), "truncation", plan.Params{"max_n": 4, "compact_to": 4})}, Target: 25, Fallback: true,
		}, false)
		if got := viewSeqs(s); !slices.Equal(got, []int{1, 4, 5}) {
			t.Errorf("view %v, want the user message and the newest within the target", got)
		}
		if last := r.Steps[len(r.Steps)-1]; last.Strategy != pipeline.ReasonFallback || last.After.IncludedTokens != r.After.IncludedTokens {
			t.Errorf("steps %+v, after %+v", r.Steps, r.After)
		}
	})
	t.Run("the fallback takes summaries last and nothing that must stay", func(t *testing.T) {
		t.Parallel()
		s := sessiontest.Of(append(sessiontest.Talk(), sessiontest.User("now"), sessiontest.Calls("w"))...)
		s.Pinned[6] = true
		r := s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{sessiontest.Strategy(t, Registry(), "tool_result", plan.Params{"keep_last_tool_call_groups": 2})}, Target: 45, Fallback: true}, true)
		if got, want := byReason(r.Plan), map[string]string{
			"token_budget_fallback": "{[2,3),[7,11)}", "tool_result_compaction": "+{[3,6)}",
		}; !cmp.Equal(got, want) {
			t.Errorf("plan %v", got)
		}
		r = s.Run(t, pipeline.Pipeline{Target: 1, Fallback: true}, true)
		if got, want := viewSeqs(s), []int{1, 6, 12, 13}; !cmp.Equal(got, want) {
			t.Errorf("view %v, steps %+v", got, r.Steps)
		}
	})
}
