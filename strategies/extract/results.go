package extract

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/extract/internal/shell"
	"github.com/sessionstore/compactor/strategies/extract/internal/toolname"
	"github.com/sessionstore/compactor/strategies/extract/internal/toolresult"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// maxResultLines is the number of lines at the end of a result that resultLine looks at.
const maxResultLines = 8

// resultLine returns the line of a result that says what came of a command: that of a commit with its
// hash, one of the last that states it, or the last one that is neither source nor markup, nor printed
// by the command whatever came of it, nor of one of several runs or of a list; "" if there is none.
func resultLine(command, tail string) string {
	if strings.HasPrefix(tail, "[") || strings.Contains(tail, "\n[") { // most results have no such line
		if line := committed().FindString(tail); line != "" {
			return line
		}
	}
	lines := prose.SplitLines(text.Tail(tail, 1000))
	lines = lines[max(0, len(lines)-maxResultLines):]
	for _, l := range slices.Backward(lines) {
		switch {
		case !toolresult.StatesOutcome(l):
		case strings.HasPrefix(l, "PASS") && strings.Contains(tail, noTests) && !strings.Contains(tail, "--- PASS"):
			return noTests
		default:
			return l
		}
	}
	ran := shell.Commands(command)
	n := len(ran) - 1
	for n > 0 && ran[n].Follows == "|" {
		n--
	}
	if n > 0 && strings.HasPrefix(ran[n].Text+" ", "done ") || len(lines) > 1 && shell.Selects(command) { // of a loop, or found
		return ""
	}
	for _, x := range slices.Backward(ran) {
		said, prints := strings.CutPrefix(x.Text, "echo ")
		at := len(lines) - 1
		for at >= 0 && lines[at] != said {
			at--
		}
		if at >= 0 && prints && x.Follows == "" && !strings.HasPrefix(ran[0].Text, "set -") { // which stops at a failure
			lines = slices.Delete(lines, at, at+1)
		}
	}
	for _, l := range slices.Backward(lines) {
		if l[0] != '<' && !saysNothing().MatchString(l) && !warning().MatchString(l) && strings.ContainsFunc(l, prose.IsLetterOrDigit) && !programLine().MatchString(l) {
			if isPathLine(l) && len(lines) > 1 { // one of many
				return ""
			}
			return l
		}
	}
	return ""
}

// countPassed replaces the line of a result that says that one package passed by the number of those that did, unless
// a part of the output is not there.
func (c *toolCall) countPassed(line, head, tail string) string {
	if head != tail || !passedPackage().MatchString(line) || slices.ContainsFunc(shell.Commands(c.command), func(x shell.Command) bool { return x.Follows == "|" }) {
		return line
	}
	passed := map[string]bool{}
	for _, m := range passedPackage().FindAllStringSubmatch(tail, -1) {
		passed[m[1]] = true
	}
	if len(passed) > 1 {
		return fmt.Sprintf("ok, %d packages", len(passed))
	}
	return line
}

// passedPackage is the line of a package of which all tests passed.
var passedPackage = text.Pattern(`(?m)^ok\s+(\S+)\s+(?:[\d.]+s|\(cached\))$`)

// reportLine returns what a text with paragraphs, as a subagent reports, says below the heading of its summary, else its
// title or, if it has none, what it says first; "" of other results.
func reportLine(head string) string {
	head = strings.TrimSpace(text.Head(head, maxReply))
	if strings.Count(head, "\n\n") < minParagraphs || strings.IndexByte("[{<", head[0]) >= 0 {
		return ""
	}
	passing := func(l string) bool {
		return isEmpty(l) || isRemark(l) || isProgramLine(l) || saysNothing().MatchString(l) || slices.ContainsFunc(prose.Sentences(l), isIntention)
	}
	first := ""
	if at := titled().FindStringIndex(head); at != nil && strings.Count(head[:at[0]], "```")%2 == 0 && !strings.HasPrefix(prose.Unmarked(head[at[0]:at[1]]), "What ") &&
		!slices.ContainsFunc(prose.Lines(head[:at[0]]), func(l prose.Line) bool { return !passing(l.Text) }) { // which what stands below says
		first = prose.Unmarked(head[at[0]:at[1]])
	}
	for _, l := range headed(prose.Lines(head)) {
		switch l = strings.TrimPrefix(l, belowMark); {
		case passing(l):
		case concluding().MatchString(l):
			return l
		case first == "":
			first = l
		}
	}
	return first
}

