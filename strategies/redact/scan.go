package redact

import (
	"iter"
	"slices"
	"strings"
)

// source is a text with what several passes look for in it, so that they read it once.
type source struct {
	s        string
	scanned  bool
	words    []wordAt
	literals []wordAt // in order
	long     []int    // the places of long words
	ends     [2]cell  // the last values of settings
	seen     set      // the bytes of the text
}

// wordAt is a word of wordKinds in a text.
type wordAt struct {
	start, end int
	word       *wordKind
}

// wordKind is a word that the rules look for, in lower case.
type wordKind struct {
	text string
	// language is set for a word of a language other than English.
	language bool
	// typed is set for a word of such a language for a password, rather than for a key.
	typed bool
	// password is set for a word that people choose the value of.
	password bool
	// secret is set for a word that is the name of a secret by itself, and phrase for one of phraseWords.
	secret, phrase bool
	// near is set for a word after which a random word is a secret, also with others between.
	near bool
	// literal is set for a text that is found in its case and within other words, and has the rules for it.
	literal *literalRules
}

// literalRules are the rows of the table about a text.
type literalRules struct {
	after []*row
	mark  *mark
}

// literals are texts that passes look for apart from those of the table.
var literals = []string{
	"LS0tLS1CRUdJTi", "eyJ", "kty", "PRIVATE KEY", "Static key V1", "PuTTY-User-Key-File-", "Private-MAC:", "tcp(", "unix(",
}

// The words are found by their first three bytes: each byte of a text is folded to five bits,
// and grams has the group of words for the last three of them, or 0.
const gramMask = 1<<15 - 1

var (
	folds            = foldTable()
	grams, gramWords = gramTables(slices.Concat(wordKinds(), literalKinds()))
	shortWord        = &wordKind{text: "pw", password: true, secret: true, phrase: true, near: true}
)

const pwGram = ('p'-'a'+1)<<5 | ('w' - 'a' + 1)

func foldTable() (t [256]uint16) {
	for c := range t {
		switch {
		case c >= 0x80:
			t[c] = 27 + uint16(c&3)
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			t[c] = uint16(c|0x20) - 'a' + 1
		}
	}
	return t
}

func wordKinds() []*wordKind {
	var out []*wordKind
	for _, r := range table["word"] {
		for text := range strings.FieldsSeq(r.text) {
			k := wordKind{text: strings.ReplaceAll(text, "+", " "), language: r.kind != "name", typed: r.kind == "spoken"}
			k.password, k.secret, k.phrase = isPassword(k.text), secretName(k.text), in("phrase", k.text)
			k.near = k.secret || k.language || in("near", k.text)
			out = append(out, &k)
		}
	}
	return out
}

func literalKinds() []*wordKind {
	rules := map[string]*literalRules{}
	of := func(text string) *literalRules {
		if rules[text] == nil {
			rules[text] = &literalRules{}
		}
		return rules[text]
	}
	for _, text := range literals {
		of(text)
	}
	for i := range table["after"] {
		r := &table["after"][i]
		for _, text := range r.texts() {
			of(text).after = append(of(text).after, r)
		}
	}
	for i := range marked {
		of(marked[i].text[marked[i].skip:]).mark = &marked[i]
	}
	var out []*wordKind
	for text, of := range rules {
		out = append(out, &wordKind{text: text, literal: of})
	}
	slices.SortFunc(out, func(a, b *wordKind) int { return strings.Compare(a.text, b.text) })
	return out
}

func gramTables(all []*wordKind) (index [gramMask + 1]uint8, groups [][]*wordKind) {
	groups = make([][]*wordKind, 1)
	for _, w := range all {
		seen := map[uint16]bool{}
		for _, form := range []string{w.text, strings.ToUpper(w.text), strings.ToTitle(w.text[:1]) + w.text[1:]} {
			h := folds[form[0]]<<10 | folds[form[1]]<<5 | folds[form[2]]
			if seen[h] {
				continue
			}
			seen[h] = true
			if index[h] == 0 {
				index[h] = uint8(len(groups)) //nolint:gosec // fewer than 256 groups
				groups = append(groups, nil)
			}
			groups[index[h]] = append(groups[index[h]], w)
		}
	}
	return index, groups
}

// found returns the words of the text, in order. Of those that begin at the same place it has
// the longest.
func (t *source) found() []wordAt {
	if t.scanned {
		return t.words
	}
	t.scanned = true
	s, h := t.s, uint16(0)
	for i := range len(s) {
		t.seen[s[i]] = true
		h = (h<<5 | folds[s[i]]) & gramMask
		if h&(1<<10-1) == pwGram && (i < 2 || !alnum[s[i-2]] || joined(s[letters.start(s, i-1, maxCell):i+1])) {
			t.words = append(t.words, wordAt{i - 1, i + 1, shortWord})
		}
		if g := grams[h]; g != 0 && i >= 2 {
			t.match(i-2, gramWords[g])
		}
	}
	return t.words
}

// match adds the words of a group that begin at i.
func (t *source) match(i int, group []*wordKind) {
	var best *wordKind
	for _, w := range group {
		switch {
		case w.literal != nil:
			if strings.HasPrefix(t.s[i:], w.text) {
				t.literals = append(t.literals, wordAt{i, i + len(w.text), w})
			}
		case best != nil && len(w.text) <= len(best.text) || !w.begins(t.s[i:]):
		case w.text != "pin" && w.text != "pat" || isWhole(t.s, i, i+len(w.text)):
			best = w
		}
	}
	if best != nil {
		t.words = append(t.words, wordAt{i, i + len(best.text), best})
	}
}

// begins reports whether s begins with the word, ignoring case.
func (w *wordKind) begins(s string) bool {
	if len(s) < len(w.text) || w.language {
		return hasFold(s, w.text)
	}
	for i := range len(w.text) {
		if c := s[i]; c != w.text[i] && (!upperOnly[c] || c|0x20 != w.text[i]) {
			return false
		}
	}
	return true
}

// isWhole reports whether no letter is beside s[start:end].
func isWhole(s string, start, end int) bool {
	return (start == 0 || !letters[s[start-1]]) && (end == len(s) || !letters[s[end]])
}

// literal yields the index of each occurrence of one of the literals.
func (t *source) literal(text string) iter.Seq[int] {
	return func(yield func(int) bool) {
		t.found()
		for _, w := range t.literals {
			if w.word.text == text && !yield(w.start) {
				return
			}
		}
	}
}

// places yields the index of each occurrence of one of the words, ignoring case.
func (t *source) places(word string) iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, w := range t.found() {
			if hasFold(w.word.text, word) && !yield(w.start) {
				return
			}
		}
	}
}
