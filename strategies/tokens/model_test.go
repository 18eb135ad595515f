package tokens_test

import (
	"testing"

	"github.com/sessionstore/compactor/strategies/tokens"
)

func TestModels(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		encoding      string
		exact         bool
		window        int
		windowUnknown bool
	}{
		"gpt-3.5-turbo":             {tokens.CL100K, true, 16_385, false},
		"gpt-4":                     {tokens.CL100K, true, 8_192, false},
		"gpt-4-0613":                {tokens.CL100K, true, 8_192, false},
		"gpt-4-turbo-2024-04-09":    {tokens.CL100K, true, 128_000, false},
		"gpt-4o":                    {tokens.O200K, true, 128_000, false},
		"openai/gpt-4o-mini":        {tokens.O200K, true, 128_000, false},
		"openrouter/openai/GPT-4.1": {tokens.O200K, true, 1_047_576, false},
		"ft:gpt-4o-mini:org::id":    {tokens.O200K, true, 128_000, false},
		"gpt-5":                     {tokens.O200K, true, 400_000, false},
		"gpt-5-mini-2025-08-07":     {tokens.O200K, true, 400_000, false},
		"o1":                        {tokens.O200K, true, 200_000, false},
		"o1-preview":                {tokens.O200K, true, 128_000, false},
		"o3-mini":                   {tokens.O200K, true, 200_000, false},
		"o4-mini":                   {tokens.O200K, true, 200_000, false},
		"claude-sonnet-4-5":         {tokens.O200K, false, 200_000, false},
		"us.anthropic.claude-3-5-sonnet-20241022": {tokens.O200K, false, 200_000, false},
		"vertex_ai/claude-3-5-sonnet@20240620":    {tokens.O200K, false, 200_000, false},
		"gemini-2.5-pro":                          {tokens.O200K, false, 1_048_576, false},
		"gemini/gemini-1.5-pro":                   {tokens.O200K, false, 2_097_152, false},
		"meta-llama/Llama-3.1-70B-Instruct":       {tokens.O200K, false, 131_072, false},
		"llama3.1:70b":                            {tokens.O200K, false, 131_072, false},
		"us.meta.llama3-1-70b-instruct-v1:0":      {tokens.O200K, false, 131_072, false},
		"mistral.mistral-large-2402-v1:0":         {tokens.O200K, false, 131_072, false},
		"mistralai/mistral-large":                 {tokens.O200K, false, 131_072, false},
		"deepseek/deepseek-chat":                  {tokens.O200K, false, 131_072, false},
		"deepseek/deepseek-r1:free":               {tokens.O200K, false, 65_536, false},
		"qwen/qwen3-coder":                        {tokens.O200K, false, 262_144, false},
		"qwen2.5-72b-instruct":                    {tokens.O200K, false, 131_072, false},
		"o12-huge":                                {tokens.O200K, false, tokens.DefaultWindow, true},
		"my-own-gpt-4":                            {tokens.O200K, false, tokens.DefaultWindow, true},
		"":                                        {tokens.O200K, false, tokens.DefaultWindow, true},
		"a/b:c":                                   {tokens.O200K, false, tokens.DefaultWindow, true},
		"accounts/x/models/gpt-oss-120b":          {tokens.O200K, true, 131_072, false},
	}
	for model, tt := range tests {
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			if name, known := tokens.Encoding(model); name != tt.encoding || known != tt.exact {
				t.Errorf("encoding %s, known %v; want %s, %v", name, known, tt.encoding, tt.exact)
			}
			if n, known := tokens.Window(model); n != tt.window || known == tt.windowUnknown {
				t.Errorf("window %d, known %v; want %d, %v", n, known, tt.window, !tt.windowUnknown)
			}
		})
	}
	if got := tokens.ForModel("gpt-4").Name(); got != tokens.CL100K {
		t.Errorf("gpt-4 is counted by %s", got)
	}
}
