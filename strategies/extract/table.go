package extract

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// ident is an identifier and what is known of its use.
type ident struct {
	value string
	kind  Kind
	// called is what it is where no word labels it, empty for the name of its kind.
	called string
	// first orders identifiers by when they were met.
	first int
	// last is where it was seen last, in bytes from the start.
	last int64
	// stamp is the text it was seen in last, so that a text counts once.
	stamp int
	// texts is how many texts hold it, uses how many of them nobody but the user or
	// the assistant wrote.
	texts, uses int
	// carried is uses as an earlier summary left it, 0 where none named it.
	carried int
	// neighbors is the fewest different identifiers that it shared a text with: an entry
	// of a listing of a thousand matters less than an identifier named alone.
	neighbors int
	// whole: it was met at least once as more than a part of a date or of a longer number.
	whole bool
	// topical: it belongs to what the summary favours.
	topical bool
	// labels are the words seen before it, the latest last.
	labels []label
}

// label is a word seen before an identifier, adjacent if nothing but a few signs stood
// between them.
type label struct {
	word     string
	adjacent bool
}

const (
	maxLabels = 8   // of one identifier
	maxValue  = 300 // bytes of one identifier
	reach     = 40  // characters before an identifier that may hold its label
	maxWord   = 24  // characters of a label
)

// table holds the identifiers of a conversation: at most twice limit of them, and at
// most limit after a sweep, which drops those least likely to be needed.
type table struct {
	limit  int
	idents map[string]*ident
	topic  topic
	// hidden are those of system messages, which no compaction takes away.
	hidden map[string]bool
	words  map[string]string
	// end is how much was read, in bytes.
	end     int64
	texts   int
	met     int
	scratch []*ident
	before  []string
	// order is what ranked found, nil where it has to look again.
	order []candidate
}

func newTable(limit int) *table {
	return &table{limit: limit, idents: map[string]*ident{}, hidden: map[string]bool{}, words: map[string]string{}}
}

// read takes in the identifiers of a text. used: the user or the assistant wrote it.
func (t *table) read(s string, used bool) {
	t.texts++
	t.order = nil
	t.scratch = t.scratch[:0]
	parts := t.topic.parts(s)
	All(s, func(kind Kind, start, end int) {
		if id := t.meet(s[start:end], kind, start, used); id != nil {
			var topical bool
			parts, topical = passed(parts, start)
			id.topical = id.topical || topical
			id.whole = id.whole || !fragment(kind, s, start, end)
			t.label(id, s, start)
		}
	})
	links(s, func(start, end int) {
		if id := t.meet(s[start:end], Quoted, start, used); id != nil {
			id.whole, id.called = true, "url"
			t.label(id, s, start)
		}
	})
	t.mentions(s)
	for _, id := range t.scratch {
		id.neighbors = min(id.neighbors, len(t.scratch))
	}
	clear(t.before[:cap(t.before)]) // words are parts of s
	t.end += int64(len(s))
	if len(t.idents) >= 2*t.limit {
		t.sweep()
	}
}

// run takes in a command that the assistant ran, as a part of the text read last.
func (t *table) run(command string) {
	if id := t.meet(command, Quoted, 0, true); id != nil {
		id.whole, id.called, id.neighbors = true, "command", min(id.neighbors, len(t.scratch))
		id.topical = id.topical || t.topic.in(command)
		t.order = nil
	}
}

// meet returns the identifier of a value that stands at an byte of the text at hand, nil if
// it is none to keep.
func (t *table) meet(v string, kind Kind, at int, used bool) *ident {
	if len(v) > maxValue {
		return nil
	}
	id := t.idents[v]
	if id == nil {
		if t.hidden[v] || !plain(v) {
			return nil
		}
		id = t.add(strings.Clone(v), kind)
	}
	if id.stamp != t.texts {
		id.stamp = t.texts
		id.texts++
		if used {
			id.uses++
		}
		t.scratch = append(t.scratch, id)
	}
	id.last = max(id.last, t.end+int64(at))
	return id
}

// plain reports a value of one line without control characters.
func plain(v string) bool {
	return utf8.ValidString(v) && !strings.ContainsFunc(v, isBreak)
}

func (t *table) add(value string, kind Kind) *ident {
	id := &ident{value: value, kind: kind, first: t.met, neighbors: math.MaxInt}
	t.met++
	t.idents[value] = id
	return id
}

// fragment reports a part of a date, a time or a number: a number or code that a digit
// stands next to, with a dot, a colon or a hyphen between them.
func fragment(kind Kind, s string, start, end int) bool {
	if kind != Number && kind != Code && kind != SHA {
		return false
	}
	return start > 1 && joins(s[start-1]) && isDigit(s[start-2]) || end+1 < len(s) && joins(s[end]) && isDigit(s[end+1])
}

