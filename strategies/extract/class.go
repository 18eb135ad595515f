package extract

import (
	"unicode"
	"unicode/utf8"
)

// class is a set of properties of a character.
type class uint16

const (
	digit  class = 1 << iota // 0-9
	otherD                   // a decimal digit that is not ASCII
	lowHex                   // a-f
	low                      // g-z
	upHex                    // A-F
	up                       // G-Z
	under                    // _
	letter                   // a word character that is not ASCII, and no decimal digit
	dot                      // .
	plus                     // +
	at                       // @
	hyphen                   // -

	lower = lowHex | low
	upper = upHex | up
	hex   = digit | lowHex | upHex
	word  = digit | otherD | lower | upper | under | letter
	// local is [\w.+-], label [\w-], segment [\w.@+-], name [\w@+-].
	local      = word | dot | plus | hyphen
	labelBytes = word | hyphen
	segment    = word | dot | at | plus | hyphen
	name       = word | at | plus | hyphen
)

var ascii = func() (t [utf8.RuneSelf]class) {
	for c := range t {
		switch {
		case '0' <= c && c <= '9':
			t[c] = digit
		case 'a' <= c && c <= 'f':
			t[c] = lowHex
		case 'g' <= c && c <= 'z':
			t[c] = low
		case 'A' <= c && c <= 'F':
			t[c] = upHex
		case 'G' <= c && c <= 'Z':
			t[c] = up
		}
	}
	t['_'], t['.'], t['+'], t['@'], t['-'] = under, dot, plus, at, hyphen
	return t
}()

// ofRune returns the class of a character that is not ASCII.
func ofRune(r rune) class {
	switch {
	case unicode.IsLetter(r):
		return letter
	case unicode.IsDigit(r):
		return otherD
	case unicode.IsNumber(r):
		return letter
	}
	return 0
}

// next returns the class of the character at i and the index behind it, i at the end.
func next(s string, i int) (class, int) {
	if i == len(s) {
		return 0, i
	}
	if c := s[i]; c < utf8.RuneSelf {
		return ascii[c], i + 1
	}
	r, size := utf8.DecodeRuneInString(s[i:])
	return ofRune(r), i + size
}

// before returns the class of the character that ends at i and its index.
func before(s string, i int) (class, int) {
	if i == 0 {
		return 0, 0
	}
	if c := s[i-1]; c < utf8.RuneSelf {
		return ascii[c], i - 1
	}
	r, size := utf8.DecodeLastRuneInString(s[:i])
	return ofRune(r), i - size
}

// run returns the index behind the characters of the set that start at i.
func (set class) run(s string, i int) int {
	for i < len(s) {
		c, end := next(s, i)
		if c&set == 0 {
			break
		}
		i = end
	}
	return i
}

// back returns the index of the first of the characters of the set that end at i, not before low.
func (set class) back(s string, low, i int) int {
	for i > low {
		c, start := before(s, i)
		if c&set == 0 {
			break
		}
		i = start
	}
	return i
}

// boundary reports whether a word begins or ends at i.
func boundary(s string, i int) bool {
	a, _ := before(s, i)
	b, _ := next(s, i)
	return (a&word != 0) != (b&word != 0)
}
