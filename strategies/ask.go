package strategies

import (
	"context"
	"errors"
	"fmt"

	"github.com/sessionstore/compactor/strategies/internal/str"
	"github.com/sessionstore/compactor/strategies/summarize"
)

// ask has a summary written, without white space around it. Secrets go neither to the
// model nor into what it wrote. The error wraps ErrNoSummary, unless it is that of ctx
// or wraps summarize.ErrInterrupted; an answer that says nothing is one.
func ask(ctx context.Context, s summarize.Summarizer, t summarize.Task) (string, error) {
	text, err := summarize.Do(ctx, s, t)
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, summarize.ErrInterrupted) {
			return "", err
		}
		return "", fmt.Errorf("%w: %w", ErrNoSummary, err)
	}
	text, _ = summarize.Redact(text)
	if text = str.Trim(text); text == "" {
		return "", fmt.Errorf("%w: %w", ErrNoSummary, errEmptySummary)
	}
	return text, nil
}
