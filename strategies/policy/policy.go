package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
)

// FallbackWindow is the window of a model that neither the policy nor the table
// of models knows.
const FallbackWindow chat.Tokens = 128_000

// Policy is when and how a session is compacted. The zero value is not valid;
// start from Default. A Policy is a plain value: methods never change it and are
// safe for concurrent use.
type Policy struct {
	// Preset names the Preset that the values come from which nothing else says; ""
	// is none.
	Preset string `yaml:"preset" json:"preset,omitempty"`
	// WindowTokens is the context window of every model that Windows does not
	// name; 0 takes it from the table of models.
	WindowTokens chat.Tokens `yaml:"window_tokens" json:"window_tokens"`
	// Windows overrides the window by model prefix. The longest prefix wins; case
	// does not matter, and a provider prefix ("openai/gpt-4o") is also tried without.
	Windows map[string]chat.Tokens `yaml:"windows" json:"windows,omitempty"`
	// Start is the fraction of the window above which a session is due.
	Start float64 `yaml:"start" json:"start"`
	// Target is the fraction of the window a run shrinks a session to.
	Target float64 `yaml:"target" json:"target"`
	// StartTokens and TargetTokens replace the fractions by absolute numbers. They
	// are given together or not at all: one of them beside a fraction of the other
	// would cross it for some window. A model whose window is smaller than
	// StartTokens starts at its window, with the target scaled alike.
	StartTokens  chat.Tokens `yaml:"start_tokens" json:"start_tokens"`
	TargetTokens chat.Tokens `yaml:"target_tokens" json:"target_tokens"`
	// Pipeline is the strategies in order; it stops as soon as the target is met.
	Pipeline []Step `yaml:"pipeline" json:"pipeline"`
	// Fallback drops the oldest groups, deterministically, when the pipeline ends
	// above the target.
	Fallback bool `yaml:"fallback" json:"fallback"`
	// MinGainTokens is the least a run has to save; one that saves less is
	// discarded and recorded as ineffective. It keeps a session that hovers around
	// its start from being rewritten for a handful of tokens, which would cost the
	// provider's prompt cache each time.
	MinGainTokens chat.Tokens `yaml:"min_gain_tokens" json:"min_gain_tokens"`
	// EstimateMargin is added, as a fraction, to counts that are estimates.
	EstimateMargin float64 `yaml:"estimate_margin" json:"estimate_margin"`
	// PreserveSystem keeps every system message in the view.
	PreserveSystem bool `yaml:"preserve_system" json:"preserve_system"`
	// Summary is how summaries are made.
	Summary Summary `yaml:"summary" json:"summary"`
	// PinTools are names of tools whose calls stay in the view with their results,
	// verbatim, such as those that load a policy or a skill. Runs of a policy that
	// has some read every message that makes calls.
	PinTools []string `yaml:"pin_tools" json:"pin_tools,omitempty"`
	// Cron is when the nightly sweep starts: five fields, a descriptor such as
	// @daily, or @every with at least a minute.
	Cron string `yaml:"cron" json:"cron"`
	// Timezone is the IANA name of the zone that Cron is read in.
	Timezone string `yaml:"timezone" json:"timezone"`
	// Debounce is how long a session has to be quiet before its event run starts.
	Debounce time.Duration `yaml:"debounce" json:"debounce"`
	// MaxDelay is the longest that further writes can put an event run off.
	MaxDelay time.Duration `yaml:"max_delay" json:"max_delay"`
	// Cooldown is how long automatic runs leave a session alone after a run that
	// gained too little.
	Cooldown time.Duration `yaml:"cooldown" json:"cooldown"`
}

// Step is one strategy of a pipeline, by its registered name, with parameters.
type Step struct {
	Strategy string         `yaml:"strategy" json:"strategy"`
	Params   map[string]any `yaml:"params" json:"params,omitempty"`
}

