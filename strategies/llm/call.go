package llm

import "time"

// Call is one question to the chain.
type Call struct {
	// System is the instruction, empty for none; User is everything else.
	System, User string
	// MaxTokens bounds the answer, without the reasoning before it; 0 leaves that to
	// the model.
	MaxTokens int
	// InputTokens is how long the texts are, by the caller's count. With 0 they are
	// estimated, and a model's window is not checked before it is asked.
	InputTokens int
	// Budget tightens the configured one where it is more than 0.
	Budget Budget
	// IgnoreCooldown asks models that are to be left alone, too: an operator waits.
	IgnoreCooldown bool
}

// input returns the length of the texts in tokens.
func (c Call) input() int {
	if c.InputTokens > 0 {
		return min(c.InputTokens, maxTokens)
	}
	return min((len(c.System)+len(c.User))/4+16, maxTokens)
}

// Answer is what a model said, and what it took to get it.
type Answer struct {
	// Text is the model's words as they are. It is empty only with a Refusal.
	Text string
	// Model is the name of the model that answered.
	Model string
	// FinishReason is FinishStop, FinishLength (Text was cut off), FinishTools,
	// FinishOther, or empty where the server gave none.
	FinishReason string
	// Refusal is what a model said instead, on servers that tell the two apart.
	Refusal string
	// Usage and CostMicros are what all attempts took, failed ones included, as far
	// as servers reported it. CostMicros is in millionths of the prices' currency.
	Usage      Usage
	CostMicros int64
	// Attempts is how many requests were made, Duration how long everything took.
	Attempts int
	Duration time.Duration
}
