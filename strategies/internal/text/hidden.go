package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// breaks are characters that end a line but are not its usual end.
const breaks = "\v\f\u0085\u2028\u2029"

// fillers are letters and marks without a shape.
const fillers = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0"

// signs are format characters that are seen.
const signs = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u08e2\U000110bd\U000110cd"

// joining are the scripts whose letters take a shape from a joiner.
var joining = []*unicode.RangeTable{
	unicode.Arabic, unicode.Syriac, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil,
	unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Mongolian, unicode.Tibetan, unicode.Myanmar,
}

// WithoutHidden returns s without characters that a reader does not see and a model does:
// controls, marks of direction, tags, fillers, and joiners and variation selectors that
// shape nothing. Unusual line ends become a blank, since programs do not agree on whether a
// line begins after them. It is idempotent.
func WithoutHidden(s string) string {
	if !strings.ContainsFunc(s, mayHide) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	last := rune(0) // the last character that was kept
	for i, size := 0, 0; i < len(s); i += size {
		var r rune
		r, size = utf8.DecodeRuneInString(s[i:])
		next, _ := utf8.DecodeRuneInString(s[i+size:])
		switch {
		case r == '\r' && next != '\n', strings.ContainsRune(breaks, r):
			r = ' '
			b.WriteByte(' ')
		case mayHide(r) && r != '\r' && !shapes(last, r, next):
			continue
		case r == utf8.RuneError && size == 1: // what stays of two bytes could become another character
			b.WriteRune(r)
		default:
			b.WriteString(s[i : i+size])
		}
		last = r
	}
	return b.String()
}

// mayHide reports whether a character is hidden, unless those beside it give it a shape.
func mayHide(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < ' ' || r >= 0x7f && r <= 0x9f:
		return true
	case r < utf8.RuneSelf:
		return false
	}
	return strings.ContainsRune(breaks+fillers, r) || isSelector(r) ||
		(unicode.Is(unicode.Cf, r) || r >= 0xe0000 && r <= 0xe0fff) && !strings.ContainsRune(signs, r)
}

func isSelector(r rune) bool { return r >= 0xfe00 && r <= 0xfe0f || r >= 0xe0100 && r <= 0xe01ef }

// shapes reports whether a joiner or selector between two characters changes how these are
// shown.
func shapes(before, r, after rune) bool {
	const joiner, nonJoiner, keycap = '\u200d', '\u200c', '\u20e3'
	switch {
	case r >= 0xe0100:
		return isSelector(r) && unicode.Is(unicode.Han, before)
	case isSelector(r):
		return unicode.In(before, unicode.So, unicode.Sm) || before > utf8.RuneSelf && unicode.IsPunct(before) || after == keycap
	case r == joiner && isPictorial(before) && isPictorial(after):
		return true
	case r == joiner || r == nonJoiner:
		return unicode.In(before, joining...) && unicode.In(after, joining...)
	}
	return false
}

// isPictorial reports whether r may be part of a joined emoji.
func isPictorial(r rune) bool {
	return unicode.Is(unicode.So, r) || r == '\ufe0f' || r >= 0x1f3fb && r <= 0x1f3ff || r == '♂' || r == '♀'
}
