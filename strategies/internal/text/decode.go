package text

import (
	"html"
	"strconv"
	"strings"
)

// encoded matches characters as HTML, JSON, addresses and Markdown write them in order that
// they are not read as markup.
var encoded = Pattern(`&(?:#\d{1,7};?|#[xX][0-9a-fA-F]{1,6};?|[A-Za-z]{2,12};)|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|%[2357][0-9a-fA-F]|\\[<>|\[\]/]`)

// Decode returns s with encoded characters replaced by these, and at as Fold does.
func Decode(s string) (decoded string, at []int) {
	for range 3 { // what is decoded may be encoded again
		found := encoded().FindAllStringIndex(s, -1)
		if found == nil {
			break
		}
		var b strings.Builder
		var next []int
		original := func(i int) int {
			if at == nil {
				return i
			}
			return at[i]
		}
		copied := 0
		keep := func(end int) {
			b.WriteString(s[copied:end])
			for ; copied < end; copied++ {
				next = append(next, original(copied))
			}
		}
		for _, f := range found {
			keep(f[0])
			c := decode(s[f[0]:f[1]])
			b.WriteString(c)
			for range len(c) {
				next = append(next, original(f[0]))
			}
			copied = f[1]
		}
		keep(len(s))
		next = append(next, original(len(s)))
		s, at = b.String(), next
	}
	return s, at
}

// decode returns the character that encoded matched.
func decode(s string) string {
	digits := ""
	switch {
	case s[0] == '&':
		return html.UnescapeString(s)
	case s[0] == '%':
		digits = s[1:]
	case s[1] == 'u' || s[1] == 'x':
		digits = s[2:]
	default:
		return s[1:]
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || n < ' ' {
		return s
	}
	return string(rune(n))
}
