package policy

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
)

// maxTokens bounds every number of tokens. It exceeds every window, and sums and products
// of such numbers stay exact.
const maxTokens chat.Tokens = 1_000_000_000

// FieldError is the error of one invalid setting, of a policy or of a package with
// settings like these.
type FieldError struct {
	// Key is the yaml key, with an index or a map key if the value is an element: "start",
	// "pipeline[1].strategy", "windows[gpt-4]".
	Key string
	// Value is the invalid value as text.
	Value string
	// Want describes the valid values.
	Want string
}

// Error returns the key, the value and the valid values.
func (f *FieldError) Error() string { return fmt.Sprintf("%s: %s: want %s", f.Key, f.Value, f.Want) }

// FieldErrors collects the errors of a validation. The zero value holds none.
type FieldErrors struct {
	// Prefix is put before the keys of the errors that follow.
	Prefix string

	errs []error
}

// Check adds a *FieldError unless ok. want is a format for args.
func (fs *FieldErrors) Check(ok bool, key string, value any, want string, args ...any) {
	if !ok {
		fs.errs = append(fs.errs, &FieldError{Key: fs.Prefix + key, Value: Text(value), Want: fmt.Sprintf(want, args...)})
	}
}

// CheckOneOf adds a *FieldError unless v is one of names.
func (fs *FieldErrors) CheckOneOf(key, v string, names ...string) {
	fs.Check(slices.Contains(names, v), key, quote(v), "one of %s", strings.Join(names, ", "))
}

// CheckRange adds a *FieldError unless v is at least lo and at most hi.
func CheckRange[T cmp.Ordered](fs *FieldErrors, key string, v, lo, hi T) {
	fs.Check(v >= lo && v <= hi, key, v, "%s to %s", Text(lo), Text(hi))
}

// Join returns the errors as an errors.Join, or nil if there are none.
func (fs *FieldErrors) Join() error { return errors.Join(fs.errs...) }

// Text returns the text of a value in a FieldError: a duration without the parts that are
// zero.
func Text(v any) string {
	s := fmt.Sprint(v)
	if _, ok := v.(time.Duration); ok {
		if strings.HasSuffix(s, "m0s") {
			s = s[:len(s)-2]
		}
		if strings.HasSuffix(s, "h0m") {
			s = s[:len(s)-2]
		}
	}
	return s
}

// Validate returns every error of the policy, as an errors.Join of *FieldError values. It
// rejects values out of range and combinations under which no run could have an effect.
func (p Policy) Validate() error {
	var fs FieldErrors
	if p.Preset != "" {
		fs.CheckOneOf("preset", p.Preset, PresetNames()...)
	}
	p.validateLimits(&fs)
	p.validatePipeline(&fs)
	p.validateSummary(&fs)
	p.validateGain(&fs)
	p.validateGuards(&fs)
	p.validateRetention(&fs)
	p.validateTriggers(&fs)
	p.validateTimes(&fs)
	return fs.Join()
}

func (p Policy) validateLimits(fs *FieldErrors) {
	CheckRange(fs, "window_tokens", p.WindowTokens, 0, maxTokens)
	CheckRange(fs, "start_tokens", p.StartTokens, 0, maxTokens)
	CheckRange(fs, "target_tokens", p.TargetTokens, 0, maxTokens)
	for _, k := range p.FreeReasoning {
		fs.Check(!slices.Contains(p.BoundReasoning, k), "free_reasoning", quote(k), "a model that is not in bound_reasoning")
	}
	for _, k := range slices.Sorted(maps.Keys(p.Windows)) {
		fs.Check(k != "", "windows", `""`, "a model name or its beginning as the key")
		CheckRange(fs, "windows["+k+"]", p.Windows[k], 1, maxTokens)
	}
	startOK := p.Start > 0 && p.Start <= 1
	fs.Check(startOK, "start", p.Start, "a fraction of the window, more than 0 and at most 1 (start_tokens takes tokens)")
	fs.Check(p.Target > 0 && p.Target < 1, "target", p.Target, "a fraction of the window, more than 0 and less than 1 (target_tokens takes tokens)")
	if startOK && p.Target < 1 {
		fs.Check(p.Target < p.Start, "target", p.Target, "less than start (%v)", p.Start)
	}
	switch {
	case p.StartTokens > 0 && p.TargetTokens == 0:
		fs.Check(false, "target_tokens", p.TargetTokens, "a number of tokens below start_tokens (%d): both are given or neither", p.StartTokens)
	case p.TargetTokens > 0 && p.StartTokens == 0:
		fs.Check(false, "start_tokens", p.StartTokens, "a number of tokens above target_tokens (%d): both are given or neither", p.TargetTokens)
	case p.StartTokens > 0 && p.TargetTokens > 0:
		fs.Check(p.TargetTokens < p.StartTokens, "target_tokens", p.TargetTokens, "less than start_tokens (%d)", p.StartTokens)
		if p.WindowTokens > 0 {
			fs.Check(p.StartTokens <= p.WindowTokens, "start_tokens", p.StartTokens, "at most window_tokens (%d)", p.WindowTokens)
		}
	}
	CheckRange(fs, "target_turns", p.TargetTurns, 0, 10_000)
	margin := p.EstimateMargin
	fs.Check(margin >= 0 && margin <= 5, "estimate_margin", margin, "a fraction, 0 to 5")
	CheckRange(fs, "min_gain_tokens", p.MinGainTokens, 0, maxTokens)
}

