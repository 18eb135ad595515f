package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// cards finds the numbers of payment cards: 13 to 19 digits of a known issuer, alone or in
// groups, with the right check digit.
func cards(t *source, e *edits) {
	s := t.s
	// A group has four digits or more, and what separates two of them at most three bytes.
	for i := 0; i+1 < len(s); i += 6 {
		if digit[s[i]] || digit[s[i+1]] {
			i = max(i, cardsAround(s, i+1, e)-6)
		}
	}
}

// wideCards finds those of full-width digits.
func wideCards(t *source, e *edits) {
	s := t.s
	done := 0
	for i := range places(s, wideDigit) {
		if i >= done && wideEnd(s, i) > i {
			done = cardsAround(s, i, e)
		}
	}
}

const (
	maxCard   = 80         // bytes
	wideDigit = "\xef\xbc" // the first bytes of a full-width digit
)

// wideEnd returns the end of the full-width digit at i, or i.
func wideEnd(s string, i int) int {
	if strings.HasPrefix(s[i:], wideDigit) && i+2 < len(s) && s[i+2] >= 0x90 && s[i+2] <= 0x99 {
		return i + 3
	}
	return i
}

// cardSet has the bytes of digits, full-width ones too, and of what separates groups of them:
// blanks, also those that do not break, dashes and dots.
var cardSet = setOf("0-9 .\xc2\xa0\xe2\x80\x89\x90-\x99\xaf\xef\xbc-")

// cardsAround masks the cards in the digits and separators around i, and returns their end.
func cardsAround(s string, i int, e *edits) int {
	start := cardSet.start(s, i, maxCard)
	end := cardSet.end(s[:min(len(s), start+2*maxCard)], i)
	if end-start < 13 {
		return end
	}
	var list [maxCard]digitGroup
	groups := groupsOf(s, start, end, list[:0])
	for n := 0; n < len(groups); n++ {
		last := cardIn(s, groups[n:])
		if last < 0 {
			continue
		}
		if from, to := groups[n].start, groups[n+last].end; apart(s, from, to) && (last == 0 || n == 0 || !groups[n].continues(&groups[n-1], &groups[n+1])) {
			e.mask(s, from, to, KindCard)
		}
		n += last
	}
	return end
}

// digitGroup is a run of digits in a text.
type digitGroup struct {
	start, end, n int    // n digits
	before        string // what separates it from the group before
}

// continues reports whether a number in groups of four begins before g, with the same separator.
func (g *digitGroup) continues(before, after *digitGroup) bool {
	return before.n == 4 && g.before == after.before
}

// groupsOf appends the runs of digits in s[start:end] to groups, if there is room.
func groupsOf(s string, start, end int, groups []digitGroup) []digitGroup {
	for i, last := start, start; i < end && len(groups) < cap(groups); {
		g := digitGroup{start: i, before: s[last:i]}
		for {
			next := wideEnd(s[:end], i)
			if i < end && digit[s[i]] {
				next = i + 1
			}
			if next == i {
				break
			}
			i, g.n = next, g.n+1
		}
		if g.end = i; g.n == 0 {
			i++
			continue
		}
		groups, last = append(groups, g), i
	}
	return groups
}

// cardIn returns the index of the last group of the card that groups begin with, or -1: one
// group, groups of four, or groups of four, six and five or four.
func cardIn(s string, groups []digitGroup) int {
	var digits [19]byte
	d, found := digits[:0], -1
	for n := range groups {
		g := &groups[n]
		if len(d)+g.n > len(digits) || n > 0 && (groups[n-1].n != 4 && groups[n-1].n != 6 || g.n < 2 || g.n > 6 || len(g.before) > 3 || g.before != groups[1].before) {
			break
		}
		for i := g.start; i < g.end; i++ {
			switch c := s[i]; {
			case digit[c]:
				d = append(d, c-'0')
			case c >= 0x90 && c <= 0x99: // the last byte of a full-width digit
				d = append(d, c-0x90)
			}
		}
		if isIssuer(d) && checks(d) {
			found = n
		}
	}
	if next := found + 1; found > 0 && next < len(groups) && groups[next].continues(&groups[found], &groups[1]) && groups[next].n == 4 {
		return -1 // a longer number
	}
	return found
}

// apart reports whether the number at s[start:end] is no part of a word, a longer number, an
// address or a time.
func apart(s string, start, end int) bool {
	if start > 0 {
		before := s[start-1]
		named := before == ':' && start > 1 && !digit[s[start-2]] // number:4111…
		letter, _ := utf8.DecodeLastRuneInString(s[:start])
		if !named && (word[before] || letter >= 0x80 && letter < firstIdeograph && unicode.IsLetter(letter) || indexByte(".:/#$,+@&", before)) {
			return false
		}
	}
	if end == len(s) {
		return true
	}
	goesOn := indexByte(".:/,", s[end]) && end+1 < len(s) && alnum[s[end+1]]
	return !word[s[end]] && !goesOn
}

// firstIdeograph is where the letters of the scripts that put no blanks between words begin.
const firstIdeograph = 0x2e80

func indexByte(of string, c byte) bool {
	for i := range len(of) {
		if of[i] == c {
			return true
		}
	}
	return false
}

// isIssuer reports whether the number begins and is as long as those of an issuer of cards.
func isIssuer(d []byte) bool {
	if len(d) < 13 {
		return false
	}
	four := int(d[0])*1000 + int(d[1])*100 + int(d[2])*10 + int(d[3])
	switch two := four / 100; len(d) {
	case 14:
		return two == 36 || two == 38 || four >= 3000 && four <= 3059
	case 15:
		return two == 34 || two == 37
	case 16:
		return d[0] == 4 || two >= 51 && two <= 55 || four >= 2221 && four <= 2720 || four == 6011 || two == 65 || two == 62 || two == 35 && four >= 3528 && four <= 3589 ||
			four >= 2200 && four <= 2204 || four >= 6440 && four <= 6499 || isMaestro(four)
	case 13, 19:
		return d[0] == 4 || len(d) == 19 && two == 62
	}
	return false
}

// isMaestro reports whether a number with these first digits is one of Maestro, whose other
// ranges are too wide to tell them from other numbers.
func isMaestro(four int) bool {
	switch four {
	case 5018, 5020, 5038, 5893, 6304, 6759, 6761, 6762, 6763:
		return true
	}
	return false
}

// checks reports whether the last digit is the check digit of Luhn. A number of the same digits, or of the
// same two in turn, is an example: 4242 4242 4242 4242.
func checks(d []byte) bool {
	sum := 0
	for i := range d {
		n := int(d[len(d)-1-i])
		if i%2 == 1 {
			if n *= 2; n > 9 {
				n -= 9
			}
		}
		sum += n
	}
	same := true
	for i := range d {
		same = same && d[i] == d[i%2]
	}
	return sum%10 == 0 && !same
}
