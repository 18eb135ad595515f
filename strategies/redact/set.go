package redact

import (
	"iter"
	"strings"
)

// set is a set of bytes.
type set [256]bool

// setOf parses ranges such as "0-9a-f-": single bytes and pairs with a hyphen between.
func setOf(ranges string) *set {
	var s set
	for i := 0; i < len(ranges); i++ {
		if i+2 < len(ranges) && ranges[i+1] == '-' {
			for c := int(ranges[i]); c <= int(ranges[i+2]); c++ {
				s[c] = true
			}
			i += 2
			continue
		}
		s[ranges[i]] = true
	}
	return &s
}

// Sets of bytes that several rules use.
var (
	alnum      = setOf("0-9A-Za-z")
	digit      = setOf("0-9")
	underscore = setOf("0-9A-Za-z_")
	word       = setOf("0-9A-Za-z_-")
	wordEqual  = setOf("0-9A-Za-z_=-")
	wordDot    = setOf("0-9A-Za-z_.-")
	space      = setOf(" \t\n\v\f\r")
	blank      = setOf(" \t")
	letters    = setOf("A-Za-z")
	upperOnly  = setOf("A-Z")
	lowerOnly  = setOf("a-z")
	letter     = setOf("A-Za-z\x80-\xff") // of any language
	upperScore = setOf("A-Z0-9_")
	lowerDigit = setOf("0-9a-z")
	lowerDot   = setOf("a-z.-")
	nameSet    = setOf("A-Za-z_-")
	hexSet     = setOf("0-9a-fA-F-")
	base64Set  = setOf("0-9A-Za-z+/=")
	printable  = setOf(" -~")
	positions  = setOf("0-9:,-")
	resource   = setOf("a-z0-9/_.-")
	identifier = setOf("A-Za-z_.")
	notSpace   = setOf("!-!#-&(-_a-~") // the user and password of a connection string
)

// end returns the end of the run of bytes of the set that starts at i.
func (t *set) end(s string, i int) int {
	for i < len(s) && t[s[i]] {
		i++
	}
	return i
}

// start returns the start of the run of at most limit bytes of the set that ends at i.
func (t *set) start(s string, i, limit int) int {
	for low := max(0, i-limit); i > low && t[s[i-1]]; {
		i--
	}
	return i
}

// has reports whether all bytes of s are in the set.
func (t *set) has(s string) bool { return t.end(s, 0) == len(s) }

// any reports whether s contains a byte of the set.
func (t *set) any(s string) bool {
	for i := range len(s) {
		if t[s[i]] {
			return true
		}
	}
	return false
}

// places yields the index of each occurrence of sub in s.
func places(s, sub string) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := 0; ; i += len(sub) {
			n := strings.Index(s[i:], sub)
			if n < 0 || !yield(i+n) {
				return
			}
			i += n
		}
	}
}

// addresses yields the index after each "://" of s and the scheme before it.
func addresses(s string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for at := range places(s, "://") {
			scheme := at
			for scheme > 0 && at-scheme < 16 && (alnum[s[scheme-1]] || s[scheme-1] == '+') {
				scheme--
			}
			if !yield(at+len("://"), s[scheme:at]) {
				return
			}
		}
	}
}
