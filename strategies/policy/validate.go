package policy

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
)

// maxTokens bounds every number of tokens: more than any model's window, small
// enough that sums and products stay exact.
const maxTokens chat.Tokens = 1_000_000_000

// FieldError is one thing that is wrong with a policy, or with the settings of a package that
// goes by one.
type FieldError struct {
	// Key is the yaml key, with a position or map key where it has one:
	// "start", "pipeline[1].strategy", "windows[gpt-4]".
	Key string
	// Value is what was given, as text.
	Value string
	// Want says what is allowed.
	Want string
}

// Error names the key, the value and what is allowed.
func (f *FieldError) Error() string { return fmt.Sprintf("%s: %s: want %s", f.Key, f.Value, f.Want) }

// Between returns a *Fault unless v is at least lo and at most hi.
func Between[T cmp.Ordered](key string, v, lo, hi T) error {
	if v >= lo && v <= hi {
		return nil
	}
	return &FieldError{Key: key, Value: Text(v), Want: Text(lo) + " to " + Text(hi)}
}

// Text returns a value as a Fault shows it: a duration without its parts that are zero.
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

// faults collects what is wrong.
type faults []error

func (fs *faults) add(ok bool, key string, value any, want string, args ...any) {
	if !ok {
		*fs = append(*fs, &FieldError{Key: key, Value: fmt.Sprint(value), Want: fmt.Sprintf(want, args...)})
	}
}

// Validate reports everything that is wrong with the policy at once, as an
// errors.Join of *Fault values, and nil when nothing is. Besides values out of
// range it refuses combinations under which a run could never do anything.
func (p Policy) Validate() error {
	var fs faults
	if p.Preset != "" {
		if _, err := PresetNamed(p.Preset); err != nil {
			fs = append(fs, err)
		}
	}
	p.validateLimits(&fs)
	p.validatePipeline(&fs)
	p.validateSummary(&fs)
	p.validateGain(&fs)
	p.validateTimes(&fs)
	return errors.Join(fs...)
}

func (p Policy) validateLimits(fs *faults) {
	tokens := func(key string, t chat.Tokens) {
		fs.add(t >= 0 && t <= maxTokens, key, t, "0 to %d", maxTokens)
	}
	tokens("window_tokens", p.WindowTokens)
	tokens("start_tokens", p.StartTokens)
	tokens("target_tokens", p.TargetTokens)
	for _, k := range slices.Sorted(maps.Keys(p.Windows)) {
		fs.add(k != "", "windows", `""`, "a model name or its beginning as the key")
		fs.add(p.Windows[k] > 0 && p.Windows[k] <= maxTokens, "windows["+k+"]", p.Windows[k], "1 to %d", maxTokens)
	}
	startOK := p.Start > 0 && p.Start <= 1
	fs.add(startOK, "start", p.Start, "a fraction of the window, more than 0 and at most 1")
	fs.add(p.Target > 0 && p.Target < 1, "target", p.Target, "a fraction of the window, more than 0 and less than 1")
	if startOK && p.Target < 1 {
		fs.add(p.Target < p.Start, "target", p.Target, "less than start (%v)", p.Start)
	}
	switch {
	case p.StartTokens > 0 && p.TargetTokens == 0:
		fs.add(false, "target_tokens", p.TargetTokens, "a number of tokens below start_tokens (%d): both are given or neither", p.StartTokens)
	case p.TargetTokens > 0 && p.StartTokens == 0:
		fs.add(false, "start_tokens", p.StartTokens, "a number of tokens above target_tokens (%d): both are given or neither", p.TargetTokens)
	case p.StartTokens > 0 && p.TargetTokens > 0:
		fs.add(p.TargetTokens < p.StartTokens, "target_tokens", p.TargetTokens, "less than start_tokens (%d)", p.StartTokens)
		if p.WindowTokens > 0 {
			fs.add(p.StartTokens <= p.WindowTokens, "start_tokens", p.StartTokens, "at most window_tokens (%d)", p.WindowTokens)
		}
	}
	margin := p.EstimateMargin
	fs.add(margin >= 0 && margin <= 5, "estimate_margin", margin, "a fraction, 0 to 5")
	fs.add(p.MinGainTokens >= 0 && p.MinGainTokens <= maxTokens, "min_gain_tokens", p.MinGainTokens, "0 to %d", maxTokens)
}

