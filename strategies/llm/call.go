package llm

import (
	"log/slog"
	"time"
)

// Call is one request to the chain of models.
type Call struct {
	// System is the instruction, empty for none; User is the rest of the prompt.
	System, User string
	// MaxTokens limits the answer in tokens, excluding reasoning; 0 leaves the limit to
	// the model.
	MaxTokens int
	// InputTokens is the caller's count of System and User. If it is 0 it is estimated,
	// and the windows of models are not checked before a request.
	InputTokens int
	// IgnoreCooldown also uses models in cooldown, for calls by an operator.
	IgnoreCooldown bool
	// Log receives the failed attempts of this call in place of Deps.Log; nil for that.
	Log *slog.Logger
}

// input returns the length of the prompt in tokens.
func (c Call) input() int {
	if c.InputTokens > 0 {
		return min(c.InputTokens, maxTokens)
	}
	return min((len(c.System)+len(c.User))/4+16, maxTokens)
}

// Answer is the answer of a model, with the cost of getting it.
type Answer struct {
	// Text is the model's text, unchanged. It is empty only with a Refusal.
	Text string
	// Model is the name of the model that answered.
	Model string
	// FinishReason is FinishStop, FinishLength (Text was cut off), FinishTools,
	// FinishOther, or empty if the server sent none.
	FinishReason string
	// Refusal is the refusal of a model, from servers with a field for it.
	Refusal string
	// Usage and CostMicros are the totals of all attempts, including failed ones. CostMicros is in millionths of the prices' currency.
	Usage      Usage
	CostMicros int64
	// Attempts is the number of requests, Duration the time of the whole call.
	Attempts int
	Duration time.Duration
	// Status and Server are those of the last failed attempt, zero without one: see Error.
	Status int
	Server ServerError
}
