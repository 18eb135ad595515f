package worker

import (
	"maps"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// chains holds the runs of every recorded session: the options of each round by the size of
// the view. Without a pipeline, the run has that of the default policy.
var chains = map[string]func(messages int64, size chat.Tokens) []store.Step{
	"truncation by messages": func(n int64, _ chat.Tokens) []store.Step {
		return step("truncation", "max_n", max(1, n*8/10), "compact_to", max(1, n*6/10))
	},
	"truncation by tokens": func(_ int64, size chat.Tokens) []store.Step {
		return step("truncation", "metric", "tokens", "max_n", max(1, size*8/10), "compact_to", max(1, size*6/10))
	},
	"sliding_window": func(n int64, _ chat.Tokens) []store.Step {
		return step("sliding_window", "keep_last_groups", max(1, n/4))
	},
	"selective_tool_call": func(int64, chat.Tokens) []store.Step {
		return step("selective_tool_call", "keep_last_tool_call_groups", 1)
	},
	"tool_result": func(int64, chat.Tokens) []store.Step {
		return step("tool_result", "keep_last_tool_call_groups", 2)
	},
	"token_budget": func(_ int64, size chat.Tokens) []store.Step {
		return step("token_budget", "token_budget", max(1, size*6/10), "strategies", []any{
			map[string]any{"strategy": "tool_result"}, map[string]any{"strategy": "sliding_window", "params": map[string]any{"keep_last_groups": 40}},
		})
	},
	"context_window": func(_ int64, size chat.Tokens) []store.Step {
		return step("context_window", "max_context_window_tokens", max(2, size), "max_output_tokens", 0)
	},
	"keep_last_n_turns":    fixed("keep_last_n_turns", "n", 2),
	"keep_last_n_messages": fixed("keep_last_n_messages", "n", 12),
	"compact_tool_results": fixed("compact_tool_results", "keep_last_n", 2, "replacement", "{tool_name}: {result_length}"),
	"summarize":            fixed("summarize", "threshold", 10, "keep_last_n", 6),
	"handoff": func(_ int64, size chat.Tokens) []store.Step {
		return step("handoff", "tail_token_budget", max(1, size/4), "protect_last_n", 4)
	},
	"clamp":                  fixed("clamp", "max_tokens", 100),
	"clear_tool_arguments":   fixed("clear_tool_arguments", "keep_last_tool_call_groups", 2, "max_chars", 100, "value_chars", 20),
	"attribution":            fixed("attribution", "rules", []any{map[string]any{"tool": "*", "action": "collapse"}}),
	"preserve_user_messages": fixed("preserve_user_messages", "max_tokens", 500),
	"preserve_recent_turns":  fixed("preserve_recent_turns", "turns", 1),
	"the default policy":     nil,
}

func fixed(strategy string, params ...any) func(int64, chat.Tokens) []store.Step {
	return func(int64, chat.Tokens) []store.Step { return step(strategy, params...) }
}

// thorough are the chains that every session goes through in the long tests; the others
// take one session in six then, and every chain four sessions by default.
var thorough = []string{
	"truncation by messages", "truncation by tokens", "sliding_window", "tool_result", "summarize", "compact_tool_results", "the default policy",
}

var sample = func() int {
	if sessiontest.Long() {
		return 6
	}
	return 43
}()

// seldom are strategies that find something to do in few sessions, or none.
var seldom = map[string]bool{"dedupe_reads": true, "strip_media": true, "protect_head": true}

// everyChain is chains, and every registered strategy that has none with its
// default parameters.
func everyChain() map[string]func(int64, chat.Tokens) []store.Step {
	all := maps.Clone(chains)
	for _, name := range builtin.Registry().Names() {
		if _, known := all[name]; !known && name != "truncation" {
			all[name] = fixed(name)
		}
	}
	return all
}

func step(strategy string, params ...any) []store.Step {
	s := store.Step{Strategy: strategy, Params: map[string]any{}}
	for i := 0; i < len(params); i += 2 {
		s.Params[params[i].(string)] = params[i+1]
	}
	return []store.Step{s}
}
