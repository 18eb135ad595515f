package redact

import (
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

const maxCard = 80 // bytes

// cardSet has the bytes of digits and of what separates groups of them: blanks, also those that do not break, dashes and dots.
var cardSet = setOf("0-9 .\xc2\xa0\xe2\x80\x89\x90-\x99\xaf-")

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

// follows reports whether the group may be of the same card as the one before it. The second group has the separator.
func (g *digitGroup) follows(before, second *digitGroup) bool {
	if before.n != 4 && before.n != 6 || g.n < 2 || g.n > 6 {
		return false
	}
	return len(g.before) <= 3 && g.before == second.before
}

// groupsOf appends the runs of digits in s[start:end] to groups, if there is room.
func groupsOf(s string, start, end int, groups []digitGroup) []digitGroup {
	for i, last := start, start; i < end && len(groups) < cap(groups); {
		g := digitGroup{start: i, before: s[last:i]}
		i = digit.end(s[:end], i)
		g.n = i - g.start
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
		if len(d)+g.n > len(digits) || n > 0 && !g.follows(&groups[n-1], &groups[1]) {
			break
		}
		for i := g.start; i < g.end; i++ {
			d = append(d, s[i]-'0')
		}
		if isIssuer(d) && isChecked(d) {
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
		if !named &&
			(word[before] ||
				letter >= 0x80 && letter < firstIdeograph && unicode.IsLetter(letter) || indexByte(".:/#$,+@&", before)) {
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
		return d[0] == 4 || inRanges(two, 51, 55, 62, 62, 65, 65) || inRanges(four, 2200, 2204, 2221, 2720, 3528, 3589, 6011, 6011, 6440, 6499)
	case 13, 19:
		return d[0] == 4 || len(d) == 19 && two == 62
	}
	return false
}

// inRanges reports whether n is in one of the ranges with these bounds.
func inRanges(n int, bounds ...int) bool {
	for ; len(bounds) > 1; bounds = bounds[2:] {
		if bounds[0] <= n && n <= bounds[1] {
			return true
		}
	}
	return false
}

// isChecked reports whether the last digit is the check digit of Luhn. A number of the same digits, or of the
// same two in turn, is an example: 4242 4242 4242 4242.
func isChecked(d []byte) bool {
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

// phones finds phone numbers in international format, except numbers in diffs and sums.
func phones(t *source, e *edits) {
	s := t.s
	for at := range places(s, "+") {
		end := digit.end(s, at+1)
		decimal := end+1 < len(s) && s[end] == '.' && digit[s[end+1]]
		n := end - at - 1
		switch {
		case n < 7, n > 15, s[at+1] == '0', decimal, end < len(s) && alnum[s[end]], at > 0 && (s[at-1] == '{' || alnum[s[at-1]]):
			continue
		}
		if begins := at == 0 || s[at-1] == '\n'; !begins || n >= leastFull && !inDiff(s, at) {
			e.mask(s, at, end, KindPhone)
		}
	}
}

// leastFull is the least number of digits of a phone number that begins a line.
const leastFull = 10

// inDiff reports whether the line above or below the one that begins at i is one of a diff: it begins with a sign.
func inDiff(s string, i int) bool {
	above, below := lineBefore(s, i), lineAfter(s, i)
	return above != "" && indexByte("+-@", above[0]) || below != "" && indexByte("+-@", below[0])
}
