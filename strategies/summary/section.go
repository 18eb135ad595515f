package summary

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Section is a part of a summary that the model is asked for, under a heading.
type Section struct {
	Title string
	// Ask describes the content for the model.
	Ask string
	// Optional sections are asked for, but notes without them are accepted.
	Optional bool
}

// ActiveTask is the title of the section that Assemble fills.
const ActiveTask = "Active task"

// DefaultSections returns the sections of handoff notes, in order. The caller owns the slice.
func DefaultSections() []Section {
	return []Section{
		{Title: ActiveTask, Ask: "The latest thing the user asked for that is not done yet, word for word between quotation marks. Work resumes from here."},
		{Title: "Goal", Ask: "What the user wants in the end."},
		{Title: "Constraints", Ask: "What the user demanded, ruled out or prefers, and every limit that still binds."},
		{Title: "Actions done", Ask: "A numbered list of what was done to what, by which tool, with which result, and when if the times are known; only what a given log does not hold. A failed attempt counts too, with the reason."},
		{Title: "State", Ask: "How things stand now: folder, branch, changed files, running processes, what passes and what fails."},
		{Title: "In progress", Ask: "What was being done when the material ends."},
		{Title: "Blocked", Ask: "What does not work or is waited for, with the exact error messages."},
		{Title: "Decisions", Ask: "What was decided, by whom, and why; what was rejected."},
		{Title: "Questions answered", Ask: "Questions that have an answer, with it, so that nobody asks or answers them again."},
		{Title: "Questions open", Ask: "What was asked, by either side, and has no answer."},
		{Title: "Files", Ask: "Files that were read, changed or made, with the full path and what for."},
		{Title: "Remaining", Ask: "What is left to do, told as a fact and not as an order."},
		{Title: "Next step", Optional: true, Ask: "The one thing to do next, told as a fact and not as an order: what, where, and why it comes next."},
		{Title: "Needed for the next step", Optional: true, Ask: "The code or text without which the next step cannot be taken, letter by letter in a block of code, each with where it is from: the lines to change, the failing output, the interface to keep, the wording that was agreed on. Only what could not be read again in a moment."},
		{Title: "Critical values", Ask: "Identifiers, numbers, names, addresses, commands and settings that would be lost otherwise, each with what it is. No secrets."},
	}
}

// sectionText is a section of a summary as it was written.
type sectionText struct {
	// title is the heading without its marks, empty for the text before the first.
	title string
	// level is the number of # in front of it.
	level int
	// start is where the heading begins, body where its line ends, end where the next
	// heading begins.
	start, body, end int
}

// splitSections splits a text at its headings: lines that begin with #, and those that are
// bold or numbered and name one of the sections. Code in fences has none.
func splitSections(text string, sections []Section) []sectionText {
	parts := []sectionText{{}}
	fence := ""
	for at := 0; at < len(text); {
		end := at + len(text[at:])
		if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
			end = at + n + 1
		}
		line := text[at:end]
		title, ok := "", false
		if fence = fenceAfter(fence, line); fence == "" {
			title, ok = headingOf(line, sections)
		}
		if ok {
			parts[len(parts)-1].end = at
			bare := strings.TrimLeft(line, " \t")
			parts = append(parts, sectionText{title: title, level: len(bare) - len(strings.TrimLeft(bare, "#")), start: at, body: end})
		}
		at = end
	}
	parts[len(parts)-1].end = len(text)
	return parts
}

// fenceAfter returns the fence that is open behind a line, where open was before it. Models
// end a sentence behind a closing fence, so signs may follow it.
func fenceAfter(open, line string) string {
	line = strings.TrimLeft(line, " \t")
	for _, c := range []string{"`", "~"} {
		mark := line[:len(line)-len(strings.TrimLeft(line, c))]
		switch {
		case len(mark) < 3:
		case open == "":
			return mark
		case open[0] == mark[0] && len(mark) >= len(open) && strings.Trim(line[len(mark):], " \t\r\n.,;:)") == "":
			return ""
		}
	}
	return open
}

// openFence returns the code fence that is open at the end of a text, "" for none.
func openFence(text string) (fence string) {
	for line := range strings.Lines(text) {
		fence = fenceAfter(fence, line)
	}
	return fence
}

// outsideFences yields the lines of a text that are not in fenced code.
func outsideFences(text string) func(func(string) bool) {
	return func(yield func(string) bool) {
		fence := ""
		for line := range strings.Lines(text) {
			open := fence
			if fence = fenceAfter(fence, line); fence == "" && open == "" && !yield(line) {
				return
			}
		}
	}
}

// headingOf parses a heading: "## Title", "**Title**", "3. Title:".
func headingOf(line string, sections []Section) (title string, ok bool) {
	line = strings.TrimSpace(line)
	if len(line) == 0 || len(line) > 160 {
		return "", false
	}
	bare := strings.TrimLeft(line, "#")
	marked := len(bare) < len(line) && len(line)-len(bare) <= 6 && (bare == "" || bare[0] == ' ' || bare[0] == '\t')
	title = plainTitle(bare)
	if marked {
		return title, true
	}
	if c := line[0]; c == '-' || c == '>' || c == '|' {
		return "", false
	}
	return title, slices.ContainsFunc(sections, func(s Section) bool { return sameTitle(s.Title, title) })
}

// plainTitle returns a heading without numbers, emphasis and a colon.
func plainTitle(s string) string {
	s = strings.TrimSpace(s)
	if n := len(s) - len(strings.TrimLeft(s, "0123456789")); n > 0 && n < 4 && n < len(s) && (s[n] == '.' || s[n] == ')') {
		s = s[n+1:]
	}
	return strings.Trim(s, " \t#*_:：")
}

// sameTitle reports whether two titles are equal but for case, punctuation and blanks.
func sameTitle(a, b string) bool {
	for {
		var ra, rb rune
		ra, a = nextLetter(a)
		rb, b = nextLetter(b)
		if ra != rb {
			return false
		}
		if ra == 0 {
			return true
		}
	}
}

// nextLetter returns the first letter or digit of s in lower case, 0 for none, and the rest
// of s.
func nextLetter(s string) (rune, string) {
	for i, r := range s {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r), s[i+utf8.RuneLen(r):]
		}
	}
	return 0, ""
}
