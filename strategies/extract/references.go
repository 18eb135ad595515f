package extract

import (
	"sort"
	"strings"
	"unicode/utf8"
)

const referencesHeading = "## References\n"

// references writes the block of references, in at most room characters with its
// heading: what is most likely to be needed of what the text above does not hold.
// It is empty where nothing fits.
func (t *table) references(budget int, above string) string {
	budget -= utf8.RuneCountInString(referencesHeading)
	if budget < minReference {
		return ""
	}
	ranked := t.ranked()
	ids := t.pick(ranked, budget+budget/4, above)
	write := func(n int) string { return formatGroups(groupByLabel(outermost(ids, n))) }
	fits := func(n int) bool { return utf8.RuneCountInString(write(n)) <= budget }
	n := sort.Search(len(ids), func(i int) bool { return !fits(i + 1) })
	for n > 0 && !fits(n) { // more may take less where they share a label
		n--
	}
	if n == 0 {
		return ""
	}
	return referencesHeading + strings.TrimSuffix(write(n), "\n")
}

// addPreviousLine takes in a line of references of an earlier summary: what was worth a place
// there had been used before.
func (t *table) addPreviousLine(line string) {
	label, list, ok := strings.Cut(line, ": ")
	if !ok {
		return
	}
	t.ranking = nil
	for _, v := range parseList(list) {
		if id := t.addPrevious(v, kindOf(v)); id != nil {
			id.topical = id.topical || t.topic.matches(label+" "+v)
			if label != unlabelled {
				id.addLabel(t.intern(label), true)
			}
		}
		All(v, func(kind Kind, start, end int) { t.addPrevious(v[start:end], kind) })
	}
}

// addPrevious returns the identifier of a value that an earlier summary lists, nil where it is none.
func (t *table) addPrevious(v string, kind Kind) *identifier {
	if len(v) > maxValue || v == "" || t.hidden[v] || !isPrintable(v) {
		return nil
	}
	id := t.idents[v]
	if id == nil {
		id = t.add(strings.Clone(v), kind)
	}
	id.standalone = true
	id.texts, id.uses, id.neighbors = max(id.texts, previousTexts), max(id.uses, previousUses), min(id.neighbors, previousNeighbors)
	return id
}

// What is assumed of an identifier that an earlier summary lists.
const (
	previousTexts     = 4
	previousUses      = 2
	previousNeighbors = 8
)
