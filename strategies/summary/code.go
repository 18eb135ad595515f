package summary

import (
	"sort"
	"strings"
)

// codeRanges are the ranges of a text that are shown as code, in order.
type codeRanges [][2]int

// has reports whether index i is in code.
func (c codeRanges) has(i int) bool {
	k := sort.Search(len(c), func(k int) bool { return c[k][1] > i })
	return k < len(c) && c[k][0] <= i
}

// codeIn returns the code of a text: in closed fences, and between backticks on a line.
func codeIn(s string) (out codeRanges) {
	fence, start, at := "", 0, 0
	for line := range strings.Lines(s) {
		open := fence
		switch fence = fenceAfter(fence, line); {
		case open == "" && fence != "":
			start = at
		case open != "" && fence == "":
			out = append(out, [2]int{start, at + len(line)})
		case open == "":
			for i := 0; i < len(line); {
				from := i + strings.IndexByte(line[i:], '`')
				if from < i {
					break
				}
				run := line[from : from+len(line[from:])-len(strings.TrimLeft(line[from:], "`"))]
				end := strings.Index(line[from+len(run):], run)
				if end < 0 {
					break
				}
				i = from + end + 2*len(run)
				out = append(out, [2]int{at + from, at + i})
			}
		}
		at += len(line)
	}
	return out
}

// outside returns a text without its code.
func (c codeRanges) outside(s string) string {
	var b strings.Builder
	done := 0
	for _, r := range c {
		b.WriteString(s[done:r[0]])
		done = r[1]
	}
	return b.String() + s[done:]
}

// fenceAfter returns the fence that is open after a line, where open was before it. Models
// end a sentence after a closing fence, so signs may follow it.
func fenceAfter(open, line string) string {
	line = strings.TrimLeft(line, " \t")
	for _, c := range []string{"`", "~"} {
		mark := line[:len(line)-len(strings.TrimLeft(line, c))]
		switch {
		case len(mark) < 3:
		case open == "" && strings.Contains(line[len(mark):], c): // code within a line
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
