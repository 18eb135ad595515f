package llm

import (
	"cmp"
	"fmt"
	"time"
)

// Error is the error of a call. It holds no part of the request or of a response.
type Error struct {
	// Class is the class of the failure. If models failed in different ways, it is the one
	// that is most useful to the caller.
	Class Class
	// Model is the model of that failure, empty if none was called.
	Model string
	// Status is its HTTP status, 0 without a response.
	Status int
	// RetryAfter is the delay until the first of the failed models may be called again,
	// 0 if unknown. It is not shorter than the delay that its server requested.
	RetryAfter time.Duration
	// Attempts is the number of requests to all models.
	Attempts int
	// Usage and CostMicros are the totals of all attempts, as in Answer.
	Usage      Usage
	CostMicros int64
	// Stopped is the limit of the Budget that ended the call: "attempts", "tokens", "cost"
	// or "time"; empty if none did.
	Stopped string

	cause error
}

// Error returns, for example, "model gpt-5: rate_limited (status 429, 4 attempts)".
func (e *Error) Error() string {
	details := fmt.Sprintf("%d attempts", e.Attempts)
	if e.Status != 0 {
		details = fmt.Sprintf("status %d, %s", e.Status, details)
	}
	if e.Stopped != "" {
		details += ", out of " + e.Stopped
	}
	if e.RetryAfter > 0 {
		details += fmt.Sprintf(", again in %s", e.RetryAfter.Round(time.Millisecond))
	}
	return fmt.Sprintf("model %s: %s (%s)", cmp.Or(e.Model, "call"), e.Class, details)
}

// Unwrap returns the error of the caller's context if that ended the call, or nil.
func (e *Error) Unwrap() error { return e.cause }
