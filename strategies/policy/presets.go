package policy

import (
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Preset is a named policy for one kind of application. It replaces some of the defaults.
// Package eval measures their retention; none may be dominated by another on the sessions that it
// is for.
type Preset struct {
	Name, Doc string
	Pipeline  []Step
	// start and target are StartTokens and TargetTokens; 0 keeps the fractions.
	start, target chat.Tokens
	// summary changes Summary; nil keeps the defaults.
	summary func(*Summary)
}

// Presets returns all presets, ordered by name.
func Presets() []Preset {
	long := func(s *Summary) { s.Size.Max = 24_000 }
	step := func(name string, params map[string]any) Step { return Step{Strategy: name, Params: params} }
	return []Preset{
		{
			Name: "chat", Doc: "talk with few tools: the newest six turns stay, and a summary of the rest",
			Pipeline: []Step{step("preserve_recent_turns", map[string]any{"turns": 6})},
		},
		{
			Name: "coding", Doc: "agents that edit files: outdated file reads go, then a summary of all but the newest messages of up to 24,000 tokens",
			Pipeline: []Step{step("dedupe_reads", nil), step("handoff", nil)},
			summary:  long,
		},
		{
			Name: "research", Doc: "long work whose findings matter more than its last steps: summaries of up to 24,000 tokens",
			Pipeline: []Step{step("handoff", nil)},
			summary:  long,
		},
		{
			Name: "strict", Doc: "never more than 32,000 tokens, and never a model: an extract of up to 16,000 tokens of all but the newest messages",
			Pipeline: []Step{step("extractive", nil)},
			summary:  func(s *Summary) { s.Writer, s.Size.Max = WriterExtractive, 16_000 },
			start:    40_000, target: 32_000,
		},
		{
			Name: "support", Doc: "customers that come back: the newest two turns stay, and a summary of all visits with what was done",
			Pipeline: []Step{step("preserve_recent_turns", nil)},
		},
		{
			Name: "tool_heavy", Doc: "many tool calls whose results are soon stale: results before the newest 64 messages become a line each, which often suffices; else a summary of up to 24,000 tokens",
			Pipeline: []Step{step("prune_tool_results", map[string]any{"protect_last_n": 64}), step("handoff", nil)},
			summary:  long,
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
	p.Pipeline = slices.Clone(s.Pipeline)
	if s.target > 0 {
		p.StartTokens, p.TargetTokens = s.start, s.target
	}
	if s.summary != nil {
		s.summary(&p.Summary)
	}
	return p
}
