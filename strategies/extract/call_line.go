package extract

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
)

// label returns the name of the tool without its server or class.
func (c *call) label() string {
	name := c.tool
	if i := strings.LastIndex(name, "__"); i >= 0 && i+2 < len(name) {
		name = name[i+2:]
	}
	if i := strings.LastIndexByte(name, '.'); i >= 0 && i+1 < len(name) {
		name = name[i+1:]
	}
	return said(name, 60)
}

// shown returns the values of the result for a line: of one object those that the arguments have not, of a list those of the
// element that is named again most, and only those that are named. Unless all are asked for, truth values and single digits
// that no message names are left out.
func (c *call) shown(all bool) []*field {
	row := 0
	if c.rows > 1 {
		sums := make([]int, c.rows+1)
		for _, f := range c.result {
			if f.row > 0 {
				sums[f.row] += f.named
			}
		}
		for i, n := range sums {
			if n > sums[row] {
				row = i
			}
		}
		if row == 0 {
			return nil
		}
	}
	var out []*field
	for _, f := range c.result {
		switch {
		case c.rows > 1 && (f.row != row || f.named == 0):
			continue
		case !all && f.named == 0 && (isTruth(f.value) || len(f.value) < 2):
			continue
		}
		if !slices.ContainsFunc(c.arguments, f.equals) {
			out = append(out, f)
		}
	}
	return out
}

// listed returns the elements of a list of which nothing is named again, in about n characters: in a short line the value by which
// they differ most, else all values that are not the same in all of them.
func (c *call) listed(n int) string {
	var rows [][]*field
	distinct := map[string]map[string]bool{} // by key
	for _, f := range c.result {
		if f.row == 0 {
			continue
		}
		if len(rows) == 0 || rows[len(rows)-1][0].row != f.row {
			rows = append(rows, nil)
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], f)
		if distinct[f.key] == nil {
			distinct[f.key] = map[string]bool{}
		}
		distinct[f.key][f.value] = true
	}
	naming := ""
	for _, f := range c.result {
		if naming == "" || len(distinct[f.key]) > len(distinct[naming]) {
			naming = f.key
		}
	}
	out := strconv.Itoa(c.rows) + " results"
	size := len(out)
	for i, row := range rows {
		row = slices.DeleteFunc(row, func(f *field) bool {
			return n <= shortLine && f.key != naming || len(rows) > 1 && len(distinct[f.key]) == 1
		})
		text := formatFields(row)
		if size += len(text) + 2; size > n && i > 0 {
			return out + "; …"
		}
		out += map[bool]string{true: ": ", false: "; "}[i == 0] + text
	}
	return out
}

// forms returns the lines of a call after a mark, for several numbers of characters of its result; a report stands below it.
func (c *call) forms(mark string, sizes ...int) [][]string {
	var out [][]string
	for _, n := range sizes {
		form := []string{mark + c.describe(n)}
		if n > shortLine && len(c.report) > 0 {
			form = append(form, indented(endLines(c.report, n, 2))...)
		}
		out = addForm(out, form)
	}
	return out
}

// describe returns the line of a call: its tool, its arguments, and its result in about n characters.
func (c *call) describe(n int) string {
	var b strings.Builder
	if c.isCommand {
		b.WriteString(prose.Truncate(said(c.text, maxText), max(60, n*2/3)))
	} else if len(c.changes) > 0 {
		b.WriteString(c.label() + ": " + c.changes[0].path)
	} else {
		b.WriteString(c.label())
		if args := formatFields(c.arguments); args != "" {
			b.WriteString(": " + prose.Truncate(args, max(60, n*2/3)))
		} else if c.text != "" {
			b.WriteString(": " + prose.Truncate(c.text, max(60, n/2)))
		}
	}
	result := c.outcome(n)
	if c.failed {
		result = strings.TrimSpace("failed: " + result)
	}
	if result != "" {
		b.WriteString(" → " + prose.Truncate(result, n))
	}
	return b.String()
}

// outcome returns the result of a call, in about n characters.
func (c *call) outcome(n int) string {
	switch {
	case !c.answered:
		return "no result yet"
	case c.failed && len(c.failure) > 0:
		return strings.Join(c.failure[:min(2, len(c.failure))], " · ")
	case len(c.changes) > 0:
		return "done"
	case !c.isCommand && c.result == nil && c.lines > 1 && c.kind() == looks:
		return strconv.Itoa(c.lines) + " lines"
	case len(c.report) > 0 && n > shortLine:
		return "its report:"
	case c.result != nil:
		if shown := formatFields(c.shown(n > shortLine)); shown != "" || c.rows < 2 {
			return shown
		}
		return c.listed(n)
	}
	return c.brief
}

// describeShort returns the line of a call without its result.
func (c *call) describeShort(n int) string {
	if c.isCommand {
		return prose.Truncate(said(c.text, maxText), n)
	}
	if len(c.changes) > 0 {
		return c.label() + ": " + c.changes[0].path
	}
	return prose.Truncate(strings.TrimSuffix(c.label()+": "+formatFields(c.arguments)+c.text, ": "), n)
}
