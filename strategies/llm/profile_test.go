package llm_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/policy"
)

func TestErrorsOfAProfileAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	p := llm.Profile{
		Name: "a b", BaseURL: "https://user:canary@host/v1", KeyEnv: "A", KeyFile: "b", Window: 0, MaxOutput: 5,
		MaxTokensField: "tokens", ReasoningTokens: -1, Price: llm.Price{Input: -1, Cached: math.NaN(), Output: math.Inf(1)},
		RequestsPerMinute: -1, TokensPerMinute: -1,
	}
	err := p.Validate()
	want := []string{
		"name", "base_url", "key_file", "window_tokens", "max_output_tokens", "max_tokens_field", "reasoning_tokens",
		"price_per_million.input", "price_per_million.cached", "price_per_million.output", "requests_per_minute", "tokens_per_minute",
	}
	if got := keys(t, err); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("errors of %q, want %q", got, want)
	}
	if strings.Contains(err.Error(), "canary") {
		t.Error(err)
	}
}

func TestKeyInThePlaceOfItsNameIsNotShown(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"sk-canary", "gsk_canary0Ab1Cd2Ef3Gh4", "AIzaSyCanary0123456789canary", "0123456789abcdef0123456789abcdef"} {
		for name, set := range map[string]func(*llm.Profile){
			"key_env":  func(p *llm.Profile) { p.KeyEnv = key },
			"key_file": func(p *llm.Profile) { p.KeyFile = key },
		} {
			p := profile("m", "http://a/v1")
			set(&p)
			if got := keys(t, p.Validate()); len(got) != 1 || got[0] != name {
				t.Errorf("%s: %q", name, got)
			}
			_, err := llm.New(quick(p), llm.Deps{})
			if err == nil || strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), "not the key itself") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_KEY_OF_TEAM_2026_11_X", "my_key_2", "openai.key"} {
		p := profile("m", "http://a/v1")
		p.KeyEnv = name
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := profile("m", "http://a/v1")
	p.KeyFile = "/run/secrets/openai-2026-key-of-team-7"
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
}

// keys returns the keys of the errors in a joined error.
func keys(t *testing.T, err error) (out []string) {
	t.Helper()
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("not a joined error: %v", err)
	}
	for _, err := range joined.Unwrap() {
		f, ok := errors.AsType[*policy.FieldError](err)
		if !ok {
			t.Fatalf("not a field error: %v", err)
		}
		out = append(out, f.Key)
	}
	return out
}

func TestProfilesThatReasoningModelsRefuse(t *testing.T) {
	t.Parallel()
	good := profile("gpt-5-mini", "https://api.openai.com/v1")
	good.FixedTemperature, good.ReasoningEffort = true, "minimal"
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	warm := good
	warm.FixedTemperature = false
	if got := keys(t, warm.Validate()); len(got) != 1 || got[0] != "fixed_temperature" {
		t.Errorf("errors of %q", got)
	}
	old := good
	old.MaxTokensField = llm.MaxTokens
	if got := keys(t, old.Validate()); len(got) != 1 || got[0] != "max_tokens_field" {
		t.Errorf("errors of %q", got)
	}
	old.FixedTemperature = false
	if got := strings.Join(keys(t, old.Validate()), " "); got != "max_tokens_field fixed_temperature" {
		t.Errorf("errors of %q", got)
	}
	sol := good
	sol.Name, sol.ReasoningEffort = "gpt-6-sol", "minimal"
	if got := keys(t, sol.Validate()); len(got) != 1 || got[0] != "reasoning_effort" {
		t.Errorf("errors of %q", got)
	}
	sol.ReasoningEffort, sol.FixedTemperature = "none", false
	if err := sol.Validate(); err != nil {
		t.Error(err)
	}
}

func TestConfigIsValidated(t *testing.T) {
	t.Parallel()
	if err := (llm.Config{Models: []llm.Profile{profile("m", "http://localhost:11434/v1")}}).Validate(); err != nil {
		t.Error(err)
	}
	c := llm.Config{
		Models:   []llm.Profile{profile("m", "http://a/v1"), profile("m", "http://a/v1"), {}},
		Deadline: llm.Deadline{Min: time.Hour, PerToken: -1}, Budget: llm.Budget{Attempts: -1, Cost: -1, Tokens: -1, Time: -1},
		Retry: llm.Retry{Base: -1, Max: -2, Wait: -1}, Breaker: llm.Breaker{Failures: -1, Open: -1}, Cooldown: llm.Cooldown{Transient: 25 * time.Hour},
	}
	want := "models[1].name models[2].name models[2].base_url models[2].window_tokens deadline.per_token deadline.max " +
		"budget.attempts budget.tokens budget.cost budget.time retry.base retry.max retry.wait breaker.failures breaker.open cooldown.transient"
	if got := strings.Join(keys(t, c.Validate()), " "); got != want {
		t.Errorf("errors of %s\nwant      %s", got, want)
	}
	if _, err := llm.New(llm.Config{}, llm.Deps{}); err == nil || !strings.Contains(err.Error(), "models: none: want at least one model") {
		t.Error(err)
	}
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	base := profile("m", "http://a/v1")
	identity := func(change func(*llm.Profile)) string {
		p := base
		change(&p)
		return newClient(t, quick(p), llm.Deps{Env: func(string) (string, bool) { return "canary", true }}).Identity()
	}
	same := identity(func(*llm.Profile) {})
	for name, change := range map[string]func(*llm.Profile){
		"name":        func(p *llm.Profile) { p.Name = "n" },
		"server":      func(p *llm.Profile) { p.BaseURL = "http://b/v1" },
		"effort":      func(p *llm.Profile) { p.ReasoningEffort = "low" },
		"allowance":   func(p *llm.Profile) { p.ReasoningTokens = 7 },
		"temperature": func(p *llm.Profile) { p.FixedTemperature = true },
		"output":      func(p *llm.Profile) { p.MaxOutput = 7 },
		"window":      func(p *llm.Profile) { p.Window++ },
		"field":       func(p *llm.Profile) { p.MaxTokensField = llm.MaxTokens },
	} {
		if identity(change) == same {
			t.Errorf("%s does not change the identity", name)
		}
	}
	for name, change := range map[string]func(*llm.Profile){
		"key":     func(p *llm.Profile) { p.KeyEnv = "KEY" },
		"price":   func(p *llm.Profile) { p.Price.Input = 7 },
		"limits":  func(p *llm.Profile) { p.TokensPerMinute = 7 },
		"default": func(p *llm.Profile) { p.MaxTokensField = llm.MaxCompletionTokens },
	} {
		if got := identity(change); got != same {
			t.Errorf("%s changes the identity: %s", name, got)
		}
	}
	two := newClient(t, quick(base, profile("n", "http://a/v1")), llm.Deps{}).Identity()
	turned := newClient(t, quick(profile("n", "http://a/v1"), base), llm.Deps{}).Identity()
	if two == same || two == turned {
		t.Error("the chain does not change the identity")
	}
}
