package extract

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
)

// maxWords is the number of words of which a vocabulary counts the messages.
const maxWords = 1 << 13

// vocabulary counts in how many messages each word occurs. Its memory is bounded: words of one message go first.
type vocabulary struct {
	messages uint32
	words    map[uint64]occurrence
}

type occurrence struct{ messages, last uint32 }

// add counts the words of a message.
func (v *vocabulary) add(s string) {
	v.messages++
	eachWord(s, func(h uint64, _, _ int) {
		if o := v.words[h]; o.last != v.messages {
			v.words[h] = occurrence{o.messages + 1, v.messages}
		}
	})
	if len(v.words) <= maxWords {
		return
	}
	for rare := uint32(1); len(v.words) > maxWords/2; rare *= 2 { // room for many, as each pass reads all
		for h, o := range v.words {
			if o.messages <= rare {
				delete(v.words, h)
			}
		}
	}
}

// weight returns how much a text says: the rarer its words, the more; a word that came back counts twice one that did
// not. Words of every third message and more count nothing.
func (v *vocabulary) weight(s string) float64 {
	sum := 0.0
	seen := map[uint64]bool{}
	eachWord(s, func(h uint64, start, end int) {
		o := v.words[h]
		if seen[h] || o.messages == 0 || 3*o.messages > v.messages {
			return
		}
		seen[h] = true
		w := math.Log2(float64(v.messages) / float64(o.messages))
		if digit := strings.ContainsAny(s[start:end], "0123456789"); o.messages == 1 && !digit {
			w /= 4
		} else if digit {
			w *= digitWeight
		}
		sum += w
	})
	return sum
}

// digitWeight is the weight of a word with a digit, which names a time, a price or a place in every language.
const digitWeight = 3

// density returns the weight of a text by the square root of its length, so that neither names alone nor whole pages win.
func (v *vocabulary) density(s string) float64 {
	return v.weight(s) / float64(20+utf8.RuneCountInString(s))
}

const (
	hashOffset = 14695981039346656037 // FNV-1a
	hashPrime  = 1099511628211
)

// eachWord calls do with the hash and the range of each word of a text, in lower case: runs of letters and digits, and in
// scripts that set no blanks between words each pair of characters.
func eachWord(s string, do func(hash uint64, start, end int)) {
	hash, start := uint64(hashOffset), -1
	previous, at := rune(-1), 0 // of a script without blanks
	end := func(i int) {
		if start >= 0 && i-start > 1 {
			do(hash, start, i)
		}
		hash, start = hashOffset, -1
	}
	for i, r := range s {
		switch {
		case r < utf8.RuneSelf:
			if 'A' <= r && r <= 'Z' {
				r += 'a' - 'A'
			}
			if ('a' > r || r > 'z') && ('0' > r || r > '9') {
				end(i)
				previous = -1
				continue
			}
		case isUnspaced(r):
			end(i)
			if previous >= 0 {
				do((hashOffset^uint64(previous))*hashPrime^uint64(r), at, i+utf8.RuneLen(r))
			}
			previous, at = r, i
			continue
		case !prose.IsLetterOrDigit(r):
			end(i)
			previous = -1
			continue
		default:
			r = unicode.ToLower(r)
		}
		if previous = -1; start < 0 {
			start = i
		}
		hash = (hash ^ uint64(r)) * hashPrime
	}
	end(len(s))
}

// isUnspaced reports whether r is a letter of a script that sets no blanks between words.
func isUnspaced(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// maxWatched is the number of values of which a recall counts the references at a time.
const maxWatched = 1 << 11

// recall counts how often values of calls and results are named again by messages after them.
type recall struct {
	by      map[uint64][]watched
	watched int
}

// watched is a value with the place of its longest word in it.
type watched struct {
	*field
	at int
}

// watch begins to count for a value.
func (r *recall) watch(f *field) {
	if len(f.value) > maxValue || isTruth(f.value) {
		return
	}
	longest, at, hash := 2, 0, uint64(0)
	eachWord(f.value, func(h uint64, start, end int) {
		if n := end - start; n > longest {
			longest, at, hash = n, start, h
		}
	})
	if hash == 0 {
		return
	}
	if r.watched++; r.watched > maxWatched {
		clear(r.by)
		r.watched = 1
	}
	const same = 12 // values with one longest word
	list := r.by[hash]
	if len(list) == same {
		list = list[1:]
	}
	r.by[hash] = append(list, watched{f, at})
}

// name counts the values that a text names, and returns how many there are.
func (r *recall) name(s string) (n int) {
	if len(r.by) == 0 {
		return 0
	}
	eachWord(s, func(h uint64, start, _ int) {
		for _, w := range r.by[h] {
			if from := start - w.at; w.named < maxNamed && from >= 0 && strings.HasPrefix(s[from:], w.value) {
				w.named++
				n++
			}
		}
	})
	return n
}

const maxNamed = 3

func isTruth(v string) bool {
	switch strings.ToLower(v) {
	case "true", "false", "null", "none":
		return true
	}
	return false
}
