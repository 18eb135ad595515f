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
	origin      = "Made from %d messages without a model. Lines with > quote the user.\n"
	originShort = "Made without a model.\n"
)

// write returns the summary in at most room characters, with references of at most the given
// number of tokens.
func (d *Digest) write(budget, references int) string {
	prose := d.prose(max(budget-int(float64(budget)*d.options.ReferenceShare), min(budget, len(originShort))))
	if prose == "" {
		return ""
	}
	left := func() int { return budget - utf8.RuneCountInString(prose) }
	find := func() string {
		return d.fit(references, func(r int) string { return d.ids.references(min(r, left()), prose) })
	}
	refs := find()
	if n := utf8.RuneCountInString(refs); left()-n > budget/16 { // what references leave is for the prose
		prose = d.prose(budget - n)
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
	// worth is what it says to a reader, counted like need; ids are what it names.
	worth float64
	ids   []candidate
	// under is the item that must stand above it, nil for none.
	under *item
	taken bool
	// topical: it belongs to what the summary favours.
	topical bool
	size    int
	rate    float64
}

// page is a text as it is filled.
type page struct {
	budget int // left
	used   [sections]int
	caps   [sections]int
	met    map[*ident]bool
	all    []*item
	// said is what stands there, so that nothing is said twice.
	said string
}

// prose returns the summary without references, in at most room characters.
func (d *Digest) prose(budget int) string {
	head := fmt.Sprintf(origin, d.history.messages)
	if len(head) > budget/8 {
		head = originShort
	}
	if len(head) > budget {
		return ""
	}
	p := &page{budget: budget - len(head), met: map[*ident]bool{}}
	for s := range p.caps {
		p.caps[s] = int(shares[s] * float64(p.budget))
	}
	for i, it := range d.history.first(p.budget) {
		it.order = i - firstItems // above all others
		p.take(d.weighed(it))
	}
	var pool itemHeap
	for _, it := range d.history.items(p.budget) {
		pool = append(pool, d.weighed(it))
	}
	p.fill(pool)
	return head + p.String()
}

// weighed finds what an item names.
func (d *Digest) weighed(it *item) *item {
	it.size = utf8.RuneCountInString(it.text)
	if it.under != nil {
		it.under.size = utf8.RuneCountInString(it.under.text)
	}
	it.topical = d.ids.topic.in(it.text) || it.under != nil && d.ids.topic.in(it.under.text)
	seen := map[*ident]bool{}
	All(it.text, func(_ Kind, start, end int) {
		if id := d.ids.idents[it.text[start:end]]; id != nil && !seen[id] {
			for _, c := range d.ids.holds(candidate{ident: id, score: d.ids.score(id)}) {
				if !seen[c.ident] {
					seen[c.ident] = true
					it.ids = append(it.ids, c)
				}
			}
		}
	})
	return it
}

// take puts an item in, if there is room for it and it says something new. It reports
// whether it need not be tried again.
func (p *page) take(it *item) bool {
	size := it.size
	if p.used[it.section] == 0 {
		size += len(headings[it.section]) + 1
	}
	above := it.under
	if above != nil && !above.taken {
		size += above.size
	}
	if size > p.budget || p.used[it.section] > 0 && p.used[it.section]+size > p.caps[it.section] {
		return false
	}
	core := strings.TrimLeft(strings.TrimSuffix(it.text, "\n"), "-> ")
	if strings.Contains(p.said, core) {
		return true
	}
	p.said += core + "\n"
	if above != nil && !above.taken {
		above.taken = true
		p.all = append(p.all, above)
	}
	it.taken = true
	p.all = append(p.all, it)
	p.budget -= size
	p.used[it.section] += size
	for _, c := range it.ids {
		p.met[c.ident] = true
	}
	return true
}

// weigh sets what an item is worth by character.
func (p *page) weigh(it *item) {
	worth, size := it.worth, it.size
	for _, c := range it.ids {
		if !p.met[c.ident] {
			worth += c.score
		}
	}
	if it.under != nil && !it.under.taken {
		worth += it.under.worth
		size += it.under.size
	}
	if it.topical {
		worth *= topicWorth
	}
	it.rate = worth / float64(size+1)
}

// fill puts in what is worth most by character.
func (p *page) fill(pool itemHeap) {
	for i, it := range pool { // items come in their order
		if it.order = i; it.under != nil && it.under.order < 0 {
			it.under.order = i
		}
		p.weigh(it)
	}
	heap.Init(&pool)
	var rest []*item
	for pool.Len() > 0 {
		it := pool[0]
		rate := it.rate
		if p.weigh(it); it.rate < rate {
			heap.Fix(&pool, 0)
			continue
		}
		heap.Pop(&pool)
		if !it.taken && !p.take(it) {
			rest = append(rest, it)
		}
	}
	for s := range p.caps { // what other sections leave
		p.caps[s] = p.used[s] + p.budget
	}
	for _, it := range rest {
		if !it.taken {
			p.take(it)
		}
	}
}

// String returns the page: sections in order, each under its heading.
func (p *page) String() string {
	slices.SortStableFunc(p.all, func(a, b *item) int {
		return cmp.Or(cmp.Compare(a.section, b.section), cmp.Compare(a.order, b.order))
	})
	var b strings.Builder
	last := sections
	for _, it := range p.all {
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
	return cmp.Or(cmp.Compare(h[j].rate, h[i].rate), cmp.Compare(h[i].order, h[j].order)) < 0
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
