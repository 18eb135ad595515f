package policy

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
)

func table(model string) (int, bool) {
	switch model {
	case "gpt-4o":
		return 128_000, true
	case "gpt-4":
		return 8_192, true
	}
	return 0, false
}

func with(change func(*Policy)) Policy {
	p := Default()
	change(&p)
	return p
}

func TestLimits(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*Policy)
		model  string
		want   Limits
	}{
		"the table of models gives the window": {
			model: "gpt-4o", want: Limits{128_000, 96_000, 64_000, true},
		},
		"an unknown model falls back": {
			model: "unknown-1", want: Limits{128_000, 96_000, 64_000, false},
		},
		"window_tokens goes before the table": {
			change: func(p *Policy) { p.WindowTokens = 10_000 },
			model:  "gpt-4o", want: Limits{10_000, 7_500, 5_000, true},
		},
		"the longest prefix goes before everything, without its provider and whatever its case": {
			change: func(p *Policy) {
				p.WindowTokens = 10_000
				p.Windows = map[string]chat.Tokens{"gpt": 1, "GPT-4o": 4_000, "claude": 2}
			},
			model: "openai/gpt-4o-mini", want: Limits{4_000, 3_000, 2_000, true},
		},
		"absolute numbers replace the fractions": {
			change: func(p *Policy) { p.StartTokens, p.TargetTokens = 8_000, 6_000 },
			model:  "gpt-4o", want: Limits{128_000, 8_000, 6_000, true},
		},
		"absolute numbers above the window are scaled into it": {
			change: func(p *Policy) { p.StartTokens, p.TargetTokens = 80_000, 60_000 },
			model:  "gpt-4", want: Limits{8_192, 8_192, 6_144, true},
		},
		"a fraction that floats cannot hold is not one token short": {
			change: func(p *Policy) { p.WindowTokens, p.Start, p.Target = 10, 0.7, 0.3 },
			model:  "m", want: Limits{10, 7, 3, true},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Default()
			if tc.change != nil {
				tc.change(&p)
			}
			if diff := cmp.Diff(tc.want, p.Limits(tc.model, table)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLimitsAreOrderedForEveryPolicy(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tokens := rapid.Int64Range(-5, 300_000)
		p := Policy{
			WindowTokens: chat.Tokens(tokens.Draw(t, "window")),
			Start:        rapid.Float64Range(-1, 2).Draw(t, "start"),
			Target:       rapid.Float64Range(-1, 2).Draw(t, "target"),
			StartTokens:  chat.Tokens(tokens.Draw(t, "start_tokens")),
			TargetTokens: chat.Tokens(tokens.Draw(t, "target_tokens")),
		}
		l := p.Limits(rapid.SampledFrom([]string{"", "gpt-4", "x"}).Draw(t, "model"), table)
		if l.Target <= 0 || l.Target >= l.Start || l.Start > l.Window {
			t.Fatalf("%+v", l)
		}
	})
}

func TestValidate(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*Policy)
		want   []string
	}{
		"start is a positive fraction": {
			func(p *Policy) { p.Start = 0 },
			[]string{"start: 0: want a fraction of the window, more than 0 and at most 1 (start_tokens takes tokens)"},
		},
		"start is at most the window": {
			func(p *Policy) { p.Start = 1.5 },
			[]string{"start: 1.5: want a fraction of the window, more than 0 and at most 1 (start_tokens takes tokens)"},
		},
		"not a number is no fraction": {
			func(p *Policy) { p.Start = math.NaN() },
			[]string{"start: NaN: want a fraction of the window, more than 0 and at most 1 (start_tokens takes tokens)"},
		},
		"target lies below start": {
			func(p *Policy) { p.Target = 0.75 },
			[]string{"target: 0.75: want less than start (0.75)"},
		},
		"an absolute start needs its target": {
			func(p *Policy) { p.StartTokens = 8_000 },
			[]string{"target_tokens: 0: want a number of tokens below start_tokens (8000): both are given or neither"},
		},
		"an absolute target needs its start": {
			func(p *Policy) { p.TargetTokens = 8_000 },
			[]string{"start_tokens: 0: want a number of tokens above target_tokens (8000): both are given or neither"},
		},
		"a gain that cannot be reached is dead": {
			func(p *Policy) { p.StartTokens, p.TargetTokens, p.MinGainTokens = 8_000, 7_900, 500 },
			[]string{"min_gain_tokens: 500: want at most start_tokens − target_tokens (100)"},
		},
		"a gain that a small window cannot reach is dead": {
			func(p *Policy) { p.Windows = map[string]chat.Tokens{"tiny": 1_000} },
			[]string{"min_gain_tokens: 500: want at most what lies between start and target of windows[tiny] (250)"},
		},
		"nothing to do it with is dead": {
			func(p *Policy) { p.Pipeline, p.Fallback = nil, false },
			[]string{"pipeline: []: want at least one strategy, or fallback: true (nothing could ever be compacted)"},
		},
		"steps have names and plain parameters": {
			func(p *Policy) { p.Pipeline = []Step{{}, {Strategy: "x", Params: map[string]any{"f": func() {}}}} },
			[]string{
				`pipeline[0].strategy: "": want the name of a strategy`,
				"pipeline[1].params: json: unsupported type: func(): want strings, numbers, booleans, lists and maps with string keys",
			},
		},
		"pinned tools have names": {
			func(p *Policy) { p.PinTools = []string{"load_policy", " "} },
			[]string{`pin_tools[1]: " ": want the name of a tool`},
		},
		"tools of the log are names or patterns": {
			func(p *Policy) {
				p.Summary.Tools = Tools{Acts: []string{"book_flight", "deploy_*", ""}, Looks: []string{"[", "book_flight"}, Failed: []string{"sold out", " "}, Succeeded: []string{"sold out", ""}}
			},
			[]string{
				`summary.tools.acts[2]: "": want the name of a tool, or a pattern such as deploy_*`,
				`summary.tools.looks[0]: "[": want the name of a tool, or a pattern such as deploy_*`,
				`summary.tools.looks[1]: "book_flight": want a tool that is not in acts`,
				`summary.tools.failed[1]: " ": want a text in the results of calls that failed`,
				`summary.tools.succeeded[0]: "sold out": want a text that is not in failed`,
				`summary.tools.succeeded[1]: "": want a text in the results of calls that succeeded`,
			},
		},
		"the delay covers the debounce": {
			func(p *Policy) { p.Debounce = time.Minute },
			[]string{"max_delay: 30s: want at least debounce (1m)"},
		},
		"every error is listed": {
			func(p *Policy) {
				p.WindowTokens, p.MinGainTokens, p.EstimateMargin = -1, -2, -3
				p.Debounce, p.Cooldown = -1, -1
				p.Timezone = "Mars/Base"
			},
			[]string{
				"window_tokens: -1: want 0 to 1000000000",
				"estimate_margin: -3: want a fraction, 0 to 5",
				"min_gain_tokens: -2: want 0 to 1000000000",
				`timezone: "Mars/Base": want UTC or an IANA zone such as Europe/Berlin: unknown time zone Mars/Base`,
				"debounce: -1ns: want 0s to 1h",
				"cooldown: -1ns: want 0s to 720h",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := with(tc.change).Validate()
			if diff := cmp.Diff(strings.Join(tc.want, "\n"), fmt.Sprint(err)); diff != "" {
				t.Error(diff)
			}
			var f *FieldError
			if !errors.As(err, &f) || f.Key == "" {
				t.Errorf("no *FieldError in %v", err)
			}
		})
	}
}

