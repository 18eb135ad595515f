package builtin

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// whole returns a transcript with its content, each message of ten tokens.
func whole(s *sessiontest.Session) *plan.Transcript {
	t := s.Transcript(true)
	t.Counter = sessiontest.Equal(10)
	for i := range t.Entries {
		t.Entries[i].Tokens = 10
		t.Entries[i].Message = s.Messages[t.Entries[i].Seq]
	}
	return t
}

func planOf(t *testing.T, r *plan.Registry, name string, p plan.Params, tr *plan.Transcript) (chat.Plan, error) {
	t.Helper()
	s, err := r.New(name, p)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Plan(t.Context(), tr)
	if reader, ok := s.(plan.Reader); ok {
		covered := chat.Ranges{}
		for _, a := range got.Additions {
			covered = covered.Union(a.Covers)
		}
		if unread := covered.Minus(chat.RangesOf(reader.Reads(tr)...)); len(unread) > 0 {
			t.Errorf("%s covers %s, which it does not read", name, unread)
		}
	}
	return got, err
}

func TestSummarization(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		pinned []chat.Seq
		params plan.Params
		want   map[string]string
		asks   string
	}{
		"keeps more than its target rather than split a group": {
			params: plan.Params{"target_count": 2, "threshold": 0},
			want:   map[string]string{"summarized": "+{[2,8)}"},
			asks: "1. [user] first\n2. [assistant] function_call, function_call\n3. [tool] function_result\n" +
				"4. [tool] function_result\n5. [assistant] done\n6. [user] next",
		},
		"does not count pinned groups": {
			pinned: []chat.Seq{5, 11}, params: plan.Params{"target_count": 4, "threshold": 2},
		},
		"keeps the newest and what is pinned, with its call": {
			pinned: []chat.Seq{5, 11}, params: plan.Params{"target_count": 3, "threshold": 0},
			want: map[string]string{"summarized": "+{[2,3),[6,8)}"},
			asks: "1. [user] first\n2. [assistant] done\n3. [user] next",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sessiontest.Of(sessiontest.Talk()...)
			for _, q := range tt.pinned {
				s.Pinned[q] = true
			}
			model := &sessiontest.Notes{}
			got, err := planOf(t, Registry().With(model), "summarization", tt.params, whole(s))
			if err != nil {
				t.Fatal(err)
			}
			wantPlan(t, tt.want, got)
			var want []plan.Request
			if tt.asks != "" {
				want = []plan.Request{{System: defaultSummaryPrompt, User: tt.asks}}
			}
			if diff := cmp.Diff(want, model.Asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

func TestARunThatIsStoppedWhileAModelWritesIsStopped(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	model := &sessiontest.Notes{Answer: func(int) (string, error) {
		stop()
		return "", ctx.Err()
	}}
	d, err := pipeline.NewDraft(whole(sessiontest.Of(sessiontest.Talk()...)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Run(ctx, sessiontest.Strategy(t, Registry().With(model), "summarization", nil), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// wantPlan compares a plan, as byReason has it; want nil is the empty plan.
func wantPlan(t *testing.T, want map[string]string, got chat.Plan) {
	t.Helper()
	if want == nil {
		want = map[string]string{}
	}
	if diff := cmp.Diff(want, byReason(got)); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}
