package builtin

import (
	"maps"
	"slices"
	"strings"
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

func TestContextWindowNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		params plan.Params
		want   []string
	}{
		"all at once": {
			params: plan.Params{"max_context_window_tokens": 0, "max_output_tokens": -1, "tool_eviction_threshold": 0, "truncation_threshold": 1.5},
			want: []string{
				"max_context_window_tokens: got 0", "max_output_tokens: got -1", "tool_eviction_threshold: got 0, want a number above 0",
				"truncation_threshold: got 1.5",
			},
		},
		"no room for the context": {
			params: plan.Params{"max_context_window_tokens": 10, "max_output_tokens": 10},
			want:   []string{"max_output_tokens: got 10, want less than max_context_window_tokens (10)"},
		},
		"limits the wrong way round": {
			params: plan.Params{"max_context_window_tokens": 100, "max_output_tokens": 0, "tool_eviction_threshold": 0.9},
			want:   []string{"truncation_threshold: got 0.8, want at least tool_eviction_threshold (0.9)"},
		},
		"limits of nothing": {
			params: plan.Params{"max_context_window_tokens": 3, "max_output_tokens": 2},
			want:   []string{"tool_eviction_threshold: got 0.5, want a share", "truncation_threshold: got 0.8, want a share"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Registry().New("context_window", tt.params)
			if err == nil {
				t.Fatal("no error")
			}
			lines := strings.Split(err.Error(), "\n")
			for _, part := range tt.want {
				if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, part) }) {
					t.Errorf("error does not say %q:\n%v", part, err)
				}
			}
			if len(lines) != len(tt.want) {
				t.Errorf("more than that:\n%v", err)
			}
		})
	}
}
