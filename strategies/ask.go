package strategies

import (
	"context"
	"fmt"

	"github.com/sessionstore/compactor/strategies/internal/str"
	"github.com/sessionstore/compactor/strategies/summarize"
)

// ask has a summary written, without white space around it. Secrets go neither to the
// model nor into what it wrote. The error wraps ErrNoSummary, unless it is that of ctx;
// an answer that says nothing is one.
func ask(ctx context.Context, s summarize.Summarizer, r summarize.Request) (string, error) {
	r.User, _ = summarize.Redact(r.User)
	r.Focus, _ = summarize.Redact(r.Focus)
	text, err := s.Summarize(ctx, r)
	if err != nil {
		if ctx.Err() != nil {
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
