package reference

import (
	"index/suffixarray"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/extract/identifier"
	"github.com/sessionstore/compactor/strategies/extract/internal/queue"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

const (
	// minScore is the score below which an identifier is not listed.
	minScore = 0.015
	// minCrowded is that of one that only tools name while actions have no room.
	minCrowded = 0.25
	// separatorWidth is the average number of characters between two references, labels
	// included.
	separatorWidth = 4
	// minReference is the minimum number of characters of a reference.
	minReference = 8
)

// scarceRoom is the number of characters of references below which parts of statements have no place.
const scarceRoom = 1100

// nameless are words of programs and of data that name nothing.
var nameless = text.Set(`true false nil null none undefined nan eof yes no on off ok
	varchar number integer float boolean string text object array timestamp`)

// structTag is the tag of a field in Go, formatVerb a verb in a format, letters each letter of a value.
var (
	structTag  = text.Pattern("^`?[a-z]+:\\\\?\"[^\"]*\"`?$")
	formatVerb = text.Pattern(`%[-+#0-9.]*[a-zA-Z]`)
	letters    = text.Pattern(`[A-Za-z]`)
)

// slight is a device, the version of a protocol or a size.
var slight = text.Pattern(`^/dev/|^HTTP/\d|^\d+(?:\.\d+)?[KMGT]i?B(?:/s)?$`)

// minMessage is the number of letters of a format that is a message, which can be searched for.
const minMessage = 10

// isForm reports whether a value tells how data or text is written, and nothing else: the tag of a field,
// or a format with hardly a word.
func isForm(v string) bool {
	words := formatVerb().ReplaceAllString(v, "")
	return structTag().MatchString(v) || words != v && len(letters().FindAllString(words, minMessage)) < minMessage
}

// choice is a candidate for the references and the known identifiers in its text.
type choice struct {
	Candidate
	contained []Candidate
}

// pick returns identifiers for about budget characters of references, in the order of their value per
// character, without those that the text above contains; budget is positive, and crowded as that of Block.
// Listing an identifier counts for all identifiers within it: a path for each of its parts.
func (t *Table) pick(ranked []Candidate, budget int, above string, crowded bool) []*Identifier {
	scarce := budget < scarceRoom
	index := suffixarray.New([]byte(above))
	covered := map[string]bool{} // listed, or within a listed one, or in the text above
	density := func(ch choice) float64 {
		sum := 0.0
		for _, c := range ch.contained {
			if !covered[c.value] {
				sum += c.Score
			}
		}
		sum /= float64(utf8.RuneCountInString(ch.value) + separatorWidth)
		if ch.topical {
			sum *= TopicFactor
		}
		if ch.isReused() { // before all others, so that no chain of summaries loses it
			sum += TopicFactor
		}
		return sum
	}
	var q queue.Queue[choice]
	for i, c := range ranked {
		if rest, side := cutSide(c.value); side && t.idents[rest] != nil {
			continue
		}
		if !c.isReused() && !c.topical && (i >= 4*budget/minReference || c.Score < minScore || c.isAmbiguous()) {
			continue
		}
		if crowded && c.uses == 0 && !c.isReused() && !c.topical && (c.Score < minCrowded || slight().MatchString(c.value)) {
			continue
		}
		if !c.isReused() && (isForm(c.value) || scarce && (formatVerb().MatchString(c.value) || nameless[strings.ToLower(c.value)])) {
			continue
		}
		ch := choice{Candidate: c, contained: t.contained(c)}
		q.Add(ch, density(ch), c.first)
	}
	var out []*Identifier
	for ch := range q.All(func(ch choice) (float64, bool) {
		if covered[ch.value] || len(index.Lookup([]byte(ch.value), 1)) > 0 {
			covered[ch.value] = true
			return 0, false
		}
		return density(ch), true
	}) {
		out = append(out, ch.Identifier)
		for _, c := range ch.contained {
			covered[c.value] = true
		}
		if budget -= utf8.RuneCountInString(ch.value) + separatorWidth; budget <= 0 {
			break
		}
	}
	return out
}

// cutSide returns a path of a difference without its side, a or b.
func cutSide(v string) (rest string, ok bool) {
	if rest, ok = strings.CutPrefix(v, "a/"); ok {
		return rest, true
	}
	return strings.CutPrefix(v, "b/")
}

// Within returns the known identifiers in a text and those in the text of each, in order and without repetitions.
func (t *Table) Within(s string) []Candidate {
	var found []Candidate
	seen := map[*Identifier]bool{}
	identifier.AllWhole(s, func(_ identifier.Kind, start, end int) {
		if id := t.idents[s[start:end]]; id != nil && !seen[id] {
			for _, c := range t.contained(Candidate{Identifier: id, Score: t.score(id)}) {
				if !seen[c.Identifier] {
					seen[c.Identifier] = true
					found = append(found, c)
				}
			}
		}
	})
	return found
}

// contained returns the known identifiers in the text of c, c first.
func (t *Table) contained(c Candidate) []Candidate {
	found := []Candidate{c}
	add := func(v string) {
		id := t.idents[v]
		if id == nil || slices.ContainsFunc(found, func(f Candidate) bool { return f.Identifier == id }) {
			return
		}
		found = append(found, Candidate{Identifier: id, Score: t.score(id)})
	}
	v := c.value
	for i := 0; i < len(v); i++ {
		if v[i] == '/' {
			add(v[:i])
			add(v[i:])
			add(v[i+1:])
		}
	}
	identifier.All(v, func(_ identifier.Kind, start, end int) { add(v[start:end]) })
	return found
}

// outermost returns a function that returns those of the first n identifiers that are not within another one of them.
func outermost(ids []*Identifier) func(n int) []*Identifier {
	var all strings.Builder
	starts := make([]int, len(ids))
	for i, id := range ids {
		starts[i] = all.Len()
		all.WriteString(id.value + "\n")
	}
	index := suffixarray.New([]byte(all.String()))
	within := make([]int, len(ids)) // the first other one with the identifier in it
	for i, id := range ids {
		within[i] = len(ids)
		for _, at := range index.Lookup([]byte(id.value), -1) {
			k, ok := slices.BinarySearch(starts, at)
			if !ok {
				k--
			}
			if k != i {
				within[i] = min(within[i], k)
			}
		}
	}
	return func(n int) []*Identifier {
		var out []*Identifier
		for i, id := range ids[:n] {
			if within[i] >= n {
				out = append(out, id)
			}
		}
		return out
	}
}
