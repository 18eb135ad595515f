package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// WindowFunc returns the context window of a model in tokens, and whether the model is
// known.
type WindowFunc func(model string) (tokens int, known bool)

// Limits holds the thresholds of a policy for one model, with
// 0 < Target < Start ≤ Window.
type Limits struct {
	Window chat.Tokens `json:"window"`
	Start  chat.Tokens `json:"start"`
	Target chat.Tokens `json:"target"`
	// WindowKnown is false for an unknown model, whose window is FallbackWindow.
	WindowKnown bool `json:"window_known"`
}

// Over reports whether a view of t tokens is due.
func (l Limits) Over(t chat.Tokens) bool { return t > l.Start }

// Utilization returns the fraction of the window that t tokens take.
func (l Limits) Utilization(t chat.Tokens) float64 {
	return float64(t) / float64(max(1, l.Window))
}

// Limits resolves the policy for a model. The window is that of the longest matching
// prefix in Windows, or else WindowTokens, or else that of the table, which may be nil, or
// else FallbackWindow.
//
// With triggers that compare sizes, the start is the least of these.
func (p Policy) Limits(model string, table WindowFunc) Limits {
	l := p.windowLimits(model, table)
	if b := p.bounds(l); len(p.Triggers) > 0 && b.Tokens < Never {
		if l.Target >= b.Tokens {
			l.Target = chat.Tokens(float64(b.Tokens) * float64(l.Target) / float64(l.Start))
		}
		l.Start = b.Tokens
	}
	return l.ordered()
}

// WithTarget returns the policy with a target in tokens, and a start half above it, in place of its
// own sizes and triggers.
func (p Policy) WithTarget(target chat.Tokens) Policy {
	p.Triggers, p.StartTokens, p.TargetTokens = nil, target+target/2+1, target
	return p
}

// windowLimits returns the limits without triggers.
func (p Policy) windowLimits(model string, table WindowFunc) Limits {
	window, _, known := p.window(model, table)
	l := Limits{Window: window, WindowKnown: known}
	if p.StartTokens > 0 {
		l.Start, l.Target = p.StartTokens, p.TargetTokens
		if l.Start > window {
			l.Target = chat.Tokens(float64(window) * float64(p.TargetTokens) / float64(p.StartTokens))
			l.Start = window
		}
	} else {
		l.Start = fraction(window, p.Start)
		l.Target = fraction(window, p.Target)
	}
	if _, limit := p.Guards.limit(model); limit > 0 && limit < l.Start {
		l.Start, l.Target = limit, chat.Tokens(float64(limit)*float64(l.Target)/float64(l.Start))
	}
	return l.ordered()
}

// ForTurns returns the limits of a run after which so many turns, of so many tokens each,
// fit before the start, if they fit above a quarter of the target.
func (l Limits) ForTurns(turns int, each chat.Tokens) Limits {
	if turns > 0 {
		l.Target = max(min(l.Target, l.Start-chat.Tokens(turns)*each), l.Target/4)
	}
	return l.ordered()
}

// ordered returns the limits with 0 < Target < Start ≤ Window.
func (l Limits) ordered() Limits {
	l.Window = max(2, l.Window)
	l.Start = min(max(2, l.Start), l.Window)
	l.Target = min(max(1, l.Target), l.Start-1)
	return l
}

// ForMessages returns the limits for the messages of a prompt, in the tokens that they are
// counted with: scale real ones each. The overhead, in real tokens, is the rest of the prompt,
// such as the definitions of tools, which no run can save.
func (l Limits) ForMessages(overhead chat.Tokens, scale float64) Limits {
	in := func(t chat.Tokens) chat.Tokens { return chat.Tokens(float64(t-overhead) / scale) }
	l.Window, l.Start, l.Target = in(l.Window), in(l.Start), in(l.Target)
	return l.ordered()
}

// fraction returns f × t, rounded down. The constant keeps 0.7 × 10 from becoming 6.
func fraction(t chat.Tokens, f float64) chat.Tokens {
	return chat.Tokens(float64(t)*f + 1e-6)
}

