package extract

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	originLong  = "Made from %d messages without a model. Lines with > quote the user.\n"
	originShort = "Made without a model.\n"
)

// writeText returns the summary in at most room characters, with references of at most the given
// number of tokens.
func (d *Digest) writeText(budget, references int) string {
	prose := d.writeProse(max(budget-int(float64(budget)*d.options.ReferenceShare), min(budget, len(originShort))))
	if prose == "" {
		return ""
	}
	left := func() int { return budget - utf8.RuneCountInString(prose) }
	find := func() string {
		return d.fitTokens(references, func(r int) string { return d.ids.references(min(r, left()), prose) })
	}
	refs := find()
	if n := utf8.RuneCountInString(refs); left()-n > budget/16 { // what references leave is for the prose
		prose = d.writeProse(budget - n)
		refs = find()
	}
	return strings.TrimSuffix(prose+refs, "\n")
}

// item is an entry of a section: whole lines with their ends.
type item struct {
	section section
	// order is the place within the section, negative until it is known.
	order int
	text  string
	// value is what it says to a reader, counted like need; ids are what it names.
	value float64
	ids   []candidate
	// parent is the item that must stand above it, nil for none.
	parent *item
	placed bool
	// topical: it belongs to what the summary favours.
	topical bool
	size    int
	density float64
}

// page is a text as it is filled.
type page struct {
	budget  int // left
	used    [numSections]int
	caps    [numSections]int
	covered map[*identifier]bool
	items   []*item
	// text is what stands there, so that nothing is said twice.
	text string
}

// writeProse returns the summary without references, in at most room characters.
func (d *Digest) writeProse(budget int) string {
	head := fmt.Sprintf(originLong, d.history.messages)
	if len(head) > budget/8 {
		head = originShort
	}
	if len(head) > budget {
		return ""
	}
	p := &page{budget: budget - len(head), covered: map[*identifier]bool{}}
	for s := range p.caps {
		p.caps[s] = int(shares[s] * float64(p.budget))
	}
	for i, it := range d.history.leadingItems(p.budget) {
		it.order = i - firstItems // above all others
		p.place(d.prepare(it))
	}
	var pool itemHeap
	for _, it := range d.history.otherItems(p.budget) {
		pool = append(pool, d.prepare(it))
	}
	p.fill(pool)
	return head + p.String()
}

// prepare finds what an item names.
func (d *Digest) prepare(it *item) *item {
	it.size = utf8.RuneCountInString(it.text)
	if it.parent != nil {
		it.parent.size = utf8.RuneCountInString(it.parent.text)
	}
	it.topical = d.ids.topic.matches(it.text) || it.parent != nil && d.ids.topic.matches(it.parent.text)
	seen := map[*identifier]bool{}
	All(it.text, func(_ Kind, start, end int) {
		if id := d.ids.idents[it.text[start:end]]; id != nil && !seen[id] {
			for _, c := range d.ids.contained(candidate{identifier: id, score: d.ids.score(id)}) {
				if !seen[c.identifier] {
					seen[c.identifier] = true
					it.ids = append(it.ids, c)
				}
			}
		}
	})
	return it
}

// place puts an item in, if there is room for it and it says something new. It reports
// whether it need not be tried again.
func (p *page) place(it *item) bool {
	size := it.size
	if p.used[it.section] == 0 {
		size += len(headings[it.section]) + 1
	}
	above := it.parent
	if above != nil && !above.placed {
		size += above.size
	}
	if size > p.budget || p.used[it.section] > 0 && p.used[it.section]+size > p.caps[it.section] {
		return false
	}
	core := strings.TrimLeft(strings.TrimSuffix(it.text, "\n"), "-> ")
	if strings.Contains(p.text, core) {
		return true
	}
	p.text += core + "\n"
	if above != nil && !above.placed {
		above.placed = true
		p.items = append(p.items, above)
	}
	it.placed = true
	p.items = append(p.items, it)
	p.budget -= size
	p.used[it.section] += size
	for _, c := range it.ids {
		p.covered[c.identifier] = true
	}
	return true
}

// density sets what an item is worth by character.
func (p *page) density(it *item) {
	worth, size := it.value, it.size
	for _, c := range it.ids {
		if !p.covered[c.identifier] {
			worth += c.score
		}
	}
	if it.parent != nil && !it.parent.placed {
		worth += it.parent.value
		size += it.parent.size
	}
	if it.topical {
		worth *= topicFactor
	}
	it.density = worth / float64(size+1)
}

// fill puts in what is worth most by character.
func (p *page) fill(pool itemHeap) {
	for i, it := range pool { // items come in their order
		if it.order = i; it.parent != nil && it.parent.order < 0 {
			it.parent.order = i
		}
		p.density(it)
	}
	heap.Init(&pool)
	var rest []*item
	for pool.Len() > 0 {
		it := pool[0]
		rate := it.density
		if p.density(it); it.density < rate {
			heap.Fix(&pool, 0)
			continue
		}
		heap.Pop(&pool)
		if !it.placed && !p.place(it) {
			rest = append(rest, it)
		}
	}
	for s := range p.caps { // what other sections leave
		p.caps[s] = p.used[s] + p.budget
	}
	for _, it := range rest {
		if !it.placed {
			p.place(it)
		}
	}
}

// String returns the page: sections in order, each under its heading.
func (p *page) String() string {
	slices.SortStableFunc(p.items, func(a, b *item) int {
		return cmp.Or(cmp.Compare(a.section, b.section), cmp.Compare(a.order, b.order))
	})
	var b strings.Builder
	last := numSections
	for _, it := range p.items {
		if it.section != last {
			last = it.section
			b.WriteString(headings[last] + "\n")
		}
		b.WriteString(it.text)
	}
	return b.String()
}

// itemHeap is a heap of the item that is worth most by character.
type itemHeap []*item

func (h itemHeap) Len() int { return len(h) }

func (h itemHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[j].density, h[i].density), cmp.Compare(h[i].order, h[j].order)) < 0
}

func (h itemHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push appends an item; container/heap calls it.
func (h *itemHeap) Push(x any) { *h = append(*h, x.(*item)) }

// Pop takes the last item; container/heap calls it.
func (h *itemHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
