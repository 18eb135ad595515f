package policy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/policy"
)

func fill(strategy string, params map[string]any, v policy.Values) map[string]any {
	return builtin.Registry().Fill(strategy, params, v)
}

func TestStepsAreFilledFromTheLimits(t *testing.T) {
	t.Parallel()
	p := policy.With(func(p *policy.Policy) {
		p.PreserveSystem = false
		p.Pipeline = append(p.Pipeline,
			policy.Step{Strategy: "truncation", Params: map[string]any{"metric": "messages", "max_n": 9, "compact_to": 3}},
			policy.Step{Strategy: "sliding_window", Params: map[string]any{"keep_last_groups": 4}},
			policy.Step{Strategy: "token_budget"},
			policy.Step{Strategy: "truncation"},
			policy.Step{Strategy: "preserve_recent_turns", Params: map[string]any{"turns": 3}},
			policy.Step{Strategy: "context_window"})
	})
	want := []policy.Step{
		{Strategy: "handoff", Params: map[string]any{
			"context_length": 100, "max_summary_tokens": 37, "protect_first_n": 1, "protect_last_n": -1, "tail_token_budget": 8,
		}},
		{Strategy: "truncation", Params: map[string]any{"metric": "messages", "max_n": 9, "compact_to": 3, "preserve_system": false}},
		{Strategy: "sliding_window", Params: map[string]any{"keep_last_groups": 4, "preserve_system": false}},
		{Strategy: "token_budget", Params: map[string]any{"token_budget": 50}},
		{Strategy: "truncation", Params: map[string]any{"metric": "tokens", "max_n": 50, "compact_to": 50, "preserve_system": false}},
		{Strategy: "preserve_recent_turns", Params: map[string]any{"turns": 3, "context_tokens": 100}},
		{Strategy: "context_window", Params: map[string]any{"max_context_window_tokens": 100, "max_output_tokens": 0}},
	}
	if diff := cmp.Diff(want, p.Steps(policy.Limits{Window: 100, Start: 75, Target: 50, WindowKnown: true}, fill)); diff != "" {
		t.Error(diff)
	}
	if p.Pipeline[0].Params != nil {
		t.Error("the policy's own parameters were written to")
	}
}

func TestCheckNamesTheStep(t *testing.T) {
	t.Parallel()
	p := policy.With(func(p *policy.Policy) { p.Pipeline = append(p.Pipeline, policy.Step{Strategy: "magic"}) })
	err := p.Check(fill, func(name string, _ map[string]any) error {
		if name == "magic" {
			return errors.New("unknown strategy")
		}
		return nil
	})
	if got, want := fmt.Sprint(err), "pipeline[1]: magic: want a step that can be run (unknown strategy)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHash(t *testing.T) {
	t.Parallel()
	hash := func(p policy.Policy) string {
		return p.Hash(p.Limits("gpt-4o", policy.Table), fill, map[string]string{"truncation": "1", "tool_result": "2"})
	}
	base := hash(policy.Default())
	if want := "a3fe5ae6eddf5151"; base != want {
		t.Errorf("the default policy hashes to %s, was %s: every session will be planned anew once", base, want)
	}
	if got := hash(policy.With(func(p *policy.Policy) { p.Cron, p.Debounce = "@daily", 0 })); got != base {
		t.Error("when a run starts changed the hash")
	}
	for name, change := range map[string]func(*policy.Policy){
		"window":   func(p *policy.Policy) { p.WindowTokens = 1_000 },
		"target":   func(p *policy.Policy) { p.Target = 0.4 },
		"pipeline": func(p *policy.Policy) { p.Pipeline = p.Pipeline[1:] },
		"margin":   func(p *policy.Policy) { p.EstimateMargin = 0 },
		"gain":     func(p *policy.Policy) { p.MinGainTokens = 1 },
		"share":    func(p *policy.Policy) { p.Guards.MinGainShare = 0.2 },
		"fallback": func(p *policy.Policy) { p.Fallback = false },
		"system":   func(p *policy.Policy) { p.PreserveSystem = false },
		"pins":     func(p *policy.Policy) { p.PinTools = []string{"load_policy"} },
		"paths":    func(p *policy.Policy) { p.PinPaths = nil },
		"tools":    func(p *policy.Policy) { p.Summary.Tools.Acts = []string{"deploy_*"} },
	} {
		if hash(policy.With(change)) == base {
			t.Errorf("%s does not change the hash", name)
		}
	}
	p := policy.Default()
	if p.Hash(p.Limits("gpt-4o", policy.Table), fill, map[string]string{"truncation": "2"}) == base {
		t.Error("the version of a strategy does not change the hash")
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	got := strings.Join(policy.Default().Explain("gpt-4o", policy.Table, fill), "\n")
	want := `start 96,000 tokens = 0.75 × window 128,000 (gpt-4o, built-in table)
target 64,000 tokens = 0.5 × window 128,000 (gpt-4o, built-in table)
step 1 handoff {"context_length":128000,"max_summary_tokens":12000,"protect_first_n":1,"protect_last_n":-1,"tail_token_budget":34666}
fallback: the oldest groups go until the target is met
summaries: 40 % of the messages they cover, 2,000 to 12,000 tokens, and references of 25 % beside a model's prose; if none can be written: keep
pinned: results of reading AGENTS.md, CLAUDE.md, SKILL.md, load_policy(), if a step reads messages
gain: a run that saves less than 500 tokens is discarded, then 10m0s of cooldown
guard: the second run in a row that would save less than 10 % is discarded
guard: a session whose messages that must stay exceed the start waits for a new one
estimated counts: + 10 %
events: 2s after the last write, 30s after the first at the latest`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if lines := policy.With(func(p *policy.Policy) { p.PinTools = []string{"a", "b"} }).Explain("gpt-4o", policy.Table, fill); lines[5] != "pinned: calls and results of a, b" {
		t.Errorf("pinned tools: %q", lines)
	}
	p := policy.With(func(p *policy.Policy) { p.StartTokens, p.TargetTokens = 8_000, 6_000 })
	if line := p.Explain("new-model", nil, fill)[4]; !strings.HasSuffix(line, "; all of a summary 4,500 tokens at most (75 % of the target)") {
		t.Errorf("summaries: %q", line)
	}
	got = strings.Join(p.Explain("new-model", nil, fill)[:2], "\n")
	want = `start 8,000 tokens = policy.start_tokens (new-model window 128,000, fallback, the model is unknown)
target 6,000 tokens = policy.target_tokens (new-model window 128,000, fallback, the model is unknown)`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
