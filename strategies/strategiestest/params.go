package strategiestest

import (
	"context"
	"fmt"
	"strings"

	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/plan"
)

// Registry returns the built-in strategies with a summarizer that calls no model.
func Registry() *plan.Registry {
	r := builtin.Registry()
	r.Summarizer = plan.Func(func(_ context.Context, q plan.Request) (string, error) {
		return fmt.Sprintf("SUMMARY(%d)", 1+strings.Count(q.User, "\n")), nil
	})
	return r
}

// Default returns a strategy with default parameters. Required parameters get values that
// let it remove about half of the log.
func (l *Log) Default(r *plan.Registry, name string) (plan.Strategy, error) {
	half := int(l.tokens / 2)
	required := plan.Params{
		"max_n": half, "compact_to": half, "token_budget": half,
		"max_context_window_tokens": 2 * half, "max_output_tokens": half / 4,
		"keep_last_groups": len(l.entries) / 4,
		"n":                max(1, len(l.entries)/16),
		"threshold":        len(l.entries) / 4,
		"max_tokens":       half,
		"rules":            []any{plan.Params{"tool": "*", "action": "collapse"}, plan.Params{"source_id": "*", "action": "drop"}},
	}
	params := plan.Params{}
	for _, info := range r.Describe() {
		if info.Name != name {
			continue
		}
		for _, p := range info.Params {
			if p.Required {
				value, known := required[p.Name]
				switch {
				case known:
					params[p.Name] = value
				case p.Type == "integer":
					params[p.Name] = max(1, len(l.entries)/16)
				default:
					return nil, fmt.Errorf("strategy %s requires %s: add a value for it to strategiestest.Default", name, p.Name)
				}
			}
		}
	}
	switch name { // values that make the strategy act
	case "truncation":
		params["metric"] = "tokens"
	case "clamp":
		params["max_tokens"] = Characters / 5
	case "token_budget":
		params["strategies"] = []any{plan.Params{"strategy": "selective_tool_call", "params": plan.Params{"keep_last_tool_call_groups": len(l.entries) / 8}}}
	}
	return r.New(name, params)
}

// Sizes are the numbers of messages for which growth is measured.
var Sizes = []int{1_000, 10_000, 100_000}
