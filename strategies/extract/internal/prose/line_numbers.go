package prose

import (
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
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
		number, n := lineNumber().FindStringSubmatchIndex(line), -1
		if number != nil {
			n, _ = strconv.Atoi(line[number[2]:number[3]]) // digits always parse
		}
		if n <= last {
			end()
		}
		if number != nil {
			run, last = append(run, [2]int{at + number[2], at + number[3]}), n
		}
		at += len(line)
	}
	end()
	if out == nil {
		return s
	}
	return string(out)
}

// lineNumber is a number at the start of a line that a separator follows.
var lineNumber = text.Pattern(`^ *(\d{1,7})(?:[\t:|→-]| \|)`)
