package redact

import (
	"iter"
	"slices"
	"strings"
)

// source is a text with what several passes look for in it, so that they read it once.
type source struct {
	s       string
	scanned bool
	words   []wordAt
	// literals has the places of those, in order.
	literals []wordAt
	// long has the places of long words.
	long []int
	// separators holds the index of each colon and equals sign after a name with one of the
	// words, in order.
	separators []int
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
	// near is set for a word behind which a random word is a secret, also with others between.
	near bool
	// literal is set for a text that is found in its case and within other words.
	literal bool
}

// The words are found by their first three bytes: each byte of a text is folded to five bits,
// and grams has the group of words for the last three of them, or 0.
const gramMask = 1<<15 - 1

var (
	folds            = foldTable()
	grams, gramWords = gramTables(slices.Concat(wordKinds(nameWords, wordKind{}), wordKinds(spokenWords, wordKind{language: true, typed: true}), wordKinds(spokenKeys, wordKind{language: true}), literalKinds()))
	shortWord        = &wordKind{text: "pw", password: true, secret: true, phrase: true, near: true}
	separated        = setOf(" \t\v\f\r\"'\\?`*]")
	afterName        = setOf(":=")
)

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

func wordKinds(words string, kind wordKind) []*wordKind {
	var out []*wordKind
	for w := range strings.FieldsSeq(words) {
		k := kind
		k.text = strings.ReplaceAll(w, "_", " ")
		k.password, k.secret, k.phrase = isPassword(k.text), secretName(k.text), slices.Contains(phraseWords, k.text)
		k.near = k.secret || k.language || slices.Contains(nearWords, k.text)
		out = append(out, &k)
		if strings.HasSuffix(w, "_code") {
			joined := k
			joined.text = w
			out = append(out, &joined)
		}
	}
	return out
}

func literalKinds() []*wordKind {
	var out []*wordKind
	for _, text := range literals {
		out = append(out, &wordKind{text: text, literal: true})
	}
	for text := range introducedAt {
		out = append(out, &wordKind{text: text, literal: true})
	}
	return out
}

func gramTables(words []*wordKind) (index [gramMask + 1]uint8, groups [][]*wordKind) {
	groups = make([][]*wordKind, 1)
	for _, w := range words {
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
	t.words = make([]wordAt, 0, len(t.s)/64)
	s, h := t.s, uint16(0)
	for i := range len(s) {
		h = (h<<5 | folds[s[i]]) & gramMask
		if h&(1<<10-1) == pwGram && (i < 2 || !alnum[s[i-2]] || joined(s[letters.start(s, i-1, maxCell):i+1])) {
			t.words = append(t.words, wordAt{i - 1, i + 1, shortWord})
		}
		g := grams[h]
		if g == 0 || i < 2 {
			continue
		}
		var best *wordKind
		for _, w := range gramWords[g] {
			if w.literal {
				if strings.HasPrefix(s[i-2:], w.text) {
					t.literals = append(t.literals, wordAt{i - 2, i - 2 + len(w.text), w})
				}
			} else if (best == nil || len(w.text) > len(best.text)) && hasFold(s[i-2:], w.text) && (w.text != "pin" && w.text != "pat" || isWhole(s, i-2, i+1)) {
				best = w
			}
		}
		if best != nil {
			t.words = append(t.words, wordAt{i - 2, i - 2 + len(best.text), best})
		}
	}
	end := 0
	for _, w := range t.words {
		if w.start < end {
			continue // of the same name
		}
		end = wordDot.end(s, w.end)
		for i := end; i < min(len(s), end+maxBlank); i++ {
			if afterName[s[i]] {
				t.separators = append(t.separators, i)
			} else if !separated[s[i]] {
				break
			}
		}
	}
	return t.words
}

// isWhole reports whether no letter is beside s[start:end].
func isWhole(s string, start, end int) bool {
	return (start == 0 || !letters[s[start-1]]) && (end == len(s) || !letters[s[end]])
}

const pwGram = ('p'-'a'+1)<<5 | ('w' - 'a' + 1)

// names returns the indexes of the colons and equals signs after names with one of the words.
func (t *source) names() []int {
	t.found()
	return t.separators
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

// hasLiteral reports whether one of the literals is in the text.
func (t *source) hasLiteral(text string) bool {
	for range t.literal(text) {
		return true
	}
	return false
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
