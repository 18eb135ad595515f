package policy

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Whatever single value is given, within its range, the defaults fit it; and what is given stays.
func TestADefaultContradictsNoValue(t *testing.T) {
	t.Parallel()
	settings := map[string]func(t *rapid.T, p *Policy){
		"start":  func(t *rapid.T, p *Policy) { p.Start = rapid.Float64Range(0.001, 1).Draw(t, "start") },
		"target": func(t *rapid.T, p *Policy) { p.Target = rapid.Float64Range(0.001, 0.999).Draw(t, "target") },
		"start_tokens": func(t *rapid.T, p *Policy) {
			p.StartTokens = chat.Tokens(rapid.Int64Range(2, 1e8).Draw(t, "start_tokens"))
		},
		"target_tokens": func(t *rapid.T, p *Policy) {
			p.TargetTokens = chat.Tokens(rapid.Int64Range(1, 1e8).Draw(t, "target_tokens"))
		},
		"window_tokens": func(t *rapid.T, p *Policy) {
			p.WindowTokens = chat.Tokens(rapid.Int64Range(100, 1e8).Draw(t, "window_tokens"))
		},
		"debounce": func(t *rapid.T, p *Policy) {
			p.Debounce = time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "debounce"))
		},
		"max_delay": func(t *rapid.T, p *Policy) {
			p.MaxDelay = time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "max_delay"))
		},
		"summary.size.max_tokens": func(t *rapid.T, p *Policy) { p.Summary.Size.Max = chat.Tokens(rapid.Int64Range(1, 1e6).Draw(t, "max")) },
		"summary.size.min_tokens": func(t *rapid.T, p *Policy) { p.Summary.Size.Min = chat.Tokens(rapid.Int64Range(1, 1e6).Draw(t, "min")) },
	}
	rapid.Check(t, func(t *rapid.T) {
		keys := []string{}
		for k := range settings {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		key := rapid.SampledFrom(keys).Draw(t, "key")
		p := Default()
		settings[key](t, &p)
		fitted := p.Fit(func(k string) bool { return k == key })
		if err := fitted.Validate(); err != nil {
			t.Fatalf("only %s is given: %v", key, err)
		}
		was, err1 := Spec(p)
		is, err2 := Spec(fitted)
		a, err3 := settingsOf(was, key)
		b, err4 := settingsOf(is, key)
		if err1 != nil || err2 != nil || err3 != nil || err4 != nil || a != b {
			t.Fatalf("%s was %s and is %s", key, a, b)
		}
	})
}

func settingsOf(spec json.RawMessage, key string) (string, error) {
	all, err := settings(spec)
	return all[key], err
}

func TestAStartIsFittedToItsTarget(t *testing.T) {
	t.Parallel()
	p := with(func(p *Policy) { p.TargetTokens = 100 }).Fit(func(key string) bool { return key == "target_tokens" })
	if p.StartTokens != 150 || p.MinGainTokens != 50 {
		t.Errorf("%+v", p)
	}
}
