package tokens

import (
	"math"
	"strconv"

	"github.com/sessionstore/compactor/strategies/chat"
)

// family is the models of another vendor whose names begin with prefix, and how many tokens
// the vendor counts in a text for each one of O200K.
type family struct {
	prefix string
	factor float64
}

// The factors are what text typically needs, not the highest figure of a source: the
// policy's margin for estimates, 10 % by default, is added to all these counts, and covers
// text and sources that deviate (1.5 + 10 % = 1.65, 1.23 + 10 % = 1.35).
const (
	// Opus 4.7 and all later models: "approximately 30 percent more tokens" than the
	// earlier ones, by platform.claude.com (token counting; overview of Haiku 5.5), which
	// is 1.6; AutoGPT#13629 uses 1.5; opencrabs#1123 measured 1.55, tool definitions
	// included.
	claudeFactor = 1.5
	// Continue's table; copilot-api#141 found 1.15 too low and uses 1.25.
	earlyClaudeFactor = 1.23
	// Continue's table. Gemini and Gemma share one vocabulary.
	geminiFactor  = 1.18
	mistralFactor = 1.26
	// No figure is published for the others; mezmo/aura#257 saw 10 to 30 % on code,
	// white space and languages other than English.
	otherFactor = 1.2
)

// families lists the factors by model. The longest matching prefix applies.
var families = []family{
	{"claude", claudeFactor},
	{"claude-1", earlyClaudeFactor},
	{"claude-2", earlyClaudeFactor},
	{"claude-v1", earlyClaudeFactor},
	{"claude-v2", earlyClaudeFactor},
	{"claude-instant", earlyClaudeFactor},
	{"claude-3", earlyClaudeFactor},
	{"claude-4", earlyClaudeFactor},
	{"claude-opus-4", earlyClaudeFactor},
	{"claude-opus-4-7", claudeFactor},
	{"claude-opus-4.7", claudeFactor},
	{"claude-opus-4-8", claudeFactor},
	{"claude-opus-4.8", claudeFactor},
	{"claude-sonnet-4", earlyClaudeFactor},
	{"claude-haiku-4", earlyClaudeFactor},
	{"gemini", geminiFactor},
	{"gemma", geminiFactor},
	{"mistral", mistralFactor},
	{"mixtral", mistralFactor},
	{"ministral", mistralFactor},
	{"magistral", mistralFactor},
	{"codestral", mistralFactor},
	{"devstral", mistralFactor},
}

// factorOf returns the factor for a model that does not use one of OpenAI's encodings.
func factorOf(model string) float64 {
	if f, ok := lookupIn(families, func(f family) string { return f.prefix }, model); ok {
		return f.factor
	}
	return otherFactor
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
