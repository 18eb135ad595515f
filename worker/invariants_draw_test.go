package worker

import (
	"context"
	"errors"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/plan"
)

// drawStep draws any registered strategy with parameters that make it do something
// to sessions of this size. depth is how deep in others it is.
func drawStep(t *rapid.T, depth int) store.Step {
	names := builtin.Registry().Names()
	if depth > 0 {
		names = slices.DeleteFunc(names, func(s string) bool { return s == "token_budget" })
	}
	name := rapid.SampledFrom(names).Draw(t, "strategy")
	p := map[string]any{}
	number := func(key string, least, most int) int {
		n := rapid.IntRange(least, most).Draw(t, key)
		p[key] = n
		return n
	}
	truth := func(key string) { p[key] = rapid.Bool().Draw(t, key) }
	one := func(key string, of ...string) { p[key] = rapid.SampledFrom(of).Draw(t, key) }
	switch name {
	case "truncation":
		one("metric", "messages", "tokens")
		most := 15
		if p["metric"] == "tokens" {
			most = 1500
		}
		number("compact_to", 1, number("max_n", 1, most))
		truth("preserve_system")
	case "sliding_window":
		number("keep_last_groups", 1, 8)
		truth("preserve_system")
	case "selective_tool_call", "tool_result", "clear_tool_arguments":
		number("keep_last_tool_call_groups", 0, 3)
	case "summarization":
		number("target_count", 1, 6)
		number("threshold", 0, 3)
	case "context_window":
		number("max_context_window_tokens", 200, 2000)
		number("max_output_tokens", 0, 50)
		number("keep_last_tool_call_groups", 0, 3)
	case "token_budget":
		number("token_budget", 1, 1500)
		truth("early_stop")
		steps := []any{}
		for range rapid.IntRange(1, 3).Draw(t, "inner steps") {
			inner := drawStep(t, depth+1)
			steps = append(steps, map[string]any{"strategy": inner.Strategy, "params": inner.Params})
		}
		p["strategies"] = steps
	case "prune_tool_results":
		number("protect_last_n", 0, 8)
		number("protect_tail_tokens", 0, 1)
	case "handoff":
		number("protect_first_n", 0, 4)
		number("protect_last_n", 0, 6)
		number("tail_token_budget", 0, 300)
		one("on_failure", "keep", "fallback")
		truth("system_note")
	case "keep_last_n_turns", "keep_last_n_messages":
		number("n", 1, 6)
	case "compact_tool_results":
		number("keep_last_n", 0, 3)
		if rapid.Bool().Draw(t, "replace") {
			one("replacement", "", "{tool_name}: {result_length}")
		}
	case "summarize":
		number("threshold", 0, 8)
		number("keep_last_n", 0, 6)
		truth("preserve_user_messages")
	case "clamp":
		number("max_tokens", 60, 120)
	case "dedupe_reads":
		p["read_tools"], p["write_tools"] = []any{"do_a", "do_b"}, []any{"do_c"}
	case "strip_media":
		number("keep_last_turns", 0, 2)
	case "attribution":
		number("keep_last_tool_call_groups", 0, 2)
		rule := map[string]any{"action": rapid.SampledFrom([]string{"drop", "protect", "keep", "collapse", "include"}).Draw(t, "action")}
		if rapid.Bool().Draw(t, "by role") {
			rule["role"] = rapid.SampledFrom([]string{"system", "user", "assistant", "tool"}).Draw(t, "role")
		} else {
			rule["tool"] = rapid.SampledFrom([]string{"do_a", "do_*"}).Draw(t, "tool")
		}
		p["rules"] = []any{rule}
	case "preserve_user_messages":
		number("max_tokens", 1, 600)
	case "preserve_recent_fraction":
		p["fraction"] = rapid.Float64Range(0, 1).Draw(t, "fraction")
	case "preserve_recent_turns":
		number("turns", 1, 3)
		p["min_turn_tokens"] = 0
		number("max_turn_tokens", 1, 400)
	case "protect_head":
		number("groups", 1, 4)
	default: // other strategies need a case if they require more than integers
		for _, info := range builtin.Registry().Describe() {
			for _, param := range info.Params {
				if info.Name == name && param.Type == "integer" {
					number(param.Name, 1, 8)
				}
			}
		}
	}
	if strings.HasPrefix(name, "preserve_") {
		one("summary", "first", "after_preserved")
	}
	return store.Step{Strategy: name, Params: p}
}

// drawSummarizer draws one that returns a summary, one that is too long, one that Postgres
// cannot store, an empty one, or an error.
func drawSummarizer(t *rapid.T) plan.Summarizer {
	long := strings.Repeat("and then it said more, ", 60)
	answer := rapid.SampledFrom([]string{"what was said", "what was said", long, "nul \x00 and \xff", " \n", "!"}).Draw(t, "summary")
	return plan.Func(func(context.Context, plan.Request) (string, error) {
		if answer == "!" {
			return "half a", errors.New("no answer")
		}
		return answer, nil
	})
}

// drawAnyStep draws a step that need not be one of a registered strategy.
func drawAnyStep(t *rapid.T) store.Step {
	known := rapid.SampledFrom(builtin.Registry().Describe()).Draw(t, "any strategy")
	name, keys := rapid.SampledFrom([]string{known.Name, known.Name, known.Name, "no_such", ""}).Draw(t, "name"), []string{"no_such"}
	for _, p := range known.Params {
		keys = append(keys, p.Name)
	}
	values := rapid.SampledFrom([]any{-1, 0, 3, 1.5, 1e300, "x", "", true, nil, []any{}, []any{"x"}, map[string]any{}})
	step := store.Step{Strategy: name, Params: map[string]any{}}
	for range rapid.IntRange(0, 2).Draw(t, "any params") {
		step.Params[rapid.SampledFrom(keys).Draw(t, "any key")] = values.Draw(t, "any value")
	}
	return step
}

func drawModel(t *rapid.T) string {
	return rapid.SampledFrom([]string{"gpt-4", "gpt-4o", "claude-sonnet-4-5", "claude-fable-5-1", "us/some-model"}).Draw(t, "model")
}
