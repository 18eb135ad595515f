package redact

// cards finds the numbers of payment cards: 13 to 19 digits of a known issuer, alone or in
// groups, with the right check digit.
func cards(t *source, e *edits) {
	s := t.s
	// No two bytes next to each other in the number are separators.
	for i := 0; i+1 < len(s); i += 6 {
		if !digit[s[i]] && !digit[s[i+1]] {
			continue
		}
		start := cardSet.start(s, i+1, maxCard)
		end := cardSet.end(s[:min(len(s), start+2*maxCard)], i+1)
		for start < end && !digit[s[start]] {
			start++
		}
		for end > start && !digit[s[end-1]] {
			end--
		}
		if end-start >= 13 && isCard(s[start:end]) && apart(s, start, end) {
			e.mask(s, start, end, KindCard)
		}
		i = max(i, end-6)
	}
}

const maxCard = 24

var cardSet = setOf("0-9 -")

// apart reports whether the number at s[start:end] is no part of a word, a longer number, an
// address or a time.
func apart(s string, start, end int) bool {
	if start > 0 {
		before := s[start-1]
		named := before == ':' && start > 1 && !digit[s[start-2]] // number:4111…
		if !named && (word[before] || before >= 0x80 && before < 0xc0 || indexByte(".:/#$,+@&", before)) {
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

// isCard reports whether v is the number of a card: without separators, in groups of four, or
// in groups of four, six and five or four.
func isCard(v string) bool {
	var digits [20]byte
	n, group, separator := 0, 0, byte(0)
	for i := range len(v) {
		switch c := v[i]; {
		case digit[c]:
			if n == 19 {
				return false
			}
			digits[n] = c - '0'
			n, group = n+1, group+1
		case separator != 0 && c != separator || group != 4 && group != 6:
			return false
		default:
			separator, group = c, 0
		}
	}
	return n >= 13 && (separator == 0 || group >= 2 && group <= 6) && isIssuer(digits[:n]) && checks(digits[:n])
}

// isIssuer reports whether the number begins and is as long as those of an issuer of cards.
func isIssuer(d []byte) bool {
	four := int(d[0])*1000 + int(d[1])*100 + int(d[2])*10 + int(d[3])
	switch two := four / 100; len(d) {
	case 14:
		return two == 36 || two == 38 || four >= 3000 && four <= 3059
	case 15:
		return two == 34 || two == 37
	case 16:
		return d[0] == 4 || two >= 51 && two <= 55 || four >= 2221 && four <= 2720 || four == 6011 || two == 65 || two == 62 || two == 35 && four >= 3528 && four <= 3589
	case 13, 19:
		return d[0] == 4 || len(d) == 19 && two == 62
	}
	return false
}

// checks reports whether the last digit is the check digit of Luhn. A number of few different
// digits is an example of something else.
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
		same = same && d[i] == d[0]
	}
	return sum%10 == 0 && !same
}
