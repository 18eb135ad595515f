package builtin

import (
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

func TestPinnedGroupsStayBesideTheNewest(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		strategy string
		params   plan.Params
		pinned   []chat.Seq
		want     map[string]string
	}{
		"truncation, by messages": {
			strategy: "truncation", params: plan.Params{"max_n": 8, "compact_to": 8}, pinned: []chat.Seq{4},
		},
		"truncation, down to its target": {
			strategy: "truncation", params: plan.Params{"max_n": 7, "compact_to": 6}, pinned: []chat.Seq{4},
			want: map[string]string{"truncation": "{[2,3),[6,7)}"},
		},
		"truncation, by tokens, counts all": {
			strategy: "truncation", params: plan.Params{"max_n": 100, "compact_to": 70, "metric": "tokens"}, pinned: []chat.Seq{4},
			want: map[string]string{"truncation": "{[2,3),[6,11)}"},
		},
		"sliding_window": {
			strategy: "sliding_window", params: plan.Params{"keep_last_groups": 2}, pinned: []chat.Seq{2, 10},
			want: map[string]string{"sliding_window": "{[3,7)}"},
		},
		"sliding_window, a system message": {
			strategy: "sliding_window", params: plan.Params{"keep_last_groups": 9, "preserve_system": false}, pinned: []chat.Seq{1},
		},
		"selective_tool_call": {
			strategy: "selective_tool_call", params: plan.Params{"keep_last_tool_call_groups": 0}, pinned: []chat.Seq{5},
			want: map[string]string{"tool_call_compaction": "{[8,11)}"},
		},
		"selective_tool_call, the newest is pinned": {strategy: "selective_tool_call", pinned: []chat.Seq{10}},
		"tool_result": {
			strategy: "tool_result", params: plan.Params{"keep_last_tool_call_groups": 0}, pinned: []chat.Seq{10},
			want: map[string]string{"tool_result_compaction": "+{[3,6)}"},
		},
		"token_budget": {
			strategy: "token_budget", params: plan.Params{"token_budget": 1}, pinned: []chat.Seq{5, 7},
			want: map[string]string{"token_budget_fallback": "{[2,3),[6,7),[8,11)}", "token_budget_fallback_strict": "{[1,2)}"},
		},
		"token_budget, a system message": {
			strategy: "token_budget", params: plan.Params{"token_budget": 1}, pinned: []chat.Seq{1},
			want: map[string]string{"token_budget_fallback": "{[2,11)}"},
		},
		"context_window": {
			strategy: "context_window",
			params:   plan.Params{"max_context_window_tokens": 100, "max_output_tokens": 0, "keep_last_tool_call_groups": 0},
			pinned:   []chat.Seq{4}, // 110 tokens, 90 once the other call is collapsed, then down to 50
			want:     map[string]string{"truncation": "{[2,3),[6,11)}"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sessiontest.Of(sessiontest.Talk()...)
			for _, q := range tt.pinned {
				s.Pinned[q] = true
			}
			got, err := planOf(t, Registry(), tt.strategy, tt.params, whole(s))
			if err != nil {
				t.Fatal(err)
			}
			wantPlan(t, tt.want, got)
		})
	}
}
