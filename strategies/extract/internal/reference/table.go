// Package reference keeps the identifiers of a conversation with statistics of their use, ranks them by the chance that
// the rest of the conversation uses them, and writes those that are most likely to be needed as a block of references:
//
//	## References
//	> order: W12345X
//	file: src/lamp.go, src/fan.go
//	Tools:
//	run: 4471
//
// A line begins with > if the user said what it lists; what is below "Tools:" only tools named. A Table reads such a
// block back from an earlier summary. Equal texts in equal order always give equal blocks. The package knows nothing of
// messages, calls and sections. A Table is not safe for concurrent use.
package reference

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/identifier"
	"github.com/sessionstore/compactor/strategies/extract/internal/charclass"
	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// Identifier is an identifier with statistics of its use.
type Identifier struct {
	value string
	kind  identifier.Kind
	// fallbackLabel is used if there are no labels; if it is empty, the name of the kind is.
	fallbackLabel string
	// first numbers identifiers in the order in which they were found.
	first int
	// last is the position of the newest occurrence, in bytes from the start.
	last int64
	// lastText is the number of the newest text with it, so that each counts once.
	lastText int
	// Texts is the number of texts with it, uses the number of those by the user or the
	// assistant.
	Texts, uses int
	// toolUses is the part of uses that stands for tools, since an earlier summary listed it.
	toolUses int
	// previousUses is the value of uses after an earlier summary was read, 0 if it is not
	// in one.
	previousUses int
	// neighbors is the smallest number of different identifiers in a text with it: an
	// entry of a listing of a thousand matters less than an identifier alone.
	neighbors int
	// standalone reports whether it occurred as more than a part of a date or number.
	standalone bool
	// byUser reports whether the user said it.
	byUser bool
	// topical reports whether it occurred with the focus.
	topical bool
	// labels are the words before it, the newest last.
	labels []label
}

// label is a word before an identifier. It is adjacent if at most a few signs are between
// them.
type label struct {
	word     string
	adjacent bool
}

const (
	maxLabels   = 8   // of one identifier
	maxValue    = 300 // bytes of one identifier
	labelReach  = 40  // characters before an identifier that are searched for labels
	maxLabelLen = 24  // bytes of a label
)

// Table holds the identifiers of a conversation: at most twice limit, and at most limit
// after evict, which drops those least likely to be needed.
type Table struct {
	limit  int
	idents map[string]*Identifier
	topic  topic
	// hidden are the identifiers of system messages, which always stay in the view.
	hidden    map[string]bool
	interned  map[string]string // label words
	bytesRead int64
	texts     int  // number of texts read
	restoring bool // an earlier summary is read
	added     int  // number of identifiers added
	// inText are the identifiers of the current text.
	inText     []*Identifier
	labelWords []string // buffer
	// ranking caches ranked; nil if it is outdated.
	ranking []Candidate
}

// NewTable returns an empty table. focus is the topic that comes before all others, empty for none.
func NewTable(limit int, focus string) *Table {
	return &Table{limit: limit, topic: newTopic(focus), idents: map[string]*Identifier{}, hidden: map[string]bool{}, interned: map[string]string{}}
}

// Size returns the number of bytes of all texts.
func (t *Table) Size() int64 { return t.bytesRead }

// HasTopic reports whether the focus has words.
func (t *Table) HasTopic() bool { return len(t.topic) > 0 }

// IsTopical reports whether a text contains a word of the focus.
func (t *Table) IsTopical(s string) bool { return t.topic.matches(s) }