func TestMargin(t *testing.T) {
	t.Parallel()
	p := Default()
	for in, want := range map[chat.Tokens]chat.Tokens{0: 0, 1: 2, 100: 110, 101: 112} {
		if got := p.Margin(in); got != want {
			t.Errorf("margin of %d: got %d, want %d", in, got, want)
		}
	}
}

// A session cools down as long as the model does: longer only if an operator has to act.
func TestCooldownAfter(t *testing.T) {
	t.Parallel()
	s := DefaultSummary()
	for code, want := range map[string]time.Duration{
		"rate_limited": time.Minute, "overloaded": time.Minute, "timeout": time.Minute, "unavailable": time.Minute, "refusal": time.Minute,
		"no_model": 10 * time.Minute, "auth": 10 * time.Minute, "quota_exhausted": 10 * time.Minute, "model_not_found": 10 * time.Minute,
	} {
		if got := s.CooldownAfter(code, 0); got != want {
			t.Errorf("%s: %v, want %v", code, got, want)
		}
		if got := s.CooldownAfter(code, 20*time.Minute); got != 20*time.Minute {
			t.Errorf("%s, asked to wait: %v", code, got)
		}
		if got := s.CooldownAfter(code, 1000*time.Hour); got != 24*time.Hour {
			t.Errorf("%s, asked to wait for ever: %v", code, got)
		}
	}
}

func TestLimitsForTheMessagesOfAPrompt(t *testing.T) {
	t.Parallel()
	l := Limits{Window: 200_000, Start: 150_000, Target: 100_000, WindowKnown: true}
	for name, tt := range map[string]struct {
		overhead chat.Tokens
		scale    float64
		want     Limits
	}{
		"all of the prompt":     {0, 1, l},
		"definitions of tools":  {30_000, 1, Limits{Window: 170_000, Start: 120_000, Target: 70_000, WindowKnown: true}},
		"another tokenizer":     {30_000, 1.25, Limits{Window: 136_000, Start: 96_000, Target: 56_000, WindowKnown: true}},
		"more than the target":  {120_000, 1, Limits{Window: 80_000, Start: 30_000, Target: 1, WindowKnown: true}},
		"more than the window":  {300_000, 1, Limits{Window: 2, Start: 2, Target: 1, WindowKnown: true}},
		"fewer than are stored": {-10_000, 1, Limits{Window: 210_000, Start: 160_000, Target: 110_000, WindowKnown: true}},
	} {
		if got := l.ForMessages(tt.overhead, tt.scale); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
