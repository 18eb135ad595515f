package extract

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// reads reports whether the command of the call only shows something.
func (c *toolCall) reads() bool {
	command := withoutFolder(c.description)
	return beginsWith(command, readCommands) && !sends(command)
}

// beginsWith reports whether a command begins with one of the given words.
func beginsWith(command string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(command+" ", w) })
}

const noResult = " (no result)"

// line returns the call as one line of about n characters, or more for what was done.
func (c *toolCall) line(n int) string { return c.told(n, false) }

// told is line, with values of which most have no key if told so.
func (c *toolCall) told(n int, briefly bool) string {
	out := c.outcomeValues()
	if len(c.arguments) > 0 || len(out) > 0 {
		text := shortName(c.tool)
		if c.undone { // not lost when the line is cut
			text += " (" + c.outcome + ")"
		}
		known := []argument(nil)
		switch {
		case len(c.arguments) == 0 && c.description == "{}":
		case len(c.arguments) == 0:
			text += ": " + truncate(c.description, n)
		case c.acts || c.chosen < 0:
			known = c.arguments
			text += ": " + values(c.arguments, nil, briefly)
		default: // what was looked for, unless it is among what was said
			if asked := values(c.arguments, out, true); asked != "" {
				text += ": " + asked
			}
		}
		switch came := values(out, known, briefly); {
		case !c.done:
			text += noResult
		case c.undone:
		case c.failed:
			text += " → " + truncate(c.outcome, n)
		case came != "":
			text += " → " + came
		case len(out) == 0 && strings.Contains(c.outcome, " "): // not "ok"
			text += " → " + truncate(c.outcome, n)
		}
		return formatEntry(truncate(text, 4*n))
	}
	text := c.tool + ": " + truncate(c.description, n)
	switch {
	case !c.done:
		text += noResult
	case c.outcome != "" && (c.failed || len(c.paths) == 0 && strings.ContainsFunc(c.outcome, isLetterOrDigit)):
		text += " → " + truncate(c.outcome, n/2)
	}
	return formatEntry(text)
}

// listed returns what a listing lists in about n characters, "" if it is none: of each option as many
// values as there is room for, without what was asked for and what all have.
func (c *toolCall) listed(n int) string {
	known := slices.Clone(c.arguments)
	if len(c.options) > 1 {
		for _, f := range c.options[0].values {
			if !slices.ContainsFunc(c.options, func(o option) bool { return !slices.ContainsFunc(o.values, f.equals) }) {
				known = append(known, f)
			}
		}
	}
	list := ""
	for most := maxValues; most > 0; most-- {
		var parts []string
		told := map[string]bool{}
		labelled := -1 // the characters since the last label
		for _, o := range c.options {
			own := slices.DeleteFunc(slices.Clone(o.values), func(f argument) bool { return slices.ContainsFunc(known, f.is) })
			if len(own) > most {
				slices.SortStableFunc(own, func(a, b argument) int { return o.rank(a) - o.rank(b) })
				own = own[:most]
			}
			part := values(own, nil, true)
			if part == "" || told[part] {
				continue
			}
			told[part] = true
			label := strings.ReplaceAll(own[0].key, "_", " ") + " "
			if part = strings.TrimPrefix(part, label); labelled < 0 || labelled > maxLabelWidth {
				part, labelled = label+part, 0
			}
			parts = append(parts, part)
			labelled += utf8.RuneCountInString(part) + len("; ")
		}
		if list = strings.Join(parts, "; "); !text.Longer(list, n) {
			break
		}
	}
	return list
}

// innerObjects returns the objects in lists of a result, each list with its key.
func innerObjects(rows [][]argument) string {
	var out strings.Builder
	list := ""
	for _, vs := range rows {
		if vs[0].list != list {
			list = vs[0].list
			out.WriteString("; " + strings.ReplaceAll(list, "_", " ") + ": " + values(vs, nil, true))
		} else {
			out.WriteString("; " + values(vs, nil, true))
		}
	}
	return out.String()
}

// rank orders the values of an option by what a choice depends on: its name, prices, times, the rest.
func (o *option) rank(f argument) int {
	switch {
	case len(o.names) > 0 && f.value == o.names[0], len(o.names) == 0 && f == o.values[0]:
		return 0
	case priced().MatchString(f.path + " " + f.key):
		return 1
	case timed().MatchString(f.key):
		return 2
	}
	return 3
}

// priced and timed are in the keys of prices and of times.
var (
	priced = text.Pattern(`(?i)price|fare|cost|amount|total`)
	timed  = text.Pattern(`(?i)time|date|duration`)
)

// shortName returns the name of a tool without what is before its last dot.
func shortName(tool string) string { return tool[strings.LastIndexByte(tool, '.')+1:] }