// Scan adds the identifiers of a text; used reports whether the user or the assistant
// wrote it.
func (t *Table) Scan(s string, used bool) {
	t.texts++
	t.ranking = nil
	t.inText = t.inText[:0]
	identifier.AllWhole(s, func(kind identifier.Kind, start, end int) {
		if kind == identifier.Quoted && !used && isSyntax(s, start, end) || kind == identifier.SHA && isIndexLine(s[:start]) || !used && isForPrograms(s, start, end) || !t.restoring && t.idents[s[start:end]] == nil && isIncidental(kind, s, start, end, used) {
			return
		}
		if id := t.observe(s[start:end], kind, start, used); id != nil {
			id.topical = id.topical || t.topic.matchesNear(s, start)
			id.standalone = id.standalone || !isFragment(kind, s, start, end)
			t.label(id, s, start)
		}
	})
	identifier.Links(s, func(start, end int) {
		if !used && isForPrograms(s, start, end) {
			return
		}
		if id := t.observe(s[start:end], identifier.Quoted, start, used); id != nil {
			id.standalone, id.fallbackLabel = true, "url"
			t.label(id, s, start)
		}
	})
	for _, id := range t.inText {
		id.neighbors = min(id.neighbors, len(t.inText))
	}
	t.scanMentions(s)
	clear(t.labelWords[:cap(t.labelWords)]) // words share memory with s
	t.bytesRead += int64(len(s))
	if len(t.idents) >= 2*t.limit {
		t.evict()
	}
}

// observe counts an occurrence of a value at byte at of the current text. It returns nil if
// the value is not recorded.
func (t *Table) observe(v string, kind identifier.Kind, at int, used bool) *Identifier {
	id := t.lookup(v, kind)
	if id == nil {
		return nil
	}
	if id.lastText != t.texts {
		id.lastText = t.texts
		id.Texts++
		if used {
			id.uses++
		}
		t.inText = append(t.inText, id)
	}
	id.last = max(id.last, t.bytesRead+int64(at))
	return id
}

// lookup returns the identifier of a value, which it adds if it is new, or nil if the value
// is hidden or cannot be listed.
func (t *Table) lookup(v string, kind identifier.Kind) *Identifier {
	if v == "" || len(v) > maxValue {
		return nil
	}
	if id := t.idents[v]; id != nil {
		return id
	}
	if t.hidden[v] || !prose.IsPrintable(v) {
		return nil
	}
	return t.add(strings.Clone(v), kind)
}

func (t *Table) add(value string, kind identifier.Kind) *Identifier {
	id := &Identifier{value: value, kind: kind, first: t.added, neighbors: math.MaxInt}
	t.added++
	t.idents[value] = id
	return id
}

// isSyntax reports whether the quoted name s[start:end] belongs to the form of data or code
// rather than to what it says: a key, a struct tag, a format. What the assistant or the user
// writes is not asked, since code is written again with the same names.
func isSyntax(s string, start, end int) bool {
	if after := strings.TrimLeft(s[end+1:min(len(s), end+4)], " "); strings.HasPrefix(after, ":") {
		return true
	}
	v := s[start:end]
	if i := strings.IndexByte(v, '%'); i >= 0 && i+1 < len(v) && strings.IndexByte("svwdqxfTtpc+#.0123456789", v[i+1]) >= 0 {
		return true
	}
	return strings.Contains(v, `:"`) || strings.HasSuffix(v, ": ") || strings.HasSuffix(v, `\n`)
}

// isForPrograms reports whether s[start:end] is what an interface gives its clients with each object: a link to the
// interface, a picture or a template of links, the id of a node.
func isForPrograms(s string, start, end int) bool {
	near := s[max(0, start-labelReach):end]
	return strings.HasPrefix(s[end:], "{/") || (strings.Contains(near, "://") || strings.Contains(near, "node_id")) && forPrograms().MatchString(near)
}

var forPrograms = text.Pattern(`https?://(?:api|avatars)\.\S+$|://\S+\{/\S+$|"node_id\\?" *: *\S+$`)

// isIndexLine reports whether s ends within a line of a difference that gives hashes of contents.
func isIndexLine(s string) bool {
	return strings.HasPrefix(s[strings.LastIndexByte(s, '\n')+1:], "index ")
}

