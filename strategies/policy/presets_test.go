package policy_test

import (
	"context"
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
		if summarizes := preset.Name != "strict"; (err != nil) != summarizes {
			t.Errorf("%s without a summarizer: %v", preset.Name, err)
		}
		if err != nil && !strings.Contains(err.Error(), "needs a summarizer, and none is configured") {
			t.Errorf("%s without a summarizer: %v", preset.Name, err)
		}
		if preset.Doc == "" || len(preset.Pipeline) == 0 || p.Preset != preset.Name {
			t.Errorf("%+v", preset)
		}
	}
}

func TestAPresetReplacesDefaults(t *testing.T) {
	t.Parallel()
	strict, err := policy.PresetNamed("strict")
	if err != nil {
		t.Fatal(err)
	}
	p := strict.Over(policy.Default())
	if p.StartTokens != 40_000 || p.TargetTokens != 32_000 || p.MinGainTokens != policy.Default().MinGainTokens {
		t.Errorf("%+v", p)
	}
	if diff := cmp.Diff(strict.Pipeline, p.Pipeline); diff != "" {
		t.Error(diff)
	}
	_, unknown := policy.PresetNamed("chatty")
	for _, err := range []error{unknown, policy.Policy{Preset: "chatty"}.Validate()} {
		var field *policy.FieldError
		if !errors.As(err, &field) || !strings.Contains(err.Error(), `preset: "chatty": want one of chat, coding, research, strict, support, tool_heavy`) {
			t.Errorf("%v", err)
		}
	}
}
