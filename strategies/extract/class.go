package extract

import (
	"unicode"
	"unicode/utf8"
)

// class is a set of character classes.
type class uint16

const (
	digit      class = 1 << iota // 0-9
	otherDigit                   // a decimal digit outside of ASCII
	lowHex                       // a-f
	low                          // g-z
	upHex                        // A-F
	up                           // G-Z
	under                        // _
	letter                       // a word character outside of ASCII, except decimal digits
	dot                          // .
	plus                         // +
	at                           // @
	hyphen                       // -

	lower       = lowHex | low
	upper       = upHex | up
	hex         = digit | lowHex | upHex
	alpha       = lower | upper
	asciiWord   = digit | lower | upper | under
	word        = asciiWord | otherDigit | letter // \w
	localChars  = word | dot | plus | hyphen      // [\w.+-]
	labelChars  = word | hyphen                   // [\w-]
	pathChars   = word | dot | at | plus | hyphen // [\w.@+-]
	schemeChars = alpha | digit | plus            // of URLs
	nameChars   = word | at | plus | hyphen       // [\w@+-]
)

// byteClass holds the classes of ASCII characters; other bytes have none.
var byteClass = func() (t [256]class) {
	for c := range utf8.RuneSelf {
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

// has reports whether an ASCII character is in the set.
func (set class) has(c byte) bool { return byteClass[c]&set != 0 }

// classOf returns the class of a character outside of ASCII.
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

// next returns the class of the character at i and the index after it, i at the end of s.
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

// prev returns the class and the index of the character that ends at i.
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

// forward returns the end of the run of characters of the set that starts at i.
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

// backward returns the start of the run of characters of the set that ends at i, at
// least low.
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
