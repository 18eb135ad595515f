package tokens

import (
	"sync"
	"unicode"
)

// class is the set of the categories of a character that the patterns of the encodings
// distinguish. Each character is in one of them.
type class uint8

const (
	upper    class = 1 << iota // \p{Lu} and \p{Lt}
	lower                      // \p{Ll}
	caseless                   // \p{Lm} and \p{Lo}
	mark                       // \p{M}
	number                     // \p{N}
	newline                    // \r and \n
	space                      // the rest of \s
	other

	letter = upper | lower | caseless
	symbol = mark | other // [^\s\p{L}\p{N}]
)

// classes holds the class of each code point, from the tables of package unicode, as in regexp2.
// Loading an encoding fills it.
var classes [unicode.MaxRune + 1]class

var fillClasses = sync.OnceFunc(func() {
	for i := range classes {
		classes[i] = other
	}
	for _, t := range []struct {
		table *unicode.RangeTable
		class class
	}{
		{unicode.Lu, upper},
		{unicode.Lt, upper},
		{unicode.Ll, lower},
		{unicode.Lm, caseless},
		{unicode.Lo, caseless},
		{unicode.M, mark},
		{unicode.N, number},
		{unicode.White_Space, space},
	} {
		for _, r := range t.table.R16 {
			for c := int(r.Lo); c <= int(r.Hi); c += int(r.Stride) {
				classes[c] = t.class
			}
		}
		for _, r := range t.table.R32 {
			for c := int(r.Lo); c <= int(r.Hi); c += int(r.Stride) {
				classes[c] = t.class
			}
		}
	}
	classes['\r'], classes['\n'] = newline, newline
})

// classAt returns the class and the length of the character at s[i], where a character of
// valid UTF-8 begins.
func classAt(s string, i int) (class, int) {
	switch c := rune(s[i]); {
	case c < 0x80:
		return classes[c], 1
	case c < 0xE0 && i+1 < len(s):
		return classes[c&0x1F<<6|rune(s[i+1]&0x3F)], 2
	case c < 0xF0 && i+2 < len(s):
		return classes[c&0xF<<12|rune(s[i+1]&0x3F)<<6|rune(s[i+2]&0x3F)], 3
	case i+3 < len(s):
		return classes[(c&7<<18|rune(s[i+1]&0x3F)<<12|rune(s[i+2]&0x3F)<<6|rune(s[i+3]&0x3F))%(unicode.MaxRune+1)], 4
	}
	return other, 1 // not valid UTF-8
}

// run returns the end of the longest run of characters of some classes that begins at s[i].
func run(s string, i int, of class) int {
	for i < len(s) {
		c, n := classes[s[i]], 1
		if s[i] >= 0x80 {
			c, n = classAt(s, i)
		}
		if c&of == 0 {
			break
		}
		i += n
	}
	return i
}
