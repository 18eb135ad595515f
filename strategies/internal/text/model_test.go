package text

import "testing"

func TestModelNames(t *testing.T) {
	t.Parallel()
	for model, want := range map[string][3]string{
		"":                                  {},
		" OpenAI/GPT-4o":                    {"gpt-4o", "", "gpt-4o"},
		"ft:gpt-4o-mini:org::id":            {"ft:gpt-4o-mini:org::id", "gpt-4o-mini:org::id", "ft:gpt-4o-mini:org::id"},
		"us-gov.anthropic.claude-3.5-haiku": {"claude-3.5-haiku", "", "us-gov.anthropic.claude-3.5-haiku"},
		"accounts/x/models/gpt-oss-120b":    {"gpt-oss-120b", "", "gpt-oss-120b"},
		"llama3.1:8b":                       {"llama3.1:8b", "8b", "llama3.1:8b"},
	} {
		if got := ModelNames(model); got != want {
			t.Errorf("%q: got %q, want %q", model, got, want)
		}
	}
}
