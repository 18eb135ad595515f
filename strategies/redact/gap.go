package redact

import (
	"slices"
	"strings"
)

// gap is the text between a name and its value.
type gap int

const (
	noValue  gap = iota
	assigns      // a colon, an equals sign, an arrow
	says         // a verb
	follows      // blanks
	encloses     // the tags of an element, the bar of a table
)

// valueAfter returns the start of the value of a name that ends at i, and the gap between.
func valueAfter(s string, i int, language bool) (int, gap) {
	limit := min(len(s), i+maxGap)
	marks := i
	for i < limit && indexByte("*_`\"'\\)]", s[i]) {
		i++
	}
	if n := separator(s[i:limit]); n > 0 {
		return i + n, assigns
	}
	if n := element(s[i:limit]); n > 0 {
		return i + n, encloses
	}
	after := blank.end(s[:limit], i)
	if n := strings.Index(s[after:limit], "]: "); n > 0 && n < 24 && s[after] == '[' { // key [None]: x
		return after + n + len("]: "), assigns
	}
	for _, bar := range []string{"|", "│", "║", "┃"} {
		if strings.HasPrefix(s[after:limit], bar) {
			return after + len(bar), encloses
		}
	}
	if i > marks || !language && after == i {
		return 0, noValue
	}
	return spokenGap(s[:limit], after)
}

// spokenGap returns the start of the value of a name with blanks up to i after it: after a verb, words, or nothing.
func spokenGap(s string, i int) (int, gap) {
	if n := verb(s[i:]); n > 0 {
		return i + n, says
	}
	if n := filler(s[i:]); n > 0 {
		return pastWords(s, i+n)
	}
	return i, follows
}

// pastWords returns the start of the value after the words between a name and a separator or verb at i.
func pastWords(s string, i int) (int, gap) {
	if n := max(separator(s[i:]), verb(s[i:])); n > 0 {
		return i + n, says
	}
	return 0, noValue
}

// The signs and the verbs between a name and a value by their first byte.
var (
	signsByFirst = byFirstByte("sign")
	verbsByFirst = byFirstByte("verb")
)

func byFirstByte(list string) (by [256][]string) {
	for _, w := range lists[list].all {
		by[w[0]] = append(by[w[0]], w)
	}
	return by
}

// separator returns the length of blanks and a sign between a name and a value.
func separator(s string) int {
	i := blank.end(s, 0)
	if strings.HasPrefix(s, " - ") {
		i = 0
	}
	rest := s[i:]
	if rest == "" {
		return 0
	}
	for _, sign := range signsByFirst[rest[0]] {
		n := len(sign)
		switch {
		case !strings.HasPrefix(rest, sign):
		case n < len(rest) && indexByte("=:/~", rest[n]), isRole(rest): // a comparison, an address
			return 0
		default:
			return i + n
		}
	}
	return 0
}

// isRole reports whether s begins with a role of reStructuredText: :meth:`x`.
func isRole(s string) bool {
	end := letters.end(s, min(len(s), 1))
	return end > 1 && strings.HasPrefix(s[end:], ":`")
}

// element returns the length of the end of a tag and, in a property list, the tag of the value.
func element(s string) int {
	for _, open := range []string{">", "&gt;", "</key>"} {
		if rest, ok := strings.CutPrefix(s, open); ok {
			value := strings.TrimLeft(rest, " \t\r\n")
			for _, tag := range []string{"<string>", "<value>", "<Value>"} {
				value = strings.TrimPrefix(value, tag)
			}
			return len(s) - len(value)
		}
	}
	n := strings.IndexAny(s, "<>\n")
	if strings.HasPrefix(s, " ") && n > 0 &&
		s[n] == '>' && s[n-1] != '/' && strings.Contains(s[:n], `="`) {
		return n + 1
	}
	return 0
}

// verb returns the length of a verb before a value.
func verb(s string) int {
	if s == "" {
		return 0
	}
	for _, v := range verbsByFirst[s[0]] {
		rest, ok := strings.CutPrefix(s, v)
		if !ok || v[0] < 0xe3 && (rest == "" || !indexByte(" :\r\n\\", rest[0])) {
			continue
		}
		rest = strings.TrimLeft(rest, " :")
		if end := strings.IndexByte(rest, ' '); end > 0 && slices.Contains(lists["adverb"].all, rest[:end]) {
			rest = rest[end+1:]
		}
		return len(s) - len(rest)
	}
	return 0
}

// filler returns the length of words between a name and a separator or verb: a preposition and
// up to four more.
func filler(s string) int {
	i := 0
	for n := range 6 {
		end := fillerWord.end(s, i)
		switch {
		case end == i, end == len(s), s[end] == '\n', n == 0 && !in("preposition", s[i:end]):
			return 0
		}
		if i = end; s[i] != ' ' {
			return i
		}
		if n > 0 && (verb(s[i+1:]) > 0 || separator(s[i:]) > 0) {
			return i + 1
		}
		i++
	}
	return 0
}

// fillerWord has the bytes of the words of filler.
var fillerWord = setOf("\x00-\t\x0b-\x1f!-$&-9;<>-\xff")

// pairOf returns the index of the value of a quoted name, of which rest follows: after a comma, in another attribute, or on
// the next line. It returns -1 if there is none.
func pairOf(rest string) int {
	if next := blank.end(rest, min(len(rest), 1)); strings.HasPrefix(rest, "\n") && strings.HasPrefix(rest[next:], "value: ") {
		return next + len("value: ")
	}
	n := nameEnds.end(rest[:min(len(rest), 6)], 0) // perhaps within a selector, in front of the rest of a prompt
	i := strings.IndexAny(rest[:n], "\"'") + 1
	if i == 0 {
		return -1
	}
	if comma := blank.end(rest, i); strings.HasPrefix(rest[comma:], ",") {
		at := blank.end(rest, comma+1)
		if option := letters.end(rest, at); option > at && option < len(rest) && rest[option] == '=' { // '--password', default='x'
			at = option + 1
		}
		name := letters.end(rest, min(len(rest), at+1))
		if at < len(rest) && indexByte("'\"", rest[at]) && !strings.HasPrefix(strings.TrimLeft(rest[name:], "\"' "), ":") { // or another field
			return at
		}
	}
	return besideName(rest, i)
}

// besideName returns the same as pairOf if the value is in another attribute of a tag, field of an object, or
// command, from i on: name="password" … value="x".
func besideName(rest string, i int) int {
	for ; i < len(rest) && !indexByte(">}]);", rest[i]); i++ {
		if rest[i] == '\n' {
			if next := blank.end(rest, i+1); next < len(rest) && indexByte("\n-", rest[next]) {
				break
			}
		}
		if !letters[rest[i]] {
			continue
		}
		stop := word.end(rest, i)
		at := fieldGap.end(rest, stop)
		if in("valuefield", rest[i:stop]) && at > stop && at < len(rest) && indexByte("'\"", rest[at-1]) {
			return at - 1
		}
		i = stop - 1
	}
	return -1
}

var (
	nameEnds = setOf(":?*]) \"'")
	fieldGap = setOf(" \t:=\\\"'")
)
