package extract

import "strings"

// leastGutter is how many lines in a row have a number in front before these are taken
// for the numbers of lines.
const minNumberedLines = 3

// blankLineNumbers blanks the numbers in front of lines, as programs put them there that
// show files: they grow from line to line, and say nothing that anybody refers to. It
// is s itself where there are none.
func blankLineNumbers(s string) string {
	var out []byte
	run, last := [][2]int{}, -1 // where the numbers of the present run stand
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
	for at := 0; at < len(s); {
		next := len(s)
		if n := strings.IndexByte(s[at:], '\n'); n >= 0 {
			next = at + n + 1
		}
		from, to, n := lineNumber(s, at, next)
		if n <= last || to == from {
			end()
		}
		if to > from {
			run, last = append(run, [2]int{from, to}), n
		}
		at = next
	}
	end()
	if out == nil {
		return s
	}
	return string(out)
}

// lineNumber returns the number at the beginning of the line s[at:next], with a sign behind it
// that sets it apart; nothing where there is none.
func lineNumber(s string, at, next int) (from, to, n int) {
	from = at
	for from < next && s[from] == ' ' {
		from++
	}
	for to = from; to < next && to-from < 7 && '0' <= s[to] && s[to] <= '9'; to++ {
		n = 10*n + int(s[to]-'0')
	}
	if to == from || to == next {
		return 0, 0, 0
	}
	for _, sign := range []string{"\t", ":", "-", "|", " |", "→"} {
		if strings.HasPrefix(s[to:next], sign) {
			return from, to, n
		}
	}
	return 0, 0, 0
}
