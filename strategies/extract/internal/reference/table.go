// Package reference keeps the identifiers of a conversation with statistics of their use, ranks them by the chance that the
// rest of the conversation uses them, and writes those that are most likely to be needed as a block of references:
//
//	## References
//	> order: W12345X
//	file: src/lamp.go, src/fan.go
//	Tools:
//	run: 4471-aa01
//
// A line begins with > if the user named the identifiers in it; those below "Tools:" only tools named. A Table reads such a block
// back from an earlier summary. Equal texts in equal order always give equal blocks. A Table is not safe for concurrent use.
package reference

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/extract/internal/identifier"
	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
)

// entry is an identifier with statistics of its use.
type entry struct {
	value string
	kind  identifier.Kind
	// first numbers identifiers in the order in which they were found.
	first int
	// last is the position of the newest occurrence, in bytes from the start.
	last int64
	// lastText is the number of the newest text with it, so that each counts once.
	lastText int
	// texts is the number of texts with it, uses the number of those by the user or the assistant.
	texts, uses int
	// neighbors is the smallest number of different identifiers in a text with it: an entry of a listing of a thousand
	// matters less than an identifier alone.
	neighbors int
	// whole reports that it occurred as more than a part of a date or number.
	whole  bool
	byUser bool
	// topical reports that it occurred with the focus, listed that an earlier summary lists it.
	topical, listed bool
	// label is the newest word before it, adjacent whether only a few signs are between them.
	label    string
	adjacent bool
}

const (
	maxValue    = 300 // bytes of an identifier
	labelReach  = 40  // characters before an identifier that are searched for its label
	maxLabelLen = 24  // bytes of a label
)

// Table holds the identifiers of a conversation: at most twice limit, of which the least likely to be needed go first.
type Table struct {
	limit   int
	entries map[string]*entry
	topic   topic
	// hidden are the identifiers of system messages, which always stay in the view.
	hidden    map[string]bool
	interned  map[string]string // labels
	bytesRead int64
	texts     int
	added     int
	inText    []*entry // of the current text
}

// NewTable returns an empty table. focus is the topic that comes before all others, empty for none.
func NewTable(limit int, focus string) *Table {
	return &Table{limit: limit, topic: newTopic(focus), entries: map[string]*entry{}, hidden: map[string]bool{}, interned: map[string]string{}}
}

// IsTopical reports whether a text contains a word of the focus.
func (t *Table) IsTopical(s string) bool { return t.topic.matches(s) }

// HasTopic reports whether the focus has words.
func (t *Table) HasTopic() bool { return len(t.topic) > 0 }

// Source is where a text is from.
type Source int

// The sources.
const (
	Said     Source = iota // by the user or the assistant
	InCall                 // in the arguments of a call
	Returned               // by a tool, or written by another program
)

// Scan adds the identifiers of a text. Of texts in quotation marks, those in calls count only if they are names, those in results
// only if they were named before: others are parts of code and of data.
func (t *Table) Scan(s string, source Source) {
	used := source != Returned
	t.texts++
	t.inText = t.inText[:0]
	identifier.All(s, func(kind identifier.Kind, start, end int) {
		if kind == identifier.Quoted && t.entries[s[start:end]] == nil && !isSaid(s, start, end, source) {
			return
		}
		if e := t.observe(s[start:end], kind, start, used); e != nil {
			e.topical = e.topical || t.topic.matchesNear(s, start)
			e.whole = e.whole || !isFragment(kind, s, start, end)
			t.setLabel(e, s, start)
		}
	})
	for _, e := range t.inText {
		e.neighbors = min(e.neighbors, len(t.inText))
	}
	t.bytesRead += int64(len(s))
	if len(t.entries) >= 2*t.limit {
		t.evict()
	}
}

// isKey reports whether the name in quotation marks before end is a key of data.
func isKey(s string, end int) bool {
	return strings.HasPrefix(strings.TrimLeft(s[min(len(s), end+1):min(len(s), end+4)], " "), ":")
}

// isSaid reports whether a text in quotation marks is more than a part of code or of data.
func isSaid(s string, start, end int, source Source) bool {
	return source == Said && !isKey(s, end) || source == InCall && isName(s[start:end])
}

// isName reports whether a text in quotation marks is a name in code: letters, digits, and signs that join them.
func isName(v string) bool {
	return strings.IndexFunc(v, func(r rune) bool { return !prose.IsLetterOrDigit(r) && !strings.ContainsRune("_.-/:@()", r) }) < 0
}

// observe counts an occurrence of a value at byte at of the current text. It returns nil if the value is not recorded.
func (t *Table) observe(v string, kind identifier.Kind, at int, used bool) *entry {
	e := t.lookup(v, kind)
	if e == nil {
		return nil
	}
	if e.lastText != t.texts {
		e.lastText = t.texts
		e.texts++
		if used {
			e.uses++
		}
		t.inText = append(t.inText, e)
	}
	e.last = max(e.last, t.bytesRead+int64(at))
	return e
}

