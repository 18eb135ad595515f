package policy

import (
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
)

// FallbackWindow is the window of a model that is neither in the policy nor in the table
// of models.
const FallbackWindow chat.Tokens = 128_000

// Policy defines when and how sessions are compacted. The zero value is invalid; start
// from Default. Its methods do not change it and are safe for concurrent use.
type Policy struct {
	// Preset names the Preset that supplied defaults, "" for none.
	Preset string `yaml:"preset" json:"preset,omitempty"`
	// WindowTokens is the context window of models without an entry in Windows; 0 takes
	// it from the table of models.
	WindowTokens chat.Tokens `yaml:"window_tokens" json:"window_tokens"`
	// Windows overrides the window by model prefix. The longest prefix wins, ignoring case.
	// A prefix with a slash ("azure/gpt-4o") is for models of that provider, others match
	// after the provider and Bedrock's vendor ("us.anthropic.claude-…").
	Windows map[string]chat.Tokens `yaml:"windows" json:"windows,omitempty"`
	// BoundReasoning and FreeReasoning override the table of models by model prefix, as
	// Windows does: whether a model binds signed and encrypted reasoning to everything before
	// it. If it does, a run takes such reasoning out of the view after its first change, and
	// changes nothing before that of an open tool loop.
	BoundReasoning []string `yaml:"bound_reasoning" json:"bound_reasoning,omitempty"`
	FreeReasoning  []string `yaml:"free_reasoning" json:"free_reasoning,omitempty"`
	// Start is the fraction of the window above which a session is due.
	Start float64 `yaml:"start" json:"start"`
	// Target is the fraction of the window to which a run shrinks a session.
	Target float64 `yaml:"target" json:"target"`
	// StartTokens and TargetTokens replace both fractions, as one of them could exceed the other
	// fraction of some window; Fit derives one from the other. In a window smaller than
	// StartTokens, the start is the window and the target is scaled.
	StartTokens  chat.Tokens `yaml:"start_tokens" json:"start_tokens"`
	TargetTokens chat.Tokens `yaml:"target_tokens" json:"target_tokens"`
	// TargetTurns lowers the target of automatic runs so that about as many turns as this fit
	// before the session is due again, by the size of its turns since the last run; down to a
	// quarter of the target. 0 does not.
	TargetTurns int `yaml:"target_turns" json:"target_turns,omitempty"`
	// Triggers make sessions due, each by itself; without any, sessions are due above the
	// start.
	Triggers []Trigger `yaml:"triggers" json:"triggers,omitempty"`
	// Pipeline holds the strategies in order. It ends when the target is met.
	Pipeline []Step `yaml:"pipeline" json:"pipeline"`
	// Fallback excludes the oldest groups if the pipeline ends above the target.
	Fallback bool `yaml:"fallback" json:"fallback"`
	// MinGainTokens is the minimum that a run has to save; one that saves less is
	// discarded as ineffective. Otherwise a session close to its start would be rewritten
	// again and again for a few tokens, each time invalidating the provider's prompt cache.
	MinGainTokens chat.Tokens `yaml:"min_gain_tokens" json:"min_gain_tokens"`
	// EstimateMargin is the fraction added to estimated token counts, where no reports of
	// usage have taught how far they are off.
	EstimateMargin float64 `yaml:"estimate_margin" json:"estimate_margin"`
	// PreserveSystem keeps every system message in the view.
	PreserveSystem bool `yaml:"preserve_system" json:"preserve_system"`
	// Summary holds the settings of summaries.
	Summary Summary `yaml:"summary" json:"summary"`
	// Guards hold automatic runs back.
	Guards Guards `yaml:"guards" json:"guards"`
	// Retention says when content is archived and purged.
	Retention Retention `yaml:"retention" json:"retention,omitzero"`
	// PinTools names tools, such as those that load a skill, whose calls and results stay
	// in the view unchanged, with the text of a skill that follows them. With any, runs read
	// every message that has calls.
	PinTools []string `yaml:"pin_tools" json:"pin_tools,omitempty"`
	// PinPaths are patterns of files with instructions, such as AGENTS.md and skills/*.md; an
	// element may contain *, ? and [a-z], and the last elements of a path decide. A pattern that
	// ends in () is of tools that load instructions, such as load_policy(). The newest reading
	// of each file that is not of a part, or of each part, and the text of a skill stay in the view
	// unchanged, as far as they fit into a quarter of the target; more as far as the view stays
	// within the target. With any but the default, runs read every message that has calls.
	PinPaths []string `yaml:"pin_paths" json:"pin_paths,omitempty"`
	// Cron is the schedule of sweeps: five fields, a descriptor such as @daily, or @every
	// with at least a minute.
	Cron string `yaml:"cron" json:"cron"`
	// Timezone is the IANA name of the time zone of Cron.
	Timezone string `yaml:"timezone" json:"timezone"`
	// Debounce is the time without a write before the event run of a session starts.
	Debounce time.Duration `yaml:"debounce" json:"debounce"`
	// MaxDelay bounds the time for which further writes postpone an event run.
	MaxDelay time.Duration `yaml:"max_delay" json:"max_delay"`
	// Cooldown is how long automatic runs leave a session alone after an ineffective run.
	Cooldown time.Duration `yaml:"cooldown" json:"cooldown"`
	// ModelTable identifies the table of models, on which the limits depend, too.
	ModelTable string `yaml:"-" json:"model_table,omitempty"`
}

