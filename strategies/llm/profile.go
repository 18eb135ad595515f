package llm

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/policy"
)

// MaxTokensField is the field of a request for the output limit.
type MaxTokensField string

// The fields for the output limit. MaxTokens is for servers without the newer one.
const (
	MaxCompletionTokens MaxTokensField = "max_completion_tokens"
	MaxTokens           MaxTokensField = "max_tokens"
)

// maxTokens bounds all numbers of tokens, so that sums and products stay exact.
const maxTokens = 1_000_000_000

// Profile describes one model of one server. It holds the location of the key, not the key.
type Profile struct {
	// Name is the name of the model at the server.
	Name string `yaml:"name" json:"name"`
	// BaseURL is the URL of the API, such as "https://api.openai.com/v1".
	BaseURL string `yaml:"base_url" json:"base_url"`
	// KeyEnv is the environment variable that holds the key, KeyFile the file. At most one
	// of them is set.
	KeyEnv  string `yaml:"key_env" json:"key_env,omitempty"`
	KeyFile string `yaml:"key_file" json:"key_file,omitempty"`
	// Window is the context window in tokens, the sum of input and output.
	Window int `yaml:"window_tokens" json:"window_tokens"`
	// MaxOutput is the maximum output in tokens, including reasoning; 0 for the window.
	MaxOutput int `yaml:"max_output_tokens" json:"max_output_tokens,omitempty"`
	// MaxTokensField defaults to max_completion_tokens.
	MaxTokensField MaxTokensField `yaml:"max_tokens_field" json:"max_tokens_field,omitempty"`
	// FixedTemperature marks models that accept no temperature. Requests to all others
	// have the lowest one.
	FixedTemperature bool `yaml:"fixed_temperature" json:"fixed_temperature,omitempty"`
	// ReasoningEffort is sent unchanged, empty for none.
	ReasoningEffort string `yaml:"reasoning_effort" json:"reasoning_effort,omitempty"`
	// ReasoningTokens is added to the output limit of a call, which also covers reasoning.
	ReasoningTokens int `yaml:"reasoning_tokens" json:"reasoning_tokens,omitempty"`
	// Price is zero for a model without cost.
	Price Price `yaml:"price_per_million" json:"price_per_million,omitzero"`
	// RequestsPerMinute and TokensPerMinute limit the sum over all workers; 0 for no limit.
	// Tokens are those of the input and of the output limit.
	RequestsPerMinute int `yaml:"requests_per_minute" json:"requests_per_minute,omitempty"`
	TokensPerMinute   int `yaml:"tokens_per_minute" json:"tokens_per_minute,omitempty"`
}

// Price holds prices per million tokens, in any currency.
type Price struct {
	Input float64 `yaml:"input" json:"input,omitempty"`
	// Cached is the price of input from the server's cache; 0 for that of other input.
	Cached float64 `yaml:"cached" json:"cached,omitempty"`
	Output float64 `yaml:"output" json:"output,omitempty"`
}

// Validate returns every error of the profile, as an errors.Join of *policy.FieldError
// values. It does not look up the key.
func (p Profile) Validate() error {
	var fs policy.FieldErrors
	p.validate(&fs)
	return fs.Join()
}

func (p Profile) validate(fs *policy.FieldErrors) {
	plain := p.Name != "" && len(p.Name) <= 200 && !strings.ContainsFunc(p.Name, func(r rune) bool { return r <= ' ' || r == 0x7f })
	fs.Check(plain, "name", fmt.Sprintf("%q", p.Name), "the name of the model at the server, 1 to 200 characters without spaces")
	p.validateURL(fs)
	p.validateKey(fs)
	policy.CheckRange(fs, "window_tokens", p.Window, 1, maxTokens)
	fs.Check(p.MaxOutput >= 0 && p.MaxOutput <= max(0, p.Window), "max_output_tokens", p.MaxOutput, "0 to window_tokens (%d)", p.Window)
	fs.Check(slices.Contains([]MaxTokensField{"", MaxCompletionTokens, MaxTokens}, p.MaxTokensField),
		"max_tokens_field", fmt.Sprintf("%q", p.MaxTokensField), "%s or %s", MaxCompletionTokens, MaxTokens)
	fs.Check(p.ReasoningTokens >= 0 && p.ReasoningTokens < maxTokens, "reasoning_tokens", p.ReasoningTokens, "0 or more")
	fs.Check(p.ReasoningTokens == 0 || p.MaxOutput == 0 || p.ReasoningTokens < p.MaxOutput, "reasoning_tokens", p.ReasoningTokens,
		"less than max_output_tokens (%d), which also covers the answer", p.MaxOutput)
	price := func(key string, v float64) {
		fs.Check(v >= 0 && v <= 1e6, "price_per_million."+key, v, "0 to 1000000")
	}
	price("input", p.Price.Input)
	price("cached", p.Price.Cached)
	price("output", p.Price.Output)
	policy.CheckRange(fs, "requests_per_minute", p.RequestsPerMinute, 0, maxTokens)
	policy.CheckRange(fs, "tokens_per_minute", p.TokensPerMinute, 0, maxTokens)
	p.validateReasoning(fs)
}

