package identifier

import (
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/extract/internal/charclass"
)

// scanWords finds the kinds that are one whole word, and UUIDs, which begin with one.
func scanWords(s string, yield func(kind Kind, start, end int)) {
	for i := 0; i < len(s); {
		c, end := charclass.Next(s, i)
		if c&charclass.Word == 0 {
			i = end
			continue
		}
		start, all := i, c
		for i = end; i < len(s); i = end {
			if c, end = charclass.Next(s, i); c&charclass.Word == 0 {
				break
			}
			all |= c
		}
		if all&^charclass.Hex == 0 && i-start == 8 && isUUID(s, start) {
			yield(UUID, start, start+36)
		}
		if all&(charclass.Digit|charclass.OtherDigit) == 0 || i-start < 4 {
			continue // every other kind needs a digit and four characters
		}
		if kind, from, ok := wordKind(s, start, i, all); ok {
			yield(kind, from, i)
		}
	}
}

// wordKind returns the kind of the word s[start:end], whose characters are of the classes
// all, and the start of the identifier.
func wordKind(s string, start, end int, all charclass.Set) (kind Kind, from int, ok bool) {
	n := end - start
	switch {
	case all&^(charclass.Digit|charclass.OtherDigit) == 0:
		c, _ := charclass.Prev(s, start)
		return Number, start, c != charclass.Dot && utf8.RuneCountInString(s[start:end]) >= 4
	case all&^(charclass.Digit|charclass.Upper) == 0:
		from = start
		if start > 0 && s[start-1] == '#' {
			if c, _ := charclass.Prev(s, start-1); c&charclass.Word == 0 {
				from--
			}
		}
		return Code, from, 5 <= n && n <= 12
	case all&^(charclass.Digit|charclass.LowHex) == 0:
		return SHA, start, 7 <= n && n <= 40
	case all&^(charclass.Digit|charclass.OtherDigit|charclass.Lower|charclass.Under) == 0 && all&charclass.Under != 0:
		return Handle, start, isHandle(s[start:end])
	}
	return 0, 0, false
}

// isHandle reports whether w, which consists of these characters, is
// [a-z]+(?:_[a-z]+)*_\d{3,}.
func isHandle(w string) bool {
	start := (charclass.Digit | charclass.OtherDigit).Backward(w, 0, len(w))
	if utf8.RuneCountInString(w[start:]) < 3 {
		return false
	}
	for parts := 0; ; parts++ {
		if start == 0 {
			return parts > 0
		}
		if w[start-1] != '_' {
			return false
		}
		end := start - 1
		if start = charclass.Lower.Backward(w, 0, end); start == end {
			return false
		}
	}
}

// isUUID reports whether a UUID starts at i, where s has eight hexadecimal digits.
func isUUID(s string, i int) bool {
	if len(s) < i+36 {
		return false
	}
	for at := i + 8; at < i+36; at++ {
		switch at - i {
		case 8, 13, 18, 23:
			if s[at] != '-' {
				return false
			}
		default:
			if !charclass.Hex.Has(s[at]) {
				return false
			}
		}
	}
	return charclass.IsBoundary(s, i+36)
}
