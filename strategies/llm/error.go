package llm

import (
	"fmt"
	"strings"
	"time"
)

// Error is the error of a call. It holds names and numbers only: nothing that
// was sent and nothing that a server said.
type Error struct {
	// Class is the failure that the caller can do most about, where several models
	// failed in different ways.
	Class Class
	// Model is the model that failed so, empty where none was asked.
	Model string
	// Status is the HTTP status, 0 where there was none.
	Status int
	// RetryAfter is when to ask again, 0 where nothing speaks for a time: when the
	// first of the models that failed may be asked, which is never before the time
	// that its server named.
	RetryAfter time.Duration
	// Attempts is how many requests were made, to all models.
	Attempts int
	// Usage and CostMicros are what all attempts took, see Answer.
	Usage      Usage
	CostMicros int64
	// Stopped is the limit of the Budget that ended the call while it could have
	// gone on: "attempts", "tokens", "cost" or "time". Empty otherwise.
	Stopped string

	cause error
}

// Error is, for example, "model gpt-5: rate_limited (status 429, 4 attempts)".
func (e *Error) Error() string {
	var b strings.Builder
	if e.Model != "" {
		b.WriteString("model " + e.Model + ": ")
	} else {
		b.WriteString("model call: ")
	}
	b.WriteString(string(e.Class) + " (")
	if e.Status != 0 {
		fmt.Fprintf(&b, "status %d, ", e.Status)
	}
	fmt.Fprintf(&b, "%d attempts", e.Attempts)
	if e.Stopped != "" {
		b.WriteString(", out of " + e.Stopped)
	}
	if e.RetryAfter > 0 {
		fmt.Fprintf(&b, ", again in %s", e.RetryAfter.Round(time.Millisecond))
	}
	b.WriteString(")")
	return b.String()
}

// Unwrap is the context's error where the caller's context ended the call, so that
// errors.Is finds context.Canceled and context.DeadlineExceeded; nil otherwise.
func (e *Error) Unwrap() error { return e.cause }
