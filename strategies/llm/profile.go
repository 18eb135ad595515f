package llm

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/policy"
)

// MaxTokensField is the name under which a server takes the bound of an answer.
type MaxTokensField string

// The two fields. The older one is for servers that do not know the newer.
const (
	MaxCompletionTokens MaxTokensField = "max_completion_tokens"
	MaxTokens           MaxTokensField = "max_tokens"
)

// maxTokens bounds every number of tokens, so that sums and products stay exact.
const maxTokens = 1_000_000_000

// Profile is one model of one server. It holds no key, only where to find it.
type Profile struct {
	// Name is the model as the server knows it.
	Name string `yaml:"name" json:"name"`
	// BaseURL is where the server's API begins, "https://api.openai.com/v1".
	BaseURL string `yaml:"base_url" json:"base_url"`
	// KeyEnv is the environment variable that holds the key, KeyFile the file; at
	// most one of them. A server of one's own may need neither.
	KeyEnv  string `yaml:"key_env" json:"key_env,omitempty"`
	KeyFile string `yaml:"key_file" json:"key_file,omitempty"`
	// Window is how many tokens the model reads and writes in one call.
	Window int `yaml:"window_tokens" json:"window_tokens"`
	// MaxOutput is how many tokens it writes at most, reasoning included; 0 where
	// only the window bounds that.
	MaxOutput int `yaml:"max_output_tokens" json:"max_output_tokens,omitempty"`
	// MaxTokensField is how the server wants to be told; empty is
	// max_completion_tokens.
	MaxTokensField MaxTokensField `yaml:"max_tokens_field" json:"max_tokens_field,omitempty"`
	// FixedTemperature is set for models that take no temperature. All others are
	// asked at the lowest there is.
	FixedTemperature bool `yaml:"fixed_temperature" json:"fixed_temperature,omitempty"`
	// ReasoningEffort is sent as it is, empty for none.
	ReasoningEffort string `yaml:"reasoning_effort" json:"reasoning_effort,omitempty"`
	// ReasoningTokens is what a call is allowed on top of its answer: reasoning
	// counts against the same bound, and without room for it nothing is answered.
	ReasoningTokens int `yaml:"reasoning_tokens" json:"reasoning_tokens,omitempty"`
	// Price is what the model costs; zero for one that costs nothing.
	Price Price `yaml:"price_per_million" json:"price_per_million,omitzero"`
	// RequestsPerMinute and TokensPerMinute bound what all workers ask together;
	// 0 for no bound. Tokens are those of the input and those asked for.
	RequestsPerMinute int `yaml:"requests_per_minute" json:"requests_per_minute,omitempty"`
	TokensPerMinute   int `yaml:"tokens_per_minute" json:"tokens_per_minute,omitempty"`
}

// Price is in units of a currency per million tokens.
type Price struct {
	Input float64 `yaml:"input" json:"input,omitempty"`
	// Cached is the price of input that the server had in its cache; 0 is that of
	// other input.
	Cached float64 `yaml:"cached" json:"cached,omitempty"`
	Output float64 `yaml:"output" json:"output,omitempty"`
}

// Validate reports everything that is wrong with the profile at once, as an
// errors.Join of *policy.FieldError values, and nil when nothing is. It looks for no key.
func (p Profile) Validate() error {
	var fs policy.FieldErrors
	p.validate(&fs)
	return fs.Join()
}