// isIncidental reports whether s[start:end] is a part of what was shown or run that names nothing unless it is known: the
// size of a file in a listing, what a script of sed replaces, a command for another shell, the text of an error or of a
// comment in code.
func isIncidental(kind identifier.Kind, s string, start, end int, used bool) bool {
	switch kind {
	case identifier.Quoted:
		before := s[:start-1]
		return strings.Contains(s[start:end], " ") && (strings.HasSuffix(before, `""`) || raising().MatchString(text.Tail(before, labelReach)) || used && remote().MatchString(lineBefore(s, start-1)))
	case identifier.Number:
		return listedFile().MatchString(lineBefore(s, start))
	case identifier.Path, identifier.File:
		if !used {
			return false
		}
		_, script, ok := strings.Cut(lineBefore(s, start), "sed ")
		return ok && (strings.HasPrefix(s[start:end], "s/") || strings.Count(script, "'")%2 == 1)
	default:
		return false
	}
}

// lineBefore returns the beginning of the line before a byte, or its last part.
func lineBefore(s string, at int) string {
	before := s[max(0, at-prose.MaxLine):at]
	return before[strings.LastIndexByte(before, '\n')+1:]
}

var (
	listedFile = text.Pattern(`^ *[-dlbcps](?:[r-][w-][xsStT-]){3}[.+@]? `)
	remote     = text.Pattern(`(?:^|[ ;&|])(?:ssh [^"']*|sed [^"']*|(?:ba|z|da)?sh -l?c )$`)
	raising    = text.Pattern(`(?:Error|Exception)\(f?$`)
)

// isFragment reports whether s[start:end] is a part of a date, a time or a number: only a
// dot, a colon or a hyphen is between it and another digit.
func isFragment(kind identifier.Kind, s string, start, end int) bool {
	if kind != identifier.Number && kind != identifier.Code && kind != identifier.SHA {
		return false
	}
	return start > 1 && isJoiner(s[start-1]) && charclass.Digit.Has(s[start-2]) || end+1 < len(s) && isJoiner(s[end]) && charclass.Digit.Has(s[end+1])
}

func isJoiner(c byte) bool { return c == '.' || c == ':' || c == '-' }

// isAmbiguous reports whether a reader could not tell the meaning of the identifier: a part
// of a date or a number, a number without labels that only tools wrote, or a meaningless one.
func (id *Identifier) isAmbiguous() bool {
	return !id.standalone || id.kind == identifier.Number && id.uses == 0 && len(id.labels) == 0 || meaningless().MatchString(id.value)
}

// meaningless is the place of a match (file.go-12-), a range of lines (1,80p), a rule (--- a ---), the end of a
// call (, err)), a date with a time, as in logs, or a variable of a format of curl.
var meaningless = text.Pattern(`^%\{|\.\w+[:-]\d+|^\d+,\d+p$|---|===|^[,;)\]}]|^\d{4}-\d\d-\d\d[T ]\d\d:\d\d`)

// BeginPrevious begins an earlier summary, of which each identifier counts, until EndPrevious.
func (t *Table) BeginPrevious() { t.restoring = true }

// EndPrevious marks all identifiers as listed in an earlier summary.
func (t *Table) EndPrevious() {
	t.restoring = false
	for _, id := range t.idents {
		id.previousUses = id.uses
	}
	t.ranking = nil
}

// isReused reports whether an earlier summary lists the identifier and it was used since.
func (id *Identifier) isReused() bool { return id.previousUses > 0 && id.uses > id.previousUses }

// label adds the two words before byte at of s as labels.
func (t *Table) label(id *Identifier, s string, at int) {
	t.labelWords = identifier.AppendWholeLabels(t.labelWords[:0], s, at, labelReach)
	words := t.labelWords[max(0, len(t.labelWords)-2):]
	for i, w := range words {
		if !identifier.IsEmptyLabel(w) {
			id.addLabel(t.intern(w), i == len(words)-1 && isAdjacent(s[:at]))
		}
	}
}

// isAdjacent reports whether s ends with a letter and at most four other characters, such
// as a colon, a blank and a quote.
func isAdjacent(s string) bool {
	for i := range 5 {
		if i == len(s) {
			return false
		}
		if charclass.Alpha.Has(s[len(s)-1-i]) {
			return true
		}
	}
	return false
}

