package policy

import (
	"encoding/json"
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

func TestDefaultIsValid(t *testing.T) {
	t.Parallel()
	if err := Default().Validate(); err != nil {
		t.Fatal(err)
	}
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
			model: "nobody-1", want: Limits{128_000, 96_000, 64_000, false},
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
			[]string{"start: 0: want a fraction of the window, more than 0 and at most 1"},
		},
		"start is at most the window": {
			func(p *Policy) { p.Start = 1.5 },
			[]string{"start: 1.5: want a fraction of the window, more than 0 and at most 1"},
		},
		"not a number is no fraction": {
			func(p *Policy) { p.Start = math.NaN() },
			[]string{"start: NaN: want a fraction of the window, more than 0 and at most 1"},
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
		"the delay covers the debounce": {
			func(p *Policy) { p.Debounce = time.Minute },
			[]string{"max_delay: 30s: want at least debounce (1m0s)"},
		},
		"every fault is told": {
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
			var f *Fault
			if !errors.As(err, &f) || f.Key == "" {
				t.Errorf("no *Fault in %v", err)
			}
		})
	}
}

func TestStepsAreFilledFromTheLimits(t *testing.T) {
	t.Parallel()
	p := with(func(p *Policy) {
		p.PreserveSystem = false
		p.Pipeline = append(p.Pipeline,
			Step{Strategy: "truncation", Params: map[string]any{"metric": "messages", "max_n": 9, "compact_to": 3}},
			Step{Strategy: "sliding_window", Params: map[string]any{"keep_last_groups": 4}},
			Step{Strategy: "token_budget"},
			Step{Strategy: "truncation"},
			Step{Strategy: "preserve_recent_turns", Params: map[string]any{"turns": 3}},
			Step{Strategy: "context_window"})
	})
	want := []Step{
		{"tool_result", map[string]any{"keep_last_tool_call_groups": 1}},
		{"handoff", map[string]any{"context_length": 100, "max_summary_tokens": 5, "tail_token_budget": 23}},
		{"truncation", map[string]any{"metric": "messages", "max_n": 9, "compact_to": 3, "preserve_system": false}},
		{"sliding_window", map[string]any{"keep_last_groups": 4, "preserve_system": false}},
		{"token_budget", map[string]any{"token_budget": 50}},
		{"truncation", map[string]any{"metric": "tokens", "max_n": 50, "compact_to": 50, "preserve_system": false}},
		{"preserve_recent_turns", map[string]any{"turns": 3, "context_tokens": 100}},
		{"context_window", map[string]any{"max_context_window_tokens": 100, "max_output_tokens": 0}},
	}
	if diff := cmp.Diff(want, p.Steps(Limits{100, 75, 50, true})); diff != "" {
		t.Error(diff)
	}
	if p.Pipeline[1].Params != nil {
		t.Error("the policy's own parameters were written to")
	}
}