func joins(c byte) bool { return c == '.' || c == ':' || c == '-' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// vague reports what a reader could not place: a part of a date, a moment, or a number
// that only tools wrote and that nothing labels, as those of lines.
func (id *ident) vague() bool {
	return !id.whole || isMoment(id.value) || id.kind == Number && id.uses == 0 && len(id.labels) == 0
}

// isMoment reports a date with a time of day, as at the head of each line of a log.
func isMoment(v string) bool {
	const form = "0000-00-00T00:00"
	if len(v) < len(form) {
		return false
	}
	for i := range len(form) {
		switch c := v[i]; {
		case form[i] == '0' && isDigit(c), form[i] == c, form[i] == 'T' && c == ' ':
		default:
			return false
		}
	}
	return true
}

// keepCarried marks what is known so far as named by an earlier summary.
func (t *table) keepCarried() {
	for _, id := range t.idents {
		id.carried = id.uses
	}
	t.order = nil
}

// reused reports an identifier that an earlier summary named and that was used since.
func (id *ident) reused() bool { return id.carried > 0 && id.uses > id.carried }

// label notes the two words before what stands at the byte at of s.
func (t *table) label(id *ident, s string, at int) {
	t.before = AppendLabels(t.before[:0], s, at, reach)
	words := t.before[max(0, len(t.before)-2):]
	for i, w := range words {
		id.note(t.word(w), i == len(words)-1 && touching(s[:at]))
	}
}

// touching reports a text that ends with a letter and at most a few characters behind it,
// like a colon, a blank and a quote.
func touching(s string) bool {
	for i := range 5 {
		if i == len(s) {
			return false
		}
		if c := s[len(s)-1-i] | 0x20; c >= 'a' && c <= 'z' {
			return true
		}
	}
	return false
}

// mentions finds words that were quoted elsewhere: a name is in use in code that does not
// quote it, and gets the label that it has there ("func", "class").
func (t *table) mentions(s string) {
	for i := 0; i < len(s); {
		if !isWord(s[i]) {
			i++
			continue
		}
		start := i
		for i < len(s) && isWord(s[i]) {
			i++
		}
		if n := i - start; n < 3 || n > 60 || start == 0 || i == len(s) || quotes(s[start-1]) && s[i] == s[start-1] {
			continue
		}
		if id := t.idents[s[start:i]]; id != nil && id.kind == Quoted {
			t.label(id, s, start)
			id.last = max(id.last, t.end+int64(start))
		}
	}
}

func isWord(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func quotes(c byte) bool { return c == '"' || c == '`' || c == '\'' }

// note makes a word the latest label.
func (id *ident) note(word string, adjacent bool) {
	if word == "" {
		return
	}
	for i, l := range id.labels {
		if l.word == word {
			adjacent = adjacent || l.adjacent
			copy(id.labels[i:], id.labels[i+1:])
			id.labels[len(id.labels)-1] = label{word, adjacent}
			return
		}
	}
	if len(id.labels) == maxLabels {
		copy(id.labels, id.labels[1:])
		id.labels = id.labels[:maxLabels-1]
	}
	id.labels = append(id.labels, label{word, adjacent})
}

// word returns a copy of w that all labels share, or nothing if w is no word to label with.
func (t *table) word(w string) string {
	if len(w) > maxWord {
		return ""
	}
	if known, ok := t.words[w]; ok {
		return known
	}
	if len(t.words) >= 4*t.limit {
		clear(t.words)
	}
	w = strings.Clone(w)
	t.words[w] = w
	return w
}

// hide leaves out the identifiers of a text, now and later.
func (t *table) hide(s string) {
	t.order = nil
	All(s, func(_ Kind, start, end int) {
		v := s[start:end]
		delete(t.idents, v)
		if !t.hidden[v] && len(v) <= maxValue && len(t.hidden) < t.limit {
			t.hidden[strings.Clone(v)] = true
		}
	})
}

// sweep drops all but limit identifiers. It does not sort them all, as it runs often:
// they are counted by how likely they are to be needed, in small steps.
func (t *table) sweep() {
	const lowest, steps = -24.0, 32 // chances from e^-24 to one half and more
	var counts [25 * steps]int
	step := func(id *ident) int {
		return min(max(int((t.odds(id)-lowest)*steps), 0), len(counts)-1)
	}
	for _, id := range t.idents {
		counts[step(id)]++
	}
	low, left := len(counts), t.limit
	for low > 0 && counts[low-1] <= left {
		low--
		left -= counts[low]
	}
	var last []*ident // of the step that there is left for some of
	for v, id := range t.idents {
		switch n := step(id); {
		case n == low-1:
			last = append(last, id)
		case n < low:
			delete(t.idents, v)
		}
	}
	slices.SortFunc(last, func(a, b *ident) int { return cmp.Compare(b.first, a.first) })
	for _, id := range last[min(left, len(last)):] {
		delete(t.idents, id.value)
	}
	t.order = nil
}

// ranked returns all identifiers by how likely they are to be needed, the likeliest first.
func (t *table) ranked() []candidate {
	if t.order != nil {
		return t.order
	}
	all := make([]candidate, 0, len(t.idents))
	for _, id := range t.idents {
		all = append(all, candidate{ident: id, score: t.score(id)})
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.first, b.first))
	})
	t.order = all
	return all
}
