package retention

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Kinds of identifiers in the order in which they are searched for. A value has the first kind
// that matches it.
const (
	uuid   = iota
	email  // address@example.com
	path   // with a slash, at least six characters, and two adjacent ASCII letters
	file   // with one of a list of extensions
	code   // 5 to 12 capitals and digits, at least one of each: orders, reservations, flights
	sha    // 7 to 40 hexadecimal digits with a letter
	handle // credit_card_4421
	number // 4 digits or more
	quoted // 3 to 60 characters between quotes, with an ASCII letter and without outer blanks
	kinds
)

// Insides of classes: word characters, as of Python's \w, and those of names with hyphens.
const word, name = `\p{L}\p{N}_`, word + `-`

// address is an e-mail address without its first character.
const address = `[` + word + `.+-]*@[` + name + `]+(?:\.[` + name + `]+)*\.[` + name + `]*[` + word + `]`

// patterns find the identifiers of each kind on a line between two line ends. A group holds an
// identifier; the character before it, and one after it, stand for conditions on its context. Each match
// has one of the characters in need, unless need is empty.
var patterns = [kinds]struct {
	need string
	*regexp.Regexp
}{
	uuid:   {"-", regexp.MustCompile(`[^` + word + `]([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})[^` + word + `]`)},
	email:  {"@", regexp.MustCompile(`(?:[^` + word + `]([` + word + `]` + address + `)|[` + word + `]([.+-]` + address + `))[^` + word + `]`)},
	path:   {"/", regexp.MustCompile(`[^` + word + `/.]((?:~|\.{1,2})?/?(?:[` + word + `.@+-]+/)+[` + word + `@+-]+(?:\.[` + name + `]+)*)`)},
	file:   {".", regexp.MustCompile(`[^/.` + name + `]([` + name + `]+\.(?:go|py|ts|tsx|js|jsx|rs|c|h|cpp|java|rb|sh|sql|md|json|jsonl|ya?ml|toml|lock|mod|sum|css|html|txt|csv))[^` + word + `]`)},
	code:   {digits, regexp.MustCompile(`[^` + word + `](#?[A-Z0-9]{5,12})[^` + word + `]`)},
	sha:    {digits, regexp.MustCompile(`[^` + word + `]([0-9a-f]{7,40})[^` + word + `]`)},
	handle: {"_", regexp.MustCompile(`[^` + word + `]([a-z]+(?:_[a-z]+)*_\p{Nd}{3,})[^` + word + `]`)},
	number: {"", regexp.MustCompile(`[^` + word + `.](\p{Nd}{4,})[^` + word + `]`)},
	quoted: {"\"'`", regexp.MustCompile(`"([^"\n\\]{3,60})"|` + "`([^`\n]{3,60})`" + `|(?:^|[^` + word + `])'([^'\n]{3,60})'[^` + word + `]`)},
}

const digits = "0123456789"

// Patterns of a part of an identifier.
var letter, letters = regexp.MustCompile(`[A-Za-z]`), regexp.MustCompile(`[A-Za-z]{2}`)

// isIdentifier reports whether a match of the pattern of a kind is an identifier.
func isIdentifier(kind int, id string) bool {
	switch kind {
	case path:
		return utf8.RuneCountInString(id) >= 6 && letters.MatchString(id)
	case code, sha:
		return strings.ContainsAny(id, digits) && letter.MatchString(id)
	case quoted:
		return id == trim(id) && letter.MatchString(id)
	}
	return true
}

// ids returns the distinct identifiers in text, ordered by kind, then by position.
func ids(text string) []string {
	var found [kinds][]string
	text = "\n" + text + "\n"
	for start := 0; start+1 < len(text); {
		end := start + 2 + strings.IndexByte(text[start+1:], '\n')
		for kind := range kinds {
			found[kind] = appendIdentifiers(found[kind], kind, text[start:end])
		}
		start = end - 1
	}
	return distinct(slices.Concat(found[:]...))
}

// appendIdentifiers appends the identifiers of a kind on a line. A search begins with the last character
// of the match before, which may be the context of the next one, but after a closing quote.
func appendIdentifiers(all []string, kind int, line string) []string {
	p := &patterns[kind]
	if p.need != "" && !strings.ContainsAny(line, p.need) {
		return all
	}
	for m := p.FindStringSubmatchIndex(line); m != nil; m = p.FindStringSubmatchIndex(line) {
		group := m[2:]
		for group[0] < 0 {
			group = group[2:]
		}
		id := line[group[0]:group[1]]
		if isIdentifier(kind, id) {
			all = append(all, id)
		}
		next := group[1] + 1
		if kind != quoted {
			_, last := utf8.DecodeLastRuneInString(id)
			next = group[1] - last
		}
		line = line[next:]
	}
	return all
}

// labels returns the words that label the text at byte at: words of three or more ASCII letters
// before it on its line, at most reach characters away, in lower case. Of a word that the reach
// cuts, the remaining letters count.
func labels(text string, at, reach int) []string {
	line := text[max(0, at-utf8.UTFMax*reach):at]
	line = line[strings.LastIndexByte(line, '\n')+1:]
	for n := utf8.RuneCountInString(line); n > reach; n-- {
		_, size := utf8.DecodeRuneInString(line)
		line = line[size:]
	}
	all := strings.FieldsFunc(lower(line), func(r rune) bool { return r < 'a' || r > 'z' })
	return slices.DeleteFunc(all, func(w string) bool { return len(w) < 3 || strings.Contains(noLabels, " "+w+" ") })
}

// noLabels are words that are too frequent to label anything.
const noLabels = ` the and for with that this from are was not but you has have its into can will all any our out use get new `