func TestCheckNamesTheStep(t *testing.T) {
	t.Parallel()
	p := with(func(p *Policy) { p.Pipeline = append(p.Pipeline, Step{Strategy: "magic"}) })
	err := p.Check(func(name string, _ map[string]any) error {
		if name == "magic" {
			return errors.New("unknown strategy")
		}
		return nil
	})
	if got, want := fmt.Sprint(err), "pipeline[2]: magic: want a step that can be run (unknown strategy)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHash(t *testing.T) {
	t.Parallel()
	hash := func(p Policy) string {
		return p.Hash(p.Limits("gpt-4o", table), map[string]string{"truncation": "1", "tool_result": "2"})
	}
	base := hash(Default())
	if want := "8639373799bdc000"; base != want {
		t.Errorf("the default policy hashes to %s, was %s: every session will be planned anew once", base, want)
	}
	if got := hash(with(func(p *Policy) { p.Cron, p.Debounce = "@daily", 0 })); got != base {
		t.Error("when a run starts changed the hash")
	}
	for name, change := range map[string]func(*Policy){
		"window":   func(p *Policy) { p.WindowTokens = 1_000 },
		"target":   func(p *Policy) { p.Target = 0.4 },
		"pipeline": func(p *Policy) { p.Pipeline = p.Pipeline[1:] },
		"margin":   func(p *Policy) { p.EstimateMargin = 0 },
		"gain":     func(p *Policy) { p.MinGainTokens = 1 },
		"fallback": func(p *Policy) { p.Fallback = false },
		"system":   func(p *Policy) { p.PreserveSystem = false },
		"pins":     func(p *Policy) { p.PinTools = []string{"load_policy"} },
	} {
		if hash(with(change)) == base {
			t.Errorf("%s does not change the hash", name)
		}
	}
	p := Default()
	if p.Hash(p.Limits("gpt-4o", table), map[string]string{"truncation": "2"}) == base {
		t.Error("the version of a strategy does not change the hash")
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

func TestJSONOverride(t *testing.T) {
	t.Parallel()
	base := with(func(p *Policy) { p.Windows = map[string]chat.Tokens{"a": 1} })
	b, err := json.Marshal(base)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), `"debounce":"2s"`) {
		t.Errorf("durations are not written as text: %s", b)
	}
	var same Policy
	if err := json.Unmarshal(b, &same); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(base.Debounce, same.Debounce); diff != "" {
		t.Error(diff)
	}
	over := base
	if err := json.Unmarshal([]byte(`{"target":0.3,"windows":{"b":2},"pipeline":[{"strategy":"x"}],"cooldown":"1m"}`), &over); err != nil {
		t.Fatal(err)
	}
	if over.Target != 0.3 || over.Start != 0.75 || over.Cooldown != time.Minute || len(over.Windows) != 2 || len(over.Pipeline) != 1 {
		t.Errorf("override: %+v", over)
	}
	base.PinTools = []string{"load_policy", "read_skill"}
	over = base
	if err := json.Unmarshal([]byte(`{"pin_tools":["look"]}`), &over); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{{"look"}, {"load_policy", "read_skill"}}, [][]string{over.PinTools, base.PinTools}); diff != "" {
		t.Errorf("pinned tools: %s", diff)
	}
	if err := json.Unmarshal([]byte(`{"target":0.3}`), &over); err != nil || len(over.PinTools) != 1 {
		t.Errorf("an override that names no tools: %v, %v", over.PinTools, err)
	}
	if len(base.Windows) != 1 || base.Pipeline[0].Strategy != "tool_result" {
		t.Errorf("the base was written to: %+v", base)
	}
	if err := json.Unmarshal([]byte(`{"debounce":"soon"}`), &over); err == nil {
		t.Error("a duration that is none was accepted")
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	got := strings.Join(Default().Explain("gpt-4o", table), "\n")
	want := `start 96,000 tokens = 0.75 × window 128,000 (gpt-4o, built-in table)
target 64,000 tokens = 0.5 × window 128,000 (gpt-4o, built-in table)
step 1 tool_result {"keep_last_tool_call_groups":1}
step 2 handoff {"context_length":128000,"max_summary_tokens":6400,"tail_token_budget":29744}
fallback: the oldest groups go until the target is met
summaries: 20 % of what they cover, 2,000 to 6,400 tokens, and references of 25 % beside a model's prose; without one: keep
gain: a run that saves less than 500 tokens is discarded, then 10m0s of cooldown
estimated counts: + 10 %
events: 2s after the last write, 30s after the first at the latest
sweep: 0 3 * * * (UTC)`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if lines := with(func(p *Policy) { p.PinTools = []string{"a", "b"} }).Explain("gpt-4o", table); lines[6] != "pinned: what a, b gave" {
		t.Errorf("pinned tools: %q", lines)
	}
	p := with(func(p *Policy) { p.StartTokens, p.TargetTokens = 8_000, 6_000 })
	got = strings.Join(p.Explain("new-model", nil)[:2], "\n")
	want = `start 8,000 tokens = policy.start_tokens (new-model window 128,000, fallback, the model is unknown)
target 6,000 tokens = policy.target_tokens (new-model window 128,000, fallback, the model is unknown)`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A session rests as long as the model does: longer only where somebody has to see to it.
func TestRest(t *testing.T) {
	t.Parallel()
	s := DefaultSummary()
	for code, want := range map[string]time.Duration{
		"rate_limited": time.Minute, "overloaded": time.Minute, "timeout": time.Minute, "unavailable": time.Minute, "refusal": time.Minute,
		"no_model": 10 * time.Minute, "auth": 10 * time.Minute, "quota_exhausted": 10 * time.Minute,
	} {
		if got := s.Rest(code, 0); got != want {
			t.Errorf("%s: %v, want %v", code, got, want)
		}
		if got := s.Rest(code, 20*time.Minute); got != 20*time.Minute {
			t.Errorf("%s, asked to wait: %v", code, got)
		}
		if got := s.Rest(code, 1000*time.Hour); got != 24*time.Hour {
			t.Errorf("%s, asked to wait for ever: %v", code, got)
		}
	}
}
