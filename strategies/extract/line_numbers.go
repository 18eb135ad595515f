package extract

import "strings"

// minNumberedLines is the number of consecutive lines with growing numbers at the start
// that are taken for line numbers.
const minNumberedLines = 3

// blankLineNumbers replaces line numbers, as tools that show files print them, by blanks:
// nothing refers to them later. It returns s itself if there are none.
func blankLineNumbers(s string) string {
	var out []byte
	run, last := [][2]int{}, -1 // byte ranges of the numbers of the current run
	end := func() {
		if len(run) >= minNumberedLines {
			if out == nil {
				out = []byte(s)
			}
			for _, r := range run {
				for i := r[0]; i < r[1]; i++ {
					out[i] = ' '
				}
			}
		}
		run, last = run[:0], -1
	}
	at := 0
	for line := range strings.Lines(s) {
		from, to, n := lineNumber(line)
		if n <= last || to == from {
			end()
		}
		if to > from {
			run, last = append(run, [2]int{at + from, at + to}), n
		}
		at += len(line)
	}
	end()
	if out == nil {
		return s
	}
	return string(out)
}

// lineNumber returns the range and the value of a number at the start of a line that a
// separator follows, zeros if there is none.
func lineNumber(line string) (from, to, n int) {
	for from < len(line) && line[from] == ' ' {
		from++
	}
	for to = from; to < len(line) && to-from < 7 && digit.has(line[to]); to++ {
		n = 10*n + int(line[to]-'0')
	}
	if to == from {
		return 0, 0, 0
	}
	for _, sign := range []string{"\t", ":", "-", "|", " |", "→"} {
		if strings.HasPrefix(line[to:], sign) {
			return from, to, n
		}
	}
	return 0, 0, 0
}
