package policy_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
)

func TestPresetsAreValidPoliciesThatCanBeMade(t *testing.T) {
	t.Parallel()
	bare, full := builtin.Registry(), builtin.Registry()
	full.Summarizer = plan.Func(func(context.Context, plan.Request) (string, error) { return "so far", nil })
	build := func(r *plan.Registry) func(string, map[string]any) error {
		return func(name string, params map[string]any) error { _, err := r.New(name, params); return err }
	}
	for _, preset := range policy.Presets() {
		p := preset.Over(policy.Default())
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", preset.Name, err)
		}
		if err := p.Check(fill, build(full)); err != nil {
			t.Errorf("%s: %v", preset.Name, err)
		}
		err := p.Check(fill, build(bare))
		if (err != nil) != preset.Summarizer {
			t.Errorf("%s without a summarizer: %v", preset.Name, err)
		}
		if err != nil && !strings.Contains(err.Error(), "needs a summarizer, and none is configured") {
			t.Errorf("%s without a summarizer: %v", preset.Name, err)
		}
		if preset.Doc == "" || len(preset.Before)+len(preset.After) == 0 || p.Preset != preset.Name {
			t.Errorf("%+v", preset)
		}
	}
}

func TestPresetsGoUnderWhatIsSaid(t *testing.T) {
	t.Parallel()
	strict, err := policy.PresetNamed("strict")
	if err != nil {
		t.Fatal(err)
	}
	p := policy.Default()
	if err := json.Unmarshal([]byte(`{"preset":"strict","target_tokens":20000}`), &p); err != nil {
		t.Fatal(err)
	}
	if p.StartTokens != 40_000 || p.TargetTokens != 20_000 || p.MinGainTokens != policy.Default().MinGainTokens {
		t.Errorf("%+v", p)
	}
	if diff := cmp.Diff(strict.After, p.Pipeline); diff != "" {
		t.Error(diff)
	}
	if err := json.Unmarshal([]byte(`{"preset":"chat","pipeline":[{"strategy":"truncation"}]}`), &p); err != nil || p.Pipeline[0].Strategy != "truncation" {
		t.Errorf("%v, %+v", err, p.Pipeline)
	}
	var fault *policy.FieldError
	for _, err := range []error{json.Unmarshal([]byte(`{"preset":"chatty"}`), &p), policy.Policy{Preset: "chatty"}.Validate()} {
		if !errors.As(err, &fault) || !strings.Contains(err.Error(), `preset: "chatty": want one of chat, research, strict, tool_heavy`) {
			t.Errorf("%v", err)
		}
	}
	was, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var again policy.Policy
	if err := json.Unmarshal(was, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p.Hash(p.Limits("", nil), fill, nil), again.Hash(again.Limits("", nil), fill, nil)); diff != "" {
		t.Errorf("written and read: %s", diff)
	}
}
