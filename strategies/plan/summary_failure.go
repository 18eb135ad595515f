package plan

import (
	"errors"
	"fmt"
	"time"
)

// ErrNoModel is wrapped by the error of a Summarizer without a model. Retrying soon does
// not help.
var ErrNoModel = errors.New("no model is configured that could summarize")

// ErrInterrupted is wrapped if a summary was neither produced nor refused. The caller must
// retry the whole run and must not fall back to anything else.
var ErrInterrupted = errors.New("the summary was interrupted")

// FailureTooLarge is the code for a summary that would make the view larger.
const FailureTooLarge = "too_large"

// Failure is the reason why no summary was produced. Code, in snake_case, is stored and
// shown; the text of Err is not.
type Failure struct {
	Code string
	// Wait is the time before a retry can succeed, 0 if unknown.
	Wait time.Duration
	Err  error
}

// Error implements error.
func (f *Failure) Error() string {
	if f.Err == nil {
		return f.Code
	}
	return fmt.Sprintf("%s: %v", f.Code, f.Err)
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }
