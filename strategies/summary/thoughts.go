package summary

import (
	"regexp"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// thoughtTag matches the tags that models put around their reasoning.
var thoughtTag = regexp.MustCompile(`(?i)<\s{0,3}(/?)\s{0,3}(?:scratch[ _-]?pad|think|thinking|thoughts?|reasoning|reflection|analysis)\s{0,3}>`)

// withoutThoughts removes the blocks of reasoning that begin an answer, or a line of it outside of
// code, and the text before a lone closing tag, which some templates leave. thinking reports a
// block without an end.
func withoutThoughts(s string) (answer string, thinking bool) {
	code := codeIn(s)
	var kept strings.Builder
	done, start, depth := 0, 0, 0
	for _, m := range thoughtTag.FindAllStringSubmatchIndex(s, -1) {
		opens := m[2] == m[3]
		line := s[strings.LastIndexByte(s[:m[0]], '\n')+1 : m[0]]
		after, _, _ := strings.Cut(s[m[1]:], "\n")
		switch {
		case depth > 0 && opens:
			depth++
		case depth > 0:
			if depth--; depth == 0 {
				done = m[1]
			}
		case m[0] > 0 && code.has(m[0]):
		case opens && strings.Trim(line, " \t>*_#`-") == "":
			kept.WriteString(s[done:m[0]])
			start, depth = m[0], 1
		case !opens && strings.TrimSpace(after) == "":
			kept.Reset()
			done = m[1]
		}
	}
	if i := strings.LastIndex(s, "</"); depth > 0 && i > start && thoughtTag.MatchString(s[i:]) {
		done, depth = i+strings.IndexByte(s[i:], '>')+1, 0 // a tag within is not closed
	}
	kept.WriteString(s[done:])
	return text.Trim(kept.String()), depth > 0
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
