package extract

import (
	"slices"
	"strings"

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
	if head := strings.TrimSpace(text.Head(o.text, maxLine)); head == "" || strings.IndexByte("[{<", head[0]) >= 0 {
		return ""
	}
	isFile := len(o.of.paths) > 0 && !o.of.isShell
	var lines []string
	for _, l := range splitLines(blankLineNumbers(o.text)) {
		if l = strings.TrimLeft(l, "→│|:- \t"); strings.ContainsFunc(l, isLetterOrDigit) && !saysNothing().MatchString(l) && (len(l) >= minSaid || !isFile) {
			lines = append(lines, oneLine(l))
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
	}
	slices.Sort(taken)
	var out []string
	for _, i := range taken {
		out = append(out, lines[i])
	}
	return strings.Join(out, editSeparator)
}
