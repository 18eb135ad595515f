package extract

import (
	"cmp"
	"container/heap"
	"index/suffixarray"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// minScore is the score below which an identifier is not listed.
	minScore = 0.01
	// separator is how many characters stand between two references, with their
	// share of labels.
	separator = 4
	// shortest is the least room, in characters, that a reference fills.
	shortest = 8
)

// picker chooses references by the need they meet for each character. An identifier
// meets the need of those that it holds: a path that of its parts.
type picker struct {
	t *table
	// met are identifiers that stand somewhere already.
	met   map[string]bool
	above *suffixarray.Index
	heap  choices
}

// choice is an identifier, what it holds, and how much need it meets by character.
type choice struct {
	candidate
	holds []candidate
	worth float64
}

// pick returns identifiers that are worth about the given number of characters, the
// worthiest first, without those that the text above already holds.
func (t *table) pick(ranked []candidate, budget int, above string) []picked {
	p := &picker{t: t, met: map[string]bool{}, above: suffixarray.New([]byte(above))}
	for i, c := range ranked {
		if !c.reused() && !c.topical && (i >= 4*budget/shortest || c.score < minScore || c.vague()) {
			continue
		}
		ch := &choice{candidate: c, holds: t.holds(c)}
		p.weigh(ch)
		p.heap = append(p.heap, ch)
	}
	heap.Init(&p.heap)
	var out []*ident
	for p.heap.Len() > 0 && budget > 0 {
		ch := p.heap[0]
		worth := ch.worth
		if p.met[ch.value] || len(p.above.Lookup([]byte(ch.value), 1)) > 0 {
			p.met[ch.value] = true
			heap.Pop(&p.heap)
			continue
		}
		if p.weigh(ch); ch.worth < worth {
			heap.Fix(&p.heap, 0)
			continue
		}
		heap.Pop(&p.heap)
		out = append(out, ch.ident)
		budget -= utf8.RuneCountInString(ch.value) + separator
		for _, h := range ch.holds {
			p.met[h.value] = true
		}
	}
	return within(out)
}

// weigh sets how much need a choice meets by character.
func (p *picker) weigh(ch *choice) {
	need := 0.0
	for _, h := range ch.holds {
		if !p.met[h.value] {
			need += h.score
		}
	}
	ch.worth = need / float64(utf8.RuneCountInString(ch.value)+separator)
	if ch.topical {
		ch.worth *= topicWorth
	}
	if ch.reused() { // before all others, so that no chain of summaries loses it
		ch.worth += topicWorth
	}
}

// holds returns the known identifiers within c, c first.
func (t *table) holds(c candidate) []candidate {
	found := []candidate{c}
	add := func(v string) {
		id := t.idents[v]
		if id == nil || slices.ContainsFunc(found, func(f candidate) bool { return f.ident == id }) {
			return
		}
		found = append(found, candidate{ident: id, score: t.score(id)})
	}
	v := c.value
	for i := 0; i < len(v); i++ {
		if v[i] == '/' {
			add(v[:i])
			add(v[i:])
			add(v[i+1:])
		}
	}
	All(v, func(_ Kind, start, end int) { add(v[start:end]) })
	return found
}

// picked is a reference, and the index of the first other one that holds it, or the
// number of all.
type picked struct {
	*ident
	holder int
}

// within finds which references hold others.
func within(ids []*ident) []picked {
	var all strings.Builder
	starts := make([]int, len(ids))
	out := make([]picked, len(ids))
	for i, id := range ids {
		starts[i] = all.Len()
		out[i] = picked{id, len(ids)}
		all.WriteString(id.value + "\n")
	}
	index := suffixarray.New([]byte(all.String()))
	for i, id := range ids {
		for _, at := range index.Lookup([]byte(id.value), -1) {
			holder, here := slices.BinarySearch(starts, at)
			if !here {
				holder--
			}
			if holder != i {
				out[i].holder = min(out[i].holder, holder)
			}
		}
	}
	return out
}

// outermost returns the first n references without those that stand within another of them.
func outermost(ps []picked, n int) []*ident {
	ids := make([]*ident, 0, n)
	for _, p := range ps[:n] {
		if p.holder >= n {
			ids = append(ids, p.ident)
		}
	}
	return ids
}

// choices is a heap of the worthiest choice.
type choices []*choice

func (c choices) Len() int { return len(c) }

func (c choices) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(c[j].worth, c[i].worth), cmp.Compare(c[i].first, c[j].first)) < 0
}

func (c choices) Swap(i, j int) { c[i], c[j] = c[j], c[i] }

// Push appends a choice; container/heap calls it.
func (c *choices) Push(x any) { *c = append(*c, x.(*choice)) }

// Pop takes the last choice; container/heap calls it.
func (c *choices) Pop() any {
	old := *c
	last := old[len(old)-1]
	*c = old[:len(old)-1]
	return last
}
