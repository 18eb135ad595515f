package extract

import (
	"unicode"
	"unicode/utf8"
)

// class is a set of properties of a character.
type class uint16

const (
	digit      class = 1 << iota // 0-9
	otherDigit                   // a decimal digit that is not ASCII
	lowHex                       // a-f
	low                          // g-z
	upHex                        // A-F
	up                           // G-Z
	under                        // _
	letter                       // a word character that is not ASCII, and no decimal digit
	dot                          // .
	plus                         // +
	at                           // @
	hyphen                       // -

	lower = lowHex | low
	upper = upHex | up
	hex   = digit | lowHex | upHex
	word  = digit | otherDigit | lower | upper | under | letter
	// localChars is [\w.+-], label [\w-], segment [\w.@+-], name [\w@+-].
	localChars   = word | dot | plus | hyphen
	labelChars   = word | hyphen
	segmentChars = word | dot | at | plus | hyphen
	nameChars    = word | at | plus | hyphen
)

var byteClass = func() (t [utf8.RuneSelf]class) {
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

// classOf returns the class of a character that is not ASCII.
func classOf(r rune) class {
	switch {
	case unicode.IsLetter(r):
		return letter
	case unicode.IsDigit(r):
		return otherDigit
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
		return byteClass[c], i + 1
	}
	r, size := utf8.DecodeRuneInString(s[i:])
	return classOf(r), i + size
}

// prev returns the class of the character that ends at i and its index.
func prev(s string, i int) (class, int) {
	if i == 0 {
		return 0, 0
	}
	if c := s[i-1]; c < utf8.RuneSelf {
		return byteClass[c], i - 1
	}
	r, size := utf8.DecodeLastRuneInString(s[:i])
	return classOf(r), i - size
}

// forward returns the index behind the characters of the set that start at i.
func (set class) forward(s string, i int) int {
	for i < len(s) {
		c, end := next(s, i)
		if c&set == 0 {
			break
		}
		i = end
	}
	return i
}

// backward returns the index of the first of the characters of the set that end at i, not before low.
func (set class) backward(s string, low, i int) int {
	for i > low {
		c, start := prev(s, i)
		if c&set == 0 {
			break
		}
		i = start
	}
	return i
}

// isBoundary reports whether a word begins or ends at i.
func isBoundary(s string, i int) bool {
	a, _ := prev(s, i)
	b, _ := next(s, i)
	return (a&word != 0) != (b&word != 0)
}