// Step is one strategy of a pipeline, by its name in the registry, with parameters.
type Step struct {
	Strategy string         `yaml:"strategy" json:"strategy"`
	Params   map[string]any `yaml:"params" json:"params,omitempty"`
}

// Default returns the default policy.
func Default() Policy {
	return Policy{
		Start:          0.75,
		Target:         0.50,
		Pipeline:       []Step{{Strategy: "handoff"}},
		Fallback:       true,
		MinGainTokens:  500,
		EstimateMargin: 0.10,
		PreserveSystem: true,
		PinPaths:       instructionPaths(),
		Summary:        DefaultSummary(),
		Guards:         DefaultGuards(),
		Cron:           "0 3 * * *",
		Timezone:       "UTC",
		Debounce:       2 * time.Second,
		MaxDelay:       30 * time.Second,
		Cooldown:       10 * time.Minute,
	}
}

// instructionPaths returns the default of PinPaths.
func instructionPaths() []string {
	return []string{"AGENTS.md", "CLAUDE.md", "SKILL.md", "load_policy()"}
}

// PinsAnyway reports whether the policy pins calls in every pipeline. The default of PinPaths
// holds only where a step reads messages, so that others read nothing.
func (p Policy) PinsAnyway() bool {
	return len(p.PinTools) > 0 || len(p.PinPaths) > 0 && !slices.Equal(p.PinPaths, instructionPaths())
}

// Margin returns t plus the margin for estimated counts, rounded up.
func (p Policy) Margin(t chat.Tokens) chat.Tokens {
	return t + chat.Tokens(math.Ceil(float64(t)*p.EstimateMargin-1e-9))
}

// Values holds the values that a policy supplies for parameters that a step omits.
type Values struct {
	Window, Target chat.Tokens // as in Limits
	// Summary is the budget of the prose of a summary, and References that of its
	// references as a fraction of it.
	Summary        chat.Tokens
	References     float64
	PreserveSystem bool
}

// FillFunc returns params with the parameters that the strategy takes from a policy where
// params omits them. It does not change params. See Registry.Fill and Args.Policy of
// package plan.
type FillFunc func(strategy string, params map[string]any, v Values) map[string]any

// Steps returns the pipeline with the parameters that its strategies take from the policy.
// The result shares no maps with the policy.
func (p Policy) Steps(l Limits, fill FillFunc) []Step {
	size := p.Summary.Size
	v := Values{
		Window: l.Window, Target: l.Target, PreserveSystem: p.PreserveSystem, References: p.Summary.References,
		Summary: max(1, min(size.Budget(l.Window, l.Window), size.Limit(l.Target))),
	}
	out := make([]Step, len(p.Pipeline))
	for i, s := range p.Pipeline {
		out[i] = Step{Strategy: s.Strategy, Params: fill(s.Strategy, s.Params, v)}
	}
	return out
}

// MarshalJSON writes durations as text ("2s").
func (p Policy) MarshalJSON() ([]byte, error) {
	type plain Policy
	return json.Marshal(struct {
		plain
		Debounce string `json:"debounce"`
		MaxDelay string `json:"max_delay"`
		Cooldown string `json:"cooldown"`
	}{plain(p), p.Debounce.String(), p.MaxDelay.String(), p.Cooldown.String()})
}
