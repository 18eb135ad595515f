package extract

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/redact"
)

const (
	// maxLabelWidth is how many characters a label stands before its identifiers at most. A
	// longer list repeats it on the next line.
	maxLabelWidth = 58
	// secondLabelWeight is the worth of a label that stood one word before the adjacent one.
	secondLabelWeight = 0.6
)

// group is a label and the identifiers it stands for.
type group struct {
	label string
	ids   []*identifier
}

// groupByLabel groups identifiers by labels that many of them share, the most shared first.
// Groups and what is in them keep the order of ids, by the first of each.
func groupByLabel(ids []*identifier) []*group {
	votes := map[string]float64{}
	holders := map[string][]*identifier{}
	for _, id := range ids {
		for _, l := range id.labels {
			votes[l.word] += l.weight()
			holders[l.word] = append(holders[l.word], id)
		}
	}
	var b ballot
	for w, v := range votes {
		b = append(b, vote{w, v})
	}
	heap.Init(&b)
	groups := map[string]*group{}
	var all []*group
	put := func(label string, id *identifier) {
		g := groups[label]
		if g == nil {
			g = &group{label: label}
			groups[label] = g
			all = append(all, g)
		}
		g.ids = append(g.ids, id)
	}
	grouped := make(map[*identifier]bool, len(ids))
	for b.Len() > 0 {
		best := b[0]
		if now := votes[best.word]; now < best.votes { // others took some of its identifiers
			b[0].votes = now
			heap.Fix(&b, 0)
			continue
		}
		heap.Pop(&b)
		for _, id := range holders[best.word] {
			if grouped[id] {
				continue
			}
			grouped[id] = true
			put(best.word, id)
			for _, l := range id.labels {
				votes[l.word] -= l.weight()
			}
		}
	}
	for _, id := range ids {
		if !grouped[id] {
			put(id.defaultLabel(), id)
		}
	}
	return sortGroups(all, ids)
}

// vote is how many identifiers want a label; ballot is a heap of the most wanted.
type vote struct {
	word  string
	votes float64
}

type ballot []vote

func (b ballot) Len() int { return len(b) }

func (b ballot) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(b[j].votes, b[i].votes), cmp.Compare(b[i].word, b[j].word)) < 0
}

func (b ballot) Swap(i, j int) { b[i], b[j] = b[j], b[i] }

// Push appends a vote; container/heap calls it.
func (b *ballot) Push(x any) { *b = append(*b, x.(vote)) }

// Pop takes the last vote; container/heap calls it.
func (b *ballot) Pop() any {
	old := *b
	last := old[len(old)-1]
	*b = old[:len(old)-1]
	return last
}

func sortGroups(groups []*group, ids []*identifier) []*group {
	rank := make(map[*identifier]int, len(ids))
	for i, id := range ids {
		rank[id] = i
	}
	byRank := func(a, b *identifier) int { return cmp.Compare(rank[a], rank[b]) }
	for _, g := range groups {
		slices.SortFunc(g.ids, byRank)
	}
	slices.SortFunc(groups, func(a, b *group) int { return byRank(a.ids[0], b.ids[0]) })
	return groups
}

func (l label) weight() float64 {
	if l.adjacent {
		return 1
	}
	return secondLabelWeight
}

// defaultLabel returns the label of what no word stood before.
func (id *identifier) defaultLabel() string {
	switch {
	case id.fallbackLabel != "":
		return id.fallbackLabel
	case id.kind == Quoted:
		return unlabelled
	}
	return id.kind.String()
}

// unlabelled stands where nothing better is known.
const unlabelled = "named"

// formatGroups writes groups, one or more lines each: "label: a, b".
func formatGroups(groups []*group) string {
	var b strings.Builder
	for _, g := range groups {
		line, width := "", 0
		for _, id := range g.ids {
			v := quoteValue(id.value)
			if line != "" && width <= maxLabelWidth {
				line += ", " + v
				width += utf8.RuneCountInString(v) + 2
				continue
			}
			b.WriteString(safeLine(line))
			line = g.label + ": " + v
			width = utf8.RuneCountInString(line) + 2
		}
		b.WriteString(safeLine(line))
	}
	return b.String()
}

// safeLine returns a line of references with its end. A label may make a secret of what is
// none ("token: TestLexer"): such a line is labelled anew.
func safeLine(line string) string {
	if line == "" {
		return ""
	}
	if _, found := redact.Redact(line); found.Total() > 0 {
		_, values, _ := strings.Cut(line, ": ")
		line = unlabelled + ": " + values
	}
	return line + "\n"
}

// quoteValue returns a value as it stands in a list: in quotes where it could be misread.
func quoteValue(v string) string {
	if !strings.ContainsAny(v, " ,;\"'`\t") {
		return v
	}
	for _, q := range []string{`"`, "`", "'"} {
		if !strings.Contains(v, q) {
			return q + v + q
		}
	}
	return v
}

// parseList reads a list that lines wrote.
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

// kindOf returns the class of a value that stood in a list.
func kindOf(v string) Kind {
	kind := Quoted
	found := false
	All(v, func(k Kind, start, end int) {
		if !found && end-start == len(v) {
			kind, found = k, true
		}
	})
	return kind
}
