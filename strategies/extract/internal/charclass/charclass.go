// Package charclass reads runs of characters of a class, with the classes of Python's regular
// expressions: \w and \d are Unicode, [a-z] is not. It does not allocate, and its functions are
// pure and safe for concurrent use.
package charclass

import (
	"unicode"
	"unicode/utf8"
)

// Set is a set of character classes.
type Set uint16

// The classes, and the sets of them that have a name.
const (
	Digit      Set = 1 << iota // 0-9
	OtherDigit                 // a decimal digit outside of ASCII
	LowHex                     // a-f
	low                        // g-z
	upHex                      // A-F
	up                         // G-Z
	Under                      // _
	letter                     // a word character outside of ASCII, except decimal digits
	Dot                        // .
	Plus                       // +
	At                         // @
	Hyphen                     // -

	Lower     = LowHex | low
	Upper     = upHex | up
	Hex       = Digit | LowHex | upHex
	Alpha     = Lower | Upper
	ASCIIWord = Digit | Lower | Upper | Under
	Word      = ASCIIWord | OtherDigit | letter // \w
	Path      = Word | Dot | At | Plus | Hyphen // [\w.@+-], of one segment
)

// byteClass holds the classes of ASCII characters; other bytes have none.
var byteClass = func() (t [256]Set) {
	for c := range utf8.RuneSelf {
		switch {
		case '0' <= c && c <= '9':
			t[c] = Digit
		case 'a' <= c && c <= 'f':
			t[c] = LowHex
		case 'g' <= c && c <= 'z':
			t[c] = low
		case 'A' <= c && c <= 'F':
			t[c] = upHex
		case 'G' <= c && c <= 'Z':
			t[c] = up
		}
	}
	t['_'], t['.'], t['+'], t['@'], t['-'] = Under, Dot, Plus, At, Hyphen
	return t
}()

// Has reports whether an ASCII character is in the set.
func (set Set) Has(c byte) bool { return byteClass[c]&set != 0 }

// classOf returns the class of a character outside of ASCII.
func classOf(r rune) Set {
	switch {
	case unicode.IsLetter(r):
		return letter
	case unicode.IsDigit(r):
		return OtherDigit
	case unicode.IsNumber(r):
		return letter
	}
	return 0
}

// Next returns the class of the character at i and the index after it, i at the end of s.
func Next(s string, i int) (Set, int) {
	if i == len(s) {
		return 0, i
	}
	if c := s[i]; c < utf8.RuneSelf {
		return byteClass[c], i + 1
	}
	r, size := utf8.DecodeRuneInString(s[i:])
	return classOf(r), i + size
}

// Prev returns the class and the index of the character that ends at i.
func Prev(s string, i int) (Set, int) {
	if i == 0 {
		return 0, 0
	}
	if c := s[i-1]; c < utf8.RuneSelf {
		return byteClass[c], i - 1
	}
	r, size := utf8.DecodeLastRuneInString(s[:i])
	return classOf(r), i - size
}

// Forward returns the end of the run of characters of the set that starts at i.
func (set Set) Forward(s string, i int) int {
	for i < len(s) {
		c, end := Next(s, i)
		if c&set == 0 {
			break
		}
		i = end
	}
	return i
}

// Backward returns the start of the run of characters of the set that ends at i, at
// least low.
func (set Set) Backward(s string, low, i int) int {
	for i > low {
		c, start := Prev(s, i)
		if c&set == 0 {
			break
		}
		i = start
	}
	return i
}

// IsBoundary reports whether a word begins or ends at i.
func IsBoundary(s string, i int) bool {
	a, _ := Prev(s, i)
	b, _ := Next(s, i)
	return (a&Word != 0) != (b&Word != 0)
}
