package extract

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// identifier is an identifier and what is known of its use.
type identifier struct {
	value string
	kind  Kind
	// fallbackLabel is what it is where no word labels it, empty for the name of its kind.
	fallbackLabel string
	// first orders identifiers by when they were met.
	first int
	// last is where it was seen last, in bytes from the start.
	last int64
	// lastText is the text it was seen in last, so that a text counts once.
	lastText int
	// texts is how many texts hold it, uses how many of them nobody but the user or
	// the assistant wrote.
	texts, uses int
	// previousUses is uses as an earlier summary left it, 0 where none named it.
	previousUses int
	// neighbors is the fewest different identifiers that it shared a text with: an entry
	// of a listing of a thousand matters less than an identifier named alone.
	neighbors int
	// standalone: it was met at least once as more than a part of a date or of a longer number.
	standalone bool
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
	maxLabels   = 8   // of one identifier
	maxValue    = 300 // bytes of one identifier
	labelReach  = 40  // characters before an identifier that may hold its label
	maxLabelLen = 24  // characters of a label
)

// table holds the identifiers of a conversation: at most twice limit of them, and at
// most limit after a sweep, which drops those least likely to be needed.
type table struct {
	limit  int
	idents map[string]*identifier
	topic  topic
	// hidden are those of system messages, which no compaction takes away.
	hidden   map[string]bool
	interned map[string]string
	// bytesRead is how much was read, in bytes.
	bytesRead  int64
	texts      int
	added      int
	inText     []*identifier
	labelWords []string
	// ranking is what ranked found, nil where it has to look again.
	ranking []candidate
}

func newTable(limit int) *table {
	return &table{limit: limit, idents: map[string]*identifier{}, hidden: map[string]bool{}, interned: map[string]string{}}
}

// scan takes in the identifiers of a text. used: the user or the assistant wrote it.
func (t *table) scan(s string, used bool) {
	t.texts++
	t.ranking = nil
	t.inText = t.inText[:0]
	parts := t.topic.ranges(s)
	All(s, func(kind Kind, start, end int) {
		if id := t.observe(s[start:end], kind, start, used); id != nil {
			var topical bool
			parts, topical = advance(parts, start)
			id.topical = id.topical || topical
			id.standalone = id.standalone || !isFragment(kind, s, start, end)
			t.label(id, s, start)
		}
	})
	scanLinks(s, func(start, end int) {
		if id := t.observe(s[start:end], Quoted, start, used); id != nil {
			id.standalone, id.fallbackLabel = true, "url"
			t.label(id, s, start)
		}
	})
	t.scanMentions(s)
	for _, id := range t.inText {
		id.neighbors = min(id.neighbors, len(t.inText))
	}
	clear(t.labelWords[:cap(t.labelWords)]) // words are parts of s
	t.bytesRead += int64(len(s))
	if len(t.idents) >= 2*t.limit {
		t.evict()
	}
}

// addCommand takes in a command that the assistant ran, as a part of the text read last.
func (t *table) addCommand(command string) {
	if id := t.observe(command, Quoted, 0, true); id != nil {
		id.standalone, id.fallbackLabel, id.neighbors = true, "command", min(id.neighbors, len(t.inText))
		id.topical = id.topical || t.topic.matches(command)
		t.ranking = nil
	}
}

// observe returns the identifier of a value that stands at an byte of the text at hand, nil if
// it is none to keep.
func (t *table) observe(v string, kind Kind, at int, used bool) *identifier {
	if len(v) > maxValue {
		return nil
	}
	id := t.idents[v]
	if id == nil {
		if t.hidden[v] || !isPrintable(v) {
			return nil
		}
		id = t.add(strings.Clone(v), kind)
	}
	if id.lastText != t.texts {
		id.lastText = t.texts
		id.texts++
		if used {
			id.uses++
		}
		t.inText = append(t.inText, id)
	}
	id.last = max(id.last, t.bytesRead+int64(at))
	return id
}

// isPrintable reports a value of one line without control characters.
func isPrintable(v string) bool {
	return utf8.ValidString(v) && !strings.ContainsFunc(v, isLineBreak)
}

func (t *table) add(value string, kind Kind) *identifier {
	id := &identifier{value: value, kind: kind, first: t.added, neighbors: math.MaxInt}
	t.added++
	t.idents[value] = id
	return id
}

// isFragment reports a part of a date, a time or a number: a number or code that a digit
// stands next to, with a dot, a colon or a hyphen between them.
func isFragment(kind Kind, s string, start, end int) bool {
	if kind != Number && kind != Code && kind != SHA {
		return false
	}
	return start > 1 && isJoiner(s[start-1]) && digit.has(s[start-2]) || end+1 < len(s) && isJoiner(s[end]) && digit.has(s[end+1])
}

func isJoiner(c byte) bool { return c == '.' || c == ':' || c == '-' }

