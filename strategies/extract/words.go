package extract

import (
	"iter"
	"strings"
	"unicode/utf8"
)

// namesAndWords yields the words of a text, names of code with underscores as a whole.
func namesAndWords(s string) iter.Seq[string] {
	return strings.FieldsFuncSeq(s, func(r rune) bool { return r != '_' && !isLetterOrDigit(r) })
}

// scanWords finds the kinds that are one whole word, and UUIDs, which begin with one.
func scanWords(s string, yield func(kind Kind, start, end int)) {
	for i := 0; i < len(s); {
		c, end := next(s, i)
		if c&word == 0 {
			i = end
			continue
		}
		start, all := i, c
		for i = end; i < len(s); i = end {
			if c, end = next(s, i); c&word == 0 {
				break
			}
			all |= c
		}
		if all&^hex == 0 && i-start == 8 && isUUID(s, start) {
			yield(UUID, start, start+36)
		}
		if all&(digit|otherDigit) == 0 || i-start < 4 {
			continue // every other kind needs a digit and four characters
		}
		if kind, from, ok := wordKind(s, start, i, all); ok {
			yield(kind, from, i)
		}
	}
}

// wordKind returns the kind of the word s[start:end], whose characters are of the classes
// all, and the start of the identifier.
func wordKind(s string, start, end int, all class) (kind Kind, from int, ok bool) {
	n := end - start
	switch {
	case all&^(digit|otherDigit) == 0:
		c, _ := prev(s, start)
		return Number, start, c != dot && utf8.RuneCountInString(s[start:end]) >= 4
	case all&^(digit|upper) == 0:
		from = start
		if start > 0 && s[start-1] == '#' {
			if c, _ := prev(s, start-1); c&word == 0 {
				from--
			}
		}
		return Code, from, 5 <= n && n <= 12
	case all&^(digit|lowHex) == 0:
		return SHA, start, 7 <= n && n <= 40
	case all&^(digit|otherDigit|lower|under) == 0 && all&under != 0:
		return Handle, start, isHandle(s[start:end])
	}
	return 0, 0, false
}

// isHandle reports whether w, which consists of these characters, is
// [a-z]+(?:_[a-z]+)*_\d{3,}.
func isHandle(w string) bool {
	start := (digit | otherDigit).backward(w, 0, len(w))
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
		if start = lower.backward(w, 0, end); start == end {
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
			if !hex.has(s[at]) {
				return false
			}
		}
	}
	return isBoundary(s, i+36)
}