// window returns the window of a model and the setting that it is from.
func (p Policy) window(model string, table WindowFunc) (window chat.Tokens, origin string, known bool) {
	if prefix := longestPrefix(model, maps.Keys(p.Windows)); prefix != "" {
		return p.Windows[prefix], fmt.Sprintf("policy.windows[%s]", prefix), true
	}
	if p.WindowTokens > 0 {
		return p.WindowTokens, "policy.window_tokens", true
	}
	if table != nil && model != "" {
		if w, ok := table(model); ok && w > 0 {
			return chat.Tokens(w), "built-in table", true
		}
	}
	return FallbackWindow, "fallback, the model is unknown", false
}

// longestPrefix returns the longest of prefixes that a name of the model begins with (see
// text.ModelNames), "" for none. Those with a slash are for a provider.
func longestPrefix(model string, prefixes iter.Seq[string]) string {
	names := text.ModelNames(model)
	best := ""
	for i, name := range append([]string{strings.ToLower(strings.TrimSpace(model))}, names[:]...) {
		for k := range prefixes {
			longer := len(k) > len(best) || len(k) == len(best) && k < best
			if longer && (i > 0 || strings.Contains(k, "/")) && strings.HasPrefix(name, strings.ToLower(k)) {
				best = k
			}
		}
		if best != "" {
			break
		}
	}
	return best
}

// BindsReasoning reports whether a model binds signed reasoning to everything before it: by
// the longest prefix in BoundReasoning and FreeReasoning, or else by the table. Without a
// table all models do.
func (p Policy) BindsReasoning(model string, table func(model string) bool) bool {
	bound := longestPrefix(model, slices.Values(p.BoundReasoning))
	free := longestPrefix(model, slices.Values(p.FreeReasoning))
	if bound == "" && free == "" {
		return table == nil || table(model)
	}
	return len(bound) > len(free)
}

// Hash returns a hash of everything that determines the result of a run: the limits, the
// resolved pipeline, the guards and the versions of the strategies, but not the schedule.
// It is the same on every machine, and in every release that changes no version.
func (p Policy) Hash(l Limits, fill FillFunc, versions map[string]string) string {
	summary := p.Summary
	summary.Cooldown, summary.CooldownNoModel = 0, 0
	return hash(struct {
		Limits   Limits            `json:"limits"`
		Steps    []Step            `json:"steps"`
		Turns    int               `json:"target_turns,omitempty"`
		Triggers []Trigger         `json:"triggers,omitempty"`
		Fallback bool              `json:"fallback"`
		MinGain  chat.Tokens       `json:"min_gain_tokens"`
		MinShare float64           `json:"min_gain_share"`
		Margin   float64           `json:"estimate_margin"`
		System   bool              `json:"preserve_system"`
		PinTools []string          `json:"pin_tools,omitempty"`
		PinPaths []string          `json:"pin_paths,omitempty"`
		Summary  Summary           `json:"summary"`
		Versions map[string]string `json:"versions,omitempty"`
	}{l, p.Steps(l, fill), p.TargetTurns, p.Triggers, p.Fallback, p.MinGainTokens, p.Guards.MinGainShare, p.EstimateMargin, p.PreserveSystem, p.PinTools, p.PinPaths, summary, versions})
}

// FleetHash returns a hash of the policy for all models, without the schedule. The
// thresholds of sessions are stored under it.
func (p Policy) FleetHash() string {
	p.Cron, p.Timezone, p.Debounce, p.MaxDelay, p.Cooldown = "", "", 0, 0, 0
	p.Summary.Cooldown, p.Summary.CooldownNoModel = 0, 0
	return hash(p)
}

func hash(v any) string {
	b, err := json.Marshal(v)
	if err != nil { // parameters that JSON cannot encode, which Validate rejects
		b = fmt.Appendf(nil, "%+v", v)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])[:16]
}
