package reports

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/redact"
	"github.com/sessionstore/compactor/strategies/summary"
	"github.com/sessionstore/compactor/worker"
)

// WrittenSummary returns a summary that a person wrote, with its secrets masked.
func WrittenSummary(text, author, note string) (*store.WrittenSummary, error) {
	if strings.TrimSpace(text) == "" || !utf8.ValidString(text) {
		return nil, errors.New("want a text in UTF-8")
	}
	var secrets redact.Secrets
	clean := func(s string) string {
		s, _ = secrets.Redact(summary.Clean(s))
		return s
	}
	return &store.WrittenSummary{Text: clean(text), Author: clean(author), Note: clean(note)}, nil
}

// CheckSummary plans the run of p.Options and returns why the summary of these would change nothing, which is known
// before the run is made; nil without one.
func (p Planning) CheckSummary(ctx context.Context, st *store.Store, k store.Key) error {
	if p.Options.Summary == nil || p.Options.AllowGrowth {
		return nil
	}
	o := *p.Options
	p.Options = &o
	found, err := p.Preview(ctx, st, k)
	switch {
	case errors.Is(err, worker.ErrOptions):
		return err
	case err != nil:
		return nil //nolint:nilerr // the run reports it
	case found.Outcome == worker.OutcomeWouldGrow:
		return fmt.Errorf("with it and the messages that stay, the view would not be smaller than now (%d tokens): "+
			"plan over the view (from), keep fewer messages, or allow growth", found.TokensBefore)
	}
	for _, step := range found.Steps {
		if step.NoSummary != "" && found.Outcome != worker.OutcomeApplied {
			return fmt.Errorf("the strategy %s cannot use it: %s", step.Strategy, step.NoSummary)
		}
	}
	if found.Outcome == worker.OutcomeNothingToCompact {
		return errors.New("the run would find nothing to compact, or save less than the minimum of the policy (min_gain_tokens)")
	}
	return nil
}
