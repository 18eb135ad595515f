package tokens

import "testing"

func TestNewerModelsBindReasoning(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]bool{
		"claude-fable-5-1":                     true,
		"claude-opus-5-5":                      true,
		"anthropic/claude-sonnet-5.5":          true,
		"us.anthropic.claude-haiku-5-5-v1:0":   true,
		"claude-opus-6-1":                      true,
		"claude-fable-5":                       false,
		"claude-fable-5-20260301":              false,
		"claude-opus-5-1":                      false,
		"anthropic/claude-3.7-sonnet:thinking": false,
		"claude-instant-1.2":                   false,
		"gpt-6.2-astra":                        true,
		"gpt-7":                                true,
		"gpt-6.1-sol":                          false,
		"gpt-6-luna":                           false,
		"o3":                                   false,
		"deepseek-r1":                          false,
		"our-own-model":                        true,
		"":                                     true,
	} {
		if got := BindsReasoning(model); got != want {
			t.Errorf("%s binds reasoning: %t, want %t", model, got, want)
		}
	}
}