// Default returns the policy of a fresh installation.
func Default() Policy {
	return Policy{
		Start:  0.75,
		Target: 0.50,
		Pipeline: []Step{
			{Strategy: "tool_result", Params: map[string]any{"keep_last_tool_call_groups": 1}},
			{Strategy: "handoff"},
		},
		Fallback:       true,
		MinGainTokens:  500,
		EstimateMargin: 0.10,
		PreserveSystem: true,
		Summary:        DefaultSummary(),
		Cron:           "0 3 * * *",
		Timezone:       "UTC",
		Debounce:       2 * time.Second,
		MaxDelay:       30 * time.Second,
		Cooldown:       10 * time.Minute,
	}
}

// Margin is t with the policy's margin for estimated counts on top, rounded up.
func (p Policy) Margin(t chat.Tokens) chat.Tokens {
	return t + chat.Tokens(math.Ceil(float64(t)*p.EstimateMargin-1e-9))
}

// Values are what a policy offers to the strategies of its pipeline for parameters that
// a step leaves out.
type Values struct {
	// Window and Target are those of Limits.
	Window, Target chat.Tokens
	// Summary is how many tokens the prose of a summary may have, and References how many
	// its references may have beside it, as a fraction of that.
	Summary    chat.Tokens
	References float64
	// PreserveSystem is the policy's.
	PreserveSystem bool
}

// FillFunc returns the parameters of a step with what its strategy takes from the values
// of the policy where params leaves it out. It does not change params. What each strategy
// takes is its own to declare: see Registry.Fill and Args.Policy of package strategies.
type FillFunc func(strategy string, params map[string]any, v Values) map[string]any

// Steps returns the pipeline with the parameters that its strategies take from the policy.
// The policy's own maps are not shared with the result.
func (p Policy) Steps(l Limits, fill FillFunc) []Step {
	v := Values{
		Window: l.Window, Target: l.Target, PreserveSystem: p.PreserveSystem,
		Summary: p.Summary.Size.Budget(l.Window, l.Window), References: p.Summary.References,
	}
	out := make([]Step, len(p.Pipeline))
	for i, s := range p.Pipeline {
		out[i] = Step{Strategy: s.Strategy, Params: fill(s.Strategy, s.Params, v)}
	}
	return out
}

// wire is Policy as JSON: the same keys, durations as "2s".
type wire struct {
	plain
	Debounce string `json:"debounce"`
	MaxDelay string `json:"max_delay"`
	Cooldown string `json:"cooldown"`
}

type plain Policy

// MarshalJSON writes durations the way people write them ("2s").
func (p Policy) MarshalJSON() ([]byte, error) {
	return json.Marshal(wire{
		plain: plain(p), Debounce: p.Debounce.String(), MaxDelay: p.MaxDelay.String(), Cooldown: p.Cooldown.String(),
	})
}

// UnmarshalJSON reads what MarshalJSON writes. Keys that are absent keep the
// receiver's values, so an override is read over a copy of the policy it overrides;
// windows are merged, a pipeline or a list of tools replaces the other. A preset is
// put over the receiver's values before the other keys are read. Maps and slices that the copy
// shares with its original are not written to.
func (p *Policy) UnmarshalJSON(b []byte) error {
	var named struct{ Preset string }
	if err := json.Unmarshal(b, &named); err != nil {
		return err
	}
	if named.Preset != "" {
		preset, err := PresetNamed(named.Preset)
		if err != nil {
			return err
		}
		*p = preset.Over(*p)
	}
	w := wire{plain: plain(*p)}
	w.Windows = maps.Clone(p.Windows)
	w.Pipeline, w.PinTools = nil, nil
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	q := Policy(w.plain)
	if q.Pipeline == nil {
		q.Pipeline = p.Pipeline
	}
	if q.PinTools == nil {
		q.PinTools = p.PinTools
	}
	for _, d := range []struct {
		key, text string
		to        *time.Duration
	}{{"debounce", w.Debounce, &q.Debounce}, {"max_delay", w.MaxDelay, &q.MaxDelay}, {"cooldown", w.Cooldown, &q.Cooldown}} {
		if d.text == "" {
			continue
		}
		v, err := time.ParseDuration(d.text)
		if err != nil {
			return fmt.Errorf("%s: %w", d.key, err)
		}
		*d.to = v
	}
	*p = q
	return nil
}