var (
	// concluding begins a statement below the heading of what a report comes to.
	concluding = text.Pattern(`(?i)^[\W\d]*(?:(?:executive|short|brief|overall|final|key) +)?(?:summary|conclusions?|verdict|bottom line|findings?)(?: of [^:]{1,40})?:`)
	// titled is a heading of a report of three words and more, without a number.
	titled = text.Pattern(`(?m)^#{1,2} [^\d\s]\S*(?: +\S+){2,}$`)
)

// subagents are words in the names of tools that give work to another agent.
var subagents = map[string]bool{"agent": true, "delegate": true, "explore": true, "research": true, "subagent": true, "task": true}

// ofSubagent reports whether a call gave work to another agent.
func (c *toolCall) ofSubagent() bool {
	return slices.ContainsFunc(toolname.Words(c.tool), func(w string) bool { return subagents[w] })
}

// delegates reports whether a call gave work to another agent that may have edited files: not one that explores or plans.
func (c *toolCall) delegates() bool {
	return c.ofSubagent() && !c.administers && !looking().MatchString(c.description)
}

// looking is in the name of an agent, or in its work, that only looks.
var looking = text.Pattern(`(?i)\b(?:explor\w*|plan(?:ner|ning)?|research\w*|review\w*|search\w*|find|investigat\w*|analy[sz]\w*|check|verify|look|read)\b`)

// minParagraphs is the number of empty lines of a report at least.
const minParagraphs = 3

// numbering is in a line with a number of failures.
var numbering = text.Pattern(`(?i)\b\d+ (?:\w+ )?(?:errors?|fail(?:ed|ing|ures?)|issues?|problems?)\b`)

var (
	// listingCommits is a command that lists commits, the newest first, and listedCommit the line of one.
	listingCommits = text.Pattern(`^git log\b[^;&|]*$`)
	listedCommit   = text.Pattern(`^[0-9a-f]{7,40} \S.*`)
)

// warning is a line that a program ends with, whatever came of it.
var warning = text.Pattern(`(?i)^\W*(?:warn(?:ing)?|notice|note|hint|deprecat\w+)\b`)

// yielded is the line of Codex for a command that had not ended when its tool returned.
var yielded = text.Pattern(`(?m)^Process running with session ID \d+$`)

// noTests is what Go says of a package where no test has the name that was asked for.
const noTests = "no tests to run"

// saysNothing is a line of a shell that is no result: what it runs, that there is no output, or what
// a subagent used.
var saysNothing = text.Pattern(`^Shell cwd was reset|^\x60{3}|^\[[\w:.-]+\] \$ |^\(no output\)$|^(?:\[[\w:.-]+\] )?Finished in [\d.]+ ?m?s\b|^(?:ok|\?)\s.*\[no tests? (?:to run|files)\]$|^[\w@:~/.-]*[$#]$|^> \S|^@@ |^(?:create|delete) mode \d{6} |\[[\w,/]+\?\]\? ?$|^Waiting for the debugger to disconnect|^\(\d+ more lines (?:above|below)\)$|^\((?:Open file|Current directory|Interactive session): |^(?:agentId|total_tokens|tool_uses|duration_ms|output_file): |^To check progress before completion|^Continue with other tasks|^The agent is working in the background|^(?:Chunk ID|Wall time|Original token count): |^Process exited with code 0$|^Output:$`)

// committed is the line of git for a commit with its branch, its hash and its subject: [main 1f3e5a7] message.
var committed = text.Pattern(`(?m)^\[([^\]\n ]+)[^\]\n]* ([0-9a-f]{7,40})\] (.*)$`)

// commitLine returns the line of git for the commit that a call made, or what tells of it where git prints none.
func (c *toolCall) commitLine() string {
	if line := committed().FindString(c.outcome); line != "" {
		return line
	}
	switch {
	case c.id == textID: // which the program of the agent reports
		return fmt.Sprintf("[%s] %s", c.outcome, c.description)
	case len(c.paths) > 0 && !c.isShell: // the description is a path
		return c.tool
	}
	return c.description
}

// thousands is a number that people write with a comma.
var thousands = text.Pattern(`^\d{4,9}(?:\.\d+)?$`)

// containsValue reports whether a text contains a value, also as people write it: 7:05 for 19:05, 1,450 for 1450.
func containsValue(said, v string) bool {
	if prose.ContainsWord(said, v) || isLower(said) && strings.ContainsAny(v, " 0123456789") && prose.ContainsWord(said, strings.ToLower(v)) || thousands().MatchString(v) && prose.ContainsWord(strings.ReplaceAll(said, ",", ""), v) {
		return true
	}
	if len(v) > len("15:04:05") || !strings.Contains(v, ":") {
		return false
	}
	at, err := time.Parse("15:04", text.Head(v, len("15:04")))
	return err == nil && prose.ContainsWord(said, at.Format("3:04"))
}
