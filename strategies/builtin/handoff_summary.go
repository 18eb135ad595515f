package builtin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/internal/text"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/redact"
	"github.com/sessionstore/compactor/strategies/summary"
	"github.com/sessionstore/compactor/strategies/tokens"
)

const (
	summaryShare   = 0.20 // of what is summarized
	summaryMinimum = 2000 // tokens
	answerSlack    = 1.3  // answer limit per token of the budget
	shownBytes     = 6000 // of each text and each call's arguments in a prompt
)

// summary asks for the summary of the turns and puts the prefix in front of it. The
// error wraps ErrNoSummary, unless it is that of ctx.
func (p *handoffPass) summary(ctx context.Context) (string, error) {
	chars := 0
	for _, m := range p.turns {
		chars += tokens.RequestLength(m)
	}
	rough := float64((chars + 3) / 4)
	p.budget = max(summaryMinimum, min(int(rough*summaryShare), int(p.h.most)))
	most := 0
	if !p.h.reference { // which lets the minimum go before
		most = int(p.h.most)
		p.budget = max(1, min(p.budget, most))
	}
	p.asked = true
	text, err := ask(ctx, p.h.summarizer, plan.Task{
		Messages: p.turns, Previous: p.previous, Followed: p.spans.last(realUser) >= p.end, Focus: p.h.focus,
		Budget: p.budget, Most: most, MaxTokens: int(float64(p.budget) * answerSlack), Prompt: p.prompt,
	})
	if err != nil && (!p.h.reference || !errors.Is(err, plan.ErrEmptySummary)) {
		return "", err
	}
	text = p.h.prefixed(text)
	if text == p.h.prefix && !p.h.reference { // the prefix is all that was said
		return "", fmt.Errorf("%w: %w", plan.ErrNoSummary, plan.ErrEmptySummary)
	}
	return text, nil
}

// prompt returns the prompt for a summarizer that has none of its own.
func (p *handoffPass) prompt(previous string, turns []*chat.Message) (system, user string) {
	focus, _ := redact.Redact(p.h.focus)
	ask := summary.Prompt{Budget: chat.Tokens(p.budget), Focus: focus}
	return ask.Render(previous, summary.Clip(turns, shownBytes))
}

// prefixed returns a summary behind the prefix, which it may have brought itself.
func (h *handoff) prefixed(summary string) string {
	summary = text.Trim(summary)
	for _, prefix := range [...]string{legacyPrefix, h.prefix} {
		if rest, ok := strings.CutPrefix(summary, prefix); ok {
			summary = strings.TrimLeftFunc(rest, text.IsBlank)
			break
		}
	}
	if summary == "" {
		return h.prefix
	}
	return h.prefix + "\n" + summary
}

// split recognises what a handoff wrote: the summary, without the prefix, and what
// the message said itself that the summary was merged into.
func (h *handoff) split(m *chat.Message) (summary, rest string, ok bool) {
	if m.Role == chat.RoleTool {
		return "", "", false
	}
	content, ok := strings.CutPrefix(m.Content.String(), h.prefix)
	if !ok && h.reference {
		return "", "", false
	}
	if !ok { // of an older version, or of another compressor
		summary, rest, ok = frame.Unwrap(m.Content.String())
		return text.Trim(summary), text.Trim(rest), ok
	}
	if h.end != "" {
		content, rest, _ = strings.Cut(content, "\n\n"+h.end)
	}
	return text.Trim(content), text.Trim(rest), true
}

// wrote reports a message that holds nothing but what a handoff wrote.
func (h *handoff) wrote(m *chat.Message) bool {
	_, rest, ok := h.split(m)
	return ok && rest == "" && len(m.ToolCalls) == 0
}

// isFallback recognises the text that stands in place of a summary.
func (h *handoff) isFallback(summary string) bool {
	before, after, _ := strings.Cut(h.fallback, countMark)
	return h.fallback != "" && strings.HasPrefix(summary, strings.TrimLeftFunc(before, text.IsBlank)) &&
		strings.HasSuffix(summary, strings.TrimRightFunc(after, text.IsBlank))
}

// Previous implements Continuer: the newest summary that a handoff left in the view.
func (h *handoff) Previous(t *plan.Transcript) (string, bool) {
	newest, found := "", chat.Seq(0)
	for i := range t.Entries {
		e := &t.Entries[i]
		if !e.Included || e.Message == nil || e.Seq < found {
			continue
		}
		if summary, _, ok := h.split(e.Message); ok && !h.isFallback(summary) {
			newest, found = summary, e.Seq
		}
	}
	return newest, found > 0
}

// HasContent implements ContentHaver: whether there is anything between the head and
// the tail, messages as they are.
func (h *handoff) HasContent(t *plan.Transcript) bool {
	var s spans
	for i := range t.Entries {
		e := &t.Entries[i]
		if e.Included && e.Message != nil {
			s = append(s, spanOf(e.Message))
			s[len(s)-1].summary = h.wrote(e.Message)
		}
	}
	if len(s) == 0 || !h.reference && len(s) <= h.first+leastMiddle {
		return false // the reference does not look at what compressing takes
	}
	start, end := h.bounds(s)
	if !h.reference {
		end = min(end, len(s))
	}
	return start < end
}

// Summarizer implements the interface that the guard knows summaries by.
func (h *handoff) Summarizer() plan.Summarizer { return h.summarizer }
