package builtin

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/text"
	"github.com/sessionstore/compactor/strategies/plan"
)

const (
	// minClamped is the minimum number of characters of a message that is cut.
	minClamped = 200
	// clampNote is the number of characters reserved for the note.
	clampNote = 80
)

// newClamp returns a strategy that cuts the middle out of messages that are too large.
func newClamp(a *plan.Args) (plan.Strategy, error) {
	maxTokens := chat.Tokens(a.Int(plan.Int{
		Name: "max_tokens", Default: 12_500, Min: 0,
		Doc: "cut messages with more tokens than this; 0: max_chars alone decides",
	}))
	maxChars := int(a.Int(plan.Int{
		Name: "max_chars", Default: 0, Min: 0,
		Doc: "cut messages whose text has more characters than this, at least 200; 0: max_tokens alone decides, and smaller messages need not be read",
	}))
	head := a.Float(plan.Float{Name: "head", Default: 0.5, Min: 0, Max: 1, Doc: "share of the kept text that is taken from its beginning"})
	roles := a.Strings("roles", []string{"user", "assistant", "tool"}, "roles whose messages are cut")
	switch {
	case maxTokens == 0 && maxChars == 0:
		a.Fault("max_tokens", 0, "more than 0, or max_chars")
	case maxChars > 0 && maxChars < minClamped:
		a.Fault("max_chars", maxChars, "0 or at least %d", minClamped)
	}
	candidates := func(t *plan.Transcript) []int {
		var out []int
		canRewrite := rewritable(t)
		for i := range t.Entries {
			e := &t.Entries[i]
			large := maxChars > 0 || maxTokens > 0 && e.Tokens > maxTokens
			if large && e.Has(chat.HasText) && slices.Contains(roles, string(e.Role)) && canRewrite(i) {
				out = append(out, i)
			}
		}
		return out
	}
	return &rewriter{"clamp", candidates, func(t *plan.Transcript, e *plan.Entry, m *chat.Message) (chat.Message, chat.Tokens, bool) {
		return clampMessage(t.Counter, e, m, maxTokens, maxChars, head)
	}}, nil
}

// clampMessage cuts the middle out of a message's text to satisfy the limits; a limit of 0
// is none. It reports false if the message is small enough or cutting text does not help.
func clampMessage(c plan.Counter, e *plan.Entry, m *chat.Message, maxTokens chat.Tokens, maxChars int, head float64) (chat.Message, chat.Tokens, bool) {
	text := joinedText(m.Content)
	chars := utf8.RuneCountInString(text)
	keep := chars
	if maxChars > 0 && chars > maxChars {
		keep = maxChars - clampNote
	}
	var other chat.Tokens // tokens of everything but text
	if c != nil {
		blank := *m
		blank.Content = cutContent(m.Content, 0, len(text), "")
		other = c.Message(&blank)
	}
	each := float64(max(1, e.Tokens-other)) / float64(max(1, chars))
	if maxTokens > 0 && e.Tokens > maxTokens {
		keep = min(keep, int(float64(maxTokens-other)/each)-clampNote)
	}
	if keep == chars || chars < minClamped || maxTokens > 0 && other >= maxTokens {
		return chat.Message{}, 0, false
	}
	for {
		from, to := middle(text, max(keep, 0), head)
		short := *m
		note := clampedNote(text[from:to])
		short.Content = cutContent(m.Content, from, to, note)
		rest := chars - utf8.RuneCountInString(text[from:to]) + utf8.RuneCountInString(note)
		n := other + chat.Tokens(float64(rest)*each)
		if c != nil {
			n = c.Message(&short)
		}
		if maxTokens == 0 || n <= maxTokens || keep <= 0 {
			return short, n, rest < chars && n < e.Tokens
		}
		keep = keep*3/4 - 1
	}
}

// middle returns the byte range to cut so that keep characters remain, the given share of
// them at the beginning. It prefers line boundaries within the half of either side that is
// next to the cut.
func middle(s string, keep int, share float64) (from, to int) {
	first := int(float64(keep)*share + 0.5)
	from = len(text.Head(s, first))
	to = len(s) - len(text.Tail(s[from:], keep-first))
	if k := strings.LastIndexByte(s[from/2:from], '\n'); k >= 0 {
		from = from/2 + k + 1
	}
	if k := strings.IndexByte(s[to:to+(len(s)-to)/2], '\n'); k >= 0 && s[max(to, 1)-1] != '\n' {
		to += k + 1
	}
	return from, to
}

// clampedNote returns the note that replaces the cut text.
func clampedNote(cut string) string {
	n := utf8.RuneCountInString(cut)
	if lines := strings.Count(cut, "\n"); lines > 0 {
		return fmt.Sprintf("\n[… %d characters in %d lines cut …]\n", n, lines)
	}
	return fmt.Sprintf("\n[… %d characters cut …]\n", n)
}

// joinedText returns the text parts concatenated without separators.
func joinedText(c chat.Content) string {
	if c.Parts == nil {
		return c.Text
	}
	var b strings.Builder
	for _, p := range c.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// cutContent replaces the bytes from to to of the joined text with a note. Text parts left
// empty are removed.
func cutContent(c chat.Content, from, to int, note string) chat.Content {
	if c.Parts == nil {
		c.Text = strings.TrimSuffix(c.Text[:from], "\n") + note + c.Text[to:]
		return c
	}
	parts, start, noted := make([]chat.Part, 0, len(c.Parts)), 0, false
	for _, p := range c.Parts {
		end := start + len(p.Text)
		lo, hi := max(from, start), min(to, end)
		if p.Text != "" && lo < hi {
			before, after := p.Text[:lo-start], p.Text[hi-start:]
			if !noted {
				before, noted = strings.TrimSuffix(before, "\n")+note, true
			}
			p.Text, p.Raw = before+after, nil
			if p.Text == "" {
				start = end
				continue
			}
		}
		parts, start = append(parts, p), end
	}
	c.Parts = parts
	return c
}
