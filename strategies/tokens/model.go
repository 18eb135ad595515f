package tokens

import (
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// DefaultWindow is the context window, in tokens, assumed for unknown models.
const DefaultWindow = 128_000

// modelFact describes the models whose names begin with prefix.
type modelFact struct {
	prefix   string
	encoding string // "" for models that do not use one of OpenAI's
	window   int
}

// TableDate is the day on which the facts below were last compared with those of vendors.
const TableDate = "2026-11-22"

// facts lists the windows that vendors document, input and output together. The
// longest matching prefix applies, so the order is free. The models of 2026 are from
// platform.claude.com/docs/en/models, ai.google.dev/gemini-api/docs/models and
// docs.x.ai/developers/models, those of other vendors, OpenAI among them, from
// github.com/anomalyco/models.dev and vercel.com/ai-gateway/models.
var facts = []modelFact{
	{"gpt-3.5", CL100K, 16_385},
	{"gpt-3.5-turbo-0301", CL100K, 4_096},
	{"gpt-3.5-turbo-0613", CL100K, 4_096},
	{"gpt-3.5-turbo-instruct", CL100K, 4_096},
	{"gpt-35", CL100K, 16_385}, // Azure's spelling
	{"gpt-4", CL100K, 8_192},
	{"gpt-4-32k", CL100K, 32_768},
	{"gpt-4-turbo", CL100K, 128_000},
	{"gpt-4-1106", CL100K, 128_000},
	{"gpt-4-0125", CL100K, 128_000},
	{"gpt-4-vision", CL100K, 128_000},
	{"gpt-4o", O200K, 128_000},
	{"chatgpt-4o", O200K, 128_000},
	{"gpt-4.1", O200K, 1_047_576},
	{"gpt-4.5", O200K, 128_000},
	{"gpt-5", O200K, 400_000},
	{"gpt-5-chat", O200K, 128_000},
	{"gpt-5.1-chat", O200K, 128_000},
	{"gpt-5.2-chat", O200K, 128_000},
	{"gpt-5.3-chat", O200K, 128_000},
	{"gpt-5.3-codex-spark", O200K, 128_000},
	{"gpt-5.4", O200K, 1_050_000},
	{"gpt-5.4-mini", O200K, 400_000},
	{"gpt-5.4-nano", O200K, 400_000},
	{"gpt-5.5", O200K, 1_050_000},
	{"gpt-5.6", O200K, 1_050_000},
	{"gpt-6", O200K, 1_050_000}, // the encoding by ttok 1.0
	{"gpt-oss", O200K, 131_072},
	{"codex-mini", O200K, 200_000},
	{"o1", O200K, 200_000},
	{"o1-preview", O200K, 128_000},
	{"o1-mini", O200K, 128_000},
	{"o3", O200K, 200_000},
	{"o4-mini", O200K, 200_000},
	{"claude", "", 200_000}, // also one newer than this table, which is rather compacted early
	{"claude-2.0", "", 100_000},
	{"claude-instant", "", 100_000},
	{"claude-opus-4-6", "", 1_000_000},
	{"claude-opus-4.6", "", 1_000_000}, // OpenRouter's spelling
	{"claude-opus-4-7", "", 1_000_000},
	{"claude-opus-4.7", "", 1_000_000},
	{"claude-opus-4-8", "", 1_000_000},
	{"claude-opus-4.8", "", 1_000_000},
	{"claude-sonnet-4-6", "", 1_000_000},
	{"claude-sonnet-4.6", "", 1_000_000},
	{"claude-fable", "", 1_000_000},
	{"claude-mythos", "", 1_000_000},
	{"claude-opus-5", "", 1_000_000},
	{"claude-sonnet-5", "", 1_000_000},
	{"claude-haiku-5", "", 1_000_000},
	{"gemini", "", 1_048_576},
	{"gemini-pro", "", 32_760},
	{"gemini-1.0", "", 32_760},
	{"gemini-1.5-pro", "", 2_097_152},
	{"gemma-2", "", 8_192},
	{"gemma-3", "", 131_072},
	{"llama-2", "", 4_096},
	{"llama2", "", 4_096},
	{"llama-3", "", 8_192},
	{"llama3", "", 8_192},
	{"meta-llama-3", "", 8_192},
	{"llama-3.1", "", 131_072},
	{"llama3.1", "", 131_072},
	{"meta-llama-3.1", "", 131_072},
	{"llama3-1", "", 131_072}, // Bedrock's spelling
	{"llama3-2", "", 131_072},
	{"llama3-3", "", 131_072},
	{"llama-3.2", "", 131_072},
	{"llama3.2", "", 131_072},
	{"llama-3.3", "", 131_072},
	{"llama3.3", "", 131_072},
	{"llama-4-scout", "", 10_485_760},
	{"llama-4-maverick", "", 1_048_576},
	{"mistral", "", 32_768},
	{"mistral-large", "", 131_072},
	{"mistral-large-3", "", 256_000},
	{"mistral-medium", "", 131_072},
	{"mistral-medium-3.5", "", 256_000},
	{"mistral-small", "", 131_072},
	{"mistral-nemo", "", 131_072},
	{"magistral", "", 40_960},
	{"ministral", "", 131_072},
	{"mixtral", "", 32_768},
	{"mixtral-8x22b", "", 65_536},
	{"codestral", "", 262_144},
	{"devstral", "", 131_072},
	{"devstral-2512", "", 256_000},
	{"deepseek", "", 131_072},
	{"deepseek-llm", "", 4_096},
	{"deepseek-v2.5", "", 65_536},
	{"deepseek-v3-0324", "", 65_536},
	{"deepseek-v4", "", 1_000_000},
	{"deepseek-r1", "", 65_536},
	{"deepseek-r1-0528", "", 131_072},
	{"qwen", "", 32_768},
	{"qwen2.5", "", 131_072},
	{"qwen3", "", 131_072},
	{"qwen3-coder", "", 262_144},
	{"qwen3-next", "", 262_144},
	{"qwen3-max", "", 262_144},
	{"qwen3.6-plus", "", 1_000_000},
	{"qwen3.7-max", "", 991_000},
	{"qwen-turbo", "", 1_000_000},
	{"qwen-plus", "", 131_072},
	{"qwq", "", 131_072},
	{"grok-2", "", 131_072},
	{"grok-3", "", 131_072},
	{"grok-4", "", 256_000},
	{"grok-4.20", "", 1_000_000},
	{"grok-4.3", "", 1_000_000},
	{"grok-4.5", "", 500_000},
	{"grok-4.6", "", 500_000},
	{"grok-4.7", "", 500_000},
	{"grok-code", "", 256_000},
	{"command-r", "", 128_000},
	{"command-a", "", 256_000},
	{"phi-3", "", 4_096},
	{"phi-4", "", 16_384},
	{"kimi-k2", "", 131_072},
	{"kimi-k2-0905", "", 262_144},
	{"kimi-k2.6", "", 262_144},
	{"glm-4", "", 131_072},
	{"glm-4.6", "", 204_800},
	{"glm-5", "", 198_000},
	{"glm-5.2", "", 1_048_576},
	{"minimax-m2", "", 204_800},
}

// Encoding returns the encoding for counting a model's tokens, O200K or CL100K. known is
// false for unknown models and for those with another tokenizer: O200K then gives
// estimates. It accepts the spellings of providers, such as "openai/gpt-4o",
// "azure/gpt-4o", "ft:gpt-4o-mini:org::id" and "us.anthropic.claude-…", in any case.
func Encoding(model string) (name string, known bool) {
	if f, ok := lookup(model); ok && f.encoding != "" {
		return f.encoding, true
	}
	return O200K, false
}

// lookup returns the fact with the longest prefix of the model's name.
func lookup(model string) (modelFact, bool) {
	return lookupIn(facts, func(f modelFact) string { return f.prefix }, model)
}

// lookupIn returns the row with the longest prefix of the model's name (see
// text.ModelNames).
func lookupIn[R any](rows []R, prefix func(R) string, model string) (best R, found bool) {
	for _, name := range text.ModelNames(model) {
		longest := 0
		for _, r := range rows {
			if p := strings.ToLower(prefix(r)); len(p) > longest && strings.HasPrefix(name, p) && endsWord(name, p) {
				best, longest = r, len(p)
			}
		}
		if longest > 0 {
			return best, true
		}
	}
	return best, false
}

// endsWord reports whether prefix ends at the end of a word or number of name: "o1"
// matches neither "o1x" nor "o12", but "qwen" matches "qwen2".
func endsWord(name, prefix string) bool {
	if len(name) == len(prefix) {
		return true
	}
	next, last := name[len(prefix)], prefix[len(prefix)-1]
	isDigit := func(b byte) bool { return '0' <= b && b <= '9' }
	if isDigit(next) {
		return !isDigit(last)
	}
	return next < 'a' || next > 'z'
}
