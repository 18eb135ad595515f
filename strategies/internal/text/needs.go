package text

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// needs are the words of which a text must have some, so that an expression can match in it. The zero value
// needs none.
type needs struct {
	// all are the sets of words of each alternative, as bits; a match has one word of each set.
	all []wordSets
	// words are the beginnings of the words by their first two bytes, which begins has as bits.
	words  map[uint16][]needed
	begins [1 << 10 / 64]uint64
}

// wordSets has the bits of sets of words.
type wordSets [4]uint64

// needed is the beginning of a word in lower case, and the sets that have it.
type needed struct {
	word string
	sets wordSets
}

const (
	// maxNeeded is how many letters of a word are compared, maxExact how many texts a part of an
	// expression may stand for, maxLetters how many letters a class of them.
	maxNeeded, maxExact, maxLetters = 4, 48, 4
	maxSets                         = 64 * len(wordSets{})
)

// needsOf returns what the matches of an expression need.
func needsOf(expr string) needs {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return needs{}
	}
	for re.Op == syntax.OpCapture {
		re = re.Sub[0]
	}
	alternatives := []*syntax.Regexp{re}
	if re.Op == syntax.OpAlternate {
		alternatives = re.Sub
	}
	n := needs{words: map[uint16][]needed{}}
	known := map[string]int{}
	for _, a := range alternatives {
		if anchored(a) {
			return needs{} // it ends at once in most texts
		}
		var of wordSets
		for _, set := range setsOf(a) {
			set = variants(set)
			key := strings.Join(set, " ")
			id, ok := known[key]
			if !ok {
				if id = len(known); id == maxSets {
					continue
				}
				known[key] = id
				n.add(set, id)
			}
			of[id/64] |= 1 << (id % 64)
		}
		if of == (wordSets{}) {
			return needs{}
		}
		n.all = append(n.all, of)
	}
	return n
}

// anchored reports whether an expression matches at the beginning of a text only.
func anchored(re *syntax.Regexp) bool {
	for len(re.Sub) > 0 && (re.Op == syntax.OpConcat || re.Op == syntax.OpCapture) {
		re = re.Sub[0]
	}
	return re.Op == syntax.OpBeginText
}

// add adds the words of a set.
func (n *needs) add(set []string, id int) {
	for _, w := range set {
		k := key(w[0], w[1])
		n.begins[k%1024/64] |= 1 << (k % 64)
		i := slices.IndexFunc(n.words[k], func(o needed) bool { return o.word == w })
		if i < 0 {
			i = len(n.words[k])
			n.words[k] = append(n.words[k], needed{word: w})
		}
		n.words[k][i].sets[id/64] |= 1 << (id % 64)
	}
}

// key returns two bytes of a text in lower case as a number.
func key(a, b byte) uint16 { return uint16(lower(a))<<5 ^ uint16(lower(b)) }

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// mayMatch reports whether a text has the words of an alternative.
func (n *needs) mayMatch(s string) bool {
	if n.all == nil {
		return true
	}
	var has wordSets
	for i := 0; i+1 < len(s); i++ {
		k := key(s[i], s[i+1])
		if n.begins[k%1024/64]&(1<<(k%64)) == 0 {
			continue
		}
		for _, w := range n.words[k] {
			if !has.all(&w.sets) && begins(s[i:], w.word) {
				for j := range has {
					has[j] |= w.sets[j]
				}
				if slices.ContainsFunc(n.all, func(a wordSets) bool { return has.all(&a) }) {
					return true
				}
			}
		}
	}
	return false
}

// all reports whether all bits of o are set.
func (w *wordSets) all(o *wordSets) bool {
	for i := range w {
		if w[i]&o[i] != o[i] {
			return false
		}
	}
	return true
}

// begins reports whether s begins with a word in lower case.
func begins(s, word string) bool {
	if len(s) < len(word) {
		return false
	}
	for i := range len(word) {
		if lower(s[i]) != word[i] {
			return false
		}
	}
	return true
}

