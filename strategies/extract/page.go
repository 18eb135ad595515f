package extract

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// part is a section of the summary with its entries.
type part struct {
	heading string
	// share is the part of the room that the section may take before all others have had theirs.
	share float64
	items []item
}

// item is an entry of a section, in forms of which each says more than the one before it.
type item struct {
	// order is the place of the entry in the section, value decides which come first where there is no room for all.
	order int
	value float64
	// group is the line above entries that have it in common, "" for none.
	group string
	forms [][]string
	// mixed reports that the entry is a list of things of all topics.
	mixed bool

	// placed is the number of the form that has a place, from 1.
	placed int
}

// page is a summary while it is filled.
type page struct {
	room  int // unused characters
	parts []part
	// lines holds the long lines that have a place, so that none comes twice, begun the headings and groups.
	lines, begun map[string]bool
}

// minRepeated is the size from which a line stands only once.
const minRepeated = 30

// fill places entries: those of each section in its share of the room, in the order of the sections, then again in its share
// of the rest, and at last all that have room.
func (p *page) fill(parts []part) {
	p.parts, p.lines, p.begun = parts, map[string]bool{}, map[string]bool{}
	for i := range parts {
		slices.SortStableFunc(parts[i].items, byValue)
	}
	focused := int(focusShare * float64(p.room))
	for i := range parts {
		s, before := &parts[i], p.room
		p.place(s, focused, focusValue)
		focused -= before - p.room
		for j, x := range s.items { // the rest of the room is for all
			if x.value >= focusValue {
				s.items[j].value -= focusValue
			}
		}
		slices.SortStableFunc(s.items, byValue)
	}
	for range rounds {
		left := float64(p.room)
		for i := range parts {
			p.place(&parts[i], int(parts[i].share*left), lateValue/2)
		}
	}
	for i := range parts {
		p.place(&parts[i], p.room, -focusValue)
	}
}

func byValue(a, b item) int { return cmp.Compare(b.value, a.value) }

// rounds is how often the rest of the room is shared.
const rounds = 5

// place gives entries of a section with at least a value places in at most limit characters: first the shortest form of each,
// then the longer ones.
func (p *page) place(s *part, limit int, least float64) {
	deepest := 0
	for i := range s.items {
		deepest = max(deepest, len(s.items[i].forms))
	}
	for n := 1; n <= deepest; n++ {
		for i := range s.items {
			x := &s.items[i]
			if len(x.forms) < n || x.placed != n-1 || x.value < least {
				continue
			}
			form, cost := p.form(x, n)
			for _, above := range []string{s.heading, x.group} {
				if above != "" && !p.begun[s.heading+above] {
					cost += utf8.RuneCountInString(above) + 1
				}
			}
			if cost > min(limit, p.room) || len(form) == 0 {
				continue
			}
			p.take(x, n, form)
			p.begun[s.heading+s.heading], p.begun[s.heading+x.group] = true, true
			p.room -= cost
			limit -= cost
		}
	}
}

// form returns the n-th form of an entry without lines that stand elsewhere, and the characters that it takes more than the
// form that has a place.
func (p *page) form(x *item, n int) (form []string, cost int) {
	var own []string
	if x.placed > 0 {
		own = x.forms[x.placed-1]
	}
	for _, l := range x.forms[n-1] {
		if !p.lines[l] || slices.Contains(own, l) {
			form = append(form, l)
			cost += utf8.RuneCountInString(l) + 1
		}
	}
	for _, l := range own {
		cost -= utf8.RuneCountInString(l) + 1
	}
	return form, cost
}

// take gives the n-th form of an entry a place.
func (p *page) take(x *item, n int, form []string) {
	if x.placed > 0 {
		for _, l := range x.forms[x.placed-1] {
			delete(p.lines, l)
		}
	}
	x.forms[n-1], x.placed = form, n
	for _, l := range form {
		if len(l) >= minRepeated && !strings.HasPrefix(l, addedMark) && !strings.HasPrefix(l, removedMark) {
			p.lines[l] = true
		}
	}
}

// String returns the text of the placed entries.
func (p *page) String() string {
	var b strings.Builder
	for i := range p.parts {
		s := &p.parts[i]
		items := slices.DeleteFunc(slices.Clone(s.items), func(x item) bool { return x.placed == 0 })
		if len(items) == 0 {
			continue
		}
		slices.SortStableFunc(items, func(a, b item) int { return cmp.Compare(a.order, b.order) })
		b.WriteString(s.heading + "\n")
		group := ""
		for _, x := range items {
			if x.group != group && x.group != "" {
				b.WriteString(x.group + "\n")
			}
			group = x.group
			b.WriteString(strings.Join(x.forms[x.placed-1], "\n") + "\n")
		}
	}
	return b.String()
}

const (
	// focusShare is the share of the room for entries that match the focus, before all others have theirs.
	focusShare = 0.65
	// lateValue is that of entries that have a place only where room is left, without more.
	lateValue = -1e5
	// focusValue is added to the value of such entries, and more than any other.
	focusValue = 1e6
)

// raise raises the entries that match a topic above all others.
func raise(matches func(string) bool, parts []part) {
	for i := range parts {
		for j := range parts[i].items {
			x := &parts[i].items[j]
			if n := len(x.forms); n > 0 && !x.mixed && matches(strings.Join(x.forms[n-1], "\n")) {
				x.value += focusValue
			}
		}
	}
}
