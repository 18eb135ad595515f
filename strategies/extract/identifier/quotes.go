package identifier

import (
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/extract/internal/charclass"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// scanEmails finds e-mail addresses.
func scanEmails(s string, yield func(kind Kind, start, end int)) {
	for done, i := 0, 0; ; {
		at := strings.IndexByte(s[i:], '@')
		if at < 0 {
			return
		}
		at += i
		i = at + 1
		end := domainEnd(s, i)
		if end == i {
			continue
		}
		for start := localChars.Backward(s, done, at); start < at; _, start = charclass.Next(s, start) {
			if charclass.IsBoundary(s, start) {
				yield(Email, start, end)
				done, i = end, end
				break
			}
		}
	}
}

// domainEnd returns the end of the longest [\w-]+(?:\.[\w-]+)+\b at i, or i.
func domainEnd(s string, i int) int {
	end, at := i, labelChars.Forward(s, i)
	if at == i {
		return i
	}
	for at < len(s) && s[at] == '.' {
		start := at + 1
		if at = labelChars.Forward(s, start); at == start {
			break
		}
		// A boundary follows the last word character of a label.
		if last := charclass.Hyphen.Backward(s, start, at); last > start {
			end = last
		}
	}
	return end
}

// scanQuoted finds quoted names from left to right. Pairs of quotes do not overlap.
func scanQuoted(s string, yield func(kind Kind, start, end int)) {
	for i := 0; i < len(s); {
		q := s[i]
		i++
		if q != '"' && q != '`' && q != '\'' {
			continue
		}
		if q == '\'' {
			if c, _ := charclass.Prev(s, i-1); c&charclass.Word != 0 {
				continue
			}
		}
		end := closingQuote(s, i, q)
		if end < 0 {
			continue
		}
		if q == '\'' {
			if c, _ := charclass.Next(s, end+1); c&charclass.Word != 0 {
				continue
			}
		}
		if isName(s[i:end]) {
			yield(Quoted, i, end)
		}
		i = end + 1
	}
}

// closingQuote returns the index of the quote q after 3 to 60 characters at i, or -1.
func closingQuote(s string, i int, q byte) int {
	for n := 0; i < len(s) && n <= 60; n++ {
		switch c := s[i]; {
		case c == q:
			if n < 3 {
				return -1
			}
			return i
		case c == '\n' || c == '\\' && q == '"':
			return -1
		case c < utf8.RuneSelf:
			i++
		default:
			_, size := utf8.DecodeRuneInString(s[i:])
			i += size
		}
	}
	return -1
}

// isName reports whether v contains an ASCII letter and no white space at either end.
func isName(v string) bool {
	first, _ := utf8.DecodeRuneInString(v)
	last, _ := utf8.DecodeLastRuneInString(v)
	return !text.IsBlank(first) && !text.IsBlank(last) && strings.ContainsFunc(v, func(r rune) bool {
		return r < utf8.RuneSelf && charclass.Alpha.Has(byte(r))
	})
}
