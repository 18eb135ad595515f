// Package prose divides a text into lines, sentences and words, and cuts them to the size of a line of a
// summary. It knows nothing of their meaning. Its functions take any text, invalid UTF-8 included, are pure and safe for concurrent use.
// What they return shares memory with the text unless they say otherwise.
package prose

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// IsLineBreak reports whether a line of a summary cannot contain r: a line break of any
// kind, a control character or the replacement of invalid UTF-8.
func IsLineBreak(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' && r != '\t' || r == '\x7f'
	}
	return r == utf8.RuneError || unicode.IsControl(r) || r == '\u2028' || r == '\u2029'
}

// SplitLines returns the lines of s that are not blank, trimmed. They share memory with s.
func SplitLines(s string) []string {
	lines := IndentedLines(s)
	for i, l := range lines {
		lines[i] = text.Trim(l)
	}
	return lines
}

// IndentedLines returns the lines of s that are not blank, with the blanks before them, which code
// needs. They share memory with s.
func IndentedLines(s string) []string {
	var lines []string
	for s != "" {
		end := strings.IndexFunc(s, IsLineBreak)
		if end < 0 {
			end = len(s)
		}
		if l := strings.TrimRightFunc(s[:end], text.IsBlank); l != "" {
			lines = append(lines, l)
		}
		_, size := utf8.DecodeRuneInString(s[end:])
		s = s[end+size:]
	}
	return lines
}

// OneLine returns s with white space and line breaks replaced by single blanks.
func OneLine(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	gap := false
	for _, r := range s {
		if r == ' ' || IsLineBreak(r) || unicode.IsSpace(r) {
			gap = true
			continue
		}
		if gap && b.Len() > 0 {
			b.WriteByte(' ')
		}
		gap = false
		b.WriteRune(r)
	}
	return b.String()
}

// Ellipsis marks a truncated text.
const Ellipsis = " …"

// Truncate returns s, or TruncateHead of it with an ellipsis if it has more than n
// characters.
func Truncate(s string, n int) string {
	head := TruncateHead(s, n)
	if len(head) == len(s) {
		return s
	}
	return head + Ellipsis
}

// TruncateHead returns the first n characters of s, without a partial word at the end
// unless that is more than half of them.
func TruncateHead(s string, n int) string {
	if !text.Longer(s, n) {
		return s
	}
	head := text.Head(s, n)
	if i := strings.LastIndexFunc(head, unicode.IsSpace); i > len(head)/2 {
		head = head[:i]
	}
	return strings.TrimRightFunc(head, unicode.IsSpace)
}

// MaxLine is the number of characters of a line of a summary.
const MaxLine = 300

// IsPrintable reports whether v is one line of valid UTF-8 without control characters.
func IsPrintable(v string) bool {
	return utf8.ValidString(v) && !strings.ContainsFunc(v, IsLineBreak)
}