func (p Policy) validatePipeline(fs *FieldErrors) {
	fs.Check(len(p.Pipeline) > 0 || p.Fallback, "pipeline", "[]",
		"at least one strategy, or fallback: true (nothing could ever be compacted)")
	for i, name := range p.PinTools {
		fs.Check(strings.TrimSpace(name) != "", fmt.Sprintf("pin_tools[%d]", i), quote(name), "the name of a tool")
	}
	for i, pattern := range p.PinPaths {
		_, err := path.Match(pattern, "")
		fs.Check(err == nil && strings.TrimSpace(pattern) != "", fmt.Sprintf("pin_paths[%d]", i), quote(pattern),
			"a pattern of the last elements of a path, such as AGENTS.md or skills/*.md, or of a tool, such as load_policy()")
	}
	for i, s := range p.Pipeline {
		key := fmt.Sprintf("pipeline[%d]", i)
		fs.Check(s.Strategy != "", key+".strategy", `""`, "the name of a strategy")
		if _, err := json.Marshal(s.Params); err != nil {
			fs.Check(false, key+".params", err, "strings, numbers, booleans, lists and maps with string keys")
		}
		if !p.PreserveSystem && s.Params["preserve_system"] == true {
			fs.Check(false, key+".params.preserve_system", true, "false, or preserve_system: true for the whole policy")
		}
	}
}

// maxGain is the most that a run from start to target saves, with a description of the difference.
type maxGain struct {
	text   string
	tokens chat.Tokens
}

// maxGains returns that of the thresholds in tokens, or else of each window that is set.
func (p Policy) maxGains() (gains []maxGain) {
	if p.StartTokens > p.TargetTokens && p.TargetTokens > 0 {
		return []maxGain{{"start_tokens − target_tokens", p.StartTokens - p.TargetTokens}}
	}
	if p.Start <= 0 || p.Start > 1 || p.Target <= 0 || p.Target >= p.Start {
		return nil
	}
	of := func(key string, window chat.Tokens) {
		if window > 0 {
			gains = append(gains, maxGain{"what lies between start and target of " + key, fraction(window, p.Start) - fraction(window, p.Target)})
		}
	}
	if p.WindowTokens > 0 {
		of("window_tokens", p.WindowTokens)
	} else {
		of("a window of "+strconv.Itoa(int(FallbackWindow)), FallbackWindow)
	}
	for _, k := range slices.Sorted(maps.Keys(p.Windows)) {
		of("windows["+k+"]", p.Windows[k])
	}
	return gains
}

// validateGain rejects a minimum gain that a run from start to target cannot reach: every
// run at the start would be planned and then discarded as ineffective.
func (p Policy) validateGain(fs *FieldErrors) {
	for _, g := range p.maxGains() {
		fs.Check(p.MinGainTokens <= g.tokens, "min_gain_tokens", p.MinGainTokens, "at most %s (%d)", g.text, g.tokens)
	}
}

func (p Policy) validateTimes(fs *FieldErrors) {
	p.Schedule().validateTimes(fs)
	CheckRange(fs, "debounce", p.Debounce, 0, time.Hour)
	CheckRange(fs, "max_delay", p.MaxDelay, 0, 24*time.Hour)
	fs.Check(p.Debounce <= p.MaxDelay, "max_delay", p.MaxDelay, "at least debounce (%s)", Text(p.Debounce))
	CheckRange(fs, "cooldown", p.Cooldown, 0, maxCooldown)
}

func quote(s string) string { return fmt.Sprintf("%q", s) }

// Check builds every step of the pipeline, with the parameters for a window of
// FallbackWindow, and returns an errors.Join of one *FieldError for each error of build.
// Both functions are those of a registry of strategies. The policy must be valid.
func (p Policy) Check(fill FillFunc, build func(name string, params map[string]any) error) error {
	var fs FieldErrors
	window := cmp.Or(p.WindowTokens, FallbackWindow)
	for i, s := range p.Steps(p.Limits("", func(string) (int, bool) { return int(window), true }), fill) {
		if err := build(s.Strategy, s.Params); err != nil {
			fs.Check(false, fmt.Sprintf("pipeline[%d]", i), s.Strategy, "a step that can be run (%v)", err)
		}
	}
	return fs.Join()
}