// validateKey rejects a key in place of its location, without quoting it.
func (p Profile) validateKey(fs *policy.FieldErrors) {
	env := p.KeyEnv == "" || !looksLikeKey(p.KeyEnv) && !strings.ContainsAny(p.KeyEnv, "= \t\n\x00")
	fs.Check(env, "key_env", "the value", "the name of an environment variable, not the key itself")
	file := !looksLikeKey(p.KeyFile)
	fs.Check(file, "key_file", "the value", "the path of a file (./name for one here), not the key itself")
	if file {
		fs.Check(p.KeyEnv == "" || p.KeyFile == "", "key_file", fmt.Sprintf("%q", p.KeyFile), "key_env or key_file, not both")
	}
}

// looksLikeKey reports whether a text is a key rather than a name or a path: keys are long
// and mix lower-case letters with digits.
func looksLikeKey(s string) bool {
	const long, many = 20, 3
	digits, small := 0, false
	for _, r := range s {
		switch {
		case r == '/' || r == '\\' || r == '.':
			return false
		case r >= '0' && r <= '9':
			digits++
		case r >= 'a' && r <= 'z':
			small = true
		}
	}
	return small && digits >= many && len(s) >= long || strings.HasPrefix(s, "sk-")
}

// validateURL rejects a URL that is incomplete or may hold a secret, as it is part of
// names and errors.
func (p Profile) validateURL(fs *policy.FieldErrors) {
	const want = "http(s)://host[:port][/path] without user, query and fragment"
	u, err := url.Parse(p.BaseURL)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.ForceQuery {
		fs.Check(false, "base_url", "the value", want) // it may hold a password
		return
	}
	fs.Check((u.Scheme == "http" || u.Scheme == "https") && u.Host != "", "base_url", fmt.Sprintf("%q", p.BaseURL), want)
}

// reasoningModels lists the prefixes of models that accept neither temperature nor
// max_tokens, with their efforts if only some are valid. With the effort "none" they do
// not reason and accept a temperature.
var reasoningModels = []struct{ prefix, efforts string }{
	{"o1", ""},
	{"o3", ""},
	{"o4", ""},
	{"gpt-5", ""},
	{"gpt-6-astra", "low medium high xhigh max"},
	{"gpt-6.1-sol", "low medium high xhigh max"},
	{"gpt-6-sol", "none low medium high xhigh max"},
	{"gpt-6-luna", "none low medium high xhigh max"},
}

// validateReasoning rejects settings that a known reasoning model does not accept.
func (p Profile) validateReasoning(fs *policy.FieldErrors) {
	i := slices.IndexFunc(reasoningModels, func(m struct{ prefix, efforts string }) bool { return strings.HasPrefix(p.Name, m.prefix) })
	if i < 0 {
		return
	}
	fs.Check(p.MaxTokensField != MaxTokens, "max_tokens_field", p.MaxTokensField, "%s: %s is a reasoning model", MaxCompletionTokens, p.Name)
	efforts := strings.Fields(reasoningModels[i].efforts)
	accepted := p.ReasoningEffort == "" || len(efforts) == 0 || slices.Contains(efforts, p.ReasoningEffort)
	fs.Check(accepted, "reasoning_effort", fmt.Sprintf("%q", p.ReasoningEffort), "an effort of %s: %s", p.Name, strings.Join(efforts, ", "))
	reasons := p.ReasoningEffort != "none" || len(efforts) == 0
	fs.Check(!accepted || !reasons || p.FixedTemperature, "fixed_temperature", p.FixedTemperature, "true: %s takes no temperature", p.Name)
}

// bounded returns limit, but at most MaxOutput.
func (p Profile) bounded(limit int) int {
	return min(limit, cmp.Or(p.MaxOutput, maxTokens))
}

// CheckKey looks up the key. The error names its location, never its value. A profile
// without a location is valid. env may be nil.
func (p Profile) CheckKey(env func(name string) (string, bool)) error {
	_, err := openKey(p, env)
	return err
}

// ID returns the name of the model and its host, which identify it in cooldowns and logs.
func (p Profile) ID() string {
	u, err := url.Parse(p.BaseURL)
	if err != nil {
		return p.Name
	}
	return p.Name + "@" + u.Host
}
