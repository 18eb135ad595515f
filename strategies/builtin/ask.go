package builtin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/internal/text"
	"github.com/sessionstore/compactor/strategies/plan"
)

// followed reports whether a user message stays in the view after entry last.
func followed(t *plan.Transcript, last int) bool {
	return slices.ContainsFunc(t.Entries[last+1:], func(e plan.Entry) bool { return e.Included && userTurn(&e) })
}

// marked returns a summary in its stored form: after the strategy's head or, if the
// summarizer is strict, framed as reference, so that models and later runs of any strategy
// recognize it.
func marked(s plan.Summarizer, head, text string) string {
	if isStrict(s) {
		return frame.Wrap(text, frame.Options{})
	}
	return head + text
}

func isStrict(s plan.Summarizer) bool {
	_, strict := s.(plan.Strict)
	return strict
}

// ask requests a summary and trims it. Secrets are masked in the prompt and in the answer.
// The error wraps ErrNoSummary unless it is that of ctx or wraps plan.ErrInterrupted; an
// empty answer is an error too.
func ask(ctx context.Context, s plan.Summarizer, t plan.Task) (string, error) {
	answer, err := plan.Do(ctx, s, t)
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, plan.ErrInterrupted) {
			return "", err
		}
		return "", fmt.Errorf("%w: %w", plan.ErrNoSummary, err)
	}
	if answer = text.Trim(answer); answer == "" {
		return "", fmt.Errorf("%w: %w", plan.ErrNoSummary, plan.ErrEmptySummary)
	}
	return answer, nil
}
