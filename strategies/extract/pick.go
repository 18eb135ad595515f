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
	// separatorWidth is how many characters stand between two references, with their
	// share of labels.
	separatorWidth = 4
	// minReference is the least room, in characters, that a reference fills.
	minReference = 8
)

// picker chooses references by the need they meet for each character. An identifier
// meets the need of those that it holds: a path that of its parts.
type picker struct {
	t *table
	// covered are identifiers that stand somewhere already.
	covered map[string]bool
	above   *suffixarray.Index
	heap    choices
}

// choice is an identifier, what it holds, and how much need it meets by character.
type choice struct {
	candidate
	contained []candidate
	density   float64
}

// pick returns identifiers that are worth about the given number of characters, the
// worthiest first, without those that the text above already holds.
func (t *table) pick(ranked []candidate, budget int, above string) []reference {
	p := &picker{t: t, covered: map[string]bool{}, above: suffixarray.New([]byte(above))}
	for i, c := range ranked {
		if !c.isReused() && !c.topical && (i >= 4*budget/minReference || c.score < minScore || c.isAmbiguous()) {
			continue
		}
		ch := &choice{candidate: c, contained: t.contained(c)}
		p.density(ch)
		p.heap = append(p.heap, ch)
	}
	heap.Init(&p.heap)
	var out []*identifier
	for p.heap.Len() > 0 && budget > 0 {
		ch := p.heap[0]
		worth := ch.density
		if p.covered[ch.value] || len(p.above.Lookup([]byte(ch.value), 1)) > 0 {
			p.covered[ch.value] = true
			heap.Pop(&p.heap)
			continue
		}
		if p.density(ch); ch.density < worth {
			heap.Fix(&p.heap, 0)
			continue
		}
		heap.Pop(&p.heap)
		out = append(out, ch.identifier)
		budget -= utf8.RuneCountInString(ch.value) + separatorWidth
		for _, h := range ch.contained {
			p.covered[h.value] = true
		}
	}
	return findContainers(out)
}

// density sets how much need a choice meets by character.
func (p *picker) density(ch *choice) {
	need := 0.0
	for _, h := range ch.contained {
		if !p.covered[h.value] {
			need += h.score
		}
	}
	ch.density = need / float64(utf8.RuneCountInString(ch.value)+separatorWidth)
	if ch.topical {
		ch.density *= topicFactor
	}
	if ch.isReused() { // before all others, so that no chain of summaries loses it
		ch.density += topicFactor
	}
}

// contained returns the known identifiers within c, c first.
func (t *table) contained(c candidate) []candidate {
	found := []candidate{c}
	add := func(v string) {
		id := t.idents[v]
		if id == nil || slices.ContainsFunc(found, func(f candidate) bool { return f.identifier == id }) {
			return
		}
		found = append(found, candidate{identifier: id, score: t.score(id)})
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

// reference is a reference, and the index of the first other one that holds it, or the
// number of all.
type reference struct {
	*identifier
	container int
}

// findContainers finds which references hold others.
func findContainers(ids []*identifier) []reference {
	var all strings.Builder
	starts := make([]int, len(ids))
	out := make([]reference, len(ids))
	for i, id := range ids {
		starts[i] = all.Len()
		out[i] = reference{id, len(ids)}
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
				out[i].container = min(out[i].container, holder)
			}
		}
	}
	return out
}

// outermost returns the first n references without those that stand within another of them.
func outermost(ps []reference, n int) []*identifier {
	ids := make([]*identifier, 0, n)
	for _, p := range ps[:n] {
		if p.container >= n {
			ids = append(ids, p.identifier)
		}
	}
	return ids
}

// choices is a heap of the worthiest choice.
type choices []*choice

func (c choices) Len() int { return len(c) }

func (c choices) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(c[j].density, c[i].density), cmp.Compare(c[i].first, c[j].first)) < 0
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