func (p Policy) validatePipeline(fs *faults) {
	fs.add(len(p.Pipeline) > 0 || p.Fallback, "pipeline", "[]",
		"at least one strategy, or fallback: true (nothing could ever be compacted)")
	for i, name := range p.PinTools {
		fs.add(strings.TrimSpace(name) != "", fmt.Sprintf("pin_tools[%d]", i), quote(name), "the name of a tool")
	}
	for i, s := range p.Pipeline {
		key := fmt.Sprintf("pipeline[%d]", i)
		fs.add(s.Strategy != "", key+".strategy", `""`, "the name of a strategy")
		if _, err := json.Marshal(s.Params); err != nil {
			fs.add(false, key+".params", err, "strings, numbers, booleans, lists and maps with string keys")
		}
		if !p.PreserveSystem && s.Params["preserve_system"] == true {
			fs.add(false, key+".params.preserve_system", true, "false, or preserve_system: true for the whole policy")
		}
	}
}

// validateGain refuses a minimum that a run from start to target cannot reach:
// every run at the trigger would be planned, found ineffective and thrown away.
func (p Policy) validateGain(fs *faults) {
	if p.StartTokens > p.TargetTokens && p.TargetTokens > 0 {
		room := p.StartTokens - p.TargetTokens
		fs.add(p.MinGainTokens <= room, "min_gain_tokens", p.MinGainTokens,
			"at most start_tokens − target_tokens (%d)", room)
		return
	}
	if p.Start <= 0 || p.Start > 1 || p.Target <= 0 || p.Target >= p.Start {
		return
	}
	check := func(key string, window chat.Tokens) {
		room := fraction(window, p.Start) - fraction(window, p.Target)
		fs.add(window <= 0 || p.MinGainTokens <= room, "min_gain_tokens", p.MinGainTokens,
			"at most what lies between start and target of %s (%d)", key, room)
	}
	if p.WindowTokens > 0 {
		check("window_tokens", p.WindowTokens)
	} else {
		check("a window of "+strconv.Itoa(int(FallbackWindow)), FallbackWindow)
	}
	for _, k := range slices.Sorted(maps.Keys(p.Windows)) {
		check("windows["+k+"]", p.Windows[k])
	}
}

func (p Policy) validateTimes(fs *faults) {
	if _, err := location(p.Timezone); err != nil {
		fs.add(false, "timezone", quote(p.Timezone), "%v", err)
	} else if _, _, err := p.Schedule(); err != nil {
		fs.add(false, "cron", quote(p.Cron), "%v", err)
	}
	fs.add(p.Debounce >= 0 && p.Debounce <= time.Hour, "debounce", p.Debounce, "0s to 1h")
	fs.add(p.MaxDelay >= 0 && p.MaxDelay <= 24*time.Hour, "max_delay", p.MaxDelay, "0s to 24h")
	fs.add(p.Debounce <= p.MaxDelay, "max_delay", p.MaxDelay, "at least debounce (%s)", p.Debounce)
	fs.add(p.Cooldown >= 0 && p.Cooldown <= 30*24*time.Hour, "cooldown", p.Cooldown, "0s to 720h")
}

func quote(s string) string { return fmt.Sprintf("%q", s) }

// Check asks build to make every step of the pipeline, with the parameters filled in
// as for a window of FallbackWindow, and reports every refusal as a *Fault. Both
// functions are those of a registry of strategies. Validate has found nothing wrong
// before.
func (p Policy) Check(fill FillFunc, build func(name string, params map[string]any) error) error {
	var fs faults
	window := cmp.Or(p.WindowTokens, FallbackWindow)
	for i, s := range p.Steps(p.Limits("", func(string) (int, bool) { return int(window), true }), fill) {
		if err := build(s.Strategy, s.Params); err != nil {
			fs.add(false, fmt.Sprintf("pipeline[%d]", i), s.Strategy, "a step that can be run (%v)", err)
		}
	}
	return errors.Join(fs...)
}
