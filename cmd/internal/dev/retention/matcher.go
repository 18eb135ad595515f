package retention

import (
	"slices"
	"strings"
)

// matcher finds many words in a text at once, wherever they stand, in one pass:
// the automaton of Aho and Corasick. It is immutable once built.
type matcher struct {
	root  [256]int32
	nodes []node
	edges []edge
	sizes []int32 // of the words, in octets
}

// node is a state: what was read last is a beginning of some word.
type node struct {
	first, count int32 // its edges
	fail         int32 // the longest other beginning that what was read ends with
	word         int32 // the word that ends here, -1 for none
	shorter      int32 // the next state along fail where a word ends, 0 for none
}

type edge struct {
	octet byte
	to    int32
}

// match is a word that was found, and where it ends.
type match struct {
	word int32
	end  int
}

// newMatcher makes a matcher of words, none of them empty and no two equal.
func newMatcher(words []string) *matcher {
	m := &matcher{nodes: []node{{word: -1}}, sizes: make([]int32, len(words))}
	order := make([]int, len(words))
	for w := range words {
		order[w], m.sizes[w] = w, int32(len(words[w]))
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(words[a], words[b]) })
	// In this order a word shares its beginning with the one before it, so that a
	// new state is the last child of one on the way to that.
	t := tree{octet: []byte{0}, child: []int32{0}, last: []int32{0}, sibling: []int32{0}}
	way := []int32{0}
	before := ""
	for _, w := range order {
		text, shared := words[w], 0
		for shared < min(len(before), len(text)) && before[shared] == text[shared] {
			shared++
		}
		way = way[:shared+1]
		for i := shared; i < len(text); i++ {
			m.nodes = append(m.nodes, node{word: -1})
			way = append(way, t.add(way[i], text[i]))
		}
		m.nodes[way[len(text)]].word = int32(w)
		before = text
	}
	m.link(&t)
	return m
}

// tree is the states by their parents, while a matcher is made; 0 is none.
type tree struct {
	octet                []byte
	child, last, sibling []int32
}

// add makes a state the last child of a parent.
func (t *tree) add(parent int32, octet byte) int32 {
	n := int32(len(t.octet))
	t.octet = append(t.octet, octet)
	t.child, t.last, t.sibling = append(t.child, 0), append(t.last, 0), append(t.sibling, 0)
	if t.child[parent] == 0 {
		t.child[parent] = n
	} else {
		t.sibling[t.last[parent]] = n
	}
	t.last[parent] = n
	return n
}

// link goes over the states by depth and finds their other beginnings.
func (m *matcher) link(t *tree) {
	for to := t.child[0]; to != 0; to = t.sibling[to] {
		m.root[t.octet[to]] = to
	}
	m.edges = make([]edge, 0, len(m.nodes)-1)
	queue := make([]int32, 1, len(m.nodes))
	for i := 0; i < len(queue); i++ {
		at := queue[i]
		n := &m.nodes[at]
		n.first = int32(len(m.edges))
		for to := t.child[at]; to != 0; to = t.sibling[to] {
			fail := int32(0)
			if at != 0 {
				fail = m.step(n.fail, t.octet[to])
			}
			child := &m.nodes[to]
			child.fail, child.shorter = fail, m.nodes[fail].shorter
			if m.nodes[fail].word >= 0 {
				child.shorter = fail
			}
			m.edges = append(m.edges, edge{t.octet[to], to})
			queue = append(queue, to)
		}
		n.count = int32(len(m.edges)) - n.first
	}
}

// step returns the state behind one more octet.
func (m *matcher) step(at int32, octet byte) int32 {
	for at != 0 {
		n := &m.nodes[at]
		for _, e := range m.edges[n.first : n.first+n.count] {
			if e.octet == octet {
				return e.to
			}
		}
		at = n.fail
	}
	return m.root[octet]
}

// find appends every occurrence of a word in text, in the order of their ends.
func (m *matcher) find(dst []match, text string) []match {
	at := int32(0)
	for i := range len(text) {
		if at = m.step(at, text[i]); at == 0 {
			continue
		}
		if w := m.nodes[at].word; w >= 0 {
			dst = append(dst, match{w, i + 1})
		}
		for s := m.nodes[at].shorter; s != 0; s = m.nodes[s].shorter {
			dst = append(dst, match{m.nodes[s].word, i + 1})
		}
	}
	return dst
}
