package builtin

import (
	"context"
	"errors"
	"slices"

	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/plan"
)

// drawParams draws the parameters of strategies, by name; others get those of
// drawDescribed.
var drawParams = map[string]func(t *rapid.T) plan.Params{
	"truncation": func(t *rapid.T) plan.Params {
		n := number(t, "max_n", 1, 200)
		return plan.Params{
			"metric": rapid.SampledFrom([]string{"messages", "tokens"}).Draw(t, "metric"),
			"max_n":  n, "compact_to": number(t, "compact_to", 1, n),
			"preserve_system": rapid.Bool().Draw(t, "preserve_system"),
		}
	},
	"sliding_window": func(t *rapid.T) plan.Params {
		return plan.Params{"keep_last_groups": number(t, "keep", 1, 10), "preserve_system": rapid.Bool().Draw(t, "preserve_system")}
	},
	"selective_tool_call": drawKeep,
	"tool_result":         drawKeep,
	"summarization": func(t *rapid.T) plan.Params {
		return plan.Params{"target_count": number(t, "target", 1, 6), "threshold": number(t, "threshold", 0, 3)}
	},
	"context_window": func(t *rapid.T) plan.Params {
		return plan.Params{
			"max_context_window_tokens":  number(t, "window", 10, 400),
			"max_output_tokens":          number(t, "output", 0, 5),
			"keep_last_tool_call_groups": number(t, "keep", 0, 4),
		}
	},
	"token_budget": func(t *rapid.T) plan.Params {
		return plan.Params{"token_budget": number(t, "budget", -5, 500), "early_stop": rapid.Bool().Draw(t, "early_stop")}
	},
	"prune_tool_results": func(t *rapid.T) plan.Params {
		return plan.Params{"protect_last_n": number(t, "protect", 0, 8), "protect_tail_tokens": number(t, "budget", 0, 1)}
	},
	"handoff": func(t *rapid.T) plan.Params {
		return plan.Params{
			"protect_first_n": number(t, "first", 0, 4), "protect_last_n": number(t, "last", 0, 6),
			"tail_token_budget": number(t, "tail", 0, 200),
			"on_failure":        rapid.SampledFrom([]string{"keep", "fallback"}).Draw(t, "on failure"),
			"system_note":       rapid.Bool().Draw(t, "system note"),
		}
	},
	"keep_last_n_turns":    drawN,
	"keep_last_n_messages": drawN,
	"compact_tool_results": func(t *rapid.T) plan.Params {
		p := plan.Params{"keep_last_n": number(t, "keep", 0, 3)}
		if rapid.Bool().Draw(t, "replace") {
			p["replacement"] = rapid.SampledFrom([]string{"", "{tool_name}: {result_length}"}).Draw(t, "replacement")
		}
		return p
	},
	"summarize": func(t *rapid.T) plan.Params {
		return plan.Params{
			"threshold": number(t, "threshold", 0, 8), "keep_last_n": number(t, "keep", 0, 6),
			"preserve_user_messages": rapid.Bool().Draw(t, "quote"),
		}
	},
}

func number(t *rapid.T, name string, least, most int) int {
	return rapid.IntRange(least, most).Draw(t, name)
}

func drawN(t *rapid.T) plan.Params { return plan.Params{"n": number(t, "n", 1, 6)} }

func drawKeep(t *rapid.T) plan.Params {
	return plan.Params{"keep_last_tool_call_groups": number(t, "keep", 0, 4)}
}

// drawDescribed draws the integer and boolean parameters of a strategy from small numbers.
func drawDescribed(t *rapid.T, r *plan.Registry, name string) plan.Params {
	p := plan.Params{}
	for _, info := range r.Describe() {
		for _, param := range info.Params {
			switch {
			case info.Name != name:
			case param.Type == "integer":
				p[param.Name] = number(t, param.Name, 1, 8)
			case param.Type == "boolean":
				p[param.Name] = rapid.Bool().Draw(t, param.Name)
			case param.Required:
				t.Fatalf("add %s with its parameter %s to drawParams", name, param.Name)
			}
		}
	}
	return p
}

// drawSummarizer draws one that writes something, nothing, or fails.
func drawSummarizer(t *rapid.T) plan.Summarizer {
	answer := rapid.SampledFrom([]string{"what was said", "what was said", " \n", "", "!"}).Draw(t, "summary")
	return plan.Func(func(context.Context, plan.Request) (string, error) {
		if answer == "!" {
			return "", errors.New("no answer")
		}
		return answer, nil
	})
}

// drawStrategy draws any registered strategy.
func drawStrategy(t *rapid.T, depth int) plan.Strategy {
	registry := Registry()
	registry.Summarizer = drawSummarizer(t)
	names := registry.Names()
	if depth > 1 { // no deeper
		names = slices.DeleteFunc(names, func(s string) bool { return s == "token_budget" })
	}
	name := rapid.SampledFrom(names).Draw(t, "strategy")
	var p plan.Params
	if draw := drawParams[name]; draw != nil {
		p = draw(t)
	} else if slices.Contains(rewriters, name) {
		p = rewriterParams(t, name)
	} else {
		p = drawDescribed(t, registry, name)
	}
	s, err := registry.New(name, p)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if b, ok := s.(*tokenBudget); ok {
		for range rapid.IntRange(0, 3).Draw(t, "steps") {
			b.steps = append(b.steps, drawStrategy(t, depth+1))
		}
	}
	return s
}