// setsOf returns sets of words such that each match of an expression has one of each set.
func setsOf(re *syntax.Regexp) [][]string {
	switch re.Op {
	case syntax.OpCapture, syntax.OpPlus:
		return setsOf(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return setsOf(re.Sub[0])
		}
	case syntax.OpAlternate:
		if e := exact(re); e != nil {
			return useful(e)
		}
		var union []string
		for _, sub := range re.Sub {
			sets := setsOf(sub)
			if len(sets) == 0 {
				return nil
			}
			union = append(union, slices.MaxFunc(sets, rarer)...)
		}
		return useful(union)
	case syntax.OpConcat:
		var out [][]string
		parts := []string{""} // what a run of parts stands for
		for _, sub := range re.Sub {
			if e := exact(sub); e != nil && len(e)*len(parts) <= maxExact {
				parts = product(parts, e)
				continue
			}
			out = append(append(out, useful(parts)...), setsOf(sub)...)
			parts = []string{""}
		}
		return append(out, useful(parts)...)
	default:
		return useful(exact(re))
	}
	return nil
}

// useful returns a set, nothing if one of its words is too short to tell texts apart.
func useful(set []string) [][]string {
	if len(set) == 0 || slices.ContainsFunc(set, func(w string) bool { return len(w) < 2 }) {
		return nil
	}
	return [][]string{set}
}

// rarer compares sets by how seldom texts have one of their words.
func rarer(a, b []string) int {
	if d := shortest(a) - shortest(b); d != 0 {
		return d
	}
	return len(b) - len(a)
}

func shortest(set []string) int {
	n := maxNeeded
	for _, w := range set {
		n = min(n, utf8.RuneCountInString(w))
	}
	return n
}

// exact returns the texts that an expression stands for, in lower case, nil if these are too many.
func exact(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		return []string{strings.Map(fold, string(re.Rune))}
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return []string{""}
	case syntax.OpCharClass:
		var out []string
		for i := 0; i < len(re.Rune); i += 2 {
			for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
				if c := string(fold(r)); !slices.Contains(out, c) {
					out = append(out, c)
				}
				if len(out) > maxLetters {
					return nil
				}
			}
		}
		return out
	case syntax.OpCapture:
		return exact(re.Sub[0])
	case syntax.OpQuest:
		if e := exact(re.Sub[0]); e != nil {
			return append([]string{""}, e...)
		}
	case syntax.OpAlternate:
		var out []string
		for _, sub := range re.Sub {
			e := exact(sub)
			if out = append(out, e...); e == nil || len(out) > maxExact {
				return nil
			}
		}
		return out
	case syntax.OpConcat:
		out := []string{""}
		for _, sub := range re.Sub {
			e := exact(sub)
			if e == nil || len(e)*len(out) > maxExact {
				return nil
			}
			out = product(out, e)
		}
		return out
	default:
	}
	return nil
}

// product returns each text of a with each of b behind it.
func product(a, b []string) []string {
	var out []string
	for _, x := range a {
		for _, y := range b {
			out = append(out, x+y)
		}
	}
	return out
}

// fold returns the first character that differs from r in case only, or else the small letter of ASCII.
func fold(r rune) rune {
	least := r
	for o := unicode.SimpleFold(r); o != r; o = unicode.SimpleFold(o) {
		least = min(least, o)
	}
	if least < utf8.RuneSelf {
		return rune(lower(byte(least)))
	}
	return least
}

// variants returns the beginnings of words in all cases but the capital letters of ASCII, sorted.
func variants(set []string) []string {
	var out []string
	for _, w := range set {
		forms := []string{""}
		for i, r := range []rune(w) {
			if i == maxNeeded || i > 1 && len(forms) > 8 {
				break
			}
			letters := []string{string(r)}
			for o := unicode.SimpleFold(r); o != r; o = unicode.SimpleFold(o) {
				if o >= utf8.RuneSelf {
					letters = append(letters, string(o))
				}
			}
			forms = product(forms, letters)
		}
		out = append(out, forms...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
