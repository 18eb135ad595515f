package eval_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sessionstore/compactor/cmd/internal/dev/eval"
	"github.com/sessionstore/compactor/cmd/internal/dev/retention"
	"github.com/sessionstore/compactor/strategies/chat"
)

// A summary is updated with each part of the session in turn, and each round has the whole
// budget.
func TestRoundsUpdateASummary(t *testing.T) {
	t.Parallel()
	session := talks(1)[0]
	const rounds = 4
	var inputs []eval.Input
	p := eval.Summary("counting", "", "counting/1", func(_ context.Context, in eval.Input) (string, eval.Usage, error) {
		inputs = append(inputs, in)
		return fmt.Sprintf("round %d", len(inputs)), eval.Usage{Calls: 1}, nil
	})
	o := eval.Options{Cuts: []float64{0.5}, Budgets: []float64{0.3}, Policies: []eval.Policy{p}, Rounds: rounds, Samples: 1}
	r := run(t, []eval.Session{session}, o)
	if len(inputs) != 1+rounds {
		t.Fatalf("%d calls", len(inputs))
	}
	var said []chat.Message
	for i, in := range inputs[1:] {
		want := ""
		if i > 0 {
			want = fmt.Sprintf("round %d", i+1)
		}
		if in.Previous != want || in.Budget != inputs[0].Budget || in.Messages[0].Role != chat.RoleSystem {
			t.Errorf("round %d: previous %q, want %q, %v tokens", i+1, in.Previous, want, in.Budget)
		}
		if share := retention.Total(in.Messages) / retention.Total(inputs[0].Messages); share < 0.15 || share > 0.35 {
			t.Errorf("round %d has %.0f %% of the tokens", i+1, 100*share)
		}
		said = append(said, in.Messages[1:]...)
	}
	if whole := inputs[0].Messages[1:]; len(said) != len(whole) || said[len(said)-1].Content.String() != whole[len(whole)-1].Content.String() {
		t.Errorf("the rounds have %d messages, the session %d", len(said), len(whole))
	}
	one, more := r.Figures[0], r.Figures[1]
	if one.Rounds != 1 || more.Rounds != rounds || one.Calls != 1 || more.Calls != rounds || one.TokensAfter != more.TokensAfter || more.Limit() != "30 % ×4" {
		t.Errorf("%+v\n%+v", one, more)
	}
	if len(r.Samples) != 2 || r.Samples[1].Text != "round 5" || !strings.Contains(strings.Join(r.Notes(), "\n"), "×4: ") {
		t.Errorf("%+v, %q", r.Samples, r.Notes())
	}
}

// Other policies compact what they kept in the round before.
func TestRoundsCompactWhatWasKept(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	o := options(&calls)
	o.Compare, o.Rounds = nil, 3
	inner := o.Policies[0].Keep
	var kept []chat.Message
	o.Policies = o.Policies[:1]
	o.Policies[0].Keep = func(ctx context.Context, in eval.Input) (eval.Kept, error) {
		if n := len(kept); calls.Load()%4 > 1 && (n == 0 || len(in.Messages) <= n || in.Messages[n-1].Content.String() != kept[n-1].Content.String()) {
			t.Errorf("%d messages do not begin with the %d kept ones", len(in.Messages), n)
		}
		out, err := inner(ctx, in)
		if kept = out.Messages; retention.Total(kept) > in.Budget || in.Previous != "" {
			t.Errorf("%v of %v tokens, previous %q", retention.Total(kept), in.Budget, in.Previous)
		}
		return out, err
	}
	o.Cuts, o.Budgets, o.Jobs, o.Samples = []float64{0.5}, []float64{0.4}, 1, 0
	r := run(t, talks(4), o)
	if calls.Load() != 4*(1+3) || len(r.Figures) != 2 {
		t.Errorf("%d calls, %d figures", calls.Load(), len(r.Figures))
	}
	// To drop the oldest again and again leaves the newest.
	if a, b := r.Figures[0], r.Figures[1]; *a.Loose != *b.Loose || a.TokensAfter != b.TokensAfter {
		t.Errorf("%+v\n%+v", a, b)
	}
}
