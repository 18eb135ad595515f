package tokens

import (
	"math"
	"strconv"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Family is a group of models that share a tokenizer, more or less.
type Family struct {
	Name string
	// Factor is how many tokens the vendor counts in a text for each one of O200K; 0 for
	// models with one of OpenAI's encodings, whose counts are exact.
	Factor float64
}

// The factors are those of typical text, not the highest figure of a source: the
// policy's margin for estimates, 10 % by default, is added to all these counts, and covers
// text and sources that deviate (1.5 + 10 % = 1.65, 1.23 + 10 % = 1.35).
var (
	openAI = Family{"OpenAI", 0}
	// Opus 4.7 and all later models: "approximately 30 percent more tokens" than the
	// earlier ones, by platform.claude.com (token counting; overview of Haiku 5.5), which
	// is 1.6; AutoGPT#13629 uses 1.5; opencrabs#1123 measured 1.55, tool definitions
	// included.
	claude = Family{"Claude", 1.5}
	// Continue's table; copilot-api#141 found 1.15 too low and uses 1.25.
	earlyClaude = Family{"early Claude", 1.23}
	// Continue's table. Gemini and Gemma share one vocabulary.
	gemini = Family{"Gemini", 1.18}
	// Continue's table.
	mistral = Family{"Mistral", 1.26}
	// No figure is published for the others; mezmo/aura#257 saw 10 to 30 % on code,
	// white space and languages other than English.
	others = Family{"other", 1.2}
)

type familyFact struct {
	prefix string
	family Family
}

// families lists the beginnings of models' names. The longest one applies.
var families = []familyFact{
	{"claude", claude},
	{"claude-1", earlyClaude},
	{"claude-2", earlyClaude},
	{"claude-v1", earlyClaude},
	{"claude-v2", earlyClaude},
	{"claude-instant", earlyClaude},
	{"claude-3", earlyClaude},
	{"claude-4", earlyClaude},
	{"claude-opus-4", earlyClaude},
	{"claude-opus-4-7", claude},
	{"claude-opus-4.7", claude},
	{"claude-opus-4-8", claude},
	{"claude-opus-4.8", claude},
	{"claude-sonnet-4", earlyClaude},
	{"claude-haiku-4", earlyClaude},
	{"gemini", gemini},
	{"gemma", gemini},
	{"mistral", mistral},
	{"mixtral", mistral},
	{"ministral", mistral},
	{"magistral", mistral},
	{"codestral", mistral},
	{"devstral", mistral},
}

// familyOf returns the family of a model that does not use one of OpenAI's encodings.
func familyOf(model string) Family {
	if f, ok := lookupIn(families, func(f familyFact) string { return f.prefix }, model); ok {
		return f.family
	}
	return others
}

// scaled multiplies the counts of a counter by a factor, which makes them estimates.
type scaled struct {
	Counter
	factor float64
}

// counterName returns the name of the counter of an encoding, with a factor unless it is 0.
func counterName(encoding string, factor float64) string {
	if factor == 0 {
		return encoding
	}
	return encoding + chat.ScaledBy + strconv.FormatFloat(factor, 'f', -1, 64)
}

// Name returns the name of the counter with the factor: "o200k_base*1.5".
func (s scaled) Name() string { return counterName(s.Counter.Name(), s.factor) }

// Text returns the product, rounded up.
func (s scaled) Text(text string) chat.Tokens { return s.times(s.Counter.Text(text)) }

// Message returns the product for the whole message, rounded up.
func (s scaled) Message(m *chat.Message) chat.Tokens { return s.times(s.Counter.Message(m)) }

func (s scaled) times(t chat.Tokens) chat.Tokens {
	return chat.Tokens(math.Ceil(float64(t)*s.factor - 1e-9))
}
