package policy

import (
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Preset is a named policy for one kind of application. It replaces some of the defaults.
type Preset struct {
	Name, Doc string
	// Before is the pipeline of an agent.Provider for reads, which store nothing; After,
	// the one for writes. A worker runs After and then Before.
	Before, After []Step
	// start and target are StartTokens and TargetTokens; 0 keeps the fractions.
	start, target chat.Tokens
}

// Presets returns all presets, ordered by name.
func Presets() []Preset {
	step := func(name string, params map[string]any) Step { return Step{Strategy: name, Params: params} }
	return []Preset{
		{
			Name: "chat", Doc: "talk with few tools: older tool calls become their results, and the model sees the newest 20 groups",
			Before: []Step{step("sliding_window", map[string]any{"keep_last_groups": 20})},
			After:  []Step{step("tool_result", map[string]any{"keep_last_tool_call_groups": 1})},
		},
		{
			Name: "research", Doc: "long work whose findings matter more than its words: older messages are summarized by a cheap model",
			After: []Step{step("summarize", map[string]any{"threshold": 20, "keep_last_n": 8})},
		},
		{
			Name: "strict", Doc: "never more than 32,000 tokens: tool results, then the newest 30 groups, then a summary, then the oldest go",
			After: []Step{step("token_budget", map[string]any{"token_budget": 32_000, "strategies": []any{
				map[string]any{"strategy": "tool_result", "params": map[string]any{"keep_last_tool_call_groups": 2}},
				map[string]any{"strategy": "sliding_window", "params": map[string]any{"keep_last_groups": 30}},
				map[string]any{"strategy": "summarization", "params": map[string]any{"target_count": 12}},
			}})},
			start: 40_000, target: 32_000,
		},
		{
			Name: "tool_heavy", Doc: "many tool calls whose results are soon stale: all but the newest two go",
			After: []Step{step("selective_tool_call", map[string]any{"keep_last_tool_call_groups": 2})},
		},
	}
}

// PresetNames returns the names of all presets.
func PresetNames() []string {
	all := Presets()
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = p.Name
	}
	return names
}

// PresetNamed returns the preset of a name. The error is a *FieldError that lists all names.
func PresetNamed(name string) (Preset, error) {
	all := Presets()
	i := slices.IndexFunc(all, func(p Preset) bool { return p.Name == name })
	if i < 0 {
		return Preset{}, &FieldError{Key: "preset", Value: quote(name), Want: "one of " + strings.Join(PresetNames(), ", ")}
	}
	return all[i], nil
}

// Over returns a policy with the settings of the preset.
func (s Preset) Over(p Policy) Policy {
	p.Preset = s.Name
	p.Pipeline = slices.Concat(s.After, s.Before)
	if s.target > 0 {
		p.StartTokens, p.TargetTokens = s.start, s.target
	}
	return p
}
