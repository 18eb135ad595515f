package reference

import (
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/extract/identifier"
)

// Heading is the first line of a block.
const Heading = "## References\n"

// Block returns the block of references in at most budget characters, heading
// included: the identifiers most likely to be needed that the text above does not
// contain. If it is crowded, since actions have no room, only the likeliest of those that tools alone name
// are listed. It returns "" if none fits.
func (t *Table) Block(budget int, above string, crowded bool) string {
	budget -= utf8.RuneCountInString(Heading)
	if budget < minReference {
		return ""
	}
	ids := t.pick(t.ranked(), budget+budget/4, above, crowded)
	of := outermost(ids)
	fits := func(n int) bool { return linesFit(formatReferences(of(n)), budget) }
	n := sort.Search(len(ids), func(i int) bool { return !fits(i + 1) })
	for n > 0 && !fits(n) { // size is not monotonic: labels may be shared
		n--
	}
	if n == 0 {
		return ""
	}
	return Heading + strings.Join(safeLines(formatReferences(of(n))), "\n")
}

// ToolsLine comes before the references that only the results of tools name.
const ToolsLine = "Tools:\n"

// linesFit reports whether the safe forms of lines have at most budget characters. Most often their lengths tell, whichever
// of the lines get another label.
func linesFit(lines []string, budget int) bool {
	size := func(l string) int { return utf8.RuneCountInString(l) + 1 }
	least, most := 0, 0
	for _, l := range lines {
		labelled, other := size(l), size(withoutLabel(l))
		least, most = least+min(labelled, other), most+max(labelled, other)
	}
	if least <= budget && budget < most {
		most = 0
		for _, l := range safeLines(lines) {
			most += size(l)
		}
	}
	return most <= budget
}

// formatReferences returns the lines of identifiers by who said them: the user, whose lines are
// quotations, the assistant, or tools only.
func formatReferences(ids []*Identifier) []string {
	var user, assistant, tools []*Identifier
	for _, id := range ids {
		switch {
		case id.byUser:
			user = append(user, id)
		case id.uses > id.toolUses:
			assistant = append(assistant, id)
		default:
			tools = append(tools, id)
		}
	}
	lines := formatGroups(nil, groupByLabel(user), UserMark)
	lines = formatGroups(lines, groupByLabel(assistant), "")
	if len(tools) > 0 {
		lines = formatGroups(append(lines, strings.TrimSuffix(ToolsLine, "\n")), groupByLabel(tools), "")
	}
	return lines
}

// MarkUser marks the known identifiers of a text as said by the user.
func (t *Table) MarkUser(s string) {
	mark := func(start, end int) {
		if id := t.idents[s[start:end]]; id != nil {
			id.byUser = true
		}
	}
	identifier.AllWhole(s, func(_ identifier.Kind, start, end int) { mark(start, end) })
	identifier.Links(s, mark)
}

// AddPreviousLine adds the identifiers in a line of references of an earlier summary; byTools
// reports whether only tools named them.
func (t *Table) AddPreviousLine(line string, byTools bool) {
	line, byUser := strings.CutPrefix(line, UserMark)
	label, list, ok := strings.Cut(line, ": ")
	if !ok {
		return
	}
	t.ranking = nil
	for _, v := range ParseList(list) {
		if id := t.addPrevious(v, identifier.KindOf(v), byTools); id != nil {
			id.byUser = id.byUser || byUser
			id.topical = id.topical || t.topic.matches(label+" "+v)
			if label != unlabelled {
				id.addLabel(t.intern(label), true)
			}
		}
		identifier.AllWhole(v, func(kind identifier.Kind, start, end int) { t.addPrevious(v[start:end], kind, byTools) })
	}
}

// addPrevious returns the identifier of a value that an earlier summary lists, or nil if
// the value is not recorded.
func (t *Table) addPrevious(v string, kind identifier.Kind, byTools bool) *Identifier {
	id := t.lookup(v, kind)
	if id == nil {
		return nil
	}
	id.standalone = true
	if byTools && id.uses < previousUses {
		id.toolUses = previousUses - id.uses
	}
	id.Texts, id.uses, id.neighbors = max(id.Texts, previousTexts), max(id.uses, previousUses), min(id.neighbors, previousNeighbors)
	return id
}

// Minimum statistics of an identifier that an earlier summary lists.
const (
	previousTexts     = 4
	previousUses      = 2
	previousNeighbors = 8
)