func (p Profile) validate(fs *policy.FieldErrors) {
	plain := p.Name != "" && len(p.Name) <= 200 && !strings.ContainsFunc(p.Name, func(r rune) bool { return r <= ' ' || r == 0x7f })
	fs.Check(plain, "name", fmt.Sprintf("%q", p.Name), "the model's name as the server knows it, 1 to 200 characters without spaces")
	p.validateURL(fs)
	p.validateKey(fs)
	policy.CheckRange(fs, "window_tokens", p.Window, 1, maxTokens)
	fs.Check(p.MaxOutput >= 0 && p.MaxOutput <= max(0, p.Window), "max_output_tokens", p.MaxOutput, "0 to window_tokens (%d)", p.Window)
	switch p.MaxTokensField {
	case "", MaxCompletionTokens, MaxTokens:
	default:
		fs.Check(false, "max_tokens_field", fmt.Sprintf("%q", p.MaxTokensField), "%s or %s", MaxCompletionTokens, MaxTokens)
	}
	fs.Check(p.ReasoningTokens >= 0 && p.ReasoningTokens < maxTokens, "reasoning_tokens", p.ReasoningTokens, "0 or more")
	fs.Check(p.ReasoningTokens == 0 || p.MaxOutput == 0 || p.ReasoningTokens < p.MaxOutput, "reasoning_tokens", p.ReasoningTokens,
		"less than max_output_tokens (%d), or no room is left for an answer", p.MaxOutput)
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

// validateKey reports a key that was put in the place of its name, without quoting it.
func (p Profile) validateKey(fs *policy.FieldErrors) {
	env := p.KeyEnv == "" || !looksLikeKey(p.KeyEnv) && !strings.ContainsAny(p.KeyEnv, "= \t\n\x00")
	fs.Check(env, "key_env", "the value", "the name of an environment variable, not the key itself")
	file := !looksLikeKey(p.KeyFile)
	fs.Check(file, "key_file", "the value", "the path of a file (./name for one here), not the key itself")
	if file {
		fs.Check(p.KeyEnv == "" || p.KeyFile == "", "key_file", fmt.Sprintf("%q", p.KeyFile), "key_env or key_file, not both")
	}
}

// likeKey reports whether a text is a key and no name or path: keys are long, in one
// piece, and mix small letters with digits.
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

// validateURL reports an address that is not complete, or that may hold a secret: it
// becomes part of names and errors.
func (p Profile) validateURL(fs *policy.FieldErrors) {
	const want = "http(s)://host[:port][/path] without user, query and fragment"
	u, err := url.Parse(p.BaseURL)
	if err != nil {
		fs.Check(false, "base_url", "the value", want)
		return
	}
	ok := (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.ForceQuery {
		fs.Check(false, "base_url", "the value", want) // may hold a password
		return
	}
	fs.Check(ok, "base_url", fmt.Sprintf("%q", p.BaseURL), want)
}

// reasoningModels are models that take no temperature and no max_tokens, by the
// beginning of their names. Where efforts is not empty, they take no other ones; with
// the effort "none" they do not reason and take a temperature.
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

// validateReasoning reports settings that a known reasoning model refuses.
func (p Profile) validateReasoning(fs *policy.FieldErrors) {
	i := slices.IndexFunc(reasoningModels, func(m struct{ prefix, efforts string }) bool { return strings.HasPrefix(p.Name, m.prefix) })
	if i < 0 {
		return
	}
	fs.Check(p.MaxTokensField != MaxTokens, "max_tokens_field", p.MaxTokensField, "%s: %s is a reasoning model", MaxCompletionTokens, p.Name)
	efforts := strings.Fields(reasoningModels[i].efforts)
	takes := p.ReasoningEffort == "" || len(efforts) == 0 || slices.Contains(efforts, p.ReasoningEffort)
	fs.Check(takes, "reasoning_effort", fmt.Sprintf("%q", p.ReasoningEffort), "an effort that %s takes", p.Name)
	reasons := p.ReasoningEffort != "none" || len(efforts) == 0
	fs.Check(!takes || !reasons || p.FixedTemperature, "fixed_temperature", p.FixedTemperature, "true: %s takes no temperature", p.Name)
}

// outputLimit returns how many tokens a call may write: its answer and the reasoning
// before it, within what the model can. 0 leaves that to the server.
func (p Profile) outputLimit(answer int) int {
	if answer <= 0 {
		return p.MaxOutput
	}
	return p.bounded(answer + p.ReasoningTokens)
}

// raisedLimit returns a larger limit for a call that used up its own before any text.
func (p Profile) raisedLimit(limit int) int {
	if limit == 0 {
		return 0 // nothing that can be raised bounded it
	}
	return p.bounded(max(2*limit, limit+p.ReasoningTokens))
}

func (p Profile) bounded(limit int) int {
	if p.MaxOutput > 0 {
		limit = min(limit, p.MaxOutput)
	}
	return min(limit, maxTokens)
}

// CheckKey returns an error if the key is not where the profile says, and nil where the
// profile names no place. The error names the place, never the value. env may be nil.
func (p Profile) CheckKey(env func(name string) (string, bool)) error {
	_, err := openKey(p, env)
	return err
}

// ID returns the name and the host, which tell apart models that have one name on two
// servers, as Cooldowns and logs have it.
func (p Profile) ID() string {
	u, err := url.Parse(p.BaseURL)
	if err != nil {
		return p.Name
	}
	return p.Name + "@" + u.Host
}
