package extract

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/argument"
	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/extract/internal/shell"
	"github.com/sessionstore/compactor/strategies/extract/internal/toolname"
	"github.com/sessionstore/compactor/strategies/extract/internal/toolresult"
)

// reads reports whether the command of the call only shows something.
func (c *toolCall) reads() bool {
	return !c.runsToo && shell.Reads(c.description)
}

// maxCommand is the size of a command that was run in a line of usual size, in characters.
const maxCommand = 160

const noResult = " (no result)"

// line returns the call as one line of about n characters, or more for what was done.
func (c *toolCall) line(n int) string { return c.format(n, false) }

// format is line, briefly with values of which most have no key.
func (c *toolCall) format(n int, briefly bool) string {
	out := c.outcomeValues()
	if len(c.arguments) > 0 || len(out) > 0 {
		text := toolname.Short(c.tool)
		if c.undone { // not lost when the line is cut
			text += " (" + c.outcome + ")"
		} else if c.failed && c.acts {
			text += " (failed)"
		}
		known := []argument.Field(nil)
		if c.outcome == regretted { // what it may have made all the same
			out = slices.DeleteFunc(slices.Clone(out), func(f argument.Field) bool { return !f.IsID() })
		}
		switch {
		case len(c.arguments) == 0 && c.description == "{}":
		case len(c.arguments) == 0:
			text += ": " + prose.Truncate(c.description, n)
		case c.acts || c.chosen < 0:
			known = c.arguments
			var got []argument.Field
			if c.acts && c.done && !c.failed {
				got = out
			}
			text += ": " + argument.Format(c.arguments, nil, got, briefly)
			known = append(slices.Clip(known), slices.DeleteFunc(slices.Clone(got), func(r argument.Field) bool {
				return !slices.ContainsFunc(c.arguments, func(a argument.Field) bool { return a.Became(r) })
			})...)
		default: // what was looked for, unless it is among what was said
			if asked := argument.Format(c.arguments, out, nil, true); asked != "" {
				text += ": " + asked
			}
		}
		switch came := argument.Format(out, known, nil, briefly); {
		case !c.done:
			text += noResult
		case c.undone && c.outcome != regretted, c.edited():
		case c.failed && !c.undone:
			text = c.cut(text, 2*n) + " → " + prose.Truncate(c.outcome, n)
		case came != "" && c.newest && len(c.options) > 1:
			text += fmt.Sprintf(" → 1 of %d: %s", len(c.options), came)
		case came != "":
			text += " → " + came
		case len(out) == 0 && !c.undone && strings.Contains(c.outcome, " "): // not "ok"
			text += " → " + prose.Truncate(c.outcome, n)
		}
		return formatEntry(c.cut(text, 4*n))
	}
	description := c.description
	if _, subject, ok := strings.Cut(committed().FindString(c.outcome), "] "); ok { // which says it
		for _, flag := range []string{" -m", " -am"} {
			description = strings.Replace(description, flag+` "`+subject+`"`, "", 1)
		}
	}
	size := n
	if c.isShell && c.done { // what came of it says more
		size = min(n, max(maxCommand, n/2))
	}
	text := strings.TrimSuffix(c.tool+": "+prose.Truncate(description, size), ": {}")
	switch {
	case !c.done:
		text += noResult
	case c.failed && !c.undone && c.outcome != "" && !toolresult.IsFailure(c.outcome):
		text += " (failed) → " + prose.Truncate(c.outcome, n/2)
	case c.outcome != "" && (c.failed || (len(c.paths) == 0 || c.runsToo) && strings.ContainsFunc(c.outcome, prose.IsLetterOrDigit)):
		text += " → " + prose.Truncate(c.outcome, n/2)
	}
	return formatEntry(text)
}

// cut truncates a line of the call to n characters, without a key whose value has no room.
func (c *toolCall) cut(line string, n int) string {
	head := prose.TruncateHead(line, n)
	if len(head) == len(line) || len(c.arguments) == 0 {
		return prose.Truncate(line, n)
	}
	head = strings.TrimSuffix(head, " →")
	at := 0
	for _, before := range []string{", ", rowSeparator, " → ", ": "} {
		if i := strings.LastIndex(head, before); i >= 0 {
			at = max(at, i+len(before))
		}
	}
	isKey := func(f argument.Field) bool {
		key := strings.ReplaceAll(f.Key, "_", " ")
		return f.Key == "" || strings.HasSuffix(key, head[at:]) || strings.HasPrefix(key, head[at:]+" ")
	}
	if slices.ContainsFunc(c.arguments, isKey) || slices.ContainsFunc(c.outcomeValues(), isKey) {
		head = strings.TrimRight(strings.TrimSuffix(head[:at], " → "), ",;: ")
	}
	return head + prose.Ellipsis
}
