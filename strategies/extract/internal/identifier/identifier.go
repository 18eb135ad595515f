// Package identifier finds the identifiers of a text in one pass: paths, file names, addresses, ids, codes, hashes, long numbers
// and quoted names, and the words that label them. It knows nothing of messages. Its functions are pure and safe for concurrent
// use; none fails, whatever the text, which may be invalid UTF-8.
package identifier

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// Kind is a kind of identifier.
type Kind uint8

// The kinds.
const (
	Quoted Kind = iota // a name of 3 to 60 characters between quotation marks on one line
	Link               // an address with a scheme
	Email
	UUID
	Path   // names with slashes between them
	File   // a name with one of the usual extensions
	Code   // 5 to 12 capitals and digits, both of them
	Hash   // 7 to 40 hexadecimal digits, letters among them
	Handle // lower-case words and a number, joined by underscores
	Number // at least four digits

	kinds
)

var kindNames = [kinds]string{"named", "url", "email", "uuid", "path", "file", "code", "sha", "handle", "number"}

// String returns the name of the kind in lower case.
func (k Kind) String() string {
	if k >= kinds {
		return "unknown"
	}
	return kindNames[k]
}

const (
	minName, maxName = 3, 60 // bytes of a quoted name
	maxToken         = 400
)

// All calls yield for every identifier of s with its half-open byte range, from left to right; a quoted name comes before
// those in it.
func All(s string, yield func(kind Kind, start, end int)) {
	closing := -1 // the quotation mark that ends the name before
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case isQuote(c):
			if i == closing {
				closing = -1
			} else if end := nameEnd(s, i); end > 0 {
				closing = end
				yield(Quoted, i+1, end)
			}
			i++
		case isToken(c):
			end := i + 1
			for end < len(s) && isToken(s[end]) {
				end++
			}
			i = scanToken(s, i, end, yield)
		default:
			i++
		}
	}
}

// scanToken yields the identifier in s[start:end] and returns the index after it.
func scanToken(s string, start, end int, yield func(kind Kind, start, end int)) int {
	if strings.HasPrefix(s[end:], "://") {
		next := end + len("://")
		for next < len(s) && s[next] > ' ' && strings.IndexByte("\"'`<>()[]{}|\\", s[next]) < 0 && s[next] < utf8.RuneSelf {
			next++
		}
		last := next
		for last > end+len("://") && strings.IndexByte(".,;:!?*", s[last-1]) >= 0 {
			last--
		}
		if last > end+len("://") {
			yield(Link, start, last)
		}
		return max(next, end)
	}
	first, last := start, end
	if start > 0 && s[start-1] == '<' { // a tag
		return end
	}
	if before := s[max(0, start-4):start]; strings.HasPrefix(s[start:], "a/") || strings.HasPrefix(s[start:], "b/") {
		if before == "+++ " || before == "--- " || before == "git " { // a side of a difference
			first += 2
		}
	}
	for i := first + 2; i+1 < last; i++ { // a place as grep gives it: file.go-12-
		if s[i] == '-' && '0' <= s[i+1] && s[i+1] <= '9' && isFile(s[first:i]) {
			last = i
		}
	}
	for first < last && strings.IndexByte("-+@#", s[first]) >= 0 {
		first++
	}
	for last > first && strings.IndexByte(".-+@#/~", s[last-1]) >= 0 {
		last--
	}
	if v := s[first:last]; len(v) >= 4 && len(v) <= maxToken {
		if kind, ok := kindOf(v); ok {
			yield(kind, first, last)
		}
	}
	return end
}

// KindOf returns the kind of a value that is one identifier as a whole, and Quoted for any other.
func KindOf(v string) Kind {
	if strings.Contains(v, "://") {
		return Link
	}
	kind, ok := kindOf(v)
	if !ok {
		return Quoted
	}
	return kind
}

// shape counts the characters of a value.
type shape struct{ digits, hex, lower, upper, slashes, dots, hyphens, ats, unders, others int }

func shapeOf(v string) (n shape) {
	for i := range len(v) {
		switch c := v[i]; {
		case '0' <= c && c <= '9':
			n.digits++
		case 'a' <= c && c <= 'f':
			n.hex++
			n.lower++
		case 'a' <= c && c <= 'z':
			n.lower++
		case 'A' <= c && c <= 'Z':
			n.upper++
		case c == '/':
			n.slashes++
		case c == '.':
			n.dots++
		case c == '-':
			n.hyphens++
		case c == '@':
			n.ats++
		case c == '_':
			n.unders++
		default:
			n.others++
		}
	}
	return n
}

