package builtin

import (
	"maps"
	"testing"

	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

func TestContextWindow(t *testing.T) {
	t.Parallel()
	// Eleven messages of ten tokens: 110, and 80 once both calls are collapsed but
	// for one message each.
	tests := map[string]struct {
		window int
		params plan.Params
		want   map[string]string
	}{
		"nothing at the tool limit": {window: 220, params: plan.Params{"keep_last_tool_call_groups": 0}},
		"tool calls alone between the limits": {
			window: 219, params: plan.Params{"keep_last_tool_call_groups": 0},
			want: map[string]string{"tool_result_compaction": "+{[3,6)}+{[8,11)}"},
		},
		"no tool call is old enough": {window: 150},
		"the newest tool calls stay": {
			window: 150, params: plan.Params{"keep_last_tool_call_groups": 1},
			want: map[string]string{"tool_result_compaction": "+{[3,6)}"},
		},
		"the oldest groups above the other limit, down to the tool limit": {
			window: 130, params: plan.Params{},
			want: map[string]string{"truncation": "{[2,7)}"},
		},
		"what was collapsed goes too": {
			window: 80, params: plan.Params{"keep_last_tool_call_groups": 0},
			want: map[string]string{"tool_result_compaction": "+{[8,11)}", "truncation": "{[2,7)}"},
		},
		"thresholds of one's own": {
			window: 100, params: plan.Params{"tool_eviction_threshold": 1, "truncation_threshold": 1.0},
			want: map[string]string{"truncation": "{[2,3)}"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := plan.Params{"max_context_window_tokens": tt.window, "max_output_tokens": 0}
			maps.Copy(p, tt.params)
			got, err := planOf(t, Registry(), "context_window", p, whole(sessiontest.Of(sessiontest.Talk()...)))
			if err != nil {
				t.Fatal(err)
			}
			wantPlan(t, tt.want, got)
		})
	}
}
