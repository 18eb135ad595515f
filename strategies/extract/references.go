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
	if budget < shortest {
		return ""
	}
	ranked := t.ranked()
	ids := t.pick(ranked, budget+budget/4, above)
	write := func(n int) string { return lines(layout(outermost(ids, n))) }
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

// carry takes in a line of references of an earlier summary: what was worth a place
// there had been used before.
func (t *table) carry(line string) {
	label, list, ok := strings.Cut(line, ": ")
	if !ok {
		return
	}
	t.order = nil
	for _, v := range listed(list) {
		if id := t.carried(v, kindOf(v)); id != nil {
			id.topical = id.topical || t.topic.in(label+" "+v)
			if label != unlabelled {
				id.note(t.word(label), true)
			}
		}
		All(v, func(kind Kind, start, end int) { t.carried(v[start:end], kind) })
	}
}

// carried returns the identifier of a value that an earlier summary lists, nil where it is none.
func (t *table) carried(v string, kind Kind) *ident {
	if len(v) > maxValue || v == "" || t.hidden[v] || !plain(v) {
		return nil
	}
	id := t.idents[v]
	if id == nil {
		id = t.add(strings.Clone(v), kind)
	}
	id.whole = true
	id.texts, id.uses, id.neighbors = max(id.texts, carriedTexts), max(id.uses, carriedUses), min(id.neighbors, carriedNeighbors)
	return id
}

// What is assumed of an identifier that an earlier summary lists.
const (
	carriedTexts     = 4
	carriedUses      = 2
	carriedNeighbors = 8
)