// isAmbiguous reports what a reader could not place: a part of a date, a moment, or a number
// that only tools wrote and that nothing labels, as those of lines.
func (id *identifier) isAmbiguous() bool {
	return !id.standalone || isMoment(id.value) || id.kind == Number && id.uses == 0 && len(id.labels) == 0
}

// isMoment reports a date with a time of day, as at the head of each line of a log.
func isMoment(v string) bool {
	const form = "0000-00-00T00:00"
	if len(v) < len(form) {
		return false
	}
	for i := range len(form) {
		switch c := v[i]; {
		case form[i] == '0' && digit.has(c), form[i] == c, form[i] == 'T' && c == ' ':
		default:
			return false
		}
	}
	return true
}

// markPrevious marks what is known so far as named by an earlier summary.
func (t *table) markPrevious() {
	for _, id := range t.idents {
		id.previousUses = id.uses
	}
	t.ranking = nil
}

// isReused reports an identifier that an earlier summary named and that was used since.
func (id *identifier) isReused() bool { return id.previousUses > 0 && id.uses > id.previousUses }

// label notes the two words before what stands at the byte at of s.
func (t *table) label(id *identifier, s string, at int) {
	t.labelWords = AppendLabels(t.labelWords[:0], s, at, labelReach)
	words := t.labelWords[max(0, len(t.labelWords)-2):]
	for i, w := range words {
		id.addLabel(t.intern(w), i == len(words)-1 && isAdjacent(s[:at]))
	}
}

// isAdjacent reports a text that ends with a letter and at most a few characters behind it,
// like a colon, a blank and a quote.
func isAdjacent(s string) bool {
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

// scanMentions finds words that were quoted elsewhere: a name is in use in code that does not
// quote it, and gets the label that it has there ("func", "class").
func (t *table) scanMentions(s string) {
	for i := 0; i < len(s); {
		if !asciiWord.has(s[i]) {
			i++
			continue
		}
		start := i
		for i < len(s) && asciiWord.has(s[i]) {
			i++
		}
		if n := i - start; n < 3 || n > 60 || start == 0 || i == len(s) || isQuote(s[start-1]) && s[i] == s[start-1] {
			continue
		}
		if id := t.idents[s[start:i]]; id != nil && id.kind == Quoted {
			t.label(id, s, start)
			id.last = max(id.last, t.bytesRead+int64(start))
		}
	}
}

func isQuote(c byte) bool { return c == '"' || c == '`' || c == '\'' }

// addLabel makes a word the latest label.
func (id *identifier) addLabel(word string, adjacent bool) {
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

// intern returns a copy of w that all labels share, or nothing if w is no word to label with.
func (t *table) intern(w string) string {
	if len(w) > maxLabelLen {
		return ""
	}
	if known, ok := t.interned[w]; ok {
		return known
	}
	if len(t.interned) >= 4*t.limit {
		clear(t.interned)
	}
	w = strings.Clone(w)
	t.interned[w] = w
	return w
}

// hide leaves out the identifiers of a text, now and later.
func (t *table) hide(s string) {
	t.ranking = nil
	All(s, func(_ Kind, start, end int) {
		v := s[start:end]
		delete(t.idents, v)
		if !t.hidden[v] && len(v) <= maxValue && len(t.hidden) < t.limit {
			t.hidden[strings.Clone(v)] = true
		}
	})
}

// evict drops all but limit identifiers. It does not sort them all, as it runs often:
// they are counted by how likely they are to be needed, in small steps.
func (t *table) evict() {
	const lowest, steps = -24.0, 32 // chances from e^-24 to one half and more
	var counts [25 * steps]int
	step := func(id *identifier) int {
		return min(max(int((t.logOdds(id)-lowest)*steps), 0), len(counts)-1)
	}
	for _, id := range t.idents {
		counts[step(id)]++
	}
	low, left := len(counts), t.limit
	for low > 0 && counts[low-1] <= left {
		low--
		left -= counts[low]
	}
	var last []*identifier // of the step that there is left for some of
	for v, id := range t.idents {
		switch n := step(id); {
		case n == low-1:
			last = append(last, id)
		case n < low:
			delete(t.idents, v)
		}
	}
	slices.SortFunc(last, func(a, b *identifier) int { return cmp.Compare(b.first, a.first) })
	for _, id := range last[min(left, len(last)):] {
		delete(t.idents, id.value)
	}
	t.ranking = nil
}

// ranked returns all identifiers by how likely they are to be needed, the likeliest first.
func (t *table) ranked() []candidate {
	if t.ranking != nil {
		return t.ranking
	}
	all := make([]candidate, 0, len(t.idents))
	for _, id := range t.idents {
		all = append(all, candidate{identifier: id, score: t.score(id)})
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.first, b.first))
	})
	t.ranking = all
	return all
}
