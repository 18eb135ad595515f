package summary

import (
	"regexp"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// thoughtTag matches the tags that models put around their reasoning.
var thoughtTag = regexp.MustCompile(`(?i)<\s{0,3}(/?)\s{0,3}(scratch[ _-]?pad|think|thinking|thoughts?|reasoning|reflection|analysis)\s{0,3}>`)

// maxThoughts is how many blocks of reasoning are removed from an answer.
const maxThoughts = 64

// withoutThoughts removes the blocks of reasoning that begin an answer, or a line of it outside of
// code, and the text before a lone closing tag, which some templates leave. thinking reports a
// block without an end.
func withoutThoughts(s string) (answer string, thinking bool) {
	for range maxThoughts {
		s = text.Trim(s)
		start, end, lone := nextThought(s)
		switch {
		case lone > 0:
			s = s[lone:]
		case start < 0:
			return s, false
		case end < 0:
			return "", true
		default:
			s = s[:start] + s[end:]
		}
	}
	return "", true
}

// nextThought returns where the first block of reasoning begins, -1 without one, and where it ends,
// -1 without an end; or, before any block, where a lone closing tag ends, 0 without one.
func nextThought(s string) (start, end, lone int) {
	code := codeIn(s)
	start, depth, name := -1, 0, ""
	for _, m := range thoughtTag.FindAllStringSubmatchIndex(s, -1) {
		closes, of := m[2] < m[3], strings.ToLower(s[m[4]:m[5]])
		line := s[strings.LastIndexByte(s[:m[0]], '\n')+1 : m[0]]
		after, _, _ := strings.Cut(s[m[1]:], "\n")
		switch {
		case start >= 0 && of == name && closes:
			if depth--; depth == 0 {
				return start, m[1], 0
			}
		case start >= 0 && of == name:
			depth++
		case start >= 0 || code.has(m[0]) && m[0] > 0:
		case closes && strings.TrimSpace(after) == "":
			return -1, -1, m[1]
		case !closes && strings.Trim(line, " \t>*_#`-") == "":
			start, depth, name = m[0], 1, of
		}
	}
	if start >= 0 {
		if i := strings.LastIndex(strings.ToLower(s), "</"+name+">"); i > start { // one of them is not closed
			return start, i + len("</>") + len(name), 0
		}
	}
	return start, -1, 0
}

// withoutWrapper removes a code fence around the whole answer, with the sentences before and after
// it. text with headings outside of the fence is no wrapper.
func withoutWrapper(s string) string {
	lines := strings.SplitAfter(s, "\n")
	first, last := -1, -1
	for i, line := range lines {
		bare := strings.TrimSpace(line)
		if mark := fenceAfter("", bare); mark != "" && first < 0 {
			if kind := strings.ToLower(strings.TrimLeft(bare, "`~")); kind != "" && kind != "markdown" && kind != "md" && kind != "text" {
				return s
			}
			first = i
		} else if first >= 0 && mark == bare && mark != "" {
			last = i
		}
	}
	if last < 0 {
		return s
	}
	before, inner, after := strings.Join(lines[:first], ""), strings.Join(lines[first+1:last], ""), strings.Join(lines[last+1:], "")
	if outside := text.Trim(before + after); outside != "" {
		sections := DefaultSections()
		if len(headingsOf(before+"\n"+after, sections)) > 0 || len(headingsOf(inner, sections)) == 0 {
			return s
		}
	} else if openFence(inner) != "" {
		return s // it holds several
	}
	return text.Trim(inner)
}
