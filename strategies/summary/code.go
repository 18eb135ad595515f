package summary

import (
	"sort"
	"strings"
)

// codeRanges are the ranges of a text that every reader shows as code, in order.
type codeRanges [][2]int

// has reports whether index i is in code.
func (c codeRanges) has(i int) bool {
	k := sort.Search(len(c), func(k int) bool { return c[k][1] > i })
	return k < len(c) && c[k][0] <= i
}

// codeIn returns the code of a text, in closed fences and between backticks on a line. Where
// readers differ, it is not code: nothing is behind a fence in a list or a quotation, or in
// one whose lines are indented less than itself.
func codeIn(s string) codeRanges {
	var out codeRanges
	fence, start, indent, unclear := "", 0, 0, false
	at, paragraph := 0, len(out) // the ranges of the paragraph
	for line := range strings.Lines(s) {
		open := fence
		spaces := len(line) - len(strings.TrimLeft(line, " \t"))
		if open == "" && fenceWithin(line) {
			return out
		}
		fence = fenceAfter(fence, line)
		switch {
		case open == "" && fence != "":
			if spaces > 3 {
				return out
			}
			start, indent = at, spaces
		case open != "" && strings.TrimSpace(line) != "" && spaces < indent:
			return out
		case open != "" && fence == "":
			out = append(out, [2]int{start, at})
			paragraph, unclear = len(out), false
		case open == "" && strings.TrimSpace(line) == "":
			paragraph, unclear = len(out), false
		case open == "":
			spans, ok := inlineCode(line, at)
			if unclear = unclear || !ok; unclear {
				out = out[:paragraph]
			} else {
				out = append(out, spans...)
			}
		}
		at += len(line)
	}
	return out
}

// inlineCode returns the code between backticks on a line that begins at index at. ok is
// false if it may continue on another line or end elsewhere.
func inlineCode(line string, at int) (out codeRanges, ok bool) {
	if strings.Contains(line, "\\`") {
		return nil, false
	}
	for i := 0; i < len(line); {
		n := strings.IndexByte(line[i:], '`')
		if n < 0 {
			return out, true
		}
		i += n
		run := line[i : i+len(line[i:])-len(strings.TrimLeft(line[i:], "`"))]
		from := i + len(run)
		end := closingRun(line[from:], run)
		if end < 0 {
			return nil, false
		}
		if !strings.Contains(line[from:from+end], "|") { // it may separate cells
			out = append(out, [2]int{at + from, at + from + end})
		}
		i = from + end + len(run)
	}
	return out, true
}

// closingRun returns the index of a run of backticks that is as long as run, or -1.
func closingRun(s, run string) int {
	for i := 0; i < len(s); {
		n := strings.IndexByte(s[i:], '`')
		if n < 0 {
			return -1
		}
		i += n
		end := i + len(s[i:]) - len(strings.TrimLeft(s[i:], "`"))
		if end-i == len(run) {
			return i
		}
		i = end
	}
	return -1
}

// fenceWithin reports whether a line has a fence after the mark of a list or a quotation, or one
// with a backtick after it.
func fenceWithin(line string) bool {
	bare := strings.TrimLeft(line, " \t")
	rest := strings.TrimLeft(bare, "-*+>.) \t0123456789")
	if len(rest) < len(bare) {
		return strings.HasPrefix(rest, "```") || strings.HasPrefix(rest, "~~~")
	}
	after := strings.TrimLeft(bare, "`")
	return len(bare)-len(after) >= 3 && strings.Contains(after, "`")
}

// fenceAfter returns the fence that is open after a line, where open was before it. Models
// end a sentence after a closing fence, so signs may follow it.
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
