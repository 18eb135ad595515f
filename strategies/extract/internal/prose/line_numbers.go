package prose

import (
	"slices"
	"strconv"
	"strings"
)

// minNumberedLines is the number of consecutive lines with growing numbers at the start
// that are taken for line numbers.
const minNumberedLines = 3

// BlankLineNumbers replaces line numbers, as tools that show files print them, by blanks:
// nothing refers to them later. It returns s itself if there are none.
func BlankLineNumbers(s string) string {
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
		number, n := lineNumber(line), -1
		if number != "" {
			n, _ = strconv.Atoi(number) // digits always parse
		}
		if n <= last {
			end()
		}
		if number != "" {
			start := at + strings.Index(line, number)
			run, last = append(run, [2]int{start, start + len(number)}), n
		}
		at += len(line)
	}
	end()
	if out == nil {
		return s
	}
	return string(out)
}

// lineNumber returns the number at the start of a line that a separator follows, "" for none.
func lineNumber(line string) string {
	line = strings.TrimLeft(line, " ")
	rest := strings.TrimLeft(line, "0123456789")
	number := line[:len(line)-len(rest)]
	if len(number) > maxLineNumber || !slices.ContainsFunc(numberSeparators, func(sep string) bool { return strings.HasPrefix(rest, sep) }) {
		return ""
	}
	return number
}

// maxLineNumber is the number of digits of a line number.
const maxLineNumber = 7

// numberSeparators are what tools write behind line numbers.
var numberSeparators = []string{"\t", ":", "|", "→", "-", " |"}