// scanMentions finds words that are quoted elsewhere. Code uses names without quotes and
// labels them, as in "func" or "class".
func (t *Table) scanMentions(s string) {
	for i := 0; i < len(s); {
		if !charclass.ASCIIWord.Has(s[i]) {
			i++
			continue
		}
		start := i
		for i < len(s) && charclass.ASCIIWord.Has(s[i]) {
			i++
		}
		if n := i - start; n < 3 || n > 60 || start == 0 || i == len(s) || isQuote(s[start-1]) && s[i] == s[start-1] {
			continue
		}
		if id := t.idents[s[start:i]]; id != nil && id.kind == identifier.Quoted {
			t.label(id, s, start)
			id.last = max(id.last, t.bytesRead+int64(start))
		}
	}
}

func isQuote(c byte) bool { return c == '"' || c == '`' || c == '\'' }

// addLabel makes a word the newest label.
func (id *Identifier) addLabel(word string, adjacent bool) {
	if word == "" {
		return
	}
	if i := slices.IndexFunc(id.labels, func(l label) bool { return l.word == word }); i >= 0 {
		adjacent = adjacent || id.labels[i].adjacent
		id.labels = slices.Delete(id.labels, i, i+1)
	}
	if len(id.labels) >= maxLabels {
		id.labels = slices.Delete(id.labels, 0, 1)
	}
	id.labels = append(id.labels, label{word, adjacent})
}

// intern returns a shared copy of w, or "" if it is too long for a label.
func (t *Table) intern(w string) string {
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

// HasNew reports whether a text has an identifier that no text before had, other than by quotation marks.
func (t *Table) HasNew(s string) (found bool) {
	identifier.AllWhole(s, func(kind identifier.Kind, start, end int) {
		found = found || kind != identifier.Quoted && t.idents[s[start:end]] == nil
	})
	return found
}

// Hide removes the identifiers of a text and ignores later occurrences.
func (t *Table) Hide(s string) {
	t.ranking = nil
	identifier.AllWhole(s, func(_ identifier.Kind, start, end int) {
		v := s[start:end]
		delete(t.idents, v)
		if !t.hidden[v] && len(v) <= maxValue && len(t.hidden) < t.limit {
			t.hidden[strings.Clone(v)] = true
		}
	})
}

// evict drops all but limit identifiers. As it runs often, it counts them by score in a
// histogram rather than sorting all.
func (t *Table) evict() {
	const lowest, steps = -24.0, 32 // log odds of the first bucket, buckets per unit
	var counts [25 * steps]int
	ids, buckets := make([]*Identifier, 0, len(t.idents)), make([]int, 0, len(t.idents))
	for _, id := range t.idents {
		n := min(max(int((t.logOdds(id)-lowest)*steps), 0), len(counts)-1)
		counts[n]++
		ids, buckets = append(ids, id), append(buckets, n)
	}
	low, left := len(counts), t.limit
	for low > 0 && counts[low-1] <= left {
		low--
		left -= counts[low]
	}
	var last []*Identifier // of the bucket of which some stay
	for i, id := range ids {
		switch n := buckets[i]; {
		case n == low-1:
			last = append(last, id)
		case n < low:
			delete(t.idents, id.value)
		}
	}
	slices.SortFunc(last, func(a, b *Identifier) int { return cmp.Compare(b.first, a.first) })
	for _, id := range last[min(left, len(last)):] {
		delete(t.idents, id.value)
	}
	t.ranking = nil
}

// ranked returns all identifiers by falling score.
func (t *Table) ranked() []Candidate {
	if t.ranking != nil {
		return t.ranking
	}
	all := make([]Candidate, 0, len(t.idents))
	for _, id := range t.idents {
		all = append(all, Candidate{Identifier: id, Score: t.score(id)})
	}
	slices.SortFunc(all, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.first, b.first))
	})
	t.ranking = all
	return all
}
