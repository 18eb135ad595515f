// Package toolresult reads what tools return: it takes an output out of what a harness puts around it, and finds the lines
// that report failures, of compilers, test runners, interpreters, git, shells and services. A long output is given as its
// head and its tail, which are equal if it is all there. The package knows nothing of what a call was for, but by the name
// and the arguments that it is given. Its functions are pure and safe for concurrent use; texts that they return share
// memory with the output.
package toolresult

import (
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// RefusedEdit begins the result of an edit that a linter refused.
const RefusedEdit = "Your proposed edit has introduced"

// failurePrefixes are the beginnings of lines that report a failure.
var failurePrefixes = []string{
	"error", "fatal", "panic", "traceback", "exception", "fail", "exit code", "exit status", "command failed",
	"permission denied", "command not found", "no such file", "cannot", "undefined", "not found", "denied", "assertion", "tool_use_error",
	strings.ToLower(RefusedEdit), "bash: line", "bash: -c", "zsh:", "eval):", "sh: ", "api error",
}

// FailureLine returns the line of a tool's output that reports its failure, "" if there is
// none. The first line or one of the last two must report it; an exit code is followed by
// the most informative other line.
func FailureLine(head, tail string) string {
	first, last := prose.SplitLines(text.Head(head, 2000)), prose.SplitLines(text.Tail(tail, 2000))
	var middle []string
	if len(first) > 1 {
		first, middle = first[:1], first[1:]
	}
	for _, line := range slices.Concat(first, last[max(0, len(last)-2):]) {
		if !IsFailure(line) {
			continue
		}
		if !isExit(line) {
			return line
		}
		for _, l := range slices.Concat(middle, last) {
			if (IsFailure(l) || strings.HasPrefix(l, "CONFLICT (")) && !isExit(l) {
				return line + ": " + l
			}
		}
		last = slices.DeleteFunc(last, func(l string) bool { return strings.HasPrefix(l, "hint:") })
		if len(last) > 0 && last[len(last)-1] != line {
			return line + ": " + last[len(last)-1]
		}
		return line
	}
	return ""
}

// RunFailure returns the last line that reports the failure of what a command ran, "" if there is none or if
// a success is reported behind it.
func RunFailure(tail string) string {
	for _, l := range slices.Backward(prose.SplitLines(text.Tail(tail, 4000))) {
		switch l = text.Head(l, prose.MaxLine); {
		case isFailing(l):
			return l
		case StatesOutcome(l) || succeeding().MatchString(l):
			return ""
		}
	}
	return ""
}

func isExit(line string) bool { return strings.HasPrefix(strings.ToLower(line), "exit") }

// IsFailure reports whether a line begins like one that reports a failure, in any program.
func IsFailure(line string) bool {
	line = strings.ToLower(strings.TrimLeft(text.Head(line, 200), "<>{}[]()\"'`*-#= \t"))
	for _, f := range failurePrefixes {
		if rest, ok := strings.CutPrefix(line, f); ok {
			rest = strings.TrimLeft(rest, ": \"=")
			return !strings.HasPrefix(rest, "0") && !strings.HasPrefix(rest, "null") && !strings.HasPrefix(rest, "false")
		}
	}
	return false
}

// StatesOutcome reports whether a line says what came of a command, whatever follows it.
func StatesOutcome(line string) bool { return stating().MatchString(line) }

// Finding returns the first line of an output by which a check says that it found faults, "" for none.
func Finding(output string) string { return finding().FindString(output) }

// minFailure is the size, in bytes, below which a line says nothing of what failed.
const minFailure = 12

// ReportsFailure reports whether a line says that something failed, in any of the forms that are known.
func ReportsFailure(l string) bool {
	return IsFailure(l) || isFailing(l) || finding().MatchString(l)
}

func isFailing(l string) bool {
	return failing().MatchString(l) || failingBehind().MatchString(l) || endsFailing().MatchString(l)
}

var (
	// failing is a line of a compiler, a test runner, an interpreter, git or a shell that reports a failure,
	// in forms that do not begin with a word for it. Text and source may have them too, so that only what was
	// run has failed by them.
	failing = text.Pattern(`^(?:\S+\.\w{1,5}:\d+(?::\d+)?:? .*\b(?:undefined|error|cannot|expected|unexpected|undeclared|redeclared|unused|not used|not enough|too many|mismatch|invalid|missing|got|want)\b` +
		`|\S+\(\d+,\d+\): error\b|[\w.:]*(?:Error|Exception)\b(?::|$)|PHP (?:Fatal|Parse) error` +
		`|make(?:\[\d+\])?: \*\*\*|ninja: build stopped|not ok\b|E {2,}\S|test result: FAILED|npm (?:ERR!|error)|(?:\[\w+\] )?(?i:build) (?:FAILURE|FAILED|failed)\b|FAILURE:|● \S` +
		`|(?i:(?:error: )?(?:unknown|unrecognized) (?:shorthand |long )?(?:flag|option|command|subcommand)s?\b)` +
		`|(?:Segmentation fault|Killed|Aborted|Bus error)\b|Caused by:` +
		`|! \[(?:remote )?rejected\]|CONFLICT \(|Automatic merge failed|curl: \(\d+\)` +
		`|[-=]+ (?:FAIL|FAILED|FAILURES|ERRORS)\b)`)
	// failingBehind and endsFailing are such lines that begin with another text. The longer an expression counts, the more states
	// it has beside all others, so that they are expressions of their own.
	failingBehind = text.Pattern(`^(?:.{0,120}\berror (?:TS|CS)\d+|.{0,60}\bcore dumped|.{0,120}\bpanicked at\b` +
		`|(?i:.{0,120}\bconnection refused\b|.{0,60}\b(?:command|operation|request|connection|process|tests?) timed out\b|.{0,60}\bexit(?:ed with)? (?:code|status):? [1-9]))`)
	endsFailing = text.Pattern(`^(?:.{0,200}\(\w+Error\)|.{0,80}: (?:command not found|No such file or directory|Permission denied))$`)
	// finding is a line of a check that found faults, whatever its exit code.
	finding = text.Pattern(`(?m)^(?:.{0,120}\b[1-9]\d* (?:issues?|errors?|failed|failures?|problems?)\b|.{0,120}\berror TS\d+|(?:FAIL|FAILED|ERROR)\b).*$`)
	// succeeding is the last line of what was built or tested.
	succeeding = text.Pattern(`(?i)^(?:finished\b|\W*(?:\w+\W )?(?:build|compiled?|compilation)\b.{0,20}\bsucce|.{0,40}\bbuilt in \d)`)
)

// located is a line of a failed check with the place of a fault: file.go:12: message.
var located = text.Pattern(`^\S+\.\w+:\d+(?::\d+)?:? +\S.*[A-Za-z]{3}`)

// isLogged reports whether a line is of a log, which a test prints with its place as well.
func isLogged(l string) bool { return logLevel().MatchString(l) && !ReportsFailure(l) }

var logLevel = text.Pattern(`\b(?:INFO|DEBUG|TRACE)\b`)

// SaysOnlyFailed reports whether a line says that something failed, and not what.
func SaysOnlyFailed(line string) bool { return failedOnly().MatchString(line) }

// failedOnly is a line that says that something failed, and not what.
var failedOnly = text.Pattern(`(?i)^(?:exit code \d+:? *)?(?:\[\w+\] )?(?:FAIL(?:ED)?|ERROR)(?: task failed|\s+\S+\s+(?:\[\w+ failed\]|[\d.]+s))?$`)

// FaultAt reports whether a line tells of a fault, no warning, and its place.
func FaultAt(l string) bool {
	return located().MatchString(l) && ReportsFailure(l) && !warned().MatchString(l)
}

// warned is a line with a place that tells of no fault.
var warned = text.Pattern(`(?i):\d+:? *\W?(?:warning|note|info|deprecat\w*)[:\]]`)

// stating is a line that says what came of a command whatever follows it: of git for a reset, or
// of a linter.
var stating = text.Pattern(`^(?:HEAD is now at |Successfully |\d+ issues?\.?$|PASS(?:ED)?\b)|\b\d+ (?:tests? )?(?:passed|passing)\b|\b(?:0|no) (?:issues|errors|failures|problems)\b`)
