package summary

import (
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// Facts are redacted texts that a summary takes verbatim from the messages.
type Facts struct {
	// Ask is the open request of the user; if empty, LastUser is used.
	Ask string
	// LastUser is the newest message of the user, empty for none.
	LastUser string
	// Pins are pinned messages that are no longer in the view.
	Pins []string
	// Limit is the number of characters kept of each text, head and tail; 0 is 4,000.
	Limit int
}

// Headings of the sections that Assemble adds.
const (
	lastUserTitle = "Last user message"
	pinnedTitle   = "Pinned"
	verbatimNote  = "(verbatim, from the messages themselves)"
)

// Assemble puts facts into an accepted answer: the verbatim request replaces the body of
// its active task, and the last user message and the pins follow at the end. Text of the
// model under these headings is dropped. Long texts are cut in the middle. Assemble is
// idempotent.
func Assemble(answer string, f Facts) string {
	if f.Limit <= 0 {
		f.Limit = maxAsk
	}
	ask := f.Ask
	if strings.TrimSpace(ask) == "" {
		ask = f.LastUser
	}
	sections := []Section{{Title: ActiveTask}, {Title: lastUserTitle}, {Title: pinnedTitle}}
	var body strings.Builder
	task := -1 // index of the active task
	answer = text.Trim(answer)
	for _, p := range splitSections(answer, sections) {
		text := answer[p.start:p.end]
		switch {
		case sameTitle(p.title, ActiveTask) && strings.TrimSpace(ask) != "":
			if task < 0 {
				task = body.Len()
			}
		case sameTitle(p.title, lastUserTitle) && f.LastUser != "", sameTitle(p.title, pinnedTitle) && len(f.Pins) > 0:
		default:
			body.WriteString(text)
		}
	}
	rest := closeFence(body.String())
	if task < 0 || task > len(rest) {
		task = len(rest) // no headings
	}
	parts := []string{rest[:task]}
	if strings.TrimSpace(ask) != "" {
		parts = append(parts, verbatim(ActiveTask, f.Limit, ask))
	}
	parts = append(parts, rest[task:])
	if f.LastUser != "" && f.LastUser != ask {
		parts = append(parts, verbatim(lastUserTitle, f.Limit, f.LastUser))
	}
	if len(f.Pins) > 0 {
		parts = append(parts, verbatim(pinnedTitle, f.Limit, f.Pins...))
	}
	var out []string
	for _, p := range parts {
		if p = text.Trim(p); p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, "\n\n")
}

// closeFence closes an open code fence, so that it does not swallow the sections that follow.
func closeFence(text string) string {
	fence := ""
	for line := range strings.Lines(text) {
		fence = fenceAfter(fence, line)
	}
	if fence == "" {
		return text
	}
	return strings.TrimSuffix(text, "\n") + "\n" + fence
}

// verbatim returns a section of texts with each line marked as a quotation, so that none
// reads as a heading.
func verbatim(title string, limit int, texts ...string) string {
	var b strings.Builder
	b.WriteString("## " + title + "\n" + verbatimNote)
	for _, s := range texts {
		b.WriteString("\n")
		for line := range strings.SplitSeq(cutCenter(text.Trim(s), limit), "\n") {
			b.WriteString("\n> " + strings.TrimRight(line, "\r"))
		}
	}
	return b.String()
}
