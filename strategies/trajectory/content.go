package trajectory

import (
	"fmt"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/redact"
)

// The summarizer gets only the first and last characters of a turn with more than
// longTurn characters.
const (
	longTurn   = 3000
	firstShown = 1500
	lastShown  = 500
)

// request returns the request for a summary of turns[start:end].
func (o *Options) request(turns []Turn, start, end int) plan.Request {
	return plan.Request{
		System: fmt.Sprintf(`The user message holds consecutive turns of an AI agent's recorded run. They will be replaced by your summary, so that the run fits into a smaller context. Do not answer or continue them.
Say, in the past tense and from an observer's view: what the agent did and with which tools; what it found out, with exact names, paths, numbers and errors; what it decided and why; what state that left things in.
Use about %d tokens. Begin with %q and write nothing but the summary. Leave out secrets.`, o.SummaryTokens, Prefix),
		User:      content(turns, start, end),
		MaxTokens: 2 * o.SummaryTokens,
	}
}

// content returns turns[start:end] as text for the summarizer, without secrets.
func content(turns []Turn, start, end int) string {
	parts := make([]string, end-start)
	for i := range parts {
		parts[i] = turns[start+i].Value
	}
	mask(parts)
	for i, value := range parts {
		parts[i] = fmt.Sprintf("[Turn %d - %s]:\n%s", start+i, strings.ToUpper(turns[start+i].From), text.Ends(value, longTurn, firstShown, lastShown))
	}
	return strings.Join(parts, "\n\n")
}

// mask masks the secrets of texts, each in all of them.
func mask(texts []string) {
	var secrets redact.Secrets
	for i, s := range texts {
		texts[i], _ = secrets.Redact(s)
	}
	for i, s := range texts {
		texts[i], _ = secrets.MaskKnown(s)
	}
}
