package extract

import (
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// line returns a text as the rest of a line: without line breaks, in at most n characters.
func line(s string, n int) string { return prose.Truncate(prose.OneLine(text.Head(s, 4*n)), n) }

// said returns a text of others than the user for a line. It does not begin like a quotation of the user.
func said(s string, n int) string { return strings.TrimLeft(line(s, n), ">＞﹥ ") }

// proseLines returns the lines of a text without fenced code, blank lines, tables' rules and signs of headings and bold
// type. Lists keep their signs.
func proseLines(s string) []string {
	var out []string
	fenced := false
	for _, l := range prose.IndentedLines(s) {
		trimmed := strings.TrimSpace(l)
		if strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~") {
			fenced = !fenced
			continue
		}
		if fenced || !strings.ContainsFunc(trimmed, prose.IsLetterOrDigit) {
			continue
		}
		bare := strings.TrimLeft(strings.ReplaceAll(trimmed, "**", ""), "#> ")
		if last, _ := utf8.DecodeLastRuneInString(bare); trimmed[0] == '#' && (prose.IsLetterOrDigit(last) || last == ')') {
			bare += ":"
		}
		if indent := len(l) - len(strings.TrimLeft(l, " \t")); indent > 0 && isListed(bare) {
			bare = "  " + bare
		}
		out = append(out, bare)
	}
	if whole := withoutLead(out); len(whole) > 0 {
		return whole
	}
	return out
}

// withoutLead returns lines without those that lead to others, such as code, which are not there.
func withoutLead(lines []string) []string {
	var out []string
	for i, l := range lines {
		if leads := strings.HasSuffix(l, ":") || strings.HasSuffix(l, "："); !leads || leadsOn(lines, i) {
			out = append(out, l)
		}
	}
	return out
}

// leadsOn reports whether a list follows a line, or any line if it is as short as a title.
func leadsOn(lines []string, i int) bool {
	if i+1 == len(lines) {
		return false
	}
	next := lines[i+1]
	return isListed(next) || strings.HasPrefix(next, "  ") || len(lines[i]) < maxTitle && !strings.HasSuffix(next, ":")
}

// maxTitle is the size of a title.
const maxTitle = 40

// gapLine stands for lines that are left out.
const gapLine = "[…]"

// isListed reports whether a line is an entry of a list.
func isListed(l string) bool {
	l = strings.TrimLeft(l, " \t")
	if rest := strings.TrimLeft(l, "0123456789"); len(rest) < len(l) && len(l)-len(rest) < 4 {
		return text.HasAnyPrefix(rest, ". ", ") ", "、")
	}
	return text.HasAnyPrefix(l, "- ", "* ", "+ ", "• ", "| ")
}

// minPiece is the number of characters from which a piece of a line is worth its place.
const minPiece = 60

// headLines returns the first lines of a text in at most n characters; of a line without room for all of it, the beginning.
func headLines(lines []string, n int) []string { return fitLines(slices.All(lines), n, prose.Truncate) }

// tailLines returns the last lines of a text in at most n characters; of a line without room for all of it, the end.
func tailLines(lines []string, n int) []string {
	out := fitLines(slices.Backward(lines), n, func(l string, n int) string { return "… " + tailWords(l, n) })
	slices.Reverse(out)
	return out
}

// fitLines returns lines up to n characters; cut shortens one without room for all of it.
func fitLines(lines iter.Seq2[int, string], n int, cut func(l string, n int) string) []string {
	var out []string
	for _, l := range lines {
		size := utf8.RuneCountInString(l) + 1
		if size > n {
			if len(out) == 0 || n > minPiece {
				out = append(out, cut(l, max(1, n-3)))
			}
			break
		}
		out, n = append(out, l), n-size
	}
	return out
}

// tailWords returns the last n characters of a line, from the beginning of a word on.
func tailWords(s string, n int) string {
	tail := text.Tail(s, n)
	if at := strings.IndexByte(tail, ' '); at > 0 && at < len(tail)/2 && len(tail) < len(s) {
		return tail[at+1:]
	}
	return tail
}

// endLines returns the first and the last lines of a text in about n characters, with a mark for those between them.
// Of n, head parts of four are for the first ones.
func endLines(lines []string, n, head int) []string {
	size := 0
	for _, l := range lines {
		size += utf8.RuneCountInString(l) + 1
	}
	if size <= n {
		return lines
	}
	if len(lines) == 1 {
		return []string{prose.TruncateHead(lines[0], n*head/4) + gapMark + tailWords(lines[0], n*(4-head)/4)}
	}
	first := headLines(lines, n*head/4)
	last := tailLines(lines[min(len(first), len(lines)):], n*(4-head)/4)
	if left := len(lines) - len(first) - len(last); left > 0 {
		return slices.Concat(first, []string{gapLine}, last)
	}
	return slices.Concat(first, last)
}

// reply returns the end of a text of the assistant that a short answer of the user may reply to: its last list with the line
// before it and the lines after it, or else its last paragraph.
func reply(s string) []string {
	lines := proseLines(s)
	last := len(lines) - 1
	for last >= 0 && !isListed(lines[last]) && last > len(lines)-4 {
		last--
	}
	if last < 0 || !isListed(lines[last]) {
		return lines[max(0, len(lines)-2):]
	}
	first := last
	for first > 0 && (isListed(lines[first-1]) || strings.HasPrefix(lines[first-1], "  ")) {
		first--
	}
	return lines[max(0, first-1):]
}

// asks reports whether a text ends with a question, in any script, or with a list.
func asks(s string) bool {
	lines := proseLines(s)
	if len(lines) == 0 {
		return false
	}
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(lines[len(lines)-1], "*_`)」』\" "))
	return strings.ContainsRune("?？؟", last) || isListed(lines[len(lines)-1])
}

// collapsed returns lines without those that repeat the one before but for digits, as logs and traces have them.
func collapsed(lines []string) []string {
	shape := func(l string) string {
		return strings.Map(func(r rune) rune {
			if '0' <= r && r <= '9' {
				return -1
			}
			return r
		}, l)
	}
	var out []string
	before := ""
	for i, l := range lines {
		if s := shape(l); s != before || i == 0 {
			out, before = append(out, l), s
		}
	}
	return out
}

// sentencesOf returns the sentences of the lines of a text.
func sentencesOf(s string) []string {
	var out []string
	for _, l := range prose.SplitLines(s) {
		out = append(out, prose.Sentences(l)...)
	}
	return out
}

// Demands returns the sentences of a text of the user that demand something, such as "never push to main".
func Demands(s string) []string {
	return slices.DeleteFunc(sentencesOf(s), func(sentence string) bool { return !binds(sentence) })
}

// binds reports whether a sentence has a word of demands.
func binds(s string) bool {
	for w := range strings.FieldsFuncSeq(strings.ToLower(s), func(r rune) bool { return !prose.IsLetterOrDigit(r) && r != '\'' && r != '’' }) {
		if binding[strings.ReplaceAll(w, "’", "'")] {
			return true
		}
	}
	return text.ContainsAny(s, bindingSigns...)
}
