// Package text holds string helpers that several packages share. Lengths are in characters
// (code points); each byte of invalid UTF-8 counts as one.
package text

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Head returns the first n characters of s.
func Head(s string, n int) string {
	if n <= 0 {
		return ""
	}
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// Tail returns the last n characters of s.
func Tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	i := len(s)
	for ; n > 0 && i > 0; n-- {
		size := 1
		if s[i-1] >= utf8.RuneSelf {
			_, size = utf8.DecodeLastRuneInString(s[:i])
		}
		i -= size
	}
	return s[i:]
}

// IsBlank reports whether r is white space or an information separator.
func IsBlank(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// Trim returns s without leading and trailing white space.
func Trim(s string) string { return strings.TrimFunc(s, IsBlank) }

// Gap replaces the text that Ends removes.
const Gap = "\n...[truncated]...\n"

// Ends returns s, or if it is longer than limit, its first head and last tail characters
// with Gap between them.
func Ends(s string, limit, head, tail int) string {
	if !Longer(s, limit) {
		return s
	}
	return Head(s, head) + Gap + Tail(s, tail)
}

// Cut returns s, or if it is longer than limit, its first n characters and three dots.
func Cut(s string, limit, n int) string {
	if !Longer(s, limit) {
		return s
	}
	return Head(s, n) + "..."
}

// HasAnyPrefix reports whether s begins with one of some texts.
func HasAnyPrefix(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}

// ContainsAny reports whether s contains one of some texts.
func ContainsAny(s string, texts ...string) bool {
	return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(s, t) })
}

// Longer reports whether s has more than n characters.
func Longer(s string, n int) bool {
	return len(s) > n && (len(s) > n*utf8.UTFMax || utf8.RuneCountInString(s) > n)
}
