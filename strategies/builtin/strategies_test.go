package builtin

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/plan"
)

func TestRegistry(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		name   string
		params plan.Params
		want   []string // parts of the error, none for no error
	}{
		"numbers as JSON gives them": {name: "truncation", params: plan.Params{"max_n": 10.0, "compact_to": json.Number("5")}},
		"a nested strategy": {name: "token_budget", params: plan.Params{
			"token_budget": -1, "strategies": []any{map[string]any{"strategy": "tool_result"}},
		}},
		"an unknown name lists the known ones": {
			name: "truncate", want: []string{`unknown strategy "truncate"`, "sliding_window", "truncation"},
		},
		"all faults at once": {
			name: "truncation", params: plan.Params{"max_n": "ten", "metric": "bytes", "preserve_system": 1, "max": 3},
			want: []string{
				`truncation: max_n: got "ten", want an integer at least 1`,
				"truncation: compact_to: missing, want integer at least 1",
				`truncation: metric: got "bytes", want one of messages, tokens`,
				"truncation: preserve_system: got 1, want true or false",
				"truncation: max: got an unknown parameter, want only max_n, compact_to, metric, preserve_system",
			},
		},
		"parameters that do not go together": {
			name: "truncation", params: plan.Params{"max_n": 5, "compact_to": 6},
			want: []string{"truncation: compact_to: got 6, want at most max_n (5)"},
		},
		"the value is named": {
			name: "sliding_window", params: plan.Params{"keep_last_groups": -3},
			want: []string{"sliding_window: keep_last_groups: got -3, want an integer at least 1"},
		},
		"a fraction is no integer": {
			name: "tool_result", params: plan.Params{"keep_last_tool_call_groups": 1.5},
			want: []string{"got 1.5, want an integer at least 0"},
		},
		"lists as JSON and Go have them, and one string for a list of one": {
			name: "tool_result", params: plan.Params{"exclude_tools": []any{"a"}, "protect_sources": []string{"b", "c"}, "drop_sources": "d"},
		},
		"lists hold strings, and none that are empty": {
			name: "tool_result", params: plan.Params{"exclude_tools": []any{"a", 1}, "protect_sources": []any{""}, "drop_sources": 7},
			want: []string{
				"tool_result: exclude_tools: got [\"a\",1], want a list of strings that are not empty",
				`tool_result: protect_sources: got [""], want a list of strings that are not empty`,
				"tool_result: drop_sources: got 7, want a list of strings that are not empty",
			},
		},
		"a list of objects must be there": {
			name: "attribution", want: []string{"attribution: rules: missing, want list of objects"},
		},
		"a list of objects is one": {
			name: "attribution", params: plan.Params{"rules": "drop"}, want: []string{`attribution: rules: got "drop", want a list of objects`},
		},
		"a list of objects holds nothing else": {
			name: "attribution", params: plan.Params{"rules": []any{"drop"}}, want: []string{`attribution: rules: got ["drop"], want a list of objects`},
		},
		"faults of objects say where": {
			name: "attribution", params: plan.Params{"rules": []any{
				plan.Params{"role": "user", "action": "keep"}, plan.Params{"action": "eat", "tool": "x"}, plan.Params{"role": 3, "rolle": "user"},
			}},
			want: []string{
				"attribution: rules[1]: action: got \"eat\", want one of drop, protect, keep, collapse, include",
				"attribution: rules[2]: role: got 3, want a list of strings that are not empty",
				"attribution: rules[2]: action: missing, want one of drop, protect, keep, collapse, include",
				"attribution: rules[2]: rolle: got an unknown parameter, want only source_id, role, tool, action",
			},
		},
		"a rule has a condition": {
			name: "attribution", params: plan.Params{"rules": []plan.Params{{"action": "drop"}}},
			want: []string{"attribution: rules[0]: source_id: missing, want a condition: source_id, role or tool"},
		},
		"clamp needs a limit": {
			name: "clamp", params: plan.Params{"max_tokens": 0}, want: []string{"clamp: max_tokens: got 0, want more than 0, or max_chars"},
		},
		"a limit has room for the note": {
			name: "clamp", params: plan.Params{"max_chars": 20}, want: []string{"clamp: max_chars: got 20, want 0 or at least 200"},
		},
		"a head is something": {
			name: "protect_head", params: plan.Params{"groups": 0}, want: []string{"protect_head: groups: got 0, want more than 0, or messages"},
		},
		"shares and limits of a context window": {
			name: "context_window", params: plan.Params{"max_context_window_tokens": 0, "max_output_tokens": -1, "tool_eviction_threshold": 0, "truncation_threshold": 1.5},
			want: []string{
				"max_context_window_tokens: got 0", "max_output_tokens: got -1", "tool_eviction_threshold: got 0, want a number above 0",
				"truncation_threshold: got 1.5",
			},
		},
		"a context window with nothing but the output": {
			name: "context_window", params: plan.Params{"max_context_window_tokens": 10, "max_output_tokens": 10},
			want: []string{"max_output_tokens: got 10, want less than max_context_window_tokens (10)"},
		},
		"a truncation threshold below the other": {
			name: "context_window", params: plan.Params{"max_context_window_tokens": 100, "max_output_tokens": 0, "tool_eviction_threshold": 0.9},
			want: []string{"truncation_threshold: got 0.8, want at least tool_eviction_threshold (0.9)"},
		},
		"shares of less than a token": {
			name: "context_window", params: plan.Params{"max_context_window_tokens": 3, "max_output_tokens": 2},
			want: []string{"tool_eviction_threshold: got 0.5, want a share", "truncation_threshold: got 0.8, want a share"},
		},
		"a template with an open brace": {
			name: "compact_tool_results", params: plan.Params{"keep_last_n": -1, "threshold": "x", "replacement": "{", "keep": 1},
			want: []string{
				"keep_last_n: got -1", `threshold: got "x"`, `replacement: got "{", want text with placeholders`, "keep: got an unknown parameter",
			},
		},
		"a template with a placeholder that is no name": {
			name: "compact_tool_results", params: plan.Params{"replacement": "{a b}"}, want: []string{`a single '{' that is no placeholder at "{a b}"`},
		},
		"a template with a closing brace": {
			name: "compact_tool_results", params: plan.Params{"replacement": "a } b"}, want: []string{`a single '}' that is no placeholder at "} b"`},
		},
		"a template that is no text": {
			name: "compact_tool_results", params: plan.Params{"replacement": 1}, want: []string{"replacement: got 1, want a string or null"},
		},
		"a summary of no messages": {
			name: "summarization", params: plan.Params{"target_count": 0, "threshold": -1},
			want: []string{"target_count: got 0", "threshold: got -1", plan.ErrNoSummarizer.Error()},
		},
		"a summary of no tokens": {
			name: "summarize", params: plan.Params{"max_verbatim_chars": 1, "max_summary_tokens": 0},
			want: []string{
				"threshold: missing", "max_verbatim_chars: got 1, want an integer at least 2", "max_summary_tokens: got 0", plan.ErrNoSummarizer.Error(),
			},
		},
		"a handoff without a prefix": {
			name: "handoff", params: plan.Params{"on_failure": "fast", "protect_first_n": -1, "summary_prefix": " ", "tail": 3},
			want: []string{"on_failure", "protect_first_n", "summary_prefix", "tail", plan.ErrNoSummarizer.Error()},
		},
		"faults of nested strategies say where": {
			name: "token_budget", params: plan.Params{"token_budget": 1, "strategies": []any{
				plan.Params{"strategy": "tool_result", "params": plan.Params{"keep_last_tool_call_groups": -1}},
				plan.Params{"strategy": "nope"},
				plan.Params{"strategie": "x"},
			}},
			want: []string{
				"token_budget: strategies[0]: tool_result: keep_last_tool_call_groups: got -1",
				`strategies[1]: unknown strategy "nope"`, `strategies[2]: unknown key "strategie"`,
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Registry().New(tt.name, tt.params)
			if len(tt.want) == 0 {
				if err != nil || s.Name() != tt.name {
					t.Fatalf("got %v, %v", s, err)
				}
				return
			}
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error does not say %q:\n%v", part, err)
				}
			}
			if n := strings.Count(err.Error(), "\n") + 1; n > len(tt.want) {
				t.Errorf("%d errors, want %d:\n%v", n, len(tt.want), err)
			}
		})
	}
	t.Run("describes every parameter", func(t *testing.T) {
		t.Parallel()
		for _, info := range Registry().Describe() {
			if info.Doc == "" || info.Name == "truncation" && len(info.Params) != 4 {
				t.Errorf("%+v", info)
			}
			if _, err := Registry().New(info.Name, nil); info.Summarizer != errors.Is(err, plan.ErrNoSummarizer) {
				t.Errorf("%s: summarizer %t, but %v", info.Name, info.Summarizer, err)
			}
			for _, p := range info.Params {
				if p.Doc == "" || p.Type == "" || p.Required != (p.Default == "") {
					t.Errorf("%s: %+v", info.Name, p)
				}
			}
		}
	})
	t.Run("refuses names that are taken or no names", func(t *testing.T) {
		t.Parallel()
		r := Registry()
		for _, name := range []string{"truncation", "", "Drop It"} {
			if err := r.Register(name, "", newTruncation); err == nil {
				t.Errorf("registered %q", name)
			}
		}
	})
}
