package reports

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/redact"
	"github.com/sessionstore/compactor/strategies/summary"
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
