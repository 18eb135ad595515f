package plan

import (
	"errors"
	"fmt"
	"time"
)

// ErrNoModel is wrapped by the error of a Summarizer that has no model to ask.
// Asking it again soon is of no use.
var ErrNoModel = errors.New("no model is configured that could summarize")

// ErrInterrupted is wrapped by the error of a summary that was neither had nor refused:
// who asked has to try again, as if it had not. Nothing else may take its place.
var ErrInterrupted = errors.New("the summary was interrupted")

// FailureTooLarge is the code of a summary that would make the view larger.
const FailureTooLarge = "too_large"

// Failure is why a summary was not had, as a code in snake_case. Codes are stored and
// shown, the text of Err is not.
type Failure struct {
	Code string
	// Wait is how long asking again is of no use; 0 if that is not known.
	Wait time.Duration
	Err  error
}

// Error implements error.
func (f *Failure) Error() string {
	if f.Err == nil {
		return "no summary: " + f.Code
	}
	return fmt.Sprintf("no summary: %s: %v", f.Code, f.Err)
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }
