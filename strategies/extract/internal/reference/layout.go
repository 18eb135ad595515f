package reference

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/extract/identifier"
	"github.com/sessionstore/compactor/strategies/extract/internal/queue"
	"github.com/sessionstore/compactor/strategies/redact"
)

const (
	// maxLabelWidth is the number of characters after which a list continues on a new
	// line, under its label.
	maxLabelWidth = 58
	// secondLabelWeight is the weight of a label one word before the adjacent one.
	secondLabelWeight = 0.6
)

// group is a label and its identifiers.
type group struct {
	label string
	ids   []*Identifier
}

// holder has the identifiers with a label, by their index, and the weight of those that have no group.
type holder struct {
	weight float64
	ids    []int
}

// groupByLabel gives each identifier one of its labels, the most shared labels first, and
// returns the groups. Groups and their identifiers keep the order of ids.
func groupByLabel(ids []*Identifier) []*group {
	holders := map[string]*holder{}
	for i, id := range ids {
		for _, l := range id.labels {
			h := holders[l.word]
			if h == nil {
				h = &holder{}
				holders[l.word] = h
			}
			h.weight += l.weight()
			h.ids = append(h.ids, i)
		}
	}
	var q queue.Queue[string]
	for i, w := range slices.Sorted(maps.Keys(holders)) {
		q.Add(w, holders[w].weight, i)
	}
	labels := make([]string, len(ids))
	for word := range q.All(func(w string) (float64, bool) { return holders[w].weight, true }) {
		for _, i := range holders[word].ids {
			if labels[i] != "" {
				continue
			}
			labels[i] = word
			for _, l := range ids[i].labels {
				holders[l.word].weight -= l.weight()
			}
		}
	}
	groups := map[string]*group{}
	var all []*group
	for i, id := range ids {
		label := cmp.Or(labels[i], id.defaultLabel())
		g := groups[label]
		if g == nil {
			g = &group{label: label}
			groups[label] = g
			all = append(all, g)
		}
		g.ids = append(g.ids, id)
	}
	return all
}

func (l label) weight() float64 {
	if l.adjacent {
		return 1
	}
	return secondLabelWeight
}

// defaultLabel returns the label of an identifier that has no labels.
func (id *Identifier) defaultLabel() string {
	switch {
	case id.fallbackLabel != "":
		return id.fallbackLabel
	case id.kind == identifier.Quoted:
		return unlabelled
	}
	return id.kind.String()
}

// UserMark begins a line of what the user said.
const UserMark = "> "

// unlabelled is the label of quoted names without one.
const unlabelled = "named"

// formatGroups adds the lines of groups, one or more for each: "label: a, b", each after a
// mark.
func formatGroups(lines []string, groups []*group, mark string) []string {
	for _, g := range groups {
		line, width := "", 0
		for _, id := range g.ids {
			v := quoteValue(id.value)
			if line != "" && width <= maxLabelWidth {
				line += ", " + v
				width += utf8.RuneCountInString(v) + 2
				continue
			}
			if line != "" {
				lines = append(lines, line)
			}
			line = mark + g.label + ": " + v
			width = utf8.RuneCountInString(line) + 2
		}
		lines = append(lines, line)
	}
	return lines
}

// safeLines gives another label to each line of references that reads like a secret because of its label, such
// as "token: TestLexer".
func safeLines(lines []string) []string {
	for i, l := range lines {
		if _, found := redact.Redact(l); found.Total() > 0 {
			lines[i] = withoutLabel(l)
		}
	}
	return lines
}

// withoutLabel returns a line of references without what its label says.
func withoutLabel(line string) string {
	_, values, _ := strings.Cut(line, ": ")
	return line[:len(line)-len(strings.TrimPrefix(line, UserMark))] + unlabelled + ": " + values
}

// quoteValue returns a value for a list, in quotes if it is ambiguous without them.
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

// ParseList returns the values of a list that formatGroups wrote.
func ParseList(list string) []string {
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
