package extract

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// isLineBreak reports what ends a line for somebody, a control character, or the
// replacement of what is no UTF-8: none of them stands within a line of a summary.
func isLineBreak(r rune) bool {
	return r == utf8.RuneError || r != '\t' && unicode.IsControl(r) || r == '\u2028' || r == '\u2029'
}

// splitLines returns the lines of s that say something, without white space around them. Each
// is a part of s.
func splitLines(s string) []string {
	parts := strings.FieldsFunc(s, isLineBreak)
	kept := parts[:0]
	for _, p := range parts {
		if p = text.Trim(p); p != "" {
			kept = append(kept, p)
		}
	}
	return kept
}

// oneLine is s on one line.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || isLineBreak(r) }), " ")
}

// ellipsis stands where a text was cut.
const ellipsis = " …"

// truncate is s, or its beginning where it has more than n characters, up to the end of a
// word, and a mark.
func truncate(s string, n int) string {
	head := truncateHead(s, n)
	if len(head) == len(s) {
		return s
	}
	return head + ellipsis
}

// truncateHead returns a beginning of s of at most n characters that ends with a word where one
// ends in its second half.
func truncateHead(s string, n int) string {
	if !text.Longer(s, n) {
		return s
	}
	head := text.Head(s, n)
	if i := strings.LastIndexFunc(head, unicode.IsSpace); i > len(head)/2 {
		head = head[:i]
	}
	return strings.TrimRightFunc(head, unicode.IsSpace)
}

// proseLines returns the lines of s outside of fenced code, without marks of emphasis, headings
// and lists, each on one line of at most n characters.
func proseLines(s string, n int) []string {
	var out []string
	fenced := false
	for _, line := range splitLines(s) {
		if strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
			fenced = !fenced
			continue
		}
		if fenced {
			continue
		}
		line = strings.ReplaceAll(line, "**", "")
		line = strings.TrimRight(strings.TrimLeft(line, "#>*-+| \t"), "| \t")
		if !strings.ContainsFunc(line, isLetterOrDigit) {
			continue
		}
		out = append(out, truncate(oneLine(line), n))
	}
	return out
}

func isLetterOrDigit(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// sentences returns the parts of s that end with a full stop, a question or exclamation
// mark of some script, or with the line. Each is a part of s.
func sentences(s string) []string {
	var out []string
	for _, line := range splitLines(s) {
		start := 0
		for i, r := range line {
			end := i + utf8.RuneLen(r)
			if !endsSentence(r) || r < utf8.RuneSelf && end < len(line) && line[end] != ' ' {
				continue
			}
			out = append(out, strings.TrimLeft(line[start:end], "#>*-+ \t"))
			start = end
		}
		if rest := strings.TrimLeft(line[start:], "#>*-+ \t"); rest != "" {
			out = append(out, rest)
		}
	}
	return out
}

// endsSentence reports the end of a sentence.
func endsSentence(r rune) bool { return strings.ContainsRune(".!?。！？؟।", r) }

// isQuestion reports whether a sentence is a question.
func isQuestion(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(strings.TrimRight(s, "\"'`)*_»”’ "))
	return r == '?' || r == '？' || r == '؟' || r == ';' && strings.ContainsFunc(s, isGreek)
}

// isGreek: a Greek question ends with a semicolon.
func isGreek(r rune) bool { return unicode.Is(unicode.Greek, r) }
