package redact

import (
	"slices"
	"strconv"
	"strings"
)

// cards finds the numbers of payment cards: digits of a known issuer, alone or in groups, with the right check digit.
func cards(t *source, e *edits) {
	s := t.s
	for i := 0; i+1 < len(s); i += 2 { // the first group has four digits or more
		if digit[s[i]] || digit[s[i+1]] {
			i = max(i, maskCard(s, digit.start(s, i+1, maxName), e)-1)
		}
	}
}

const maxDigits = 19

// maskCard masks the card that begins at start, and returns the end of the digits with the same separator between.
func maskCard(s string, start int, e *edits) int {
	var separator string
	d, found, end := make([]byte, 0, maxDigits), 0, start
	for at := start; ; {
		stop := digit.end(s, at)
		n := stop - at
		if found > 0 && n == 4 {
			return stop // a longer number
		}
		if n < 2 || len(d)+n > maxDigits {
			end = max(end, stop)
			break
		}
		d, end = append(d, s[at:stop]...), stop
		if isCard(string(d)) {
			found = stop
		}
		at = cardGap.end(s[:min(len(s), stop+3)], stop)
		if separator == "" {
			separator = s[stop:at]
		}
		if n != 4 && n != 6 || separator == "" || s[stop:at] != separator {
			break
		}
	}
	if found > 0 && apart(s, start, found) {
		e.mask(s, start, found, KindCard)
	}
	return end
}

// cardGap has the bytes between groups of digits: of blanks, also those that do not break, dashes and dots.
var cardGap = setOf(" .\xc2\xa0\xe2\x80\x89\x90-\x99\xaf-")

// apart reports whether the number at s[start:end] is no part of a word, a longer number, an
// address or a time.
func apart(s string, start, end int) bool {
	if start > 0 {
		before := s[start-1]
		named := before == ':' && start > 1 && !digit[s[start-2]] // number:4111…
		if !named && (word[before] || indexByte(".:/#$,+@&", before)) {
			return false
		}
	}
	if end == len(s) {
		return true
	}
	goesOn := indexByte(".:/,", s[end]) && end+1 < len(s) && alnum[s[end+1]]
	return !word[s[end]] && !goesOn
}

func indexByte(of string, c byte) bool {
	for i := range len(of) {
		if of[i] == c {
			return true
		}
	}
	return false
}

// isCard reports whether the digits begin and are as long as the cards of an issuer, and the last one is the check digit
// of Luhn. A number of the same two digits in turn is an example: 4242 4242 4242 4242.
func isCard(d string) bool {
	if len(d) < 13 {
		return false
	}
	size := ":" + strconv.Itoa(len(d))
	if !slices.ContainsFunc(lists["card"].all, func(issuer string) bool {
		prefix, ok := strings.CutSuffix(issuer, size)
		return ok && strings.HasPrefix(d, prefix)
	}) {
		return false
	}
	sum, same := 0, true
	for i := range len(d) {
		n := int(d[len(d)-1-i] - '0')
		if i%2 == 1 {
			n = n/5 + n*2%10
		}
		sum += n
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