// lookup returns the entry of a value, which it adds if it is new, or nil if the value is hidden or cannot be listed.
func (t *Table) lookup(v string, kind identifier.Kind) *entry {
	if e := t.entries[v]; e != nil {
		return e
	}
	if v == "" || len(v) > maxValue || t.hidden[v] || !prose.IsPrintable(v) {
		return nil
	}
	e := &entry{value: strings.Clone(v), kind: kind, first: t.added, neighbors: math.MaxInt}
	t.added++
	t.entries[e.value] = e
	return e
}

// isFragment reports whether s[start:end] is a part of a date, a time or a number: only a dot, a colon or a hyphen is between
// it and another digit.
func isFragment(kind identifier.Kind, s string, start, end int) bool {
	if kind != identifier.Number && kind != identifier.Code && kind != identifier.Hash {
		return false
	}
	isDigit := func(i int) bool { return i >= 0 && i < len(s) && '0' <= s[i] && s[i] <= '9' }
	joins := func(i int) bool { return i >= 0 && i < len(s) && strings.IndexByte(".:-", s[i]) >= 0 }
	return joins(start-1) && isDigit(start-2) || joins(end) && isDigit(end+1)
}

// setLabel makes the word before byte at of s the label of an entry, unless it has one that stood closer.
func (t *Table) setLabel(e *entry, s string, at int) {
	w, adjacent := identifier.Label(s, at, labelReach)
	if w == "" || len(w) > maxLabelLen {
		return
	}
	if e.label != "" && e.adjacent && !adjacent {
		return
	}
	known, ok := t.interned[w]
	if !ok {
		if len(t.interned) >= 4*t.limit {
			clear(t.interned)
		}
		known = strings.Clone(w)
		t.interned[known] = known
	}
	e.label, e.adjacent = known, adjacent
}

// MarkPrevious marks the identifiers of a text as those that an earlier summary lists.
func (t *Table) MarkPrevious(s string) {
	identifier.All(s, func(_ identifier.Kind, start, end int) {
		if e := t.entries[s[start:end]]; e != nil {
			e.listed, e.uses = true, max(e.uses, previousUses)
		}
	})
}

// MarkUser marks the known identifiers of a text as said by the user.
func (t *Table) MarkUser(s string) {
	identifier.All(s, func(_ identifier.Kind, start, end int) {
		if e := t.entries[s[start:end]]; e != nil {
			e.byUser = true
		}
	})
}

// Hide removes the identifiers of a text and ignores later occurrences.
func (t *Table) Hide(s string) {
	identifier.All(s, func(_ identifier.Kind, start, end int) {
		v := s[start:end]
		delete(t.entries, v)
		if !t.hidden[v] && len(v) <= maxValue && len(t.hidden) < t.limit {
			t.hidden[strings.Clone(v)] = true
		}
	})
}

// evict drops all but limit entries.
func (t *Table) evict() {
	for _, e := range t.ranked()[t.limit:] {
		delete(t.entries, e.value)
	}
}

// ranked returns all entries by falling score.
func (t *Table) ranked() []*entry {
	type scored struct {
		*entry
		score float64
	}
	all := make([]scored, 0, len(t.entries))
	for _, e := range t.entries {
		all = append(all, scored{e, t.logOdds(e)})
	}
	slices.SortFunc(all, func(a, b scored) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.first, b.first)) })
	out := make([]*entry, len(all))
	for i, s := range all {
		out[i] = s.entry
	}
	return out
}

// Weights of a logistic regression that predicts from the first half of a conversation whether the second half uses an
// identifier. They were fitted once on every other one of 47 recorded coding sessions, and rank as well on the others and on
// conversations of other kinds. Sizes are logarithms to base 2.
const (
	weightAge       = -0.18 // per doubling of the bytes since the newest occurrence
	weightUnused    = -0.40 // only tools wrote it
	weightTexts     = 0.23  // per doubling of the texts with it
	weightUses      = 0.61  // per doubling of the uses
	weightNumber    = -1.43 // a bare number
	weightHash      = -0.69 // a content hash, a UUID
	weightHandle    = 0.70  // a name with a number, such as credit_card_1234
	weightCode      = 0.40  // capitals and digits
	weightLength    = -0.17 // per doubling of its length
	weightNeighbors = -0.23 // per doubling of its neighbors
	weightTopic     = 8     // it occurred with the focus
	weightListed    = 4     // an earlier summary lists it, and it was used since

	ageUnit    = 1024 // bytes, about 256 tokens
	lengthUnit = 16   // characters
)

// logOdds returns the logarithm of the odds that the rest of the conversation uses an identifier.
func (t *Table) logOdds(e *entry) float64 {
	z := weightAge*math.Log2(1+float64(t.bytesRead-e.last)/ageUnit) +
		weightTexts*math.Log2(float64(max(1, e.texts))) +
		weightUses*math.Log2(1+float64(e.uses)) +
		weightLength*math.Log2(float64(utf8.RuneCountInString(e.value))/lengthUnit) +
		weightNeighbors*math.Log2(1+float64(e.neighbors))
	if e.uses == 0 {
		z += weightUnused
	}
	if e.topical {
		z += weightTopic
	}
	if e.listed && e.uses > previousUses {
		z += weightListed
	}
	switch e.kind {
	case identifier.Number:
		z += weightNumber
	case identifier.Hash, identifier.UUID:
		z += weightHash
	case identifier.Handle:
		z += weightHandle
	case identifier.Code:
		z += weightCode
	default:
	}
	return z
}