// kindOf returns the kind of a value without blanks.
func kindOf(v string) (Kind, bool) {
	n := shapeOf(v)
	only := func(count int) bool { return count == len(v) }
	switch {
	case n.ats == 1 && n.dots > 0 && n.slashes == 0 && strings.IndexByte(v, '@') > 0:
		return Email, strings.LastIndexByte(v, '.') > strings.IndexByte(v, '@')
	case n.hyphens == 4 && len(v) == 36 && n.digits+n.hex == 32 && n.lower == n.hex:
		return UUID, true
	case n.slashes > 0:
		return Path, n.lower+n.upper > 2 && len(v) > 5 && !strings.Contains(v, "//")
	case n.dots > 0 && isFile(v):
		return File, true
	case only(n.digits):
		return Number, true
	case only(n.digits+n.upper) && n.digits > 0 && n.upper > 0:
		return Code, len(v) >= 5 && len(v) <= 12
	case only(n.digits+n.hex) && n.digits > 0:
		return Hash, len(v) >= 7 && len(v) <= 40
	case n.digits > 0 && n.lower+n.upper > 0 && n.hyphens > 0 && n.others+n.dots == 0: // INC-2291, i-0ab12cd3
		return Code, n.digits > 2
	case n.unders > 0 && n.digits > 2 && only(n.digits+n.lower+n.unders):
		return Handle, true
	}
	return 0, false
}

// isFile reports whether a value ends with a usual extension.
func isFile(v string) bool {
	i := strings.LastIndexByte(v, '.')
	return i > 0 && extensions[strings.ToLower(v[i+1:])]
}

var extensions = text.Set(`go mod sum py js jsx ts tsx mjs cjs vue svelte css scss html htm xml json jsonl yaml yml toml ini cfg conf env md mdx rst
	txt csv tsv log sh bash zsh ps1 bat sql proto rs rb java kt swift c h cc cpp hpp cs php lua r jl ex exs erl clj scala dart
	tf lock pdf png jpg jpeg gif svg ipynb zip gz tar doc docx xls xlsx ppt pptx parquet db sqlite patch diff tmpl gradle cmake
	make dockerfile`)

func isQuote(c byte) bool { return c == '"' || c == '`' || c == '\'' }

// isToken reports whether a byte is a character of ASCII that may be part of an identifier.
func isToken(c byte) bool { return tokenBytes[c] }

var tokenBytes = func() (t [256]bool) {
	for c := range 128 {
		b := byte(c)
		t[c] = '0' <= b && b <= '9' || isLetter(b) || strings.IndexByte("_./@+-#~", b) >= 0
	}
	return t
}()

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// nameEnd returns the end of the name that begins after the quotation mark at i, 0 for none.
func nameEnd(s string, i int) int {
	if i > 0 && (isLetter(s[i-1]) || '0' <= s[i-1] && s[i-1] <= '9') {
		return 0 // an apostrophe
	}
	rest := s[i+1 : min(len(s), i+2+maxName)]
	n := strings.IndexByte(rest, s[i])
	if n < minName || strings.IndexByte(rest[:n], '\n') >= 0 {
		return 0
	}
	if v := rest[:n]; v[0] == ' ' || v[n-1] == ' ' || !strings.ContainsFunc(v, unicode.IsLetter) || strings.Contains(v, `\`) {
		return 0
	}
	return i + 1 + n
}

// Label returns the word that labels the text at byte at of s, in lower case: the nearest word of three or more ASCII letters before
// it on its line, at most within characters away, except common ones. adjacent reports that at most four signs are between them.
// It returns "" if there is none. The word shares memory with s where it has no capitals.
func Label(s string, at, within int) (word string, adjacent bool) {
	from := max(0, at-within)
	for end := at; end > from && s[end-1] != '\n'; {
		if !isLetter(s[end-1]) {
			end--
			continue
		}
		start := end
		for start > 0 && isLetter(s[start-1]) {
			start--
		}
		bounded := (start == 0 || !joinsWord(s[start-1])) && (end == len(s) || !joinsWord(s[end]))
		if w := strings.ToLower(s[start:end]); bounded && len(w) > 2 && !common[w] {
			return w, at-end <= 4
		}
		end = start
	}
	return "", false
}

// joinsWord reports whether a byte beside letters makes a longer word or a code of them.
func joinsWord(c byte) bool { return c >= utf8.RuneSelf || '0' <= c && c <= '9' }

// common are words that label nothing: of sentences, and of code that prints or declares.
var common = text.Set(`the and for with that this from are was not but you has have its into can will all any our out use get new been both yeah
	only then there when which where why how also just here they your because these those some other now let see did does
	should could would like each may must too used via func def nil null none self void else elif errorf fatalf logf infof
	printf println sprintf fprintf omitempty`)
