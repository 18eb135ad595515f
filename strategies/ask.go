package strategies

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/internal/str"
	"github.com/sessionstore/compactor/strategies/plan"
)

// followed reports whether a message of the user stays in the view behind the entry with
// index last.
func followed(t *plan.Transcript, last int) bool {
	return slices.ContainsFunc(t.Entries[last+1:], func(e plan.Entry) bool { return e.Included && userTurn(&e) })
}

// marked returns a summary as it is stored: behind the head that the strategy has for it, or,
// where whoever writes summaries is strict, framed as reference, so that a model takes it
// for what it is and the next run knows it again, whichever strategy that has.
func marked(s plan.Summarizer, head, text string) string {
	if _, strict := s.(plan.Strict); strict {
		return frame.Wrap(text, frame.Options{})
	}
	return head + text
}

// ask has a summary written, without white space around it. Secrets go neither to the
// model nor into what it wrote. The error wraps ErrNoSummary, unless it is that of ctx
// or wraps summarize.ErrInterrupted; an answer that says nothing is one.
func ask(ctx context.Context, s plan.Summarizer, t plan.Task) (string, error) {
	text, err := plan.Do(ctx, s, t)
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, plan.ErrInterrupted) {
			return "", err
		}
		return "", fmt.Errorf("%w: %w", plan.ErrNoSummary, err)
	}
	if text = str.Trim(text); text == "" {
		return "", fmt.Errorf("%w: %w", plan.ErrNoSummary, plan.ErrEmptySummary)
	}
	return text, nil
}
