package strategies

import (
	"context"
	"fmt"

	"github.com/sessionstore/compactor/strategies/internal/str"
	"github.com/sessionstore/compactor/strategies/summarize"
)

// ask has a summary written, without white space around it. The error wraps
// ErrNoSummary, unless it is that of ctx; an answer that says nothing is one.
func ask(ctx context.Context, s summarize.Summarizer, r summarize.Request) (string, error) {
	text, err := s.Summarize(ctx, r)
	if err != nil {
		if ctx.Err() != nil {
			return "", err
		}
		return "", fmt.Errorf("%w: %w", ErrNoSummary, err)
	}
	if text = str.Trim(text); text == "" {
		return "", fmt.Errorf("%w: %w", ErrNoSummary, errEmptySummary)
	}
	return text, nil
}
