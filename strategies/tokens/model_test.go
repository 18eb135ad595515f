package tokens_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
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
		"gpt-4-turbo-2024-04-09":    {tokens.CL100K, true, 128_000, false},
		"openrouter/openai/GPT-4.1": {tokens.O200K, true, 1_047_576, false},
		"ft:gpt-4o-mini:org::id":    {tokens.O200K, true, 128_000, false},
		"o1-preview":                {tokens.O200K, true, 128_000, false},

		"us.anthropic.claude-3-5-sonnet-20241022": {tokens.O200K, false, 200_000, false},
		"vertex_ai/claude-3-5-sonnet@20240620":    {tokens.O200K, false, 200_000, false},
		"gemini/gemini-1.5-pro":                   {tokens.O200K, false, 2_097_152, false},
		"meta-llama/Llama-3.1-70B-Instruct":       {tokens.O200K, false, 131_072, false},
		"us.meta.llama3-1-70b-instruct-v1:0":      {tokens.O200K, false, 131_072, false},
		"mistral.mistral-large-2402-v1:0":         {tokens.O200K, false, 131_072, false},
		"deepseek/deepseek-r1:free":               {tokens.O200K, false, 65_536, false},
		"qwen/qwen3-coder":                        {tokens.O200K, false, 262_144, false},
		"o12-huge":                                {tokens.O200K, false, tokens.DefaultWindow, true},
		"my-own-gpt-4":                            {tokens.O200K, false, tokens.DefaultWindow, true},
		"":                                        {tokens.O200K, false, tokens.DefaultWindow, true},
		"a/b:c":                                   {tokens.O200K, false, tokens.DefaultWindow, true},
		"accounts/x/models/gpt-oss-120b":          {tokens.O200K, true, 131_072, false},
		"gpt-5.4-2026-03-05":                      {tokens.O200K, true, 1_050_000, false},
		"openai/gpt-6.2-sol":                      {tokens.O200K, true, 1_050_000, false},
		"anthropic/claude-opus-4.8":               {tokens.O200K, false, 1_000_000, false},
		"us.anthropic.claude-haiku-4-5-20251001":  {tokens.O200K, false, 200_000, false},
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
}

// The factors are between the figures that vendors and other projects publish.
func TestCountsForAModelOfAnotherVendorAreEstimatesByAFactor(t *testing.T) {
	t.Parallel()
	factors := map[string]string{
		"gpt-5.6-sol": "", "gpt-4": "", "o3": "", "": "",
		"claude-3-5-sonnet-20241022": "*1.23", "claude-3-7-sonnet-latest": "*1.23", "anthropic/claude-sonnet-4.5": "*1.23",
		"us.anthropic.claude-haiku-4-5-20251001-v1:0": "*1.23", "claude-opus-4-20250514": "*1.23", "claude-opus-4-6": "*1.23",
		"claude-opus-4-7": "*1.5", "claude-opus-4.8": "*1.5", "claude-sonnet-5": "*1.5", "claude-haiku-5-5": "*1.5",
		"claude-fable-5-1": "*1.5", "claude-mythos-preview": "*1.5", "claude-of-2030": "*1.5",
		"gemini-3-flash-preview": "*1.18", "mistral-large-2512": "*1.26", "codestral": "*1.26",
		"llama-4-maverick": "*1.2", "deepseek-v4-pro": "*1.2", "our-own-model": "*1.2",
	}
	text := strings.Repeat("The tests of package store pass. ", 50)
	m := &chat.Message{Role: chat.RoleUser, Content: chat.TextContent(text)}
	exact := tokens.ForModel("gpt-4o")
	for model, suffix := range factors {
		c := tokens.ForModel(model)
		want := tokens.O200K + suffix
		if model == "gpt-4" {
			want = tokens.CL100K
		}
		if c.Name() != want {
			t.Errorf("%s is counted by %s, want %s", model, c.Name(), want)
		}
		if got := chat.Estimates(c.Name()); got != (suffix != "") {
			t.Errorf("%s: the count is an estimate: %t", model, got)
		}
		factor, err := strconv.ParseFloat(strings.TrimPrefix(suffix, "*"), 64)
		if err != nil {
			continue
		}
		if got, want := c.Message(m), chat.Tokens(math.Ceil(factor*float64(exact.Message(m))-1e-9)); got != want {
			t.Errorf("%s counts %d tokens, want %d", model, got, want)
		}
		if got, want := c.Text(text), chat.Tokens(math.Ceil(factor*float64(exact.Text(text))-1e-9)); got != want || c.Text("") != 0 {
			t.Errorf("%s counts %d tokens of a text, want %d", model, got, want)
		}
	}
}

func TestATableOverridesTheBuiltInOne(t *testing.T) {
	t.Parallel()
	table := tokens.Table{
		{Prefix: "house", Window: 32_000},
		{Prefix: "House-Large", Window: 64_000, Factor: 1.4},
		{Prefix: "claude", Window: 500_000},
		{Prefix: "gemini-3", Factor: 1.05},
		{Prefix: "proxy", Encoding: tokens.CL100K},
		{Prefix: "proxy-2", Encoding: tokens.CL100K, Factor: 1.1},
		{Prefix: "one", Factor: 1},
	}
	for model, want := range map[string]string{
		"house-7b":            "32000 true o200k_base*1.2",
		"acme/house-large-2":  "64000 true o200k_base*1.4",
		"claude-opus-4-8":     "500000 true o200k_base*1.5",
		"gemini-3.5-flash":    "1048576 true o200k_base*1.05",
		"gemini-2.5-pro":      "1048576 true o200k_base*1.18",
		"proxy":               "128000 false cl100k_base",
		"proxy-2-mini":        "128000 false cl100k_base*1.1",
		"one":                 "128000 false o200k_base*1",
		"gpt-4":               "8192 true cl100k_base",
		"unlisted-model":      "128000 false o200k_base*1.2",
		"unlisted-model:free": "128000 false o200k_base*1.2",
	} {
		window, known := table.Window(model)
		got := fmt.Sprint(window, known, " ", table.ForModel(model).Name())
		if got != want {
			t.Errorf("%s: %s, want %s", model, got, want)
		}
	}
	if p := table.Prefixes(); !slices.Contains(p, "house-large") || !slices.Contains(p, "gpt-4o") {
		t.Errorf("prefixes %v", p)
	}
	if table.Version() == tokens.Table(nil).Version() || !strings.HasPrefix(table.Version(), tokens.TableDate) {
		t.Errorf("version %s", table.Version())
	}
	for _, m := range table {
		if err := m.Validate(); err != nil {
			t.Errorf("%s: %v", m.Prefix, err)
		}
	}
	for want, m := range map[string]tokens.Model{
		"want a model's name or its beginning as prefix":      {Window: 1},
		"window -1: want 0 (that of the table) to 1000000000": {Prefix: "m", Window: -1},
		`encoding "p50k": want o200k_base or cl100k_base`:     {Prefix: "m", Encoding: "p50k"},
		"factor 6: want 0 (that of the table), or 0.2 to 5":   {Prefix: "m", Factor: 6},
		"factor NaN: want 0 (that of the table), or 0.2 to 5": {Prefix: "m", Factor: math.NaN()},
	} {
		if err := m.Validate(); fmt.Sprint(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
