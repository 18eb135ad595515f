package extract

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// outcome is the result of a call.
type outcome struct {
	text   string
	failed bool
	// code is the exit code, "" if it is not known.
	code string
}

// readOutcome takes the output out of the wrapping of a harness, with its exit code, and finds whether it reports a
// failure by its form: of a command that ran, the last lines may report one, too; of a call that shows a file, only a single line.
func readOutcome(result string, isCommand, showsFile bool) outcome {
	o := outcome{text: result}
	head := text.Head(strings.TrimSpace(result), 200)
	switch {
	case strings.HasPrefix(head, "<tool_use_error>") || strings.HasPrefix(head, "<error>"):
		o.failed = true
		if all := elements(result); len(all) > 0 {
			o.text = all[0].content
		}
	case strings.HasPrefix(head, "<") && strings.Contains(result, "</exit_code>"):
		all := elements(result)
		o.text = contents(all, outputs)
		if i := slices.IndexFunc(all, func(e element) bool { return e.name == "exit_code" }); i >= 0 {
			o.code = strings.TrimSpace(all[i].content)
		}
	case strings.HasPrefix(head, "{") && len(result) <= maxJSON && isWrapper(head):
		fs, ok := parseFields(result)
		if !ok {
			break
		}
		o.text = strings.TrimSpace(lookup(fs, "output", "stdout", "text") + "\n" + lookup(fs, "stderr"))
		o.code = lookup(fs, "exit_code", "exitCode")
		o.failed = lookup(fs, "isError", "is_error") == "true"
	}
	lines := prose.SplitLines(text.Head(o.text, 600))
	last := prose.SplitLines(text.Tail(o.text, 600))
	first := lines[:min(4, len(lines))]
	if o.code == "" {
		for _, l := range slices.Concat(first, last[max(0, len(last)-2):]) {
			if o.code = exitCode(l); o.code != "" {
				break
			}
		}
	}
	switch {
	case o.code != "" && isCommand:
		o.failed = o.failed || o.code != "0"
	case len(lines) == 0:
	case beginsFailing(lines[0]) && (!showsFile || len(lines) == 1):
		o.failed = true
	case isCommand:
		o.failed = o.failed || slices.ContainsFunc(last[max(0, len(last)-3):], beginsFailing)
	}
	return o
}

// isWrapper reports whether a JSON object is that of a harness.
func isWrapper(head string) bool {
	return text.HasAnyPrefix(strings.TrimLeft(head[1:], " \n\t"), `"output"`, `"stdout"`, `"exit_code"`, `"exitCode"`, `"isError"`, `"content"`)
}

// exitCode returns the number in a line such as "Exit code: 1", "" for none.
func exitCode(l string) string {
	l = strings.ToLower(text.Head(l, 120))
	for _, mark := range []string{"exit code", "exited with code", "exit status", "exit_code"} {
		if _, rest, ok := strings.Cut(l, mark); ok {
			rest = strings.TrimLeft(rest, " :=\"")
			return rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
		}
	}
	return ""
}

// beginsFailing reports whether a line begins like one that reports a failure.
func beginsFailing(l string) bool {
	l = strings.ToLower(strings.TrimLeft(text.Head(l, 120), "<>{}[]()\"'`*-#=│ \t"))
	for _, f := range failing {
		if rest, ok := strings.CutPrefix(l, f); ok {
			rest = strings.TrimLeft(rest, "ursed: \"=")
			return !text.HasAnyPrefix(rest, "0", "null", "false", "[]")
		}
	}
	return false
}

// reportsFailure reports whether a line of an output reports a failure.
func reportsFailure(l string) bool {
	if beginsFailing(l) {
		return true
	}
	l = strings.ToLower(text.Head(l, 300))
	return !text.ContainsAny(l, " 0 failed", "0 errors") && text.ContainsAny(l, failingIn...)
}

// Failures returns the ranges of bytes of up to n different lines of a tool's output that report failures, in order, each
// with its line break. Of a line that is too long for a summary, it is the beginning.
func Failures(output string, n int) [][2]int {
	var out [][2]int
	seen := map[string]bool{}
	at := 0
	for l := range strings.Lines(output) {
		key := strings.TrimSpace(text.Head(l, prose.MaxLine))
		if key != "" && len(out) < n && !seen[key] && reportsFailure(key) {
			seen[key] = true
			end := at + len(l)
			if utf8.RuneCountInString(l) > prose.MaxLine {
				end = at + len(text.Head(l, prose.MaxLine))
			}
			out = append(out, [2]int{at, end})
		}
		at += len(l)
	}
	return out
}

// failureLines returns up to n lines of the output of a failed call: those with a place first, then those that report a failure, or
// the last one.
func failureLines(output string, n int) []string {
	var placed, reports []string
	lines := prose.SplitLines(text.Head(output, maxJSON))
	for _, l := range lines {
		switch l := said(l, 200); {
		case slices.Contains(placed, l) || slices.Contains(reports, l) || exitCode(l) != "" && len(l) < 20:
		case hasPlace(l):
			placed = append(placed, l)
		case reportsFailure(l):
			reports = append(reports, l)
		}
	}
	all := slices.Concat(placed[:min(n, len(placed))], reports)
	if len(all) == 0 && len(lines) > 0 {
		all = []string{said(lines[len(lines)-1], 200)}
	}
	return slices.Clone(all[:min(n, len(all))])
}

// hasPlace reports whether a line names a file with a number of a line.
func hasPlace(l string) bool {
	for rest := text.Head(l, 200); ; {
		i := strings.IndexByte(rest, ':')
		if i < 0 {
			return false
		}
		word := rest[strings.LastIndexAny(rest[:i], " \t(")+1 : i]
		if rest = rest[i+1:]; strings.Contains(word, ".") && beginsWithDigit(rest) && !beginsWithDigit(word) {
			return true
		}
	}
}

func beginsWithDigit(s string) bool { return s != "" && '0' <= s[0] && s[0] <= '9' }

// brief returns the line of an output that says most of a result: of a difference its files, of a command the last
// line but the prompt, of other tools the first one. Lines without a letter say nothing.
func brief(output string, isCommand bool) string {
	if strings.Contains(text.Head(output, 2000), "diff --git ") {
		var files []string
		for l := range strings.Lines(output) {
			if _, file, ok := strings.Cut(strings.TrimSpace(l), " b/"); ok && strings.HasPrefix(l, "diff --git ") {
				files = append(files, file)
			}
		}
		return said("difference of "+strings.Join(files, ", "), 160)
	}
	if !isCommand {
		lines := proseLines(prose.BlankLineNumbers(text.Head(output, 2000)))
		if len(lines) == 0 {
			return ""
		}
		return said(lines[0], 160)
	}
	for _, l := range slices.Backward(proseLines(text.Tail(output, 1000))) {
		if !IsOutput("\n"+l) && !strings.HasPrefix(l, "(") {
			return said(l, 160)
		}
	}
	return ""
}
