package toolresult

import (
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// Failures returns the ranges of bytes of up to n different lines of a tool's output that
// report failures, in order, each with its line break. Of a line that is too long for a
// summary, it is the beginning.
func Failures(output string, n int) [][2]int {
	var out [][2]int
	seen := map[string]bool{}
	at := 0
	for line := range strings.Lines(output) {
		if len(out) == n {
			break
		}
		if l := text.Trim(text.Head(line, prose.MaxLine)); (len(l) >= minFailure || isFailing(l)) && ReportsFailure(l) && !seen[l] {
			seen[l] = true
			out = append(out, [2]int{at, at + len(text.Head(line, prose.MaxLine+1))})
		}
		at += len(line)
	}
	return out
}

// runnerMark is the name of a task, by which its runner begins each line.
var runnerMark = text.Pattern(`^\[[\w:.-]+\] `)

// banner is a heading of a test runner.
var banner = text.Pattern(`^[=_ ]{3,}[A-Za-z ]+[=_ ]{3,}$`)

// FailureLines returns the first lines of a failed call's output that report failures, at most MaxFailures, and
// how many there are.
func FailureLines(head, tail string) (out []string, n int) {
	lines := prose.SplitLines(text.Head(head, 20_000))
	if head != tail {
		lines = append(lines, prose.SplitLines(text.Tail(tail, 4000))...)
	}
	known := map[string]bool{}
	frame := "" // the newest of a traceback, which the error follows
	hook := ""  // that failed
	for _, l := range lines {
		if m := hookLine().FindStringSubmatch(l); m != nil {
			hook = m[1] + ": "
			continue
		}
		if hook != "" && isExit(strings.TrimLeft(l, "- ")) {
			l, hook = hook+strings.TrimLeft(l, "- "), ""
		}
		if frameLine().MatchString(l) {
			frame = l
			continue
		}
		if strings.HasPrefix(l, "Traceback (") || banner().MatchString(l) {
			continue
		}
		if named := runnerMark().FindString(l); named != "" && located().MatchString(l[len(named):]) {
			l = l[len(named):]
		}
		if len(l) >= minFailure && !text.Longer(l, prose.MaxLine) && (ReportsFailure(l) || located().MatchString(l)) && !known[l] {
			known[l] = true
			if frame != "" && len(frame)+len(l) < prose.MaxLine && errorLine().MatchString(l) {
				l, frame = l+" ("+frame+")", ""
			}
			if n++; len(out) < MaxFailures {
				out = append(out, strings.Clone(l))
			}
		}
	}
	if slices.ContainsFunc(out, func(l string) bool { return located().MatchString(l) && !isLogged(l) }) {
		out = slices.DeleteFunc(out, isLogged)
	}
	return out, n
}

// MaxFailures is the number of lines that FailureLines returns.
const MaxFailures = 12

// hookLine is a line of pre-commit about a hook that failed.
var hookLine = text.Pattern(`^- hook id: (\S+)$`)

// frameLine is a line of a traceback of Python with a place, errorLine the one that ends it.
var (
	frameLine = text.Pattern(`^File "[^"]+", line \d+`)
	errorLine = text.Pattern(`^[\w.]*(?:Error|Exception)\b`)
)
