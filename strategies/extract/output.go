package extract

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// output is the beginning of what a call showed.
type output struct {
	of   *toolCall
	text string
}

// excerpt returns the lines of an output that have words of requests, in about n characters, or the first ones where there
// are none and the output is of a command; "" of data.
func (o output) excerpt(requests []string, n int) string {
	if n == 0 {
		return ""
	}
	shown, _, _ := strings.Cut(o.text, "<system-reminder>") // of the program of the agent
	isFile := len(o.of.paths) > 0 && !o.of.isShell
	var lines []string
	var leads []int // by line, the one that it stands below, -1 for none
	lead := -1
	for _, l := range splitLines(blankLineNumbers(shown)) {
		l = strings.TrimLeft(gutter().ReplaceAllString(l, ""), "→│|: \t")
		if len(lines) == 0 && l != "" && strings.IndexByte("[{<", l[0]) >= 0 { // data
			return ""
		}
		if !strings.ContainsFunc(l, isLetterOrDigit) || saysNothing().MatchString(l) || claiming().MatchString(l) || isFile && (len(l) < minSaid && !strings.HasSuffix(l, ":") || len(l) > maxLine) {
			continue
		}
		if !isListed(l) {
			lead = -1
		}
		if first, _ := utf8.DecodeRuneInString(l); unicode.IsLower(first) && len(lines) > 0 {
			if end, _ := utf8.DecodeLastRuneInString(lines[len(lines)-1]); !endsSentence(end) && end != ':' {
				lead = len(lines) - 1 // it goes on with what that says
			}
		}
		lines, leads = append(lines, oneLine(l)), append(leads, lead)
		if strings.HasSuffix(l, ":") {
			lead = len(lines) - 1
		}
	}
	asked := map[string]bool{}
	for _, r := range requests {
		for w := range strings.FieldsFuncSeq(strings.ToLower(r), func(r rune) bool { return r != '_' && !isLetterOrDigit(r) }) {
			asked[w] = len(w) >= minRepeated && !stopWords[w]
		}
	}
	about := make([]int, len(lines)) // the number of these words
	order := make([]int, len(lines))
	for i, l := range lines {
		order[i] = i
		for w := range strings.FieldsFuncSeq(strings.ToLower(l), func(r rune) bool { return r != '_' && !isLetterOrDigit(r) }) {
			if asked[w] {
				about[i]++
			}
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return about[j] - about[i] })
	none := len(order) == 0 || about[order[0]] == 0
	if none && isFile { // how a file begins tells nothing
		return ""
	}
	var taken []int
	for _, i := range order {
		if about[i] == 0 && !none {
			break
		}
		if n -= len(lines[i]) + len(editSeparator); n < 0 && len(taken) > 0 {
			break
		}
		taken = append(taken, i)
		if leads[i] >= 0 {
			taken = append(taken, leads[i])
		}
	}
	slices.Sort(taken)
	taken = slices.Compact(taken)
	var out []string
	for _, i := range taken {
		out = append(out, lines[i])
	}
	return strings.Join(out, editSeparator)
}

// gutter is the number of a line with what stands behind it.
var gutter = text.Pattern(`^\s*\d{1,7}[→\t]`)
