package retention

import (
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Measure identifies a measure of a Detail.
type Measure int

// Measures beside those of a Score.
const (
	Next10 Measure = iota
	Asks
	Asks3
	Constraints
	Errors
	Facts
	// ReferencePrecision counts the listed identifiers and those that are used after the cut.
	ReferencePrecision
	// ReferenceShare counts the characters of the kept messages and those of the references.
	ReferenceShare
	Measures
)

// Count holds what is kept of what there is to keep.
type Count struct {
	Kept int `json:"kept"`
	Of   int `json:"of"`
}

// Detail is a Score with all other measures.
type Detail struct {
	Score
	// Held has a bit for each need that is kept loosely, HeldWords one for each word (see Case.IDs
	// and Corpus.Rare).
	Held, HeldWords []byte
	Counts          [Measures]Count
}

// Detail measures the messages kept of Pre, system messages included.
func (c *Case) Detail(kept []chat.Message) Detail {
	o := newOccurrences(kept)
	var d Detail
	d.Score, d.Held = c.score(kept, o)
	found := words(strings.Join(o, "\n"), isLetter)
	d.HeldWords = bits(c.words, func(_ int, w string) bool { return found[w] })
	w, v := &c.wants, newView(o)
	count := func(m Measure, wanted []string, holds func(string) bool) {
		d.Counts[m].Of = len(wanted)
		for _, s := range wanted {
			if holds(s) {
				d.Counts[m].Kept++
			}
		}
	}
	asked := func(s string) bool { return strings.Contains(v.normalized, s) }
	count(Next10, w.next, o.contain)
	count(Asks, w.asks, asked)
	count(Asks3, w.asks[max(0, len(w.asks)-latestAsks):], asked)
	count(Constraints, w.constraints, v.near)
	count(Errors, w.errors, v.near)
	count(Facts, w.facts, o.contain)
	d.Counts[ReferencePrecision], d.Counts[ReferenceShare] = c.references(kept, d.Tokens)
	return d
}

// view finds sentences in the text of kept messages.
type view struct {
	normalized string
	// lines holds the numbers of the lines with a word, in order.
	lines map[string][]int
}

func newView(texts []string) *view {
	text := strings.Join(texts, "\n")
	v := &view{normalized: normalized(text), lines: map[string][]int{}}
	n := 0
	for line := range strings.SplitSeq(text, "\n") {
		for w := range words(line, isToken) {
			v.lines[w] = append(v.lines[w], n)
		}
		n++
	}
	return v
}

// near reports whether the text has a sentence verbatim, case and punctuation apart, or four
// of five of its words on one line.
func (v *view) near(sentence string) bool {
	if n := normalized(sentence); n != "" && strings.Contains(v.normalized, n) {
		return true
	}
	all := words(sentence, isToken)
	if len(all) < 3 {
		return false
	}
	found := map[int]int{}
	for w := range all {
		for _, line := range v.lines[w] {
			if found[line]++; float64(found[line]) >= 0.8*float64(len(all)) {
				return true
			}
		}
	}
	return false
}
