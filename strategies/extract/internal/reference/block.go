package reference

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/extract/internal/identifier"
	"github.com/sessionstore/compactor/strategies/redact"
)

const (
	// Heading is the first line of a block.
	Heading = "## References\n"
	// ToolsLine comes before the references that only tools named.
	ToolsLine = "Tools:\n"
	// UserMark begins a line of the words of the user.
	UserMark = "> "

	// maxLines is the number of lines of a block, maxWidth the number of characters after which a line ends.
	maxLines = 20
	maxWidth = 130
	// maxTried is the number of identifiers that are looked at for a block.
	maxTried = 600
	// fewNeighbors is the number of identifiers in a text of a tool of which each is listed.
	fewNeighbors = 30
	// maxPicked is the number of identifiers of a block.
	maxPicked = 160
	// groupMark stands between two labels with their identifiers on one line.
	groupMark = " · "
)

// isListed reports whether an identifier is understood by itself: an id, an address, a path. A name in quotation marks does
// if it is a name of a program, a number if the user or the assistant used it with a label.
func (e *entry) isListed() bool {
	switch {
	case e.topical || e.listed:
		return true
	case !e.whole:
		return false
	case e.kind == identifier.Link:
		return e.uses > 0
	case e.kind == identifier.Quoted:
		return e.uses > 0 && isName(e.value) && (strings.ContainsAny(e.value, "._/:-(") || strings.ContainsFunc(e.value[1:], unicode.IsUpper))
	case e.kind == identifier.Number:
		return (e.byUser || e.uses > 1) && e.label != ""
	case e.kind == identifier.Path || e.kind == identifier.File:
		return e.uses > 0 || e.texts > 1 && (strings.HasPrefix(e.value, "/") || strings.Contains(e.value[strings.LastIndexByte(e.value, '/')+1:], "."))
	}
	return e.uses > 0 || e.texts > 1 || e.neighbors <= fewNeighbors
}

// Block returns the block of references in at most budget characters, heading included: the identifiers that are most likely to
// be needed and that the text above does not contain. It returns "" if none fits.
func (t *Table) Block(budget int, above string) string {
	var picked []*entry
	left := budget - utf8.RuneCountInString(Heading)
	for i, e := range t.ranked() {
		if left < 0 || i >= maxTried || len(picked) == maxPicked {
			break
		}
		if !e.isListed() || strings.Contains(above, e.value) || slices.ContainsFunc(picked, func(p *entry) bool { return strings.Contains(p.value, e.value) }) {
			continue
		}
		picked = append(picked, e)
		left -= utf8.RuneCountInString(e.value) + len(", ")
	}
	for ; len(picked) > 0; picked = picked[:len(picked)-1] {
		lines := format(picked)
		block := Heading + strings.Join(lines, "\n")
		if len(lines) <= maxLines && utf8.RuneCountInString(block) <= budget {
			return Heading + strings.Join(safe(lines), "\n")
		}
	}
	return ""
}

// safe gives another label to each line that reads like a secret because of it, such as "token: TestLexer". The label is not
// longer than the one before, so that the lines still fit.
func safe(lines []string) []string {
	for i, l := range lines {
		if _, found := redact.Redact(l); found.Total() > 0 {
			groups := strings.Split(l, groupMark)
			for j, g := range groups {
				if _, found := redact.Redact(g); found.Total() > 0 {
					_, values, _ := strings.Cut(g, ": ")
					groups[j] = g[:len(g)-len(strings.TrimPrefix(g, UserMark))] + "id: " + values
				}
			}
			lines[i] = strings.Join(groups, groupMark)
		}
	}
	return lines
}

// format returns the lines of identifiers by who said them: the user, whose lines are quotations, the assistant, or only
// tools.
func format(ids []*entry) []string {
	var by [3][]*entry
	for _, e := range ids {
		switch {
		case e.byUser:
			by[0] = append(by[0], e)
		case e.uses > 0:
			by[1] = append(by[1], e)
		default:
			by[2] = append(by[2], e)
		}
	}
	lines := formatGroups(nil, by[0], UserMark)
	lines = formatGroups(lines, by[1], "")
	if len(by[2]) > 0 {
		lines = formatGroups(append(lines, strings.TrimSuffix(ToolsLine, "\n")), by[2], "")
	}
	return lines
}

// formatGroups adds the lines of identifiers by their labels, "label: a, b", each after a mark.
func formatGroups(lines []string, ids []*entry, mark string) []string {
	var labels []string
	by := map[string][]*entry{}
	for _, e := range ids {
		label := cmp.Or(e.label, e.kind.String())
		if by[label] == nil {
			labels = append(labels, label)
		}
		by[label] = append(by[label], e)
	}
	line := ""
	for _, label := range labels {
		group := label + ": "
		for i, e := range by[label] {
			v := quoteValue(e.value)
			if i > 0 {
				v = ", " + v
			}
			if utf8.RuneCountInString(line)+utf8.RuneCountInString(group)+utf8.RuneCountInString(v) > maxWidth && line+group != "" {
				if i > 0 {
					lines, line, group, v = append(lines, mark+line+group), "", label+": ", quoteValue(e.value)
				} else if line != "" {
					lines, line = append(lines, mark+strings.TrimSuffix(line, groupMark)), ""
				}
			}
			group += v
		}
		line += group + groupMark
	}
	if line != "" {
		lines = append(lines, mark+strings.TrimSuffix(line, groupMark))
	}
	return lines
}

// quoteValue returns a value for a list, in quotes if it is ambiguous without them.
func quoteValue(v string) string {
	if !strings.ContainsAny(v, " ,;\"'`\t·") {
		return v
	}
	for _, q := range []string{`"`, "`", "'"} {
		if !strings.Contains(v, q) {
			return q + v + q
		}
	}
	return v
}

// previousUses is the number of uses of an identifier that an earlier summary lists.
const previousUses = 2

// AddPreviousLine adds the identifiers in a line of references of an earlier summary; byTools reports whether only tools named
// them.
func (t *Table) AddPreviousLine(line string, byTools bool) {
	line, byUser := strings.CutPrefix(line, UserMark)
	for group := range strings.SplitSeq(line, groupMark) {
		if label, list, ok := strings.Cut(group, ": "); ok {
			t.addPrevious(label, list, byUser, byTools)
		}
	}
}

func (t *Table) addPrevious(label, list string, byUser, byTools bool) {
	for _, v := range parseList(list) {
		e := t.lookup(v, identifier.KindOf(v))
		if e == nil {
			continue
		}
		e.whole, e.listed, e.byUser = true, true, e.byUser || byUser
		e.texts, e.neighbors = max(e.texts, 4), min(e.neighbors, 8)
		if !byTools {
			e.uses = max(e.uses, previousUses)
		}
		if label != e.kind.String() {
			e.label = cmp.Or(e.label, strings.Clone(label))
		}
	}
}

// parseList returns the values of a list that formatGroups wrote.
func parseList(list string) []string {
	var values []string
	for list != "" {
		var v string
		if q := list[0]; q == '"' || q == '`' || q == '\'' {
			if end := strings.IndexByte(list[1:], q); end >= 0 {
				v, list = list[1:end+1], list[end+2:]
				values = append(values, v)
				list = strings.TrimPrefix(list, ", ")
				continue
			}
		}
		v, list, _ = strings.Cut(list, ", ")
		values = append(values, v)
	}
	return values
}
