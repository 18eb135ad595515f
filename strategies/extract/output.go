package extract

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/extract/identifier"
	"github.com/sessionstore/compactor/strategies/extract/internal/argument"
	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/extract/internal/shell"
	"github.com/sessionstore/compactor/strategies/extract/internal/toolresult"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// output is the beginning of what a call showed.
type output struct {
	of   *toolCall
	text string
}

// noOutput stands for the output of a command that printed nothing.
const noOutput = "no output"

// isSilent reports whether a command printed nothing, and would have printed what it has to say.
func (c *toolCall) isSilent(result string) bool {
	result = strings.TrimSpace(result)
	return c.isShell && (result == "" || result == "(no output)") && !strings.Contains(c.command, "&>") &&
		!slices.ContainsFunc(shell.Commands(c.command), func(x shell.Command) bool { return x.Background || len(x.To) > 0 })
}

// excerpt returns the lines of an output that have words of requests, in about n characters, or the first ones where there
// are none and the output is of a command.
func (o output) excerpt(requests []string, n int) string {
	if n == 0 {
		return ""
	}
	lines := o.lines()
	asked := map[string]bool{}
	for w := range prose.Words(strings.ToLower(strings.Join(requests, "\n"))) {
		asked[w] = len(w) >= minRepeated && !identifier.IsStopWord(w)
	}
	for i := range lines {
		if forAgents[strings.ToLower(path.Base(strings.Join(o.of.paths, "")))] && ruling().MatchString(lines[i].text) {
			lines[i].about += worthRule
		}
		for w := range prose.Words(strings.ToLower(lines[i].text)) {
			if asked[w] {
				lines[i].about++
			}
		}
	}
	order := make([]int, len(lines))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return lines[j].about - lines[i].about })
	none := len(order) == 0 || lines[order[0]].about == 0
	if none && o.isFile() { // how a file begins tells nothing
		return ""
	}
	var taken []int
	for _, i := range order {
		if lines[i].about == 0 && !none {
			break
		}
		if n -= len(lines[i].text) + len(editSeparator); n < 0 && len(taken) > 0 {
			break
		}
		taken = append(taken, i)
		if lines[i].lead >= 0 {
			taken = append(taken, lines[i].lead)
		}
	}
	slices.Sort(taken)
	var out []string
	for _, i := range slices.Compact(taken) {
		out = append(out, lines[i].text)
	}
	return strings.Join(out, editSeparator)
}

// forAgents are the names of documents that tell agents how to work.
var forAgents = text.Set(`agents.md claude.md gemini.md copilot-instructions.md`)

// worthRule is the number of words that a rule is worth.
const worthRule = 5

// ruling is in a rule of a document for agents.
var ruling = text.Pattern(`\b(?:NEVER|ALWAYS|MUST|DO NOT)\b`)

// outputLine is a line of an output; lead is the index of the one without which it is not understood, -1 for none, and
// about the number of words that are asked about.
type outputLine struct {
	text        string
	lead, about int
}

// lines returns the lines of an output that say something, none of data.
func (o output) lines() []outputLine {
	shown, _, _ := strings.Cut(o.text, "<system-reminder>") // of the program of the agent
	var out []outputLine
	lead := -1
	for _, l := range prose.SplitLines(prose.BlankLineNumbers(shown)) {
		l = strings.TrimLeft(gutter().ReplaceAllString(l, ""), "→│|: \t")
		if len(out) == 0 && l != "" && strings.IndexByte("[{<", l[0]) >= 0 {
			return nil
		}
		if !strings.ContainsFunc(l, prose.IsLetterOrDigit) || saysNothing().MatchString(l) || claiming().MatchString(l) || o.isFile() && (len(l) < minSaid && !strings.HasSuffix(l, ":") || len(l) > maxLine) {
			continue
		}
		if !prose.IsListed(l) {
			lead = -1
		}
		if first, _ := utf8.DecodeRuneInString(l); unicode.IsLower(first) && len(out) > 0 {
			if end, _ := utf8.DecodeLastRuneInString(out[len(out)-1].text); !prose.EndsSentence(end) && end != ':' {
				lead = len(out) - 1 // it goes on with what that says
			}
		}
		out = append(out, outputLine{text: prose.OneLine(l), lead: lead})
		if strings.HasSuffix(l, ":") {
			lead = len(out) - 1
		}
	}
	return out
}

// isFile reports whether the output is what a tool shows of a file.
func (o output) isFile() bool { return len(o.of.paths) > 0 && !o.of.isShell }

// gutter is the number of a line with what stands behind it.
var gutter = text.Pattern(`^\s*\d{1,7}[→\t]`)

// notDone are the keys of what an action could not do, beside what it did.
var notDone = text.Set(`failed failures errors rejected skipped unavailable not_found`)

// lacked returns what an object lists as not done: its key, and the short texts of its entries; an empty argument
// for nothing.
func lacked(fs []argument.Field) argument.Field {
	var out argument.Field
	for _, f := range fs {
		if v := strings.TrimSpace(f.Value); notDone[f.List] && f.Row > 1 && v != "" && len(out.Value)+len(v) <= argument.MaxShort && prose.IsPrintable(v) {
			out.Key, out.Value = strings.Clone(f.List), strings.TrimSpace(out.Value+" "+v)
		}
	}
	return out
}

// Failures returns the ranges of bytes of up to n different lines of a tool's output that
// report failures, in order, each with its line break. Of a line that is too long for a
// summary, it is the beginning.
func Failures(output string, n int) [][2]int { return toolresult.Failures(output, n) }
