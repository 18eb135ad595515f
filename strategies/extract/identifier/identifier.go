// Package identifier finds the identifiers of a text in linear time: paths, file names, ids, order
// codes, hashes, e-mail addresses, long numbers, quoted names and URLs, and the words that label
// them. Each Kind is defined by a regular expression with Python's semantics: \w, \d and \b are
// Unicode, [a-z] is not. The package knows nothing of messages. Its functions are pure and safe for
// concurrent use; none fails, whatever the text, which may be invalid UTF-8.
package identifier

import (
	"github.com/sessionstore/compactor/strategies/extract/internal/charclass"
)

// Kind is a kind of identifier.
type Kind uint8

// The kinds, each documented by the regular expression that defines it.
const (
	// UUID is \b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b.
	UUID Kind = iota
	// Email is \b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b.
	Email
	// Path is (?<![\w/.])(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w@+-]+(?:\.[\w-]+)*, with at
	// least six characters and two adjacent ASCII letters.
	Path
	// File is (?<![\w/.-])[\w-]+\.EXT\b, where EXT is one of a list of extensions.
	File
	// Code is (?<!\w)#?[A-Z0-9]{5,12}\b with a letter and a digit: numbers of orders,
	// reservations, flights.
	Code
	// SHA is \b[0-9a-f]{7,40}\b with a letter and a digit.
	SHA
	// Handle is \b[a-z]+(?:_[a-z]+)*_\d{3,}\b, as in credit_card_4421.
	Handle
	// Number is (?<![\w.])\d{4,}(?!\w).
	Number
	// Quoted is the text between double quotes, back quotes or single quotes that are no
	// apostrophes: 3 to 60 characters of one line, with an ASCII letter and no white
	// space at either end. The quotes are not part of it.
	Quoted

	kinds
)

var kindNames = [kinds]string{"uuid", "email", "path", "file", "code", "sha", "handle", "number", "quoted"}

// String returns the name of the kind in lower case.
func (k Kind) String() string {
	if k >= kinds {
		return "unknown"
	}
	return kindNames[k]
}

// All calls yield for every identifier of s with its half-open byte range. It does not
// allocate.
//
// Identifiers of one kind do not overlap and come from left to right; those of different
// kinds may overlap, as a file name in quotes does. Quoted ones come last, so the first
// Kind reported for a value is its kind: only Quoted values have a second one.
func All(s string, yield func(kind Kind, start, end int)) {
	scanWords(s, yield)
	scanEmails(s, yield)
	scanPaths(s, yield)
	scanFiles(s, yield)
	scanQuoted(s, yield)
}

// AllWhole is All with what is before the hyphen of an id, without which it cannot be used, as in i-0ab12cd34ef567890 and
// INC-2291: a hash, a code or a number begins there.
func AllWhole(s string, yield func(kind Kind, start, end int)) {
	All(s, func(kind Kind, start, end int) {
		switch kind {
		case SHA, Code:
			start = idStart(s, start, charclass.Alpha|charclass.Digit)
		case Number: // of n-4096 it is one all the same
			start = idStart(s, start, charclass.Upper|charclass.Digit)
		default:
		}
		yield(kind, start, end)
	})
}

// maxPrefix is the size of the longest text before an id that counts as part of it.
const maxPrefix = 24

// idStart returns the start of the id of which a part begins at start, given what may be before its hyphens.
func idStart(s string, start int, chars charclass.Set) int {
	at := start
	for at > 0 && s[at-1] == '-' {
		from := chars.Backward(s, max(0, start-maxPrefix), at-1)
		if from == at-1 || !charclass.Alpha.Has(s[from]) {
			break
		}
		at = from
	}
	if c, _ := charclass.Prev(s, at); at < start && c&(charclass.Path|charclass.Dot) == 0 && (at == 0 || s[at-1] != '/') {
		return at
	}
	return start
}

// The sets of characters of which e-mail addresses, labels of domains, URLs and names of files consist.
const (
	localChars  = charclass.Word | charclass.Dot | charclass.Plus | charclass.Hyphen // [\w.+-]
	labelChars  = charclass.Word | charclass.Hyphen                                  // [\w-]
	schemeChars = charclass.Alpha | charclass.Digit | charclass.Plus
	nameChars   = charclass.Word | charclass.At | charclass.Plus | charclass.Hyphen // [\w@+-]
)

// KindOf returns the kind of a value that is one identifier as a whole, and Quoted for any other.
func KindOf(v string) Kind {
	kind := kinds
	All(v, func(k Kind, start, end int) {
		if kind == kinds && end-start == len(v) {
			kind = k
		}
	})
	if kind == kinds {
		return Quoted
	}
	return kind
}
