package builtin

import (
	"context"
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
	summaryShare   = 0.20 // of the summarized tokens
	summaryMinimum = 2000 // tokens
	answerSlack    = 1.3  // answer limit per token of the budget
)

// summary requests the summary of the turns and puts the prefix in front of it. The error
// is that of ask.
func (p *handoffPass) summary(ctx context.Context) (string, error) {
	most := int(p.h.maxSummary)
	p.budget = max(1, min(p.proportionalBudget(), most))
	text, err := p.ask(ctx, most)
	if err != nil {
		return "", err
	}
	if text = p.h.prefixed(text); text == p.h.prefix {
		return "", fmt.Errorf("%w: %w", plan.ErrNoSummary, plan.ErrEmptySummary)
	}
	return text, nil
}

// proportionalBudget returns the size of a summary that is proportional to the turns.
func (p *handoffPass) proportionalBudget() int {
	chars := 0
	for _, m := range p.turns {
		chars += tokens.RequestLength(m)
	}
	rough := float64((chars + 3) / 4)
	return max(summaryMinimum, min(int(rough*summaryShare), int(p.h.maxSummary)))
}

// ask requests the summary of the turns with the budget.
func (p *handoffPass) ask(ctx context.Context, most int) (string, error) {
	focus, _ := redact.Redact(p.h.focus)
	task := plan.Task{
		Messages: p.turns, Kinds: p.kinds, Seqs: p.seqs, Previous: p.previous, Followed: p.spans.last(realUser) > p.first(), Focus: p.h.focus,
		Budget: p.budget, Most: most, MaxTokens: int(float64(p.budget) * answerSlack),
		Prompt: standardPrompt(summary.Prompt{Budget: chat.Tokens(p.budget), Focus: focus}),
	}
	var covered []int
	for i := p.start; i < p.end; i++ {
		if p.inMiddle(i) {
			covered = append(covered, p.view[i])
		}
	}
	task = counted(p.t, task, covered, func(text string) chat.Message {
		return chat.Message{Role: chat.RoleUser, Content: chat.TextContent(p.h.prefixed(text) + "\n\n" + p.h.end)}
	})
	if p.room > 0 {
		task.Limit = min(task.Limit, p.room)
	}
	return p.h.ask(ctx, task)
}

// prefixed returns a summary after the prefix, which the text may contain already.
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

// split returns the summary in a message, without its prefix, and the text of the message
// into which it was merged.
func (h *handoff) split(m *chat.Message) (summary, rest string, ok bool) {
	if summary, rest, ok = h.splitOwn(m); !ok && m.Role != chat.RoleTool { // of an older version, or of another compressor
		summary, rest, ok = frame.Unwrap(m.Content.String())
	}
	return text.Trim(summary), text.Trim(rest), ok
}

// splitOwn splits a message that begins with the prefix of this handoff.
func (h *handoff) splitOwn(m *chat.Message) (summary, rest string, ok bool) {
	summary, ok = strings.CutPrefix(m.Content.String(), h.prefix)
	if !ok || m.Role == chat.RoleTool {
		return "", "", false
	}
	if h.end != "" {
		summary, rest, _ = strings.Cut(summary, "\n\n"+h.end)
	}
	return summary, rest, true
}

// wrote reports whether a message holds nothing but a summary.
func (h *handoff) wrote(m *chat.Message) bool {
	_, rest, ok := h.split(m)
	return ok && rest == "" && len(m.ToolCalls) == 0
}

// isFallback reports whether a summary is the fallback text.
func (h *handoff) isFallback(summary string) bool {
	before, after, _ := strings.Cut(h.fallback, countMark)
	return h.fallback != "" && strings.HasPrefix(summary, strings.TrimLeftFunc(before, text.IsBlank)) &&
		strings.HasSuffix(summary, strings.TrimRightFunc(after, text.IsBlank))
}

// Previous implements agent.Continuer. It returns the newest summary in the view.
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

// HasContent implements agent.ContentHaver. It reports whether there are messages between
// the head and the tail, without regard to pruning.
func (h *handoff) HasContent(t *plan.Transcript) bool {
	s := h.loadedSpans(t)
	if len(s) <= h.first+minMiddle {
		return false
	}
	start, end := h.bounds(s)
	return start < end
}

// loadedSpans returns the spans of the messages in the view whose content is loaded.
func (h *handoff) loadedSpans(t *plan.Transcript) spans {
	var s spans
	for i := range t.Entries {
		if e := &t.Entries[i]; e.Included && e.Message != nil {
			s = append(s, spanOf(e.Message))
			s[len(s)-1].summary = h.wrote(e.Message)
		}
	}
	return s
}
